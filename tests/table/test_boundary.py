"""The boundary (R3): what it covers, and that it never falls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config.table_config import BoundaryMode
from hybrid.table.boundary import INFINITE, Boundary, PartitionKey, offsets_from_json, offsets_to_json

KEYS = st.builds(
    PartitionKey, st.sampled_from(["kafka", "live-2"]), st.sampled_from(["orders", "a.b_c-d"]), st.integers(0, 2),
    st.integers(0, 3),
)  # fmt: skip
OFFSETS = st.dictionaries(KEYS, st.integers(0, 50), max_size=5)
TIMES = st.integers(-100, 100)
BOUNDARIES = st.builds(
    Boundary, st.none() | TIMES | st.just(INFINITE), OFFSETS, st.sampled_from(BoundaryMode), st.none() | TIMES
)


@given(BOUNDARIES, st.none() | TIMES, OFFSETS, TIMES, KEYS, st.integers(0, 60))
def test_a_move_covers_all_that_was_covered(before, time_ms, offsets, row_time, key, offset):
    after = before.advance(time_ms, offsets)
    if before.covers(row_time, key, offset):
        assert after.covers(row_time, key, offset)


@given(BOUNDARIES, st.none() | TIMES, OFFSETS)
def test_neither_part_falls(before, time_ms, offsets):
    after = before.advance(time_ms, offsets)
    assert before.time_ms is None or (after.time_ms is not None and after.time_ms >= before.time_ms)
    assert all(after.frontier[key] >= offset for key, offset in before.frontier.items())
    assert all(after.frontier[key] >= offset for key, offset in offsets.items())
    assert after.advance(time_ms, offsets) == after
    assert (after.mode, after.override_ms) == (before.mode, before.override_ms), "a move changes neither"


@pytest.mark.slow
@given(BOUNDARIES, TIMES, KEYS, st.integers(0, 60))
def test_it_covers_by_time_and_by_offset(boundary, time_ms, key, offset):
    expected = boundary.time_ms is not None and time_ms < boundary.time_ms and offset < boundary.frontier.get(key, 0)
    assert boundary.covers(time_ms, key, offset) == expected


@pytest.mark.slow
@given(KEYS, st.integers(0, 60), OFFSETS)
def test_without_a_time_column_the_frontier_decides(key, offset, frontier):
    assert Boundary(INFINITE, frontier).covers(None, key, offset) == (offset < frontier.get(key, 0))


def test_a_boundary_that_nobody_set_covers_nothing():
    key = PartitionKey("kafka", "orders", 0, 0)
    assert not Boundary().covers(-(2**62), key, 0)
    assert not Boundary(INFINITE).covers(None, key, 0)
    assert not Boundary(5, {key: 3}).covers(5, key, 2), "T is exclusive"
    assert not Boundary(5, {key: 3}).covers(4, key, 3), "F is exclusive"
    assert Boundary(5, {key: 3}).covers(4, key, 2)
    assert not Boundary(5, {key: 3}).covers(4, key._replace(epoch=1), 2), "another epoch is another stream"


@given(BOUNDARIES)
def test_json_round_trip(boundary):
    assert Boundary.from_json(boundary.to_json()) == boundary


def test_a_boundary_of_the_first_version_is_exact():
    assert Boundary.from_json({"time_ms": 5, "frontier": {"kafka/a/0/1": 3}}) == Boundary(
        5, {PartitionKey("kafka", "a", 0, 1): 3}, BoundaryMode.EXACT, None
    )


@given(OFFSETS)
def test_offsets_round_trip_and_equal_offsets_are_equal_text(offsets):
    text = offsets_to_json(offsets)
    assert offsets_from_json(text) == offsets
    assert list(text) == list(offsets_to_json(dict(reversed(offsets.items()))))


@given(KEYS)
def test_partition_keys_round_trip(key):
    assert PartitionKey.parse(str(key)) == key
