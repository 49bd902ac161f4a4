"""Planning the next offsets to read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.table.boundary import PartitionKey
from hybrid.table.ranges import OffsetRange, advance, plan_ranges, share_evenly

KEYS = [PartitionKey("kafka", "orders", 0, number) for number in range(4)]
POSITIONS = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 40), max_size=4)


@given(POSITIONS, POSITIONS, st.integers(1, 60))
def test_ranges_start_where_the_last_batch_ended(committed, ends, most):
    ranges = plan_ranges(committed, ends, most)
    assert [piece.key for piece in ranges] == sorted({piece.key for piece in ranges})
    for piece in ranges:
        assert piece.start == committed.get(piece.key, 0)
        assert piece.start < piece.end <= ends[piece.key]
    assert sum(piece.end - piece.start for piece in ranges) <= most


@given(POSITIONS, POSITIONS, st.integers(1, 60))
def test_batches_until_the_end_read_every_offset_once(committed, ends, most):
    read = []
    position = dict(committed)
    while ranges := plan_ranges(position, ends, most):
        read += [(piece.key, offset) for piece in ranges for offset in range(piece.start, piece.end)]
        position = advance(position, ranges)
    expected = [(key, offset) for key, end in ends.items() for offset in range(committed.get(key, 0), end)]
    assert sorted(read) == sorted(expected)
    assert all(position.get(key, 0) == max(end, committed.get(key, 0)) for key, end in ends.items())


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(KEYS), st.integers(0, 40)), st.integers(0, 100))
def test_shares_waste_nothing_and_starve_nobody(wanted, total):
    shares = share_evenly(wanted, total)
    assert sum(shares.values()) == min(total, sum(wanted.values()))
    assert all(0 <= shares[key] <= wanted[key] for key in wanted)
    fair = total // len(wanted) if wanted else 0
    assert all(shares[key] >= min(fair, wanted[key]) for key in wanted)


def test_a_new_partition_is_read_from_its_start():
    assert plan_ranges({KEYS[0]: 7}, {KEYS[0]: 7, KEYS[1]: 3}, 100) == [OffsetRange(KEYS[1], 0, 3)]


def test_an_end_that_fell_is_no_reason_to_read():
    assert plan_ranges({KEYS[0]: 7}, {KEYS[0]: 5}, 100) == []
    assert advance({KEYS[0]: 7}, []) == {KEYS[0]: 7}
