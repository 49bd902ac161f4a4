"""Realtime segments: which segment each row of a batch falls into, and what the batch leaves consuming.

The assignment depends on the row counts and sizes alone, in offset order, so Spark's workers and the tests' oracle
come to the same names. A segment is sealed when it reaches its threshold of rows, bytes or time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hybrid.table.boundary import PartitionKey
from hybrid.table.names import realtime_segment
from hybrid.table.state import Consuming


@dataclass(frozen=True)
class Thresholds:
    """When a consuming segment is sealed: rows, bytes of message values, milliseconds since its first commit."""

    rows: int
    bytes: int
    ms: int

    def leave_open(self, segment: Consuming, now_ms: int) -> bool:
        """Whether the segment goes on consuming: it has reached none of its thresholds."""
        return segment.rows < self.rows and segment.bytes < self.bytes and now_ms - segment.created_ms < self.ms


class Assigner:
    """Hands out segments to the good rows of one partition, one after the other. Picklable; used in Spark's workers."""

    def __init__(
        self,
        table: str,
        key: PartitionKey,
        limits: Thresholds,
        now_ms: int,
        current: Consuming | None,
        sequence: int,
    ) -> None:
        self._table, self._key, self._limits, self._now_ms = table, key, limits, now_ms
        self._sequence = sequence
        self._current = current

    def assign(self, offset: int, size: int) -> str:
        """The name of the segment that takes the row at `offset` with a value of `size` bytes."""
        if self._current is None or not self._limits.leave_open(self._current, self._now_ms):
            name = realtime_segment(self._table, self._key.partition, self._sequence, self._now_ms)
            self._current = Consuming(name, self._sequence, offset, 0, 0, self._now_ms)
            self._sequence += 1
        last = self._current
        self._current = replace(last, rows=last.rows + 1, bytes=last.bytes + size)
        return last.name
