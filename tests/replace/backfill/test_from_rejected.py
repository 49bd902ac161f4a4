"""Backfills that bring rejected rows: once, whatever replays and other backfills do, and given back when they go."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hybrid.errors import ConflictError, DataError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.plans import claims_folder
from hybrid.operations.backfill_status import status_of
from hybrid.replace.backfill.claims import brought_back, claim, units_of
from hybrid.replace.lineage import entries_of
from hybrid.replace.revert import revert, revert_backfill
from hybrid.table.plans import Plan
from tests.replace.backfill.lab import BUCKET, Lab, lab_spec, row
from tests.shared_jvm import die_at

pytestmark = pytest.mark.spark
Make = Callable[..., Lab]


def message(order_id: int, ts: int, amount: float = 2.0) -> dict[str, object]:
    return {"order_id": order_id, "customer": "r", "amount": amount, "ts": ts}


@pytest.fixture
def make(workbench: CommitContext, tmp_path: Path) -> Make:
    """Three buckets with a row each; of the rejected rows 1000 to 1002 lie in them, 1003 after them, 1004 is none."""

    return partial(_made, workbench, tmp_path)


@pytest.fixture(scope="module")
def template(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, Plan]:
    lab = _made(workbench, tmp_path_factory.mktemp("planned"))
    return lab, lab.plan(0, 2 * BUCKET, rejected=True)


@pytest.fixture
def planned(template: tuple[Lab, Plan], tmp_path: Path) -> tuple[Lab, Plan]:
    """Such a table and a plan for its first two buckets: made once, copied for each test."""
    lab, plan = template
    return lab.copied(tmp_path), plan


def _made(bench: CommitContext, folder: Path, *, messages: tuple[object, ...] | None = None, **kind: object) -> Lab:
    lab = Lab.create(bench, folder, lab_spec(**kind))
    for number in range(3):
        lab.lay(f"orders_{number}", row(number, number * BUCKET), until=3 * BUCKET)
    usual = (message(50, 10), message(51, BUCKET), message(52, 2 * BUCKET), message(53, 9 * BUCKET), b"{")
    lab.reject(*(usual if messages is None else messages))  # type: ignore[arg-type]
    return lab


def taken(lab: Lab, plan: Plan) -> int:
    return status_of(lab.halves.layout, plan, entries_of(lab.offline)).taken


def ids(lab: Lab, plan: Plan | None = None) -> list[int]:
    return [one[0] for one in lab.rows(plan)]


def test_what_converts_and_lies_in_the_stretch_comes_once(planned: tuple[Lab, Plan]) -> None:
    lab, plan = planned
    assert plan.sentence.startswith(
        "Would correct 2 of 2 buckets of 'orders': 2 rows before, 4 after; 2 added, 0 removed"
    )
    assert plan.warnings[0].startswith(
        "2 of 5 rejected rows convert and come; 2 convert and lie outside of the stretch; 1 do not convert (commonest"
    )
    assert [dict(unit.replaced) for unit in plan.units] == [{}, {}], "nothing that is there is touched"
    assert ids(lab) == [0, 1, 2] and ids(lab, plan) == [0, 1, 2, 50, 51]
    assert set(lab.marks().values()) == {"rejected"} and taken(lab, plan) == 0

    other = lab.plan(0, BUCKET, rejected=True)
    lab.run(plan)
    assert ids(lab) == [0, 1, 2, 50, 51] and lab.realtime.realtime.rejected == 3 and taken(lab, plan) == 0
    mine = f"taken:{plan.id}"
    assert lab.marks() == {1000: mine, 1001: mine, 1002: "rejected", 1003: "rejected", 1004: "rejected"}
    assert lab.realtime.realtime.act.kind == "claim" and not lab.run(plan).committed

    with pytest.raises(ConflictError, match="has been added among its buckets"):
        lab.run(other)
    assert lab.replay().replayed == 2, "what lies elsewhere"
    assert ids(lab) == [0, 1, 2, 50, 51, 52, 53] and lab.replay().replayed == 0
    assert not lab.plan(0, 3 * BUCKET, rejected=True).units

    # A revert gives back what it takes out of the table; a revert of it is refused once that has come otherwise.
    _, oldest = (one for one in entries_of(lab.offline) if one.kind == "backfill")
    assert brought_back([plan.id], entries_of(lab.offline), oldest) == (plan.id, ())
    revert(lab.context, oldest.id)
    assert taken(lab, plan) == 1 and lab.settle(plan, ended=False) == 1 and taken(lab, plan) == 0
    assert ids(lab) == [0, 1, 2, 51, 52, 53] and lab.marks()[1000] == "rejected" and lab.marks()[1001] == mine
    back = entries_of(lab.offline)[0]
    found = brought_back([plan.id], entries_of(lab.offline), back)
    assert found is not None and [one.id for one in found[1]] == [oldest.id]
    units = units_of(plan, found[1])
    claim(lab.context, plan, units)
    assert lab.marks()[1000] == mine and lab.settle(plan, ended=False) == 1
    assert lab.replay().replayed == 1 and ids(lab) == [0, 1, 2, 50, 51, 52, 53]
    with pytest.raises(ConflictError, match="brought otherwise"):
        claim(lab.context, plan, units)
    revert_backfill(lab.context, plan.id)
    assert lab.settle(plan) == 1 and lab.marks()[1001] == "rejected" and lab.realtime.realtime.rejected == 2
    assert lab.replay().replayed == 1 and ids(lab) == [0, 1, 2, 50, 51, 52, 53]


def test_replayed_before_it_runs(planned: tuple[Lab, Plan]) -> None:
    lab, plan = planned
    lab.replay()
    version = lab.offline.version
    with pytest.raises(ConflictError, match="2 of 2 rejected rows that backfill"):
        lab.run(plan)
    assert lab.offline.version == version and lab.realtime.realtime.act.kind == "replay"


def test_claims_that_are_missing(planned: tuple[Lab, Plan]) -> None:
    lab, plan = planned
    folder = claims_folder(lab.halves.layout, plan.id)
    assert folder is not None
    for path in folder.glob("*.parquet"):
        path.unlink()
    with pytest.raises(DataError, match="on rejected rows are missing"):
        lab.run(plan)
    shutil.rmtree(folder)
    with pytest.raises(DataError, match="are missing"):
        lab.run(replace(plan, request={"from_rejected": True}))
    assert ids(lab) == [0, 1, 2] and set(lab.marks().values()) == {"rejected"}


def test_on_an_upsert_table_the_comparison_decides(make: Make) -> None:
    """Of key 1 an older version and a newer one, in two buckets: one swap, or the older one would show between."""
    lab = make(upsert=True, messages=(message(1, 10), message(1, BUCKET + 5), message(2, 20)))
    plan = lab.plan(0, 2 * BUCKET, rejected=True)
    wanted = lab.rows(plan)
    assert [(one[0], one[3]) for one in wanted] == [(0, 0), (1, BUCKET + 5), (2, 2 * BUCKET)]
    assert len(plan.units) == 1
    lab.run(plan)
    assert lab.rows() == wanted and set(lab.marks().values()) == {f"taken:{plan.id}"}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["claim.commit.inside", "claim.commit.after", "backfill.commit.before@2"])
def test_a_killed_run_goes_on_and_nothing_comes_twice(point: str, planned: tuple[Lab, Plan], tmp_path: Path) -> None:
    lab, plan = planned
    die_at(point, lab.bench, "tests.replace.backfill.killed_worker", str(tmp_path))
    assert ids(lab, plan) == [0, 1, 2, 50, 51]
    if point != "claim.commit.inside":
        assert lab.replay().replayed == 2 and taken(lab, plan) == (2 if point == "claim.commit.after" else 1)
        wanted = [0, 1, 2, 50, 51, 52, 53]
    else:
        wanted = [0, 1, 2, 50, 51]
    lab.run(plan)
    assert ids(lab) == wanted and taken(lab, plan) == 0
