"""`SET plan`: what is shown of a backfill's plan while something of it is left, and what is said once nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import EXECUTION, QueryError
from hybrid.lake import plans
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.plans import DesiredState, DesiredStateRecord
from hybrid.query.plan_preview import as_planned
from hybrid.table.plans import BucketState, Counts, Plan, PlannedBucket, Unit
from tests.query.halves import Halves, orders_spec

ID = "backfill-plan"


@pytest.fixture
def halves(tmp_path: Path) -> Halves:
    return Halves.create(tmp_path, orders_spec())


def publish(halves: Halves, buckets: int = 2) -> Plan:
    """A plan of units of one bucket each, that empties them."""
    found = tuple(
        PlannedBucket(number * 1000, (number + 1) * 1000, BucketState.PRESENT, Counts(1, 0, removed=1), unit=number)
        for number in range(buckets)
    )
    units = tuple(Unit(number, (number,), {}, ()) for number in range(buckets))
    plan = Plan(
        id=ID, table="orders", created_at="2021-11-21T00:00:00.000+00:00", change="delete", request={},
        table_id="", offline_version=0, realtime_version=None, base_revision="", fresh_topic="",
        buckets=found, units=units,
    )  # fmt: skip
    plans.publish(halves.layout, halves.layout.staging(ID), plan)
    return plan


def correct(halves: Halves, *places: int) -> str:
    return halves.commit_entry("backfill", backfill=ID, buckets=[[one * 1000, (one + 1) * 1000] for one in places])


def shown(halves: Halves, plan: Plan) -> HalfSnapshot:
    return as_planned(open_half(halves.layout.half(Half.OFFLINE)), halves.layout, plan)


def refused(halves: Halves, plan: Plan) -> str:
    with pytest.raises(QueryError) as caught:
        shown(halves, plan)
    assert caught.value.pinot_code == EXECUTION and ID in str(caught.value.hint)
    return str(caught.value)


def test_what_is_left_is_shown_until_all_is_done(halves: Halves) -> None:
    plan = publish(halves)
    shown(halves, plan)
    correct(halves, 0)
    shown(halves, plan)
    correct(halves, 1)
    done = f"Backfill plan '{ID}' of 'orders' has been run: the table itself shows what it corrected."
    assert refused(halves, plan) == done


def test_one_whose_entries_have_left_the_log(halves: Halves) -> None:
    plan = publish(halves)
    plans.want(halves.layout, ID, DesiredStateRecord(DesiredState.ENDED))
    assert "has been run" in refused(halves, plan)


def test_a_cancelled_one(halves: Halves) -> None:
    plan = publish(halves)
    plans.want(halves.layout, ID, DesiredStateRecord(DesiredState.CANCEL))
    assert "was cancelled" in refused(halves, plan)


def test_a_reverted_one_and_its_revert_reverted(halves: Halves) -> None:
    plan = publish(halves)
    first = correct(halves, 0)
    halves.commit_entry("revert", reverts=first)
    assert "was run and reverted: the table is without it" in refused(halves, plan), "though a bucket is left"
    correct(halves, 1)
    assert "has been run" in refused(halves, plan), "a part of it stands"
    undone = halves.commit_entry("revert", reverts=ID)
    assert "was run and reverted" in refused(halves, plan)
    halves.commit_entry("revert", reverts=undone)
    assert "has been run" in refused(halves, plan)


def test_one_that_changes_nothing_shows_the_table(halves: Halves) -> None:
    assert shown(halves, publish(halves, buckets=0)).files == ()
