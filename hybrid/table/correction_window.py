"""The stretch of time that a backfill corrects, and its buckets: half-open, aligned to the epoch, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hybrid.config.table_config import TableSpec
from hybrid.errors import UsageError
from hybrid.runtime.json_values import utc
from hybrid.schema.rounding import rounded_down
from hybrid.table.boundary import Boundary
from hybrid.table.buckets import Bucket, bucket_of


@dataclass(frozen=True)
class CorrectionWindow:
    """[`start`, `end`) in buckets of `period_ms`; those at its ends are cut to it."""

    start: int
    end: int
    period_ms: int

    def buckets(self) -> Iterator[Bucket]:
        """All buckets, in time order."""
        start = self.start
        while start < self.end:
            end = min(bucket_of(start, self.period_ms).end, self.end)
            yield Bucket(start, end)
            start = end

    @property
    def bucket_count(self) -> int:
        """How many buckets there are."""
        return -(-self.end // self.period_ms) - self.start // self.period_ms

    def bucket_sql(self, time: str) -> str:
        """The start of the bucket that holds the time in column `time`; null outside the window."""
        aligned = f"{time} - pmod({time}, {self.period_ms})"
        return f"CASE WHEN {time} >= {self.start} AND {time} < {self.end} THEN greatest({aligned}, {self.start}) END"


def rounded_to(spec: TableSpec, boundary: Boundary) -> int:
    """The step that all roundings fit into: those that rows of OFFLINE went through, and those of the tasks of now."""
    return boundary.with_step(spec.step_ms).step_ms


def refuse_divided(spec: TableSpec, step_ms: int, what: str, *edges: int) -> None:
    """UsageError for an edge of `what` inside of times that are rounded to one: rows of both sides stand there.

    `step_ms` is `rounded_to` of the table.
    """
    for edge in edges:
        start = rounded_down(edge, step_ms)
        if edge != start:
            raise UsageError(
                f"{what}: {utc(edge)} divides times of '{spec.name}' that are rounded to {utc(start)} in OFFLINE. "
                f"Take {utc(start)} or {utc(start + step_ms)}."
            )
