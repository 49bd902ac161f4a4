"""Corrections of a table that folds: rows are corrected in their place, and what arrives now counts as what it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import Partial, Strategy, UpsertConfig
from hybrid.errors import ConflictError, UsageError
from hybrid.lake.commit_context import CommitContext
from hybrid.replace.backfill.request import refuse_deciding
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from hybrid.table.boundary import Boundary
from tests.query.halves import KEY
from tests.replace.backfill.lab import BUCKET, Lab, lab_spec, row
from tests.replace.purge.erasing import purge_rows

pytestmark = pytest.mark.spark

SHOWN = "select order_id, customer, amount, n from orders order by 1"


@pytest.fixture
def lab(workbench: CommitContext, tmp_path: Path) -> Lab:
    """Compared by n: keys 1 and 2 with three rows in three buckets each, the last of 1 late; key 3 deleted."""
    spec = lab_spec(upsert=True, deletes=True, extra=[FieldSpec("n", DataType.LONG, FieldKind.METRIC)])
    partial = Partial({"amount": Strategy.INCREMENT, "customer": Strategy.IGNORE})
    spec = replace(spec, upsert=UpsertConfig("n", "gone", partial=partial), null_handling=True)
    made = Lab.create(workbench, tmp_path, spec)
    made.lay("a", one(1, 10, 0, 10, 1.0), one(2, 11, 1, 10, 1.0), one(3, 12, 2, 10, 1.0))
    made.lay("b", one(1, 1010, 3, 30, 2.0), one(2, 1011, 4, 20, 2.0), one(3, 1012, 5, 20, 0.0, op="delete"))
    made.lay("c", one(1, 2010, 6, 20, 4.0), one(2, 2011, 7, 30, 4.0))
    made.halves.commit_offline([], Boundary(3 * BUCKET, {KEY: 8}))
    assert shown(made) == [(1, "c0", 3.0, 30), (2, "c1", 7.0, 30)]
    return made


def one(key: int, ts: int, offset: int, n: int, amount: float, op: str = "row") -> Any:
    found = row(key, ts, amount, f"c{offset}", offset=offset, gone=op == "delete", op=op)
    return replace(found, values={**found.values, "n": n})


def shown(lab: Lab, plan: Any = None) -> list[tuple[Any, ...]]:
    return [tuple(found) for found in lab.query(SHOWN, plan).rows]


def test_an_update_corrects_rows_in_their_place(lab: Lab) -> None:
    plan = lab.plan(0, 3 * BUCKET, update="amount = amount * 10", where="order_id = 1")
    assert [bucket.counts.changed for bucket in plan.buckets] == [1, 1, 1], "the late row of key 1 too"
    assert shown(lab, plan) == [(1, "c0", 30.0, 30), (2, "c1", 7.0, 30)]
    lab.run(plan)
    assert shown(lab) == [(1, "c0", 30.0, 30), (2, "c1", 7.0, 30)]
    with pytest.raises(UsageError, match="what says which version of a key wins"):
        refuse_deciding(lab.spec, {"n": "5"})


def test_a_removed_row_counts_as_if_it_had_never_come(lab: Lab) -> None:
    """Without the 30 of key 1 its late 20 counts. A delete marker stays."""
    plan = lab.plan(BUCKET, 2 * BUCKET, delete=True)
    assert [bucket.counts.removed for bucket in plan.buckets] == [2]
    lab.run(plan)
    assert shown(lab) == [(1, "c0", 5.0, 20), (2, "c1", 5.0, 30)]


def test_rows_that_arrive_below_the_value_of_their_key_are_ignored_and_the_plan_says_so(lab: Lab) -> None:
    rows = [
        {"order_id": key, "customer": "new", "amount": 9.0, "ts": 1020 + key, "n": n, "gone": False}
        for key, n in ((1, 25), (2, 29), (3, 15), (4, 1))
    ]
    plan = lab.plan(BUCKET, 2 * BUCKET, rows=rows)
    assert any("2 rows of the input will be ignored" in warning for warning in plan.warnings), plan.warnings
    # Without the 30 of key 1 its late 20 counts, and then the 25; key 3 stays deleted.
    expected = [(1, "c0", 14.0, 25), (2, "c1", 5.0, 30), (4, "new", 9.0, 1)]
    assert shown(lab, plan) == expected
    lab.run(plan)
    assert shown(lab) == expected
    again = lab.plan(BUCKET, 2 * BUCKET, rows=rows)
    assert not again.units, "the same rows change nothing"


def test_rows_that_come_again_keep_their_arrival(lab: Lab) -> None:
    """One amount is put right. The 30 of key 1 came before its late 20, which stays ignored."""
    rows = [
        {"order_id": key, "customer": "new", "amount": amount, "ts": 1010 + key, "n": n, "gone": False}
        for key, n, amount in ((1, 30, 2.0), (2, 20, 3.0))
    ]
    plan = lab.plan(BUCKET, 2 * BUCKET, rows=rows)
    assert not plan.warnings
    assert shown(lab, plan) == [(1, "c0", 3.0, 30), (2, "c1", 8.0, 30)]
    lab.run(plan)
    assert shown(lab) == [(1, "c0", 3.0, 30), (2, "c1", 8.0, 30)]


def test_a_purge_takes_all_rows_of_a_key(lab: Lab) -> None:
    """Rows that are folded are kept until they are deleted; with the last of them its marker goes."""
    with pytest.raises(ConflictError, match="Queries fold 1 row of 'orders' that match"):
        purge_rows(lab, "order_id = 3")
    lab.run(lab.plan(0, 3 * BUCKET, delete=True, where="order_id in (1, 3)"))
    assert shown(lab) == [(2, "c1", 7.0, 30)]
    report = purge_rows(lab, "order_id in (1, 3)")
    assert report.rows == {"OFFLINE": 1}, report.sentence
    assert shown(lab) == [(2, "c1", 7.0, 30)]
