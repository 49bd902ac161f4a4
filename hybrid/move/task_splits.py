"""Divides the rows of a move among tasks, and its files among segments. Pure functions.

Tasks take consecutive ranges of time with about equal numbers of rows. The distribution of rows inside a large bucket
is estimated from the statistics of the files to read. A bad estimate only costs time.
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
from hybrid.lake.log_entries import DataFile
from hybrid.schema.rounding import rounded_down
from hybrid.table.buckets import Bucket, bucket_of
from hybrid.table.columns import TIME, TIMESTAMP
from hybrid.table.names import exact_time, offline_segment

# The rows that a task sorts in memory.
TASK_ROWS = 500_000


@dataclass(frozen=True)
class SplitRange:
    """`rows` rows between `low` and `high`, both included, assumed to be evenly distributed."""

    low: int
    high: int
    rows: int

    def before(self, until: int) -> float:
        """The estimated number of rows before `until`."""
        return self.rows * min(max(until - self.low, 0) / (self.high + 1 - self.low), 1.0)


def stretches(files: Sequence[DataFile], column: str) -> list[SplitRange]:
    """The distribution of a column's values in files with statistics for it."""
    ranges = ((file.low.get(column), file.high.get(column), file.rows) for file in files)
    return [SplitRange(low, high, rows) for low, high, rows in ranges if isinstance(low, int) and isinstance(high, int)]


def borders(
    counts: Mapping[int, int],
    period_ms: int,
    lying: Sequence[SplitRange],
    end_ms: int,
    rows_per_task: int = TASK_ROWS,
) -> list[int]:
    """The times at which a task ends and the next one begins, ascending.

    `counts` are the rows of each bucket by its start, none at or past `end_ms`. A task that ends inside a bucket ends
    at the time by which `lying` estimates its share of the rows.
    """
    times: list[int] = []
    filled = 0
    for start, rows in sorted(counts.items()):
        if filled and filled + rows > rows_per_task:
            times.append(start)
            filled = 0
        parts = ceil(rows / rows_per_task)
        times += _inside(Bucket(start, min(start + period_ms, end_ms)), parts, lying)
        filled += rows if parts == 1 else rows_per_task
    return times


def borders_of_all(rows: int, lying: Sequence[SplitRange], rows_per_task: int = TASK_ROWS) -> list[int]:
    """Like `borders`, for a table without buckets: the whole range is one bucket."""
    if not lying:
        return []
    everything = Bucket(min(split.low for split in lying), max(split.high for split in lying) + 1)
    return _inside(everything, ceil(rows / rows_per_task), lying)


def _inside(bucket: Bucket, parts: int, lying: Sequence[SplitRange]) -> list[int]:
    """The times that cut `bucket` into `parts` parts."""
    if parts <= 1:
        return []
    mine = [split for split in lying if split.low < bucket.end and bucket.start <= split.high]
    first, last = (sum(split.before(at) for split in mine) for at in (bucket.start, bucket.end))
    times = range(bucket.start, bucket.end)
    row_targets = (first + (last - first) * part / parts for part in range(1, parts))
    cuts = {
        bucket.start + bisect_left(times, rows, key=lambda at: sum(split.before(at) for split in mine))
        for rows in row_targets
    }
    return sorted(cuts - {bucket.start, bucket.end})


@dataclass(frozen=True)
class TaskSplit:
    """Files of one bucket (its start; None without a time column) that become one segment, in the order of time.

    If rows are divided by their values, all belong to one partition.
    """

    bucket: int | None
    files: tuple[LaidFile, ...]

    @property
    def partition(self) -> int | None:
        """The number of the partition."""
        return self.files[0].partition

    @property
    def rows(self) -> int:
        """The number of rows in the files."""
        return sum(file.rows for file in self.files)

    @property
    def times(self) -> tuple[int, int] | None:
        """The first and last time of a row, epoch ms; None without a time column."""
        low, high = self.range_of(TIME)
        return None if low is None else (low, high)

    def range_of(self, column: str) -> tuple[Any, Any]:
        """The least and the greatest value of a column, by the files' statistics; (None, None) without any."""
        ranges = [value_range for file in self.files if (value_range := file.range_of(column)) is not None]
        return (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else (None, None)


def task_splits_of(files: Sequence[LaidFile], period_ms: int, rows_max: int) -> list[TaskSplit]:
    """The segments that the files form, bucket by bucket in the order of time, each with at most `rows_max` rows."""
    splits: list[TaskSplit] = []

    def of_segment(file: LaidFile) -> tuple[int, int]:
        return _bucket(file, period_ms) or 0, file.partition or 0

    ordered = sorted(sorted(files, key=_place), key=of_segment)
    for _, group in groupby(ordered, key=of_segment):
        mine = list(group)
        bucket = _bucket(mine[0], period_ms)
        open_part: list[LaidFile] = []
        for file in mine:
            if open_part and sum(part_file.rows for part_file in open_part) + file.rows > rows_max:
                splits.append(TaskSplit(bucket, tuple(open_part)))
                open_part = []
            open_part.append(file)
        splits.append(TaskSplit(bucket, tuple(open_part)))
    return splits


def _place(file: LaidFile) -> tuple[tuple[int, int], str]:
    """The sort key of a file: by time, else by arrival."""
    return file.range_of(TIME) or file.range_of(TIMESTAMP) or (0, 0), file.name


def _bucket(file: LaidFile, period_ms: int) -> int | None:
    times = file.range_of(TIME)
    return None if times is None else bucket_of(times[0], period_ms).start


def rows_per_task(rows_max: int) -> int:
    """The rows of a task, chosen so that a bucket of several segments yields no more segments than necessary.

    Segments limited to few rows share a task.
    """
    return min(TASK_ROWS, rows_max) if rows_max * 8 >= TASK_ROWS else TASK_ROWS


def names_of(
    spec: TableSpec,
    config: BucketConfig,
    parts: Sequence[TaskSplit],
    times: Mapping[int, tuple[int, int]],
    taken: Collection[str],
) -> list[str]:
    """A name for every segment, none of `taken`, from the first and last time of the rows read into it, rounded.

    `times` are those of each bucket by its start. If a bucket yields several segments, rows that were merged away count
    for the first and the last one. For a partition only its own times count.
    """
    names, reserved = [], set(taken)
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
        names.append(offline_segment(config.name_prefix or spec.name, *shown, reserved, config.name_postfix))
        reserved.add(names[-1])
    return names
