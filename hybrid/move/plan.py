"""Plans a move: which closed buckets hold rows, which rows are late, and the boundary that follows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.plain import utc
from hybrid.spec.table_config import MoveConfig
from hybrid.table.boundary import INFINITE, Boundary, Offsets
from hybrid.table.buckets import Bucket, bucket_of, buckets_to_move, closed_until


@dataclass(frozen=True)
class MovePlan:
    """What a move takes: `buckets` newly covered, rows in them, late rows besides, and the boundary after it.

    `taken` is what was counted of it.
    """

    buckets: tuple[Bucket, ...]
    rows: int
    late_rows: int
    boundary: Boundary
    taken: tuple[Waiting, ...] = ()

    @property
    def rows_of_buckets(self) -> dict[int, int]:
        """The rows of each bucket, late ones too, by its start; empty without a time column."""
        found: dict[int, int] = {}
        for piece in self.taken:
            if piece.start is not None:
                found[piece.start] = found.get(piece.start, 0) + piece.count
        return found

    @property
    def times_of_buckets(self) -> dict[int, tuple[int, int]]:
        """The first and last time of a row of each bucket, epoch ms, by its start."""
        found: dict[int, tuple[int, int]] = {}
        for piece in self.taken:
            if piece.start is not None and piece.times is not None:
                low, high = found.get(piece.start, piece.times)
                found[piece.start] = (min(low, piece.times[0]), max(high, piece.times[1]))
        return found

    @property
    def moves_something(self) -> bool:
        """Whether there is anything to commit."""
        return self.rows + self.late_rows > 0


@dataclass(frozen=True)
class Waiting:
    """Rows that the boundary does not cover: `count` in the bucket that starts at `start` (None: no time column).

    `late` rows lie before T: their bucket has moved already, in whole or in part. `times` are their first and last.
    """

    start: int | None
    late: bool
    count: int
    times: tuple[int, int] | None = None


@dataclass(frozen=True)
class Reach:
    """How far a move goes: over at most `max_buckets` closed buckets that hold rows (None: all).

    With `until_ms` over every bucket that begins before it instead, closed or not: what comes later is late.
    """

    max_buckets: int | None = 1
    until_ms: int | None = None

    def closed_ms(self, config: MoveConfig, now_ms: int) -> int:
        """The end of the last bucket that may move."""
        if self.until_ms is None:
            return closed_until(now_ms, config.buffer_ms, config.bucket_ms)
        return bucket_of(self.until_ms - 1, config.bucket_ms).end


def plan_move(
    config: MoveConfig,
    before: Boundary,
    committed: Offsets,
    waiting: Sequence[Waiting],
    now_ms: int,
    reach: Reach,
) -> MovePlan:
    """The next move: the next buckets that hold rows, as far as it reaches, and every late row."""
    if before.time_ms == INFINITE:
        rows = sum(piece.count for piece in waiting)
        return MovePlan((), rows, 0, before.advance(INFINITE, committed), tuple(waiting))
    fresh = {piece.start: piece.count for piece in waiting if not piece.late and piece.start is not None}
    closed_ms = reach.closed_ms(config, now_ms)
    buckets = buckets_to_move(fresh, before.time_ms, closed_ms, config.bucket_ms, reach.max_buckets)
    starts = {bucket_of(bucket.end - 1, config.bucket_ms).start for bucket in buckets}
    taken = tuple(piece for piece in waiting if piece.late or piece.start in starts)
    late_rows = sum(piece.count for piece in taken if piece.late)
    rows = sum(piece.count for piece in taken) - late_rows
    end = buckets[-1].end if buckets else before.time_ms
    return MovePlan(tuple(buckets), rows, late_rows, before.advance(end, committed), taken)


def count_until(config: MoveConfig, before: Boundary, lows: Sequence[int], now_ms: int, reach: Reach) -> int | None:
    """The time up to which rows are counted before a move; None: all of them.

    `lows` are the first times of files: a time at or past T is one of a row that waits. So the next buckets that hold
    rows are known to end there, and a long backlog behind them need not be read.
    """
    if before.time_ms == INFINITE:
        return None
    closed_ms = reach.closed_ms(config, now_ms)
    fresh = {low for low in lows if before.time_ms is None or low >= before.time_ms}
    ends = sorted({bucket_of(low, config.bucket_ms).end for low in fresh})
    if reach.until_ms is None and reach.max_buckets is not None and len(ends) >= reach.max_buckets:
        closed_ms = min(closed_ms, ends[reach.max_buckets - 1])
    return closed_ms if before.time_ms is None else max(closed_ms, before.time_ms)


def reason_for_nothing(config: MoveConfig, waiting: Sequence[Waiting], now_ms: int) -> str:
    """Why a move has nothing to do, with the numbers that decide it."""
    open_buckets = {piece.start: piece.count for piece in waiting if piece.start is not None}
    if not open_buckets:
        return "every ingested row is in the offline half already"
    first = min(open_buckets)
    end = first + config.bucket_ms
    many = f"{len(open_buckets)} buckets" if len(open_buckets) > 1 else "1 bucket"
    return (
        f"{sum(open_buckets.values())} rows wait in {many} not closed yet: [{utc(first)}, {utc(end)}) closes at "
        f"{utc(end + config.buffer_ms)}, its end plus bufferTimePeriod; it is {utc(now_ms)}"
    )
