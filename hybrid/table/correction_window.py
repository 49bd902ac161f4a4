"""The time range that a backfill corrects, and its buckets: half-open, aligned to the epoch, in milliseconds."""

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
    """[`start`, `end`) in buckets of `period_ms`; the first and the last bucket are cut to the window."""

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
        """The number of buckets."""
        return -(-self.end // self.period_ms) - self.start // self.period_ms

    def bucket_sql(self, time: str) -> str:
        """The start of the bucket that holds the time in column `time`; null outside the window."""
        aligned = f"{time} - pmod({time}, {self.period_ms})"
        return f"CASE WHEN {time} >= {self.start} AND {time} < {self.end} THEN greatest({aligned}, {self.start}) END"


def rounded_to(spec: TableSpec, boundary: Boundary) -> int:
    """The common step (ms) of all roundings: of the rows in OFFLINE, and of the tasks configured now."""
    return boundary.with_step(spec.step_ms).step_ms


def refuse_divided(spec: TableSpec, step_ms: int, what: str, *edges: int) -> None:
    """UsageError for an edge of `what` inside a rounding step, whose rows on both sides OFFLINE stores at one time.

    `step_ms` is the table's `rounded_to`.
    """
    for edge in edges:
        start = rounded_down(edge, step_ms)
        if edge != start:
            raise UsageError(
                f"{what}: {utc(edge)} divides times of '{spec.name}' that are rounded to {utc(start)} in OFFLINE. "
                f"Take {utc(start)} or {utc(start + step_ms)}."
            )
