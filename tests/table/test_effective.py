"""What modes and overrides make visible: one limit over both halves, so that no row of both is seen twice or never."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config.table_config import BoundaryMode
from hybrid.table.boundary import INFINITE, Boundary, PartitionKey
from hybrid.table.effective import EffectiveBoundary, covered_until, effective_boundary

KEY, OTHER = PartitionKey("kafka", "orders", 0, 0), PartitionKey("kafka", "orders", 0, 1)
PINOT, EXACT = BoundaryMode.PINOT, BoundaryMode.EXACT
TIMES = st.integers(-30, 30)
OFFSETS = st.fixed_dictionaries({}, optional={KEY: st.integers(0, 9), OTHER: st.integers(0, 9)})
SOME_OFFSETS = st.fixed_dictionaries({KEY: st.integers(0, 9)}, optional={OTHER: st.integers(0, 9)})
ROWS = st.tuples(TIMES, st.sampled_from([KEY, OTHER]), st.integers(0, 12))


@given(st.none() | TIMES, OFFSETS, st.none() | TIMES, ROWS)
def test_exact_without_an_override_is_the_boundary_itself(time_ms, frontier, last_ms, row):
    boundary = Boundary(time_ms, frontier)
    effective = effective_boundary(boundary, last_ms, 5)
    assert effective.covers(*row) == boundary.covers(*row)
    assert effective.shows_offline(row[0]), "every committed offline row is visible"


@given(SOME_OFFSETS, TIMES, st.integers(1, 9), ROWS)
def test_mode_pinot_divides_at_the_last_offline_time_less_a_lag(frontier, last_ms, lag_ms, row):
    effective = effective_boundary(Boundary(None, frontier, PINOT), last_ms, lag_ms)
    time_ms, key, offset = row
    assert effective.shows_offline(time_ms) == (time_ms <= last_ms - lag_ms)
    seen = time_ms > last_ms - lag_ms or offset >= frontier.get(key, 0)
    assert effective.covers(*row) != seen


@given(st.none() | TIMES, TIMES, ROWS)
def test_mode_pinot_goes_by_time_alone_while_nothing_names_a_frontier(time_ms, last_ms, row):
    effective = effective_boundary(Boundary(time_ms, {}, PINOT), last_ms, 5)
    assert effective.time_alone
    assert effective.covers(*row) == effective.shows_offline(row[0]) == (row[0] <= last_ms - 5)


@given(OFFSETS, ROWS)
def test_mode_pinot_without_offline_rows_has_no_boundary(frontier, row):
    effective = effective_boundary(Boundary(20, frontier, PINOT), None, 5)
    assert effective.limit_ms is None and not effective.covers(*row)


@given(
    TIMES, SOME_OFFSETS, st.sampled_from(BoundaryMode), st.none() | TIMES, st.none() | TIMES, ROWS,
    st.none() | TIMES,
)  # fmt: skip
def test_a_row_of_both_halves_is_seen_once_under_any_mode_and_override(
    time_ms, frontier, mode, override, last_ms, row, lifted
):
    """Rows that moves brought: with one copy in each half exactly one is seen, whatever was set before."""
    moved = Boundary(time_ms, frontier).covers(*row)
    for limit in (override, lifted):
        until = time_ms if limit is None else min(limit, time_ms)
        last = min(last_ms, time_ms - 1) if last_ms is not None else None
        boundary = Boundary(time_ms, frontier, mode, None if limit is None else until)
        effective = effective_boundary(boundary, last, 1)
        seen = (not effective.covers(*row)) + (moved and effective.shows_offline(row[0]))
        assert seen == 1


@pytest.mark.parametrize("mode", BoundaryMode)
def test_a_table_without_a_time_column_goes_by_its_frontier_in_any_mode(mode):
    effective = effective_boundary(Boundary(INFINITE, {KEY: 3}, mode), None, 5)
    assert effective == EffectiveBoundary(INFINITE, {KEY: 3})
    assert effective.covers(None, KEY, 2) and not effective.covers(None, KEY, 3) and effective.shows_offline(None)


def test_an_override_takes_the_place_of_the_modes_own_limit():
    for mode in BoundaryMode:
        effective = effective_boundary(Boundary(100, {KEY: 3}, mode, 50), 99, 5)
        assert effective == EffectiveBoundary(50, {KEY: 3}, restricts_offline=True)
    assert effective_boundary(Boundary(None, {}, PINOT, 50), 99, 5).time_alone
    assert not effective_boundary(Boundary(100, {}, EXACT, 50), 99, 5).covers(10, KEY, 0), "nothing was taken over"
    assert effective_boundary(Boundary(None, {}, PINOT, 50), None, 5).limit_ms == 50, "set is set, until it is cleared"


def test_how_far_an_override_may_go():
    assert covered_until(Boundary(100, {KEY: 3}), 150) == 100
    assert covered_until(Boundary(None, {KEY: 3}), 150) is None
    assert covered_until(Boundary(None, {}, PINOT), 150) == 151, "offline rows up to 150 are before it"
    assert covered_until(Boundary(100, {}, PINOT), None) is None


@pytest.mark.parametrize(
    ("boundary", "last_ms", "limit_ms"),
    [
        (Boundary(100, {KEY: 3}, EXACT, 25, step_ms=10), 90, 30),  # goes on to the end of what became one time
        (Boundary(100, {KEY: 3}, EXACT, 30, step_ms=10), 90, 30),
        (Boundary(100, {KEY: 3}, EXACT, step_ms=10), 90, 100),
        (Boundary(95, {KEY: 3}, EXACT, step_ms=10), 90, 95),  # all offline rows are seen: nothing to divide
        (Boundary(95, {KEY: 3}, EXACT, 93, step_ms=10), 90, 90),  # from 95 on nothing has moved
        (Boundary(95, {KEY: 3}, EXACT, 93, 90, step_ms=10), 90, 90),
        (Boundary(95, {KEY: 3}, EXACT, 93, 92, step_ms=10), 90, 93),  # below 92 realtime rows are gone
        (Boundary(100, {KEY: 3}, EXACT, 25, 37, step_ms=10), 90, 40),
        (Boundary(100, {KEY: 3}, PINOT, step_ms=10), 90, 90),  # up to 85: that of 80 stands for times to 89
        (Boundary(None, {}, PINOT, step_ms=10), 90, 80),  # of what is pushed more may come: nothing says how far
        (Boundary(None, {}, PINOT, step_ms=10), 94, 90),
        (Boundary(None, {}, PINOT, None, 80, step_ms=10), 90, 80),
        (Boundary(None, {}, PINOT, None, 81, step_ms=10), 90, 86),  # below 81 realtime rows are gone
        (Boundary(None, {}, PINOT, 93, step_ms=10), 98, 90),  # set before times were rounded
        (Boundary(50, {KEY: 3}, PINOT, step_ms=10), 90, 80),  # pushed beyond T
        (Boundary(None, {}, PINOT, step_ms=10), None, None),
    ],
)
def test_no_limit_divides_what_may_have_become_one_time(
    boundary: Boundary, last_ms: int | None, limit_ms: int | None
) -> None:
    assert effective_boundary(boundary, last_ms, 5).limit_ms == limit_ms


def test_an_override_may_reach_the_end_of_the_last_time() -> None:
    assert covered_until(Boundary(None, {}, PINOT, step_ms=10), 98) == 90, "of its time more may be pushed"
    assert covered_until(Boundary(None, {}, PINOT, step_ms=10), 99) == 100
    assert covered_until(Boundary(100, {}, PINOT, step_ms=10), 90) == 100
    assert covered_until(Boundary(95, {}, PINOT, step_ms=10), 90) == 95, "beyond it rows have not moved"
    assert covered_until(Boundary(80, {}, PINOT, step_ms=10), 98) == 90, "pushed beyond T"
    assert covered_until(Boundary(93, {}, PINOT, step_ms=10), 96) == 93


@given(st.integers(-60, 60), st.integers(1, 30), st.integers(1, 12), st.none() | TIMES, TIMES)
def test_what_was_not_pushed_yet_is_never_covered(last_ms, step_ms, lag_ms, floor_ms, time_ms):
    """A merge rounds for the first time, with steps that are longer than the lag: live rows stay seen."""
    boundary = Boundary(None, {}, PINOT, None, floor_ms, step_ms)
    effective = effective_boundary(boundary, last_ms, lag_ms)
    floor_ms = last_ms if floor_ms is None else floor_ms
    if time_ms >= max(floor_ms, last_ms - lag_ms + 1):
        assert not effective.covers(time_ms, KEY, 0) and not effective.shows_offline(time_ms)
    until = covered_until(boundary, last_ms)
    assert until is not None and until <= last_ms + 1, "nor by hand"


def test_roundings_add_up_and_stay() -> None:
    boundary = Boundary(100).with_step(4).with_step(6).with_step(1)
    assert boundary.step_ms == 12 and Boundary.from_json(boundary.to_json()) == boundary
    assert "step_ms" not in Boundary(100).to_json()
