"""Which rows of a datagen are due when: all of a plan without a rate, else as time goes by; none twice, none never."""

import random

import pytest

from hybrid.config.connectors import Datagen, DatagenPlan
from hybrid.errors import DataError
from hybrid.flow.connectors.datagen_source import (
    DatagenSource,
    DatagenWindow,
    first_window,
    next_window,
    open_datagen,
    open_datagen_after,
)
from tests.config.test_datagen_values import table

SPEC = table("id BIGINT NOT NULL", plan=[{"limit": 1}])


def plans(*found: tuple[int | None, int | None]) -> Datagen:
    return Datagen(tuple(DatagenPlan(limit, rate) for limit, rate in found), seed=1)


def names(source: DatagenSource) -> list[str]:
    return [piece.name for piece in source.pieces]


def test_plans_without_a_rate_are_read_whole_one_after_the_other() -> None:
    config = plans((5, None), (0, None), (7, None))
    windows = [first_window(config, 9)]
    while (found := next_window(config, windows[-1], 9)) is not None:
        windows.append(found)
    assert windows == [DatagenWindow(0, 0, 5, 9), DatagenWindow(1, 0, 0, 9), DatagenWindow(2, 0, 7, 9)]


@pytest.mark.parametrize("limit", [None, 1000])
def test_rows_come_at_their_rate_whenever_one_looks(limit: int | None) -> None:
    config, dice = plans((limit, 7)), random.Random(3)
    now, before = 5000, first_window(config, 5000)
    assert before == DatagenWindow(0, 0, 7, 5000)
    for _ in range(200):
        now += dice.randrange(3000)
        found = next_window(config, before, now)
        if found is not None:
            assert found.first == before.first + before.rows and found.rows > 0
            before = found
        made = before.first + before.rows
        assert made == min(7 + (now - 5000) * 7 // 1000, limit or now) or abs(made - (now - 5000) * 7 / 1000 - 7) < 2
    assert limit is None or before.first + before.rows == limit


def test_after_a_long_pause_a_minute_is_made_up_for() -> None:
    assert next_window(plans((None, 10)), DatagenWindow(0, 0, 10, 0), 10**9) == DatagenWindow(0, 10, 600, 10**9)


def test_a_load_that_goes_on_makes_the_same_pieces() -> None:
    config = plans((25, None))
    begun = open_datagen(config, SPEC, None, 1, 10)
    assert names(begun) == ["rows 0 to 9", "rows 10 to 19", "rows 20 to 24"] and begun.is_last
    again = open_datagen(config, SPEC, begun.pinned, 2, 3)
    assert again.pinned == begun.pinned and names(again) == names(begun)
    assert open_datagen_after(config, SPEC, begun.pinned, 10**9) is None


def test_without_a_seed_one_is_drawn_and_kept() -> None:
    config = Datagen((DatagenPlan(3),))
    begun = open_datagen(config, SPEC, None, 1, None)
    assert begun.pinned["seed"] != open_datagen(config, SPEC, None, 1, None).pinned["seed"]
    assert open_datagen(config, SPEC, begun.pinned, 1, None).pinned == begun.pinned


def test_other_plans_than_it_began_with() -> None:
    begun = open_datagen(plans((None, 5)), SPEC, None, 0, None)
    assert not begun.is_last
    with pytest.raises(DataError, match="not those that the load began with"):
        open_datagen(plans((None, 6)), SPEC, begun.pinned, 0, None)
    with pytest.raises(DataError, match="not those that the load began with"):
        open_datagen_after(plans((None, 6)), SPEC, begun.pinned, 5000)
