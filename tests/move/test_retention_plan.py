"""Which segments are expired, and the floors that outlive them: values only."""

from __future__ import annotations

import random
from itertools import combinations

from hybrid.config.table_config import BoundaryMode
from hybrid.lake.log_entries import DataFile
from hybrid.move.retention.plan import below_all_others, covered_by_itself, floor_of_offline, never_shown
from hybrid.move.segments import Aged, by_age, last_of
from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.effective import EffectiveBoundary

KEY = PartitionKey("kafka", "t", 0, 0)


def file(segment: str, low: int | None, high: int | None, name: str = "a") -> DataFile:
    times = ({}, {}) if low is None else ({"_hy_time": low}, {"_hy_time": high})
    return DataFile(f"/{segment}/{name}", segment, 2, 10, 0, *times)


def aged(name: str, low: int | None, high: int | None) -> Aged:
    return Aged(name, 1, 1, low, high, frozenset())


def test_a_segment_is_as_young_as_its_youngest_row() -> None:
    files = [file("a", 5, 9), file("b", 1, 3), file("a", 1, 12, "b"), file("x", 0, 0), file("u", None, None)]
    found = by_age(files, {"x"})
    assert [(one.name, one.low, one.high, one.rows) for one in found] == [
        ("b", 1, 3, 2),
        ("a", 1, 12, 4),
        ("u", None, None, 2),
    ]
    assert [one.name for one in found if one.ends_before(12)] == ["b"]
    assert [one.name for one in found if one.ends_before(13)] == ["b", "a"]
    assert found[1].files == {"/a/a", "/a/b"} and last_of(found) == 12 and last_of([]) is None


def test_one_file_without_times_keeps_its_segment() -> None:
    (found,) = by_age([file("a", 1, 2), file("a", None, None, "b")])
    assert not found.ends_before(10**15)


def test_times_at_the_epoch_and_before_it() -> None:
    (found,) = by_age([file("a", -5, 0)])
    assert found.ends_before(1) and not found.ends_before(0)


def test_what_goes_ends_before_all_that_stays_begins() -> None:
    """Against the definition, on random segments: the largest such set."""
    dice = random.Random(7)
    for _ in range(300):
        segments = [aged(str(n), low := dice.randrange(20), low + dice.randrange(6)) for n in range(6)]
        beside = dice.choice([None, dice.randrange(20)])

        def fits(going: tuple[Aged, ...], beside: int | None = beside, segments: list[Aged] = segments) -> bool:
            lows = [one.low for one in segments if one not in going and one.low is not None]
            first = min([*lows, *([] if beside is None else [beside])])
            return all(one.ends_before(first) for one in going)

        sets = [going for size in range(5) for going in combinations(segments[:4], size) if fits(going)]
        left = below_all_others(segments[:4], segments[4:], beside)
        assert fits(tuple(left)) and len(left) == max(map(len, sets))
    assert below_all_others([aged("a", 0, 1)], [], None) == [aged("a", 0, 1)]
    assert below_all_others([aged("a", 0, 1)], [aged("b", None, None)], None) == []


def test_the_floor_is_never_above_what_is_covered() -> None:
    exact = Boundary(100, {KEY: 5})
    assert floor_of_offline(exact, 500, 10, 40) == 41
    assert floor_of_offline(exact, 500, 10, 200) == 100
    assert floor_of_offline(Boundary(), 500, 10, 40) is None
    pinot = Boundary(mode=BoundaryMode.PINOT)
    assert floor_of_offline(pinot, 500, 10, 500) == 491
    assert floor_of_offline(pinot, 500, 10, 40) == 41
    assert floor_of_offline(Boundary(100, {KEY: 5}, override_ms=20), 500, 10, 40) == 41


def test_what_a_boundary_covers_by_itself() -> None:
    def covered(boundary: Boundary, by_pushes: bool = True) -> EffectiveBoundary:
        return covered_by_itself(boundary, 500, 10, by_pushes=by_pushes)

    assert covered(Boundary(100, {KEY: 5}, override_ms=20)) == EffectiveBoundary(100, {KEY: 5})
    pinot = Boundary(mode=BoundaryMode.PINOT, override_ms=501)
    assert covered(pinot).limit_ms == 491 and covered(pinot).time_alone
    assert covered(pinot, by_pushes=False).limit_ms is None, "a move is to come"
    assert covered(Boundary(100, {KEY: 5}, BoundaryMode.PINOT)) == EffectiveBoundary(100, {KEY: 5})
    assert covered(Boundary()).limit_ms is None


def test_what_nothing_shows_again() -> None:
    assert never_shown(Boundary(100, {KEY: 5})).limit_ms is None
    assert never_shown(Boundary(100, {KEY: 5}, floor_ms=40)) == EffectiveBoundary(40, {KEY: 5})
    assert never_shown(Boundary(30, {KEY: 5}, floor_ms=40)).limit_ms == 30
