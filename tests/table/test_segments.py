"""Which segment a row falls into, and when a segment is sealed."""

from hypothesis import given
from hypothesis import strategies as st

from hybrid.table.boundary import PartitionKey
from hybrid.table.names import realtime_sequence
from hybrid.table.segments import Assigner, Thresholds
from hybrid.table.state import Consuming

KEY = PartitionKey("kafka", "orders", 0, 2)
SIZES = st.lists(st.integers(0, 20), max_size=30)


def consuming(rows=0, size=0, created=0):
    return Consuming("orders__2__0__19700101T0000Z", 0, 0, rows, size, created)


@given(SIZES, st.integers(1, 7), st.integers(1, 60))
def test_a_segment_takes_rows_until_it_reaches_a_threshold(sizes, rows_max, bytes_max):
    limits = Thresholds(rows_max, bytes_max, 1000)
    assigner = Assigner("orders", KEY, limits, 0, None, 5)
    names = [assigner.assign(size) for size in sizes]
    groups: list[list[int]] = []
    for name, size in zip(names, sizes, strict=True):
        if realtime_sequence(name) - 5 == len(groups):
            groups.append([])
        groups[realtime_sequence(name) - 5].append(size)
    assert [size for group in groups for size in group] == sizes, "in order, none left out"
    for number, group in enumerate(groups):
        full = len(group) >= rows_max or sum(group) >= bytes_max
        assert full or number == len(groups) - 1, "only the last one may be open"
        assert len(group) <= rows_max and sum(group[:-1]) < bytes_max, "a row too many"


@given(SIZES, st.integers(0, 30), st.integers(1, 7))
def test_two_batches_give_the_names_that_one_gives(sizes, cut, rows_max):
    limits = Thresholds(rows_max, 10**9, 1000)
    whole = Assigner("orders", KEY, limits, 0, None, 0)
    names = [whole.assign(size) for size in sizes]
    first = Assigner("orders", KEY, limits, 0, None, 0)
    head = [first.assign(size) for size in sizes[:cut]]
    current = None
    if head:
        rows = head.count(head[-1])
        current = Consuming(head[-1], realtime_sequence(head[-1]), 0, rows, 0, 0)
        current = current if limits.leave_open(current, 0) else None
    free = realtime_sequence(head[-1]) + 1 if head else 0
    second = Assigner("orders", KEY, limits, 0, current, free)
    assert head + [second.assign(size) for size in sizes[cut:]] == names


def test_age_seals_and_a_clock_that_jumped_back_does_not():
    limits = Thresholds(100, 100, 60)
    assert limits.leave_open(consuming(created=1000), 1059)
    assert not limits.leave_open(consuming(created=1000), 1060)
    assert limits.leave_open(consuming(created=1000), 0)


def test_an_aged_segment_takes_no_further_row():
    assigner = Assigner("orders", KEY, Thresholds(100, 100, 60), 60_000, consuming(rows=1), 1)
    assert assigner.assign(1) == "orders__2__1__19700101T0001Z"
