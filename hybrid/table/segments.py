"""Realtime segments: assigns the rows of a batch to segments, and decides which segment keeps consuming.

The assignment depends only on row counts and sizes, in offset order, so Spark's workers and the tests' oracle compute
the same names. A segment is sealed when it reaches its threshold of rows, bytes or time.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        """Whether the segment keeps consuming: it has reached none of its thresholds."""
        return segment.rows < self.rows and segment.bytes < self.bytes and now_ms - segment.created_ms < self.ms


class Assigner:
    """Assigns the good rows of the partition `key` to segments, in offset order.

    `group` is the partition's number in segment names (None: its own). Picklable, for Spark's workers.
    """

    def __init__(
        self,
        table: str,
        key: PartitionKey,
        limits: Thresholds,
        now_ms: int,
        current: Consuming | None,
        sequence: int,
        group: int | None = None,
    ) -> None:
        self.key = key
        self._group = key.partition if group is None else group
        self._table, self._limits, self._now_ms = table, limits, now_ms
        self._sequence = sequence
        is_open = current is not None and limits.leave_open(current, now_ms)
        self._name = current.name if current is not None and is_open else None
        self._rows, self._bytes = (current.rows, current.bytes) if current is not None and is_open else (0, 0)

    def assign(self, size: int) -> str:
        """The name of the segment for the next row, whose message value has `size` bytes."""
        limits = self._limits
        if self._name is None or self._rows >= limits.rows or self._bytes >= limits.bytes:
            self._name = realtime_segment(self._table, self._group, self._sequence, self._now_ms)
            self._sequence += 1
            self._rows = self._bytes = 0
        self._rows += 1
        self._bytes += size
        return self._name
