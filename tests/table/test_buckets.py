"""Time buckets, against lists of times."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.table.buckets import Bucket, bucket_of, buckets_to_move, closed_until

PERIODS = st.integers(1, 30)
TIMES = st.integers(-200, 200)


@given(TIMES, PERIODS)
def test_a_time_lies_in_its_aligned_bucket(time_ms, period):
    bucket = bucket_of(time_ms, period)
    assert bucket.start <= time_ms < bucket.end
    assert bucket.start % period == 0 and bucket.end - bucket.start == period


@given(TIMES, st.integers(0, 50), PERIODS)
def test_closed_until_is_the_last_end_that_is_past_the_buffer(now, buffer, period):
    end = closed_until(now, buffer, period)
    assert end % period == 0
    assert end <= now - buffer < end + period


@pytest.mark.slow
@given(st.sets(TIMES, max_size=12), st.none() | TIMES, TIMES, PERIODS, st.none() | st.integers(0, 4))
def test_the_next_closed_buckets_that_hold_rows(times, boundary, now, period, most):
    """Any T, also one inside a bucket, as a changed period leaves it."""
    fresh = {time for time in times if boundary is None or time >= boundary}
    closed = closed_until(now, 0, period)
    starts = [bucket_of(time, period).start for time in fresh]
    buckets = buckets_to_move(starts, boundary, closed, period, most)
    whole = sorted({time // period for time in fresh if (time // period + 1) * period <= now})
    assert [bucket.end for bucket in buckets] == [(number + 1) * period for number in whole][:most]
    assert all(boundary is None or bucket.start >= boundary for bucket in buckets), "nothing is moved twice"
    assert all(one.end <= other.start for one, other in pairwise(buckets))


def test_a_bucket_that_t_divides_begins_at_t():
    day = 24
    assert buckets_to_move([0, day], 10, 3 * day, day, None) == [Bucket(10, 24), Bucket(24, 48)]


def test_buckets_before_t_hold_late_rows_only():
    assert buckets_to_move([0], 24, 100, 24, None) == []


def test_times_before_1970():
    assert bucket_of(-1, 10) == Bucket(-10, 0)
    assert buckets_to_move([-20, -10], None, 0, 10, 1) == [Bucket(-20, -10)]
