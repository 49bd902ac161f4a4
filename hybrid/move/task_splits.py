"""Divides the rows of a move among tasks, and its files among segments. Pure.

Tasks take stretches of time, one after the other, each with about as many rows. How the rows lie inside a large bucket
is guessed from the statistics of the files that are read: a bad guess costs time and nothing else.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from typing import Any

from hybrid.config.table_config import BucketConfig, TableSpec
from hybrid.lake.files import LaidFile
from hybrid.lake.log import DataFile
from hybrid.schema.rounding import rounded_down
from hybrid.table.boundary import INFINITE, Boundary, Offsets
from hybrid.table.buckets import Bucket, bucket_of
from hybrid.table.columns import OFFSET, PARTITION, TIME, TIMESTAMP
from hybrid.table.coverage_sql import lowest_waiting
from hybrid.table.names import exact_time, offline_segment

# What a task sorts in memory.
TASK_ROWS = 500_000


@dataclass(frozen=True)
class SplitRange:
    """`rows` rows between `low` and `high`, both included, evenly as far as anybody knows."""

    low: int
    high: int
    rows: int

    def before(self, until: int) -> float:
        """How many of them lie before `until`."""
        return self.rows * min(max(until - self.low, 0) / (self.high + 1 - self.low), 1.0)


def stretches(files: Sequence[DataFile], column: str) -> list[SplitRange]:
    """How the values of a column lie in files whose statistics tell it."""
    found = ((file.low.get(column), file.high.get(column), file.rows) for file in files)
    return [SplitRange(low, high, rows) for low, high, rows in found if isinstance(low, int) and isinstance(high, int)]


def waiting_files(files: Sequence[DataFile], boundary: Boundary, committed: Offsets) -> list[DataFile]:
    """The files that may hold rows which the boundary does not cover, by their statistics."""
    lowest = lowest_waiting(boundary, committed)

    def may_wait(file: DataFile) -> bool:
        if boundary.time_ms is None or (file.times is None and boundary.time_ms != INFINITE):
            return True
        if file.times is not None and file.times[1] >= boundary.time_ms:
            return True
        first, last, offset = file.low.get(PARTITION), file.high.get(PARTITION), file.high.get(OFFSET)
        if not (isinstance(first, int) and isinstance(last, int) and isinstance(offset, int)):
            return True
        return any(first <= number <= last and offset >= lowest[number] for number in lowest)

    return [file for file in files if may_wait(file)]


def borders(
    counts: Mapping[int, int],
    period_ms: int,
    lying: Sequence[SplitRange],
    end_ms: int,
    rows_per_task: int = TASK_ROWS,
) -> list[int]:
    """The times at which a task ends and the next one begins, ascending.

    `counts` are the rows of each bucket by its start, none at or past `end_ms`; a task that ends inside a bucket ends
    where `lying` says that a part of its rows is done.
    """
    found: list[int] = []
    filled = 0
    for start, rows in sorted(counts.items()):
        if filled and filled + rows > rows_per_task:
            found.append(start)
            filled = 0
        parts = ceil(rows / rows_per_task)
        found += _inside(Bucket(start, min(start + period_ms, end_ms)), parts, lying)
        filled += rows if parts == 1 else rows_per_task
    return found


def borders_of_all(rows: int, lying: Sequence[SplitRange], rows_per_task: int = TASK_ROWS) -> list[int]:
    """As `borders`, where there are no buckets: the whole stretch is one."""
    if not lying:
        return []
    everything = Bucket(min(one.low for one in lying), max(one.high for one in lying) + 1)
    return _inside(everything, ceil(rows / rows_per_task), lying)


def _inside(bucket: Bucket, parts: int, lying: Sequence[SplitRange]) -> list[int]:
    """Where `bucket` is cut into so many parts."""
    if parts <= 1:
        return []
    mine = [one for one in lying if one.low < bucket.end and bucket.start <= one.high]
    first, last = (sum(one.before(at) for one in mine) for at in (bucket.start, bucket.end))
    times = range(bucket.start, bucket.end)
    wanted = (first + (last - first) * part / parts for part in range(1, parts))
    cuts = {
        bucket.start + bisect_left(times, rows, key=lambda at: sum(one.before(at) for one in mine)) for rows in wanted
    }
    return sorted(cuts - {bucket.start, bucket.end})


@dataclass(frozen=True)
class TaskSplit:
    """Files of one bucket (its start; None without a time column) that become one segment, in the order of time.

    Where rows are divided by their values, of one partition.
    """

    bucket: int | None
    files: tuple[LaidFile, ...]

    @property
    def partition(self) -> int | None:
        """The number of the partition."""
        return self.files[0].partition

    @property
    def rows(self) -> int:
        """How many rows they hold."""
        return sum(file.rows for file in self.files)

    @property
    def times(self) -> tuple[int, int] | None:
        """The first and last time of a row, epoch ms; None without a time column."""
        low, high = self.range_of(TIME)
        return None if low is None else (low, high)

    def range_of(self, column: str) -> tuple[Any, Any]:
        """The least and the greatest value of a column, by the files' statistics; None twice where none tells."""
        ranges = [found for file in self.files if (found := file.range_of(column)) is not None]
        return (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else (None, None)


def task_splits_of(files: Sequence[LaidFile], period_ms: int, rows_max: int) -> list[TaskSplit]:
    """The segments that files make, bucket by bucket in the order of time: none has more than `rows_max` rows."""
    found: list[TaskSplit] = []

    def of_segment(file: LaidFile) -> tuple[int, int]:
        return _bucket(file, period_ms) or 0, file.partition or 0

    ordered = sorted(sorted(files, key=_place), key=of_segment)
    for _, group in groupby(ordered, key=of_segment):
        mine = list(group)
        bucket = _bucket(mine[0], period_ms)
        open_part: list[LaidFile] = []
        for file in mine:
            if open_part and sum(one.rows for one in open_part) + file.rows > rows_max:
                found.append(TaskSplit(bucket, tuple(open_part)))
                open_part = []
            open_part.append(file)
        found.append(TaskSplit(bucket, tuple(open_part)))
    return found


def _place(file: LaidFile) -> tuple[tuple[int, int], str]:
    """Where a file stands: by time, else by arrival."""
    return file.range_of(TIME) or file.range_of(TIMESTAMP) or (0, 0), file.name


def _bucket(file: LaidFile, period_ms: int) -> int | None:
    times = file.range_of(TIME)
    return None if times is None else bucket_of(times[0], period_ms).start


def rows_per_task(rows_max: int) -> int:
    """How many rows a task takes, so that a bucket of some segments makes no more of them than it must.

    Where a segment may only have a few, they share a task.
    """
    return min(TASK_ROWS, rows_max) if rows_max * 8 >= TASK_ROWS else TASK_ROWS


def names_of(
    spec: TableSpec,
    config: BucketConfig,
    parts: Sequence[TaskSplit],
    times: Mapping[int, tuple[int, int]],
    taken: Collection[str],
) -> list[str]:
    """A name for every segment, none of `taken`: the first and last time of the rows read into it, rounded.

    `times` are those of each bucket by its start: of one that makes several segments, rows that were merged away count
    with the first and the last one. Of a partition only its own count.
    """
    names, held = [], set(taken)
    for place, part in enumerate(parts):
        low, high = part.times or (None, None)
        read = times.get(part.bucket) if part.bucket is not None and part.partition is None else None
        first, last = (low, high) if read is None else (rounded_down(time, config.step_ms) for time in read)
        if place and parts[place - 1].bucket == part.bucket:
            first = low
        if place + 1 < len(parts) and parts[place + 1].bucket == part.bucket:
            last = high
        low_stored, high_stored = part.range_of(spec.time_column) if spec.time_column else (None, None)
        shown = exact_time(spec, first, low_stored), exact_time(spec, last, high_stored)
        names.append(offline_segment(config.name_prefix or spec.name, *shown, held, config.name_postfix))
        held.add(names[-1])
    return names
