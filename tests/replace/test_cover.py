"""Jobs that answer for a stretch of time: what goes, what is refused, and that it comes back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.config.batch_ingestion import BatchIngestion, IngestionType
from hybrid.config.job_spec import JobSpec
from hybrid.config.table_config import TableSpec
from hybrid.errors import ConflictError, DataError, SpecError, UsageError
from hybrid.lake.log_entries import DataFile
from hybrid.replace.diff import Difference
from hybrid.replace.job import run_job
from hybrid.replace.plan import JobPlan
from hybrid.replace.replaced_range import ReplacedRange, covered_names, replaced_range
from hybrid.replace.revert import revert
from hybrid.replace.stage import StagedFile, StagedRows
from hybrid.table import columns
from tests.replace.tables import Table, recipe_spec

DAY_MS = 86_400_000
NOON = 18_000 * DAY_MS + DAY_MS // 2
REFRESHED = BatchIngestion(IngestionType.REFRESH, consistent=True)


def _spec(**changes: Any) -> TableSpec:
    return replace(recipe_spec("orders"), move=None, **changes)


def _job(covers: str = "") -> JobSpec:
    return JobSpec("job.yml", "SegmentCreation", Path("/in"), "orders", "json", covers=covers)


def _staged(*times: int) -> StagedRows:
    low, high = (min(times), max(times)) if times else (None, None)
    file = StagedFile(Path("/in/a.json"), len(times), 0, low, high, low_at=", line 1", high_at=", line 9")
    return StagedRows(SimpleNamespace(), (file,), ())  # type: ignore[arg-type]


def _held(**segments: tuple[int, int]) -> list[DataFile]:
    return [
        DataFile(f"{name}.parquet", name, 1, 1, 0, {columns.TIME: low}, {columns.TIME: high})
        for name, (low, high) in segments.items()
    ]


def test_what_a_job_covers() -> None:
    assert replaced_range(_spec(), 1, _job(), _staged(NOON)) is None
    assert replaced_range(_spec(), 1, _job("day"), _staged(NOON, NOON + 1)) == ReplacedRange(
        18_000 * DAY_MS, 18_001 * DAY_MS
    )
    assert replaced_range(_spec(), 1, _job("all"), _staged(NOON)) == ReplacedRange()
    assert replaced_range(_spec(batch=REFRESHED), 1, _job(), _staged(NOON)) == ReplacedRange()
    assert replaced_range(_spec(batch=replace(REFRESHED, consistent=False)), 1, _job(), _staged(NOON)) is None
    iso = replaced_range(_spec(), 1, _job("2019-04-14T00:00:00Z/2019-04-15T00:00:00Z"), _staged(NOON))
    assert iso == ReplacedRange(18_000 * DAY_MS, 18_001 * DAY_MS)
    hours = recipe_spec("orders")
    assert replaced_range(hours, 3_600_000, _job(f"{NOON}/{NOON + 3_600_000}"), _staged(NOON)) is not None
    with pytest.raises(UsageError, match=r"divides times of 'orders' that are rounded to 2019-04-14T12:00:00Z in OFFL"):
        replaced_range(hours, 3_600_000, _job(f"{NOON}/{NOON + 1}"), _staged(NOON))
    own = replaced_range(_spec(), 1, _job(f"{NOON}/{NOON + 1}"), _staged(NOON))
    assert own == ReplacedRange(NOON, NOON + 1)


@pytest.mark.parametrize(
    ("covers", "times", "message"),
    [
        ("day", (), "covers the day of its rows, and there are none"),
        ("week", (NOON,), "week: this is no stretch of time"),
        ("5/5", (NOON,), "ends before it begins"),
        ("yesterday/today", (NOON,), "hybrid.covers yesterday: is no time"),
        ("day", (NOON, NOON + DAY_MS), f"/in/a.json, line 9: time {NOON + DAY_MS} is outside of what the job covers"),
        (f"{NOON}/{NOON + 5}", (NOON - 1, NOON), f"/in/a.json, line 1: time {NOON - 1} is outside"),
        (
            f"{NOON}/{NOON + 5}",
            (NOON, NOON + 5),
            f"time {NOON + 5} is outside of what the job covers, {NOON} to before",
        ),
    ],
)
def test_what_a_job_cannot_cover(covers: str, times: tuple[int, ...], message: str) -> None:
    with pytest.raises((UsageError, DataError)) as caught:
        replaced_range(_spec(), 1, _job(covers), _staged(*times))
    assert message in str(caught.value)


def test_all_of_a_table_that_moves_fill_is_not_covered() -> None:
    with pytest.raises(SpecError, match="its OFFLINE half also holds what moves bring"):
        replaced_range(recipe_spec("orders"), 1, _job("all"), _staged(NOON))
    with pytest.raises(SpecError, match="has no time column"):
        replaced_range(_spec(time_column=None), 1, _job("day"), _staged())


def test_segments_in_a_stretch() -> None:
    held = _held(before=(0, 9), first=(10, 12), last=(15, 19), after=(20, 30))
    assert covered_names(_spec(), None, held, set()) == ()
    assert covered_names(_spec(), ReplacedRange(10, 20), held, set()) == ("first", "last")
    assert covered_names(_spec(), ReplacedRange(10, 20), held, {"first"}) == ("last",)
    assert covered_names(_spec(), ReplacedRange(), held, {"last"}) == ("after", "before", "first")
    with pytest.raises(ConflictError) as caught:
        covered_names(_spec(), ReplacedRange(11, 19), held, {"last"})
    assert "Segment 'first' holds times from 10 to 12 (and 1 more: last), partly outside" in str(caught.value)


def test_the_same_rows_in_fewer_segments_are_a_change() -> None:
    same = Difference(2, 2, identical=True)
    plans = {
        covers: JobPlan(None, ("a", "b"), ("a",), same, lambda _: None, lambda _: True, covers)
        for covers in (False, True)
    }  # type: ignore
    assert plans[False].is_nothing and not plans[True].is_nothing
    assert replace(plans[True], segments_to=("b", "a")).is_nothing


@pytest.mark.spark
def test_a_day_with_fewer_segments_leaves_no_stale_ones(orders: Table) -> None:
    times = [1600000000000 + number for number in range(4)]  # 2020-09-13, a day of its own
    rows = [{"order_id": 50 + number, "ts": time} for number, time in enumerate(times)]
    for number, row in enumerate(rows[:3]):
        orders.write_rows([row], f"{number}.json")

    def push(**fields: object) -> Any:
        return run_job(orders.context, orders.job(None, covers="day", **fields))

    first = push()
    before, segments = orders.rows(), orders.segments()
    assert len(first.segments_to) == 3
    for number in (1, 2):
        (orders.folder / "input" / f"{number}.json").unlink()
    orders.write_rows([rows[0], rows[3]], "0.json")
    second = push()
    (new,) = second.segments_to
    assert set(second.segments_from) == set(first.segments_to) and orders.segments() == segments - {
        *first.segments_to
    } | {new}
    assert second.sentence == (
        f"Added segment '{new}' and removed 3 segments '{first.segments_to[0]}' to '{first.segments_to[2]}': "
        "3 rows before, 2 after; 1 added, 2 removed, 0 changed."
    )
    revert(orders.context, second.act)
    assert orders.rows() == before and orders.segments() == segments
