"""How rows are divided among tasks, and files among segments."""

import json
from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hybrid.lake.files import LaidFile
from hybrid.lake.log_entries import DataFile
from hybrid.move.task_splits import SplitRange, borders, borders_of_all, stretches, task_splits_of
from hybrid.table.buckets import bucket_of
from hybrid.table.columns import OFFSET, TIME, TIMESTAMP

times_lists = st.lists(st.integers(-500, 500), min_size=1, max_size=60)


def lying(times: list[int], rows_per_file: int) -> list[SplitRange]:
    """The times as they lie in files, each of so many rows in the order they came."""
    files = [times[at : at + rows_per_file] for at in range(0, len(times), rows_per_file)]
    return [SplitRange(min(file), max(file), len(file)) for file in files]


@given(times_lists, st.integers(1, 200), st.integers(1, 20), st.integers(1, 20))
def test_tasks_follow_each_other_in_time_and_leave_no_small_bucket_divided(times, period, rows_per_file, rows_per_task):
    counts = Counter(bucket_of(time, period).start for time in times)
    found = borders(counts, period, lying(times, rows_per_file), 1_000, rows_per_task)
    assert found == sorted(set(found))
    small = [start for start, rows in counts.items() if rows <= rows_per_task]
    assert not [cut for cut in found for start in small if start < cut < start + period]
    by_bucket: Counter[int] = Counter()
    for start, rows in counts.items():
        if rows <= rows_per_task:
            by_bucket[sum(cut <= start for cut in found)] += rows
    assert all(rows <= rows_per_task for rows in by_bucket.values())


def test_a_large_bucket_is_divided_where_its_rows_lie():
    evenly = [SplitRange(0, 999, 1_000)]
    assert borders({0: 1_000}, 1_000, evenly, 1_000, 250) == [250, 500, 750]
    late_in_it = [SplitRange(0, 899, 100), SplitRange(900, 999, 900)]
    assert borders({0: 1_000}, 1_000, late_in_it, 1_000, 500) == [945]


def test_a_bucket_of_one_instant_is_one_task():
    assert borders({0: 1_000}, 1_000, [SplitRange(7, 7, 1_000)], 1_000, 100) == [8]
    assert borders({0: 1_000}, 1_000, [], 1_000, 100) == []
    assert borders({0: 1_000}, 1_000, [SplitRange(999, 999, 1_000)], 1_000, 100) == []
    assert borders({0: 1_000}, 1_000, [SplitRange(0, 999, 1_000)], 500, 500) == [250], "the plan ends inside the bucket"


def test_without_buckets_the_whole_stretch_is_divided():
    assert borders_of_all(1_000, [SplitRange(100, 1_099, 1_000)], 500) == [600]
    assert borders_of_all(10, [SplitRange(100, 1_099, 10)], 500) == []
    assert borders_of_all(1_000, [], 500) == []
    assert borders_of_all(1_000, [SplitRange(7, 7, 1_000)], 500) == []


def test_files_whose_statistics_do_not_tell_are_left_out():
    known = DataFile("a", "s", 5, 1, 0, {TIME: 1}, {TIME: 9})
    assert stretches([known, DataFile("b", "s", 5, 1, 0)], TIME) == [SplitRange(1, 9, 5)]


def laid(name: str, rows: int, low: int, high: int, column: str = TIME) -> LaidFile:
    statistics = {"numRecords": rows, "minValues": {column: low}, "maxValues": {column: high}}
    return LaidFile(name, rows, 1, 0, json.dumps(statistics))


@given(st.lists(st.tuples(st.integers(-300, 300), st.integers(1, 9)), max_size=30), st.integers(1, 9))
def test_segments_are_of_one_bucket_and_hold_no_more_than_they_may(files, rows_max):
    period = 100
    given_files = [
        laid(str(number), min(rows, rows_max), time, bucket_of(time, period).end - 1)
        for number, (time, rows) in enumerate(files)
    ]
    found = task_splits_of(given_files, period, rows_max)
    assert sorted(file.name for part in found for file in part.files) == sorted(file.name for file in given_files)
    assert all(part.rows <= rows_max for part in found)
    starts = [part.bucket for part in found]
    assert starts == sorted(starts)
    for part in found:
        assert {bucket_of(json.loads(file.statistics)["minValues"][TIME], period).start for file in part.files} == {
            part.bucket
        }
    for one, other in pairwise(found):  # no two that could have been one
        assert one.bucket != other.bucket or one.rows + other.files[0].rows > rows_max


def test_without_a_time_column_files_stand_by_their_arrival():
    second, first = laid("a", 2, 5, 9, TIMESTAMP), laid("b", 2, 0, 4, TIMESTAMP)
    (part,) = task_splits_of([second, first], 100, 10)
    assert (part.bucket, part.times, part.files) == (None, None, (first, second))
    assert first.range_of(OFFSET) is None
