"""Which segments are merged: of closed buckets, when they make fewer together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybrid.config.table_config import MergeLevel
from hybrid.move.merging.plan import LONGER, NO_TIMES, first_batch, plan_merges
from hybrid.move.segments import Aged


def free(_: Aged) -> None:
    """Nobody keeps a segment."""


LEVEL = MergeLevel(
    bucket_ms=100, buffer_ms=10, max_records_per_segment=1_000, max_records_per_task=3_000, name="hundred"
)
NOW = 1_000


def segment(name: str, low: int | None, high: int | None, rows: int = 10) -> Aged:
    return Aged(name, rows, rows, low, high, frozenset({f"{name}.parquet"}))


def names(*segments: Aged, level: MergeLevel = LEVEL, now: int = NOW, made: tuple[str, ...] = ()) -> list[str]:
    return ["".join(group.names) for group in plan_merges(level, segments, now, made, free).groups]


def test_the_segments_of_a_bucket_are_merged_in_the_order_of_time() -> None:
    found = [
        segment("c", 60, 99),
        segment("a", 0, 99),
        segment("d", 100, 120),
        segment("b", 5, 7),
        segment("e", 130, 140),
    ]
    assert names(*found) == ["abc", "de"]
    (first, second) = plan_merges(LEVEL, found, NOW, (), free).groups
    assert (first.start, first.times, first.rows, second.start, second.times) == (0, (0, 99), 30, 100, (100, 140))


@pytest.mark.parametrize(("now", "merged"), [(209, []), (210, ["ab"])])
def test_a_bucket_is_closed_when_its_buffer_has_passed(now: int, merged: list[str]) -> None:
    assert names(segment("a", 100, 110), segment("b", 150, 199), now=now) == merged


def test_times_before_1970_have_buckets_too() -> None:
    assert names(segment("a", -100, -50), segment("b", -1, -1), segment("c", 0, 5)) == ["ab"]


def test_full_segments_stay_and_what_is_not_fewer_together() -> None:
    assert names(segment("a", 0, 9, 1_000), segment("b", 0, 9, 5)) == []
    assert names(segment("a", 0, 9, 600), segment("b", 0, 9, 600)) == []
    assert names(segment("a", 0, 9, 600), segment("b", 10, 19, 600), segment("c", 20, 29, 600)) == ["abc"]


def test_a_level_that_makes_others_of_rows_takes_every_segment_once() -> None:
    def alone(*segments: Aged, made: tuple[str, ...] = ()) -> list[str]:
        anew = {one.name for one in segments} - {*made}
        return ["".join(group.names) for group in plan_merges(LEVEL, segments, NOW, made, free, anew=anew).groups]

    single, full = segment("a", 0, 9), segment("b", 100, 109, 2_000)
    assert alone(single, full) == ["a", "b"]
    assert alone(single, full, made=("a", "b")) == []
    assert alone(single, segment("c", 20, 29), made=("a",)) == ["ac"]
    assert alone(full, segment("c", 120, 129), made=("b",)) == ["c"]


def test_what_a_level_made_when_it_was_another_is_taken_once_though_it_is_single() -> None:
    found = segment("old", 0, 9), segment("moved", 100, 109), segment("new", 200, 209)
    groups = plan_merges(LEVEL, found, NOW, {"new"}, free, anew={"old"}).groups
    assert [group.names for group in groups] == [("old",)]


def test_a_task_takes_so_many_rows_at_most() -> None:
    found = [segment(name, place, place, 900) for place, name in enumerate("abcdefgh")]
    small = [segment(name, 10 + place, 10 + place, 100) for place, name in enumerate("ij")]
    assert names(*found, *small) == ["ghij"]  # nine hundred each are not fewer together
    level = MergeLevel(bucket_ms=100, buffer_ms=10, max_records_per_segment=5_000, max_records_per_task=3_000)
    assert names(*found, *small, level=level) == ["abc", "def", "ghij"]


def test_a_batch_holds_one_group_of_a_bucket_and_rows_for_one_task() -> None:
    found = [segment(f"{bucket}{place}", bucket * 100, bucket * 100, 700) for bucket in range(4) for place in "ab"]
    level = MergeLevel(bucket_ms=100, buffer_ms=10, max_records_per_segment=5_000, max_records_per_task=3_000)
    groups = plan_merges(level, found, NOW, (), free).groups
    assert [group.start for group in first_batch(groups, 3_000)] == [0, 100]
    assert [group.start for group in first_batch(groups, 1)] == [0]
    assert first_batch((), 3_000) == ()
    twice = plan_merges(level, [segment(name, 5, 5, 1_500) for name in "abcd"], NOW, (), free).groups
    assert [len(first_batch(twice, 9_000)), len(twice)] == [1, 2]


def test_what_a_merge_of_this_level_made_is_not_merged_before_more_has_come() -> None:
    made = [segment("a", 0, 9), segment("b", 0, 9)]
    assert names(*made, made=("a", "b")) == []
    assert names(*made, segment("late", 5, 5), made=("a", "b")) == ["ablate"]


def test_a_large_segment_that_a_merge_made_waits_for_a_part_of_its_rows() -> None:
    level = MergeLevel(bucket_ms=100, buffer_ms=10)
    large, late = segment("large", 0, 99, 200_000), segment("late", 5, 5, 19_999)
    assert names(large, late, level=level) == ["largelate"]
    assert names(large, late, level=level, made=("large",)) == []
    assert names(large, late, segment("more", 6, 6, 1), level=level, made=("large",)) == ["largelatemore"]
    small = replace(large, rows=99_999)
    assert names(small, segment("late", 5, 5, 1), level=level, made=("large",)) == ["largelate"]


def test_what_came_late_is_merged_by_itself_beside_large_segments() -> None:
    level = MergeLevel(bucket_ms=100, buffer_ms=10)
    made = [segment(f"made{number}", number, 99, 4_600_000) for number in range(10)]
    known = tuple(one.name for one in made)
    assert names(*made, segment("late", 5, 5, 1), level=level, made=known) == []
    assert names(*made, segment("late", 5, 5, 1), segment("later", 6, 6, 1), level=level, made=known) == ["latelater"]


def test_segments_that_stay_are_told_with_the_reason() -> None:
    found = [segment("longer", 50, 150), segment("unknown", None, None), segment("apart", 0, 9), segment("a", 0, 9)]
    apart = {"apart": "it is to be replaced"}
    plan = plan_merges(LEVEL, [*found, segment("open", 850, 950)], NOW, (), lambda one: apart.get(one.name))
    assert plan.groups == ()
    assert plan.kept == {LONGER: ("longer",), NO_TIMES: ("unknown",), "it is to be replaced": ("apart",)}
