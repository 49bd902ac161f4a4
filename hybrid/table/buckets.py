"""Time buckets of the realtime-to-offline move: half-open, aligned to the epoch, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Bucket:
    """[`start`, `end`) in epoch milliseconds."""

    start: int
    end: int


def bucket_of(time_ms: int, period_ms: int) -> Bucket:
    """The aligned bucket that holds a time; times before 1970 fall into negative buckets."""
    start = time_ms // period_ms * period_ms
    return Bucket(start, start + period_ms)


def closed_until(now_ms: int, buffer_ms: int, period_ms: int) -> int:
    """The end of the last closed bucket: the greatest aligned end with `end <= now - buffer`."""
    return (now_ms - buffer_ms) // period_ms * period_ms


def buckets_to_move(
    starts: Iterable[int], boundary_ms: int | None, closed_ms: int, period_ms: int, max_buckets: int | None
) -> list[Bucket]:
    """The next closed buckets that hold rows, in time order; at most `max_buckets` (None: all).

    `starts` are the starts of the buckets that hold rows the boundary does not cover. A bucket that ends at or before
    T holds late rows only, which every move takes: it is not listed here. After a change of the period, T may lie
    inside a bucket: that bucket begins at T, so that no row is moved twice.
    """
    open_buckets = sorted({bucket_of(start, period_ms) for start in starts})
    low = boundary_ms if boundary_ms is not None else (open_buckets[0].start if open_buckets else 0)
    due = [Bucket(max(b.start, low), b.end) for b in open_buckets if b.end > low and b.end <= closed_ms]
    return due if max_buckets is None else due[:max_buckets]
