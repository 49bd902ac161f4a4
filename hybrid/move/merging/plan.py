"""Which segments are merged: those of a closed bucket that would make fewer segments together. Pure.

Of a level that rolls up or rounds more than moves did, also those that would not: their rows are to become others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from hybrid.config.table_config import MergeLevel, MergeType
from hybrid.move.segments import Aged
from hybrid.table.buckets import bucket_of, closed_until

# What a merge has made is not written anew for every few late rows: from so many rows on it waits for a part of them.
_LARGE_ROWS, _PART = 100_000, 10
# Why segments of closed buckets stay as they are.
NO_TIMES = "their files do not tell their times"
LONGER = "they are longer than a bucket"


@dataclass(frozen=True)
class Group:
    """Segments of the bucket that starts at `start` (epoch ms) that are merged, in the order of time.

    As many rows come out as `rows_out`; None: at least one, at most all.
    """

    start: int
    segments: tuple[Aged, ...]
    rows_out: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the segments."""
        return tuple(one.name for one in self.segments)

    @property
    def rows(self) -> int:
        """How many they hold."""
        return sum(one.rows for one in self.segments)

    def allows(self, written: int) -> bool:
        """Whether that many rows may have come out."""
        return 0 < written <= self.rows if self.rows_out is None else written == self.rows_out

    @property
    def times(self) -> tuple[int, int]:
        """The first and last time of a row."""
        lows, highs = zip(*((one.low, one.high) for one in self.segments), strict=True)
        return min(lows), max(highs)


@dataclass(frozen=True)
class MergePlan:
    """The groups of a level, in the order of time; `kept` names segments that stay, by the reason why."""

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
    """What of some segments is to be merged at `now_ms`.

    `made` are names that merges of this level gave: what it made of a bucket is not merged again before more has come.
    `anew` are other names, whose rows are to become others: they are merged though they are not fewer segments then.
    `why_apart` tells why nobody may touch a segment now.
    """
    kept: defaultdict[str, list[str]] = defaultdict(list)
    buckets: defaultdict[int, list[Aged]] = defaultdict(list)
    closed_ms = closed_until(now_ms, level.buffer_ms, level.bucket_ms)
    for one in segments:
        if one.low is None or one.high is None:
            kept[NO_TIMES].append(one.name)
            continue
        bucket = bucket_of(one.low, level.bucket_ms)
        is_full = one.rows >= level.max_records_per_segment and one.name not in anew
        if max(bucket.end, one.high + 1) > closed_ms or is_full:
            continue
        why = LONGER if one.high >= bucket.end else why_apart(one)
        if why is not None:
            kept[why].append(one.name)
        else:
            buckets[bucket.start].append(one)
    groups = [
        Group(start, tuple(found), sum(one.rows for one in found) if level.merge_type is MergeType.CONCAT else None)
        for start, mine in sorted(buckets.items())
        for found in _within(_joining(mine, made), level.max_records_per_task)
        if (
            any(one.name in anew for one in found)
            or len(found) > ceil(sum(one.rows for one in found) / level.max_records_per_segment)
        )
        and not all(one.name in made for one in found)
    ]
    return MergePlan(tuple(groups), {why: tuple(sorted(names)) for why, names in kept.items()})


def first_batch(groups: Sequence[Group], rows_max: int) -> tuple[Group, ...]:
    """As many groups, one of a bucket, as one task may take; at least one."""
    found: list[Group] = []
    rows = 0
    for group in groups:
        rows += group.rows
        if found and (group.start == found[-1].start or rows > rows_max):
            break
        found.append(group)
    return tuple(found)


def _joining(segments: Sequence[Aged], made: Collection[str]) -> list[Aged]:
    """Those of a bucket that are merged, in the order of time: without large ones for which too few rows have come."""
    settled = {one.name for one in segments if one.name in made and one.rows >= _LARGE_ROWS}
    come = sum(one.rows for one in segments if one.name not in settled)
    joining = [one for one in segments if one.name not in settled or come * _PART >= one.rows]
    return sorted(joining, key=lambda one: (one.low or 0, one.name))


def _within(segments: Sequence[Aged], rows_max: int) -> Iterator[list[Aged]]:
    """Neighbours in time that have at most `rows_max` rows together."""
    found: list[Aged] = []
    rows = 0
    for one in segments:
        if found and rows + one.rows > rows_max:
            yield found
            found, rows = [], 0
        found.append(one)
        rows += one.rows
    if found:
        yield found
