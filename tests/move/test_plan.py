"""Planning a move, against the oracle."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config.table_config import Half, MoveConfig
from hybrid.errors import SpecError
from hybrid.move.move import move_config
from hybrid.move.plan import Reach, Slots, WaitingBuckets, plan_move, reason_for_nothing
from hybrid.runtime.json_values import utc
from hybrid.table.boundary import INFINITE, Boundary, PartitionKey
from hybrid.table.buckets import bucket_of
from tests.oracle import Event, Oracle
from tests.query.halves import orders_spec

KEY = PartitionKey("kafka", "orders", 0, 0)
HOUR = 3_600_000


def waiting_of(times: list[int], boundary: Boundary, period: int) -> list[WaitingBuckets]:
    """What the move counts in Spark: rows that are not covered, by bucket and lateness."""
    counts = Counter(
        (bucket_of(time, period).start, boundary.time_ms is not None and time < boundary.time_ms) for time in times
    )
    return [WaitingBuckets(start, late, count) for (start, late), count in counts.items()]


@given(
    st.lists(st.integers(-50, 50), max_size=15), st.none() | st.integers(-50, 50), st.integers(-60, 120),
    st.integers(0, 20), st.integers(1, 30), st.none() | st.integers(1, 3),
)  # fmt: skip
def test_a_plan_takes_what_the_oracle_takes(times, t, now, buffer, period, buckets_max):
    oracle = Oracle(moved_until=t)
    oracle.produce(*(Event((*KEY, offset), time) for offset, time in enumerate(times)))
    oracle.commit({tuple(KEY): len(times)})
    end, rows = oracle.due(now, buffer, period, buckets_max)

    before = Boundary(t)
    config = MoveConfig(period, buffer)
    plan = plan_move(config, before, {KEY: len(times)}, waiting_of(times, before, period), now, Reach(buckets_max))

    assert plan.boundary.time_ms == end
    assert plan.rows + plan.late_rows == len(rows)
    assert plan.late_rows == sum(t is not None and row.time < t for row in rows)
    assert [row for row in oracle.waiting() if plan.boundary.covers(row.time, KEY, row.offset)] == rows
    assert plan.moves_something == bool(rows)


@given(st.integers(0, 10), st.integers(0, 9))
def test_without_a_time_column_the_frontier_alone_moves(count, moved):
    before = Boundary(INFINITE, {KEY: moved})
    waiting = [WaitingBuckets(None, False, count)] if count else []
    plan = plan_move(MoveConfig(), before, {KEY: moved + count}, waiting, 0, Reach())
    assert plan.boundary == Boundary(INFINITE, {KEY: moved + count})
    assert (plan.rows, plan.late_rows, plan.buckets) == (count, 0, ())


def test_late_rows_move_though_no_bucket_closed():
    before = Boundary(2 * HOUR, {KEY: 5})
    plan = plan_move(MoveConfig(HOUR, 0), before, {KEY: 9}, [WaitingBuckets(HOUR, True, 3)], 2 * HOUR, Reach())
    assert (plan.rows, plan.late_rows) == (0, 3)
    assert plan.boundary == Boundary(2 * HOUR, {KEY: 9})


def test_before_the_first_move_no_row_is_late():
    plan = plan_move(MoveConfig(HOUR, 0), Boundary(), {KEY: 9}, [WaitingBuckets(0, False, 3)], HOUR - 1, Reach())
    assert not plan.moves_something
    assert plan.boundary.time_ms is None


def test_why_there_is_nothing_to_do():
    config = MoveConfig(2 * HOUR, 60_000)
    assert reason_for_nothing(config, [], 0) == "every ingested row is in the offline half already"
    assert reason_for_nothing(config, [WaitingBuckets(0, False, 3), WaitingBuckets(2 * HOUR, False, 1)], HOUR) == (
        "4 rows wait in 2 buckets not closed yet: [1970-01-01T00:00:00Z, 1970-01-01T02:00:00Z) closes at "
        "1970-01-01T02:01:00Z, its end plus bufferTimePeriod; it is 1970-01-01T01:00:00Z"
    )


def test_times_in_words():
    assert utc(1632470400000) == "2021-09-24T08:00:00Z"
    assert utc(-1) == "1969-12-31T23:59:59.999Z"
    assert utc(INFINITE) == f"{INFINITE} ms"


@given(
    st.lists(st.integers(0, 5_000_000), min_size=1, max_size=30), st.integers(1, 12),
    st.sampled_from([1, 7, 1000, 3600]), st.integers(0, 5000),
)  # fmt: skip
def test_a_bucket_is_cut_between_steps(times, rows_max, step, start):
    """`start` may lie inside of a step: a boundary of other settings."""
    times = [start + time for time in times]
    end = (max(times) // step + 1) * step
    found = Slots(start // step * step, end, step)
    while isinstance(found, Slots):
        mine = Counter((time - found.start) // found.width for time in times if found.start <= time < found.end)
        found = found.divide(mine, rows_max)
    taken = [time for time in times if time < found]
    assert found == end or found % step == 0
    assert found > start and taken
    assert len(taken) <= rows_max or len({time // step for time in taken}) == 1


@pytest.mark.parametrize(("half", "missing"), [(Half.REALTIME, "OFFLINE"), (Half.OFFLINE, "REALTIME")])
def test_a_table_of_one_half_is_told_how_to_get_the_other(half, missing):
    with pytest.raises(SpecError, match=f"has no {missing} half, so nothing can move") as caught:
        move_config(orders_spec(halves=[half]))
    assert caught.value.hint.startswith(f"hybrid table apply --schema SCHEMA.json --config {missing}.json ")
