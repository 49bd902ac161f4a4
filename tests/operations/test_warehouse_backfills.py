"""Backfills and replacements that one home begins and another one ends, after it has taken the warehouse over."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from hybrid.api.hybrid import Hybrid
from hybrid.errors import ConflictError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.pushes import PushState
from hybrid.operations.backfill_change import BackfillChange
from hybrid.operations.warehouse.pull import pull_warehouse
from hybrid.operations.warehouse.push import push_warehouse
from hybrid.operations.warehouse.sync import sync_warehouse
from hybrid.replace.backfill import plan_run
from hybrid.replace.backfill.options import BackfillOptions
from tests.early_death import ends_at
from tests.operations.erasure_home import HOUR, new_table, open_home
from tests.operations.warehouse_homes import server, url
from tests.query.halves import Halves
from tests.replace.backfill.lab import Lab, row
from tests.s3_server import needs_s3

__all__ = ["server", "url"]  # fixtures
pytestmark = [pytest.mark.spark, pytest.mark.slow, needs_s3]
Open = Callable[[str], Hybrid]
BUCKETS = 3


def message(order_id: int, ts: int) -> Mapping[str, object]:
    return {"order_id": order_id, "customer": "r", "amount": 2.0, "ts": ts}


@pytest.fixture(scope="module")
def template(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home without a store: a row in each of three hours, and for each of them a rejected row that converts."""
    folder = tmp_path_factory.mktemp("template") / "home"
    home = open_home(folder, workbench)
    lab = new_table(home)
    for number in range(BUCKETS):
        lab.lay(f"orders_{number}", row(number, number * HOUR), until=BUCKETS * HOUR)
    lab.reject(*(message(50 + number, number * HOUR + 1) for number in range(BUCKETS)))
    home.close()
    return folder


