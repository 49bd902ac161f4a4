"""Backfills in the check-up: interrupted ones are found, those that an error ended noted, planned ones as wanted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hybrid.config.table_config import Half
from hybrid.doctor.findings import Severity
from hybrid.lake import plans
from hybrid.lake.log import open_half
from hybrid.lake.plans import DesiredState, DesiredStateRecord
from hybrid.table.plans import BucketState, Counts, Plan, PlannedBucket, Unit
from tests.doctor.conftest import Patient

ID = "backfill-1"


@pytest.fixture
def planned(patient: Patient) -> Patient:
    """The orders table with a plan of one bucket."""
    patient.create()
    layout = patient.hybrid().context.layout("orders")
    half = open_half(layout.half(Half.OFFLINE))
    bucket = PlannedBucket(0, 1000, BucketState.PRESENT, Counts(1, 1, changed=1), unit=0)
    plan = Plan(
        id=ID, table="orders", created_at=datetime.now(UTC).isoformat(), change="update amount = 1", request={},
        table_id=half.table_id, offline_version=half.version, realtime_version=None, base_revision="", fresh_topic="",
        buckets=(bucket,), units=(Unit(0, (0,), {}, ()),),
    )  # fmt: skip
    plans.publish(layout, layout.staging(ID), plan)
    return patient


@pytest.mark.parametrize("wish", [DesiredState.LOOK, DesiredState.PAUSE, DesiredState.CANCEL, DesiredState.ENDED])
def test_what_is_as_it_is_wanted_is_no_finding(wish: DesiredState, planned: Patient) -> None:
    plans.want(planned.hybrid().context.layout("orders"), ID, DesiredStateRecord(wish))
    assert planned.examine() == []


def test_an_interrupted_backfill_is_found_with_what_would_do(planned: Patient) -> None:
    plans.want(planned.hybrid().context.layout("orders"), ID, DesiredStateRecord(DesiredState.RUN))
    (found,) = planned.examine()
    assert (found.check, found.severity) == ("backfill", Severity.WARNING)
    assert found.message == f"Backfill '{ID}' was interrupted: 0 of 1 buckets are corrected."
    assert found.hint == f"hybrid backfill resume {ID}, or cancel it"


def test_one_that_an_error_ended_is_noted(planned: Patient) -> None:
    plans.want(
        planned.hybrid().context.layout("orders"),
        ID,
        DesiredStateRecord(DesiredState.RUN, error="segment 'a' is gone."),
    )
    (found,) = planned.examine()
    assert found.severity is Severity.NOTE and found.message.endswith("buckets are corrected: segment 'a' is gone.")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failed", "why"),
    [((), "it was never run"), (("amount is positive",), "its rows failed expectations, so it does not run")],
)
def test_one_that_was_forgotten_is_found_with_its_size(failed: tuple[str, ...], why: str, planned: Patient) -> None:
    layout = planned.hybrid().context.layout("orders")
    plan, since = plans.find_plan(layout, ID), (datetime.now(UTC) - timedelta(days=31)).isoformat()
    assert plan is not None
    old = replace(plan, created_at=since, failed_checks=failed)
    (layout.plan(ID) / "plan.json").write_text(old.to_text(), encoding="utf-8")
    assert planned.examine() == [], "nothing is staged"
    (plans.rows_folder(layout, ID) / "part-0.parquet").write_bytes(b"x" * 100)
    (found,) = planned.examine()
    assert found.severity is Severity.WARNING and found.message == (
        f"Backfill '{ID}' was planned at {since}, longer ago than the 30 days of the revert window, and {why}. "
        "Its staged rows take 100 bytes."
    )
    assert found.hint is not None and found.hint.startswith(f"hybrid backfill cancel {ID} (removes them)")
    planned.hybrid().backfills.cancel(ID)
    assert planned.examine() == []
