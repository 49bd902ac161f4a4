"""Plans merges: segments of a closed bucket that would make fewer segments together. Pure functions.

A level that rolls up or rounds more than moves did also takes other segments, because it changes their rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from hybrid.config.table_config import MergeLevel, MergeType
from hybrid.move.segments import Aged
from hybrid.table.buckets import bucket_of, closed_until

# A large merge result is not rewritten for every few late rows, but when they are at least a tenth of its rows.
_LARGE_ROWS, _PART = 100_000, 10
# Reasons why segments of closed buckets are excluded.
NO_TIMES = "their files do not tell their times"
LONGER = "they are longer than a bucket"


@dataclass(frozen=True)
class Group:
    """Segments of the bucket that starts at `start` (epoch ms) to merge, in the order of time.

    `rows_out` is the expected number of result rows; None: at least one, at most all.
    """

    start: int
    segments: tuple[Aged, ...]
    rows_out: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the segments."""
        return tuple(segment.name for segment in self.segments)

    @property
    def rows(self) -> int:
        """The total number of rows."""
        return sum(segment.rows for segment in self.segments)

    def allows(self, written: int) -> bool:
        """Whether `written` is a valid number of result rows."""
        return 0 < written <= self.rows if self.rows_out is None else written == self.rows_out

    @property
    def times(self) -> tuple[int, int]:
        """The first and last time of a row."""
        lows, highs = zip(*((segment.low, segment.high) for segment in self.segments), strict=True)
        return min(lows), max(highs)


@dataclass(frozen=True)
class MergePlan:
    """The groups of a level, in the order of time; `kept` names excluded segments, by the reason."""

    groups: tuple[Group, ...]
    kept: Mapping[str, tuple[str, ...]]


def plan_merges(
    level: MergeLevel,
    segments: Iterable[Aged],
    now_ms: int,
    made: Collection[str],
    why_apart: Callable[[Aged], str | None],
    *,
    anew: Collection[str] = (),
) -> MergePlan:
    """The merges of some segments at `now_ms`.

    `made` are names of segments that merges of this level wrote: such a result is not merged again before more segments
    arrive. `anew` are other names whose rows have to be changed: they are merged even if that does not reduce the
    number of segments. `why_apart` returns the reason why a segment is excluded now.
    """
    excluded: defaultdict[str, list[str]] = defaultdict(list)
    buckets: defaultdict[int, list[Aged]] = defaultdict(list)
    closed_ms = closed_until(now_ms, level.buffer_ms, level.bucket_ms)
    for segment in segments:
        if segment.low is None or segment.high is None:
            excluded[NO_TIMES].append(segment.name)
            continue
        bucket = bucket_of(segment.low, level.bucket_ms)
        is_full = segment.rows >= level.max_records_per_segment and segment.name not in anew
        if max(bucket.end, segment.high + 1) > closed_ms or is_full:
            continue
        why = LONGER if segment.high >= bucket.end else why_apart(segment)
        if why is not None:
            excluded[why].append(segment.name)
        else:
            buckets[bucket.start].append(segment)
    groups = [
        Group(
            start,
            tuple(joined),
            sum(segment.rows for segment in joined) if level.merge_type is MergeType.CONCAT else None,
        )
        for start, mine in sorted(buckets.items())
        for joined in _within(_joining(mine, made), level.max_records_per_task)
        if (
            any(segment.name in anew for segment in joined)
            or len(joined) > ceil(sum(segment.rows for segment in joined) / level.max_records_per_segment)
        )
        and not all(segment.name in made for segment in joined)
    ]
    return MergePlan(tuple(groups), {why: tuple(sorted(names)) for why, names in excluded.items()})


def first_batch(groups: Sequence[Group], rows_max: int) -> tuple[Group, ...]:
    """The first groups that fit into one task, one per bucket; at least one."""
    batch: list[Group] = []
    rows = 0
    for group in groups:
        rows += group.rows
        if batch and (group.start == batch[-1].start or rows > rows_max):
            break
        batch.append(group)
    return tuple(batch)


def _joining(segments: Sequence[Aged], made: Collection[str]) -> list[Aged]:
    """The segments of a bucket to merge, in the order of time, without large ones with too few new rows beside them."""
    settled = {segment.name for segment in segments if segment.name in made and segment.rows >= _LARGE_ROWS}
    new_rows = sum(segment.rows for segment in segments if segment.name not in settled)
    joining = [segment for segment in segments if segment.name not in settled or new_rows * _PART >= segment.rows]
    return sorted(joining, key=lambda segment: (segment.low or 0, segment.name))


def _within(segments: Sequence[Aged], rows_max: int) -> Iterator[list[Aged]]:
    """Runs of segments that are neighbours in time and have at most `rows_max` rows together."""
    run: list[Aged] = []
    rows = 0
    for segment in segments:
        if run and rows + segment.rows > rows_max:
            yield run
            run, rows = [], 0
        run.append(segment)
        rows += segment.rows
    if run:
        yield run
