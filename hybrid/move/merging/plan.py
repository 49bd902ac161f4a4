"""Which segments are merged: those of a closed bucket that would make fewer segments together. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from hybrid.move.segments import Aged
from hybrid.spec.table_config import MergeLevel
from hybrid.table.buckets import bucket_of, closed_until

# A large segment is not written anew for every few late rows: it waits for a part of its rows, or for so many segments.
_LARGE_ROWS, _PART, _SEGMENTS = 1_000_000, 10, 10
# Why segments of closed buckets stay as they are.
NO_TIMES = "their files do not tell their times"
LONGER = "they are longer than a bucket"


@dataclass(frozen=True)
class Group:
    """Segments of the bucket that starts at `start` (epoch ms) that are merged, in the order of time."""

    start: int
    segments: tuple[Aged, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the segments."""
        return tuple(one.name for one in self.segments)

    @property
    def rows(self) -> int:
        """How many they hold."""
        return sum(one.rows for one in self.segments)

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
    level: MergeLevel, segments: Iterable[Aged], now_ms: int, made: Collection[str], apart: Mapping[str, str]
) -> MergePlan:
    """What of some segments is to be merged at `now_ms`.

    `made` are names that merges of this level gave: what it made of a bucket is not merged again before more has come.
    `apart` names segments that nobody may touch now, and says why.
    """
    kept: defaultdict[str, list[str]] = defaultdict(list)
    buckets: defaultdict[int, list[Aged]] = defaultdict(list)
    closed_ms = closed_until(now_ms, level.buffer_ms, level.bucket_ms)
    for one in segments:
        if one.low is None or one.high is None:
            kept[NO_TIMES].append(one.name)
            continue
        bucket = bucket_of(one.low, level.bucket_ms)
        if max(bucket.end, one.high + 1) > closed_ms or one.rows >= level.max_records_per_segment:
            continue
        if one.high >= bucket.end:
            kept[LONGER].append(one.name)
        elif one.name in apart:
            kept[apart[one.name]].append(one.name)
        else:
            buckets[bucket.start].append(one)
    groups = [
        Group(start, tuple(found))
        for start, mine in sorted(buckets.items())
        for found in _within(sorted(mine, key=lambda one: (one.low or 0, one.name)), level.max_records_per_task)
        if _is_worth_it(found, level, made)
    ]
    return MergePlan(tuple(groups), {why: tuple(sorted(names)) for why, names in kept.items()})


def first_batch(groups: Sequence[Group], rows_max: int) -> tuple[Group, ...]:
    """As many groups, one of a bucket, as one task may take; at least one."""
    found: list[Group] = []
    for group in groups:
        if found and (group.start == found[-1].start or sum(one.rows for one in found) + group.rows > rows_max):
            break
        found.append(group)
    return tuple(found)


def _within(segments: Sequence[Aged], rows_max: int) -> Iterator[list[Aged]]:
    """Neighbours in time that have at most `rows_max` rows together."""
    found: list[Aged] = []
    for one in segments:
        if found and sum(other.rows for other in found) + one.rows > rows_max:
            yield found
            found = []
        found.append(one)
    if found:
        yield found


def _is_worth_it(segments: Sequence[Aged], level: MergeLevel, made: Collection[str]) -> bool:
    rows = [one.rows for one in segments]
    if len(segments) <= ceil(sum(rows) / level.max_records_per_segment) or all(one.name in made for one in segments):
        return False
    most = max(rows)
    return most < _LARGE_ROWS or len(segments) > _SEGMENTS or (sum(rows) - most) * _PART >= most