@pytest.fixture
def opened(template: Path, tmp_path: Path, workbench: CommitContext, url: str, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Homes by their names; that of `a` has the tables, and has pushed them to the store."""
    shutil.copytree(template, tmp_path / "a")
    monkeypatch.setenv("HYBRID_WAREHOUSE", url)
    push_warehouse(open_home(tmp_path / "a", workbench).context)
    return lambda name: open_home(tmp_path / name, workbench)


def take_over(home: Hybrid) -> Hybrid:
    pull_warehouse(home.context, take_over=True)
    home.table("orders").pause("no broker here")
    return home


def lab_of(home: Hybrid) -> Lab:
    table = home.table("orders")
    return Lab(home.context.bench, Halves(table.spec, table.layout), home.home)


def ids(home: Hybrid) -> list[int]:
    return [one[0] for one in lab_of(home).rows()]


def amounts(home: Hybrid) -> list[float]:
    return [one[2] for one in lab_of(home).rows()]


def test_a_backfill_that_a_lost_home_had_half_run_is_run_to_its_end(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = opened("a")
    plan = home.backfills.plan("orders", BackfillChange(update="amount = amount + 10"))
    assert len(plan.units) == BUCKETS
    with ends_at("backfill.commit.before@2", monkeypatch):
        home.backfills.run(plan.id, BackfillOptions())
    other = take_over(opened("b"))
    status = other.backfills.status(plan.id)
    assert (status.state, status.buckets_done, status.buckets_total) == ("INTERRUPTED", 1, BUCKETS)
    assert other.backfills.show(plan.id) == home.backfills.show(plan.id)
    assert sorted(amounts(other)) == [1.0, 1.0, 11.0]
    preview = lab_of(other).query("SELECT amount FROM orders LIMIT 10", plan).rows
    assert [tuple(one) for one in preview] == [(11.0,)] * BUCKETS, "what is staged can be looked at"
    assert other.backfills.run(plan.id, BackfillOptions()).buckets_now == BUCKETS - 1
    assert amounts(other) == [11.0] * BUCKETS
    with pytest.raises(ConflictError, match="written by another home"):
        home.backfills.run(plan.id, BackfillOptions())
    third = take_over(opened("c"))
    assert third.backfills.status(plan.id).state == "DONE" and amounts(third) == [11.0] * BUCKETS
    assert third.backfills.run(plan.id, BackfillOptions()).acts == ()
    third.backfills.revert(plan.id)
    assert amounts(third) == [1.0] * BUCKETS


@pytest.mark.parametrize("point", ["claim.commit.inside", "claim.commit.after", "backfill.commit.before@2"])
def test_rejected_rows_that_a_lost_home_had_claimed_come_once(
    opened: Open, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    home = opened("a")
    plan = home.backfills.plan("orders", BackfillChange(from_rejected=True))
    with ends_at(point, monkeypatch):
        home.backfills.run(plan.id, BackfillOptions())
    other = take_over(opened("b"))
    done = 1 if point.startswith("backfill") else 0
    claimed = 0 if point == "claim.commit.inside" else BUCKETS - done
    assert ids(other) == sorted([0, 1, 2, *range(50, 50 + done)])
    assert other.backfills.status(plan.id).taken == claimed
    if claimed:
        assert lab_of(other).replay().replayed == 0, "a claimed row is brought by its plan alone"
    other.backfills.run(plan.id, BackfillOptions())
    assert ids(other) == [0, 1, 2, 50, 51, 52] and lab_of(other).replay().replayed == 0
    assert set(lab_of(other).marks().values()) == {f"taken:{plan.id}"}
    with pytest.raises(ConflictError, match="written by another home"):
        home.backfills.run(plan.id, BackfillOptions())
    if done:  # from here on it does not matter where the first home was lost
        other.backfills.revert(plan.id)
        assert ids(other) == [0, 1, 2] and lab_of(other).replay().replayed == BUCKETS
        assert ids(other) == [0, 1, 2, 50, 51, 52]


def test_what_a_lost_home_had_claimed_is_given_back(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    home = opened("a")
    plan = home.backfills.plan("orders", BackfillChange(from_rejected=True))
    with ends_at("backfill.commit.before@2", monkeypatch):
        home.backfills.run(plan.id, BackfillOptions())
    home.backfills.cancel(plan.id)  # and it is lost before it gives back what it has claimed
    other = take_over(opened("b"))
    assert (other.backfills.status(plan.id).state, other.backfills.status(plan.id).taken) == ("CANCELLED", 2)
    other.backfills.release(plan.id)
    assert lab_of(other).replay().replayed == 2 and ids(other) == [0, 1, 2, 50, 51, 52]


@pytest.mark.parametrize("is_rejected", [False, True])
def test_a_run_that_was_frozen_between_two_swaps_swaps_nothing_more(
    opened: Open, monkeypatch: pytest.MonkeyPatch, is_rejected: bool
) -> None:
    home, other = opened("a"), opened("b")
    change = BackfillChange(from_rejected=True) if is_rejected else BackfillChange(update="amount = amount + 10")
    plan = home.backfills.plan("orders", change)
    commit, calls = plan_run._Run._commit, list[None]()

    def frozen(run: plan_run._Run, units: object) -> None:
        calls.append(None)
        if len(calls) == 2:
            take_over(other).backfills.run(plan.id, BackfillOptions())
        commit(run, units)  # type: ignore[arg-type]

    monkeypatch.setattr(plan_run._Run, "_commit", frozen)
    with pytest.raises(ConflictError, match="written by another home"):
        home.backfills.run(plan.id, BackfillOptions())
    assert ids(other) == ([0, 1, 2, 50, 51, 52] if is_rejected else [0, 1, 2])
    assert is_rejected or amounts(other) == [11.0] * BUCKETS
    assert other.backfills.status(plan.id).state == "DONE"
    pull_warehouse(home.context)
    assert home.backfills.status(plan.id).state == "DONE" and ids(home) == ids(other)
    assert sync_warehouse(other.context).did_something is False


def _job(folder: Path, order_id: int, segment: str) -> Path:
    """A job that writes one row to a segment."""
    folder.mkdir()
    (folder / "rows.json").write_text(json.dumps({"order_id": order_id, "customer": "p", "amount": 3.0, "ts": 15}))
    spec = {
        "jobType": "SegmentCreationAndTarPush",
        "inputDirURI": str(folder),
        "includeFileNamePattern": "glob:**/*.json",
        "recordReaderSpec": {"dataFormat": "json"},
        "tableSpec": {"tableName": "orders"},
        "segmentNameGeneratorSpec": {"type": "fixed", "configs": {"segment.name": segment}},
    }
    (folder / "spec.yml").write_text(yaml.safe_dump(spec))
    return folder / "spec.yml"


def test_a_replacement_that_a_lost_home_had_begun_is_ended(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = opened("a")
    entry = home.table("orders").replacing.start(["orders_0"], ["first", "second"])
    assert home.run_job(_job(tmp_path / "one", 70, "first"), {}).staged_for == entry.id
    other = take_over(opened("b"))
    (pending,) = other.table("orders").replacing.in_progress()
    assert pending.missing == ("second",) and pending.rows == 1 and ids(other) == [0, 1, 2]
    with pytest.raises(ConflictError, match="has not been pushed"):
        other.table("orders").replacing.end(entry.id)
    other.run_job(_job(tmp_path / "two", 71, "second"), {})
    with ends_at("replace.commit.after", monkeypatch):
        other.table("orders").replacing.end(entry.id)
    third = take_over(opened("c"))
    assert third.table("orders").replacing.state(entry.id) is PushState.COMPLETED and ids(third) == [1, 2, 70, 71]
    assert third.table("orders").replacing.end(entry.id).sentence.startswith("Nothing to do")
    for late, words in ((home, "'second' of segmentsTo has not been pushed"), (other, "another home")):
        with pytest.raises(ConflictError, match=words):
            late.table("orders").replacing.end(entry.id)
    fourth = take_over(opened("d"))
    assert fourth.table("orders").replacing.in_progress() == [] and ids(fourth) == [1, 2, 70, 71]
