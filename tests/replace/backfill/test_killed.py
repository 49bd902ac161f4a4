"""A run that is killed at a commit, and goes on: every bucket is corrected once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.lake import plans
from hybrid.lake.commit_context import CommitContext
from hybrid.replace.lineage import entries_of
from hybrid.table.plans import Plan
from tests.replace.backfill.lab import BUCKET, Lab, lab_spec, row
from tests.shared_jvm import die_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]
BUCKETS = 5


@pytest.fixture(scope="module")
def template(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, Plan]:
    """Made once, copied for each test."""
    lab = Lab.create(workbench, tmp_path_factory.mktemp("planned"), lab_spec())
    for number in range(BUCKETS):
        lab.lay(f"orders_{number}", row(number, number * BUCKET), until=BUCKETS * BUCKET)
    # Every other bucket gets a row where none was: such a swap replaces nothing that could tell that it is done.
    rows = [{"order_id": 50 + n, "customer": "b", "amount": 2.0, "ts": n * BUCKET + 1} for n in range(2 * BUCKETS)]
    return lab, lab.plan(0, 2 * BUCKETS * BUCKET, rows=rows)


@pytest.mark.parametrize("point", ["before@2", "inside@3", "after@2"])
def test_a_killed_run_goes_on_with_what_is_missing(point: str, template: tuple[Lab, Plan], tmp_path: Path) -> None:
    lab, plan = template[0].copied(tmp_path), template[1]
    wanted = lab.rows(plan)

    die_at(f"backfill.commit.{point}", lab.bench, "tests.replace.backfill.killed_worker", str(tmp_path))
    assert lab.rows(plan) == wanted  # in the middle as well: what is done, and what is staged

    assert not plans.is_running(lab.halves.layout, plan.id)
    lab.run(plan)
    assert lab.rows() == wanted
    spans = [one for entry in entries_of(lab.offline) for one in entry.lineage.buckets]
    assert sorted(spans) == [(n * BUCKET, (n + 1) * BUCKET) for n in range(2 * BUCKETS)]
