"""Marks of a timeline: bounded in number, complete in rows, and of the most urgent state."""

from __future__ import annotations

import itertools
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.table.timeline_marks import (
    MARKS_MAX,
    BucketCondition,
    OfflineSegment,
    RealtimeSegment,
    SegmentCondition,
    Work,
    mark_length_ms,
    offline_marks,
    partition_rows,
    realtime_marks,
)

DAY, HOUR = 86_400_000, 3_600_000


def offline(start_ms: int, end_ms: int, rows: int = 10, entry: str | None = None) -> OfflineSegment:
    return OfflineSegment(f"t_{start_ms}_{end_ms}_0", start_ms, end_ms, rows, rows * 100, entry)


def realtime(
    start_ms: int,
    partition: str = "0",
    state: SegmentCondition = SegmentCondition.SEALED,
    offset: int = 0,
    late: bool = False,
) -> RealtimeSegment:
    return RealtimeSegment(
        f"t__{partition}__{start_ms}", partition, start_ms, start_ms + HOUR, 5, 500, offset, offset + 5, state, late
    )


@given(
    st.integers(-(10**12), 10**12), st.integers(1, 10**12), st.sampled_from([1, 60_000, HOUR, DAY]), st.integers(1, 500)
)
def test_a_window_has_at_most_so_many_marks(start_ms: int, length_ms: int, bucket_ms: int, marks_max: int) -> None:
    mark_ms = mark_length_ms(start_ms, start_ms + length_ms, bucket_ms, max(2, marks_max))
    assert mark_ms % bucket_ms == 0
    first, last = start_ms // mark_ms, (start_ms + length_ms - 1) // mark_ms
    assert last - first + 1 <= max(2, marks_max)


@given(
    st.lists(st.tuples(st.integers(0, 60 * DAY), st.integers(0, 9 * DAY), st.integers(0, 1000)), max_size=30),
    st.integers(2, 40),
)
def test_no_row_is_lost_or_counted_twice(given_segments: list[tuple[int, int, int]], marks_max: int) -> None:
    segments = [offline(start, start + length, rows) for start, length, rows in given_segments]
    marks = offline_marks(segments, [], (-DAY, 100 * DAY), DAY, None, marks_max)
    assert sum(mark.rows for mark in marks) == sum(segment.rows for segment in segments)
    assert sum(mark.bytes for mark in marks) == sum(segment.bytes for segment in segments)
    assert len(marks) <= marks_max
    assert all(one.end_ms <= other.start_ms for one, other in itertools.pairwise(marks))


def test_a_bucket_shows_its_most_urgent_state() -> None:
    segments = [offline(0, DAY - 1), offline(2 * DAY, 3 * DAY - 1, entry="r1"), offline(5 * DAY, 6 * DAY - 1)]
    works = [
        Work(5 * DAY, 6 * DAY, BucketCondition.RUNNING, "b1", "Bucket 1 of 2."),
        Work(6 * DAY, 7 * DAY, BucketCondition.FAILED, "m1", "The disk is full."),
    ]
    marks = offline_marks(segments, works, (0, 8 * DAY), DAY, (0, 6 * DAY))
    assert [(mark.start_ms // DAY, mark.state.value) for mark in marks] == [
        (0, "present"), (1, "missing"), (2, "corrected"), (3, "missing"), (4, "missing"), (5, "running"), (6, "failed"),
    ]  # fmt: skip
    assert marks[2].entries == ("r1",) and marks[5].works == (works[0],) and marks[5].rows == 10
    (week,) = offline_marks(segments, works, (0, 7 * DAY), DAY, (0, 6 * DAY), marks_max=1)
    assert week.state is BucketCondition.FAILED
    assert week.buckets == {"failed": 1, "running": 1, "missing": 3, "corrected": 1, "present": 2}


def test_what_lies_outside_a_window_is_left_out() -> None:
    segments = [offline(0, DAY - 1), offline(10 * DAY, 11 * DAY - 1)]
    marks = offline_marks(
        segments, [Work(0, DAY, BucketCondition.FAILED, "x", "y")], (9 * DAY, 12 * DAY), DAY, (0, 11 * DAY)
    )
    assert [(mark.start_ms // DAY, mark.state.value) for mark in marks] == [(9, "missing"), (10, "present")]
    assert offline_marks([], [], (0, DAY), DAY, None) == []


def test_times_before_1970_have_buckets_too() -> None:
    (mark,) = offline_marks([offline(-10, -5)], [], (-DAY, DAY), DAY, None)
    assert (mark.start_ms, mark.end_ms, mark.rows) == (-DAY, 0, 10)


def test_few_realtime_segments_stand_alone_and_many_are_joined() -> None:
    few = [realtime(HOUR * number, offset=number * 5) for number in range(10)]
    assert [mark.names for mark in realtime_marks(few, (0, DAY), HOUR)] == [(segment.name,) for segment in few]
    many = [realtime(HOUR * number, offset=number * 5) for number in range(1000)]
    marks = realtime_marks(many, (0, 1001 * HOUR), HOUR, 40)
    assert len(marks) <= 41 and sum(mark.segments for mark in marks) == 1000
    assert (marks[0].start_offset, marks[-1].end_offset) == (0, 5000) and len(marks[0].names) == 3
    assert [mark.names[0] for mark in realtime_marks(many, (10 * HOUR, 11 * HOUR), HOUR)] == [
        many[9].name,
        many[10].name,
    ]


def test_joined_segments_show_what_still_changes() -> None:
    group = [
        realtime(0, state=SegmentCondition.MOVED),
        realtime(1, late=True),
        realtime(2, state=SegmentCondition.CONSUMING),
    ]
    (mark,) = realtime_marks(group, (0, DAY), DAY, 1)
    assert (mark.state, mark.late_segments, mark.rows) == (SegmentCondition.CONSUMING, 1, 15)
    (mixed,) = realtime_marks([realtime(0, "0"), realtime(1, "1")], (0, DAY), DAY, 1)
    assert (mixed.start_offset, mixed.end_offset) == (None, None)  # offsets of two partitions are no range


@pytest.mark.parametrize(("count", "rows"), [(0, 0), (1, 1), (24, 24), (25, 13), (1000, 24)])
def test_partitions_share_rows_where_there_are_many(count: int, rows: int) -> None:
    found = partition_rows([str(number) for number in range(count)] * 2)
    assert len(found) == rows and [name for row in found for name in row] == [str(number) for number in range(count)]
    assert partition_rows(["b/2", "b/10", "a/1"]) == [("a/1",), ("b/2",), ("b/10",)]


@pytest.mark.slow
def test_a_hundred_thousand_segments_are_aggregated_in_bounded_time() -> None:
    rng = random.Random(5)
    segments = [offline(start := rng.randrange(365 * DAY), start + HOUR) for _ in range(50_000)]
    tails = [realtime(rng.randrange(365 * DAY), str(number % 8)) for number in range(50_000)]
    began = time.process_time()
    marks = offline_marks(segments, [], (0, 366 * DAY), HOUR, (0, 366 * DAY))
    rows = [
        realtime_marks([one for one in tails if one.partition == str(number)], (0, 366 * DAY), HOUR, 50)
        for number in range(8)
    ]
    took_s = time.process_time() - began
    assert len(marks) <= MARKS_MAX and all(len(row) <= 51 for row in rows)
    assert took_s < 3, took_s
