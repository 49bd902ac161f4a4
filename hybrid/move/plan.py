"""Plans a move: which closed buckets hold rows, which rows are late, and the next boundary. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hybrid.config.table_config import MoveConfig
from hybrid.runtime.json_values import utc
from hybrid.table.boundary import INFINITE, Boundary, Offsets
from hybrid.table.buckets import Bucket, bucket_of, buckets_to_move, closed_until


@dataclass(frozen=True)
class MovePlan:
    """The plan of a move: `buckets` newly covered, rows in them, late rows besides, and the boundary after it.

    `taken` are the counts of the moved rows. `is_bounded`: maxNumRecordsPerTask left closed buckets for the next run.
    """

    buckets: tuple[Bucket, ...]
    rows: int
    late_rows: int
    boundary: Boundary
    taken: tuple[WaitingBuckets, ...] = ()
    is_bounded: bool = False

    @property
    def rows_of_buckets(self) -> dict[int, int]:
        """The rows of each bucket, including late ones, by its start; empty without a time column."""
        rows_by_start: dict[int, int] = {}
        for piece in self.taken:
            if piece.start is not None:
                rows_by_start[piece.start] = rows_by_start.get(piece.start, 0) + piece.count
        return rows_by_start

    @property
    def times_of_buckets(self) -> dict[int, tuple[int, int]]:
        """The first and last time of a row of each bucket, epoch ms, by its start."""
        times_by_start: dict[int, tuple[int, int]] = {}
        for piece in self.taken:
            if piece.start is not None and piece.times is not None:
                low, high = times_by_start.get(piece.start, piece.times)
                times_by_start[piece.start] = (min(low, piece.times[0]), max(high, piece.times[1]))
        return times_by_start

    @property
    def moves_something(self) -> bool:
        """Whether there is anything to commit."""
        return self.rows + self.late_rows > 0


@dataclass(frozen=True)
class WaitingBuckets:
    """Rows that the boundary does not cover: `count` in the bucket that starts at `start` (None: no time column).

    `late` rows lie before T: their bucket, or a part of it, has moved already. `times` are their first and last time.
    """

    start: int | None
    late: bool
    count: int
    times: tuple[int, int] | None = None


@dataclass(frozen=True)
class Reach:
    """How far a move goes: over at most `max_buckets` closed buckets that hold rows (None: all).

    With `until_ms` instead: over every bucket that begins before it, closed or not. Rows that arrive later are late
    then.
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
    waiting: Sequence[WaitingBuckets],
    now_ms: int,
    reach: Reach,
) -> MovePlan:
    """The next move: the next buckets that hold rows, as far as it reaches, and every late row.

    A single bucket with more rows than a task may take is planned whole; `until` then ends the plan inside it.
    """
    if before.time_ms == INFINITE:
        rows = sum(piece.count for piece in waiting)
        return MovePlan((), rows, 0, before.advance(INFINITE, committed), tuple(waiting))
    fresh = {piece.start: piece.count for piece in waiting if not piece.late and piece.start is not None}
    closed_ms = reach.closed_ms(config, now_ms)
    buckets = buckets_to_move(fresh, before.time_ms, closed_ms, config.bucket_ms, reach.max_buckets)
    late_rows = sum(piece.count for piece in waiting if piece.late)
    due = len(buckets)
    if reach.until_ms is None:
        buckets = _within(buckets, fresh, config, late_rows)
    starts = {_start(bucket, config) for bucket in buckets}
    taken = tuple(piece for piece in waiting if piece.late or piece.start in starts)
    rows = sum(piece.count for piece in taken) - late_rows
    end = buckets[-1].end if buckets else before.time_ms
    return MovePlan(tuple(buckets), rows, late_rows, before.advance(end, committed), taken, len(buckets) < due)


def _within(buckets: Sequence[Bucket], fresh: Mapping[int, int], config: MoveConfig, late_rows: int) -> list[Bucket]:
    """The first buckets that fit into a task beside the late rows; at least one if the task has room for any row."""
    rows, chosen = late_rows, list[Bucket]()
    for bucket in buckets:
        rows += fresh[_start(bucket, config)]
        if rows > config.max_records_per_task and (chosen or late_rows >= config.max_records_per_task):
            break
        chosen.append(bucket)
    return chosen


def _start(bucket: Bucket, config: MoveConfig) -> int:
    """The start of the aligned bucket that it is, or is a part of."""
    return bucket_of(bucket.end - 1, config.bucket_ms).start


def until(plan: MovePlan, end_ms: int, piece: WaitingBuckets, before: Boundary, committed: Offsets) -> MovePlan:
    """A plan of one bucket that ends inside it; `piece` describes the rows that it then takes."""
    (bucket,) = plan.buckets
    late = tuple(piece_before for piece_before in plan.taken if piece_before.late)
    part = (Bucket(bucket.start, end_ms),)
    return MovePlan(part, piece.count, plan.late_rows, before.advance(end_ms, committed), (*late, piece), True)


@dataclass(frozen=True)
class Slots:
    """A range of time [`start`, `end`) in at most 1,024 slots of equal length.

    Slots begin at multiples of `step`, as `start` does. Times within one step are rounded to one time and never
    divided.
    """

    start: int
    end: int
    step: int = 1

    @property
    def width(self) -> int:
        """The length of a slot, ms."""
        return -(-(self.end - self.start) // (1024 * self.step)) * self.step

    def divide(self, counts: Mapping[int, int], rows_max: int) -> Slots | int:
        """The time before which at most `rows_max` rows lie, given the rows of each slot; or a slot to examine further.

        When a single step holds more than `rows_max` rows, the result is its end, because a step cannot be divided.
        """
        rows = 0
        for slot, count in sorted(counts.items()):
            at = self.start + slot * self.width
            if rows + count > rows_max:
                if rows:
                    return at
                return min(at + self.step, self.end) if self.width == self.step else self._slot(at)
            rows += count
        return self.end

    def _slot(self, at: int) -> Slots:
        return Slots(at, min(at + self.width, self.end), self.step)


def count_until(config: MoveConfig, before: Boundary, lows: Sequence[int], now_ms: int, reach: Reach) -> int | None:
    """The time up to which rows are counted before a move; None: all of them.

    `lows` are the first times of files: one at or past T belongs to a waiting row. So the next buckets with rows are
    known, and a long backlog behind them need not be read.
    """
    if before.time_ms == INFINITE:
        return None
    closed_ms = reach.closed_ms(config, now_ms)
    fresh = {low for low in lows if before.time_ms is None or low >= before.time_ms}
    ends = sorted({bucket_of(low, config.bucket_ms).end for low in fresh})
    if reach.until_ms is None and reach.max_buckets is not None and len(ends) >= reach.max_buckets:
        closed_ms = min(closed_ms, ends[reach.max_buckets - 1])
    return closed_ms if before.time_ms is None else max(closed_ms, before.time_ms)


def reason_for_nothing(config: MoveConfig, waiting: Sequence[WaitingBuckets], now_ms: int) -> str:
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
