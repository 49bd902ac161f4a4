"""The stretch of time that a backfill corrects, and its buckets: half-open, aligned to the epoch, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hybrid.table.buckets import Bucket, bucket_of


@dataclass(frozen=True)
class Window:
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
