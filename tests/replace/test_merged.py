"""Jobs and reverts on segments that were merged into others since."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybrid.errors import ConflictError
from hybrid.move.merging.report import MergeReport
from hybrid.move.merging.run import run_merges
from hybrid.replace.job import run_job
from hybrid.replace.lineage import list_replacements
from hybrid.replace.report import JobReport
from hybrid.replace.revert import revert
from hybrid.spec.table_config import MergeLevel
from tests.replace.tables import SEGMENT, Table

pytestmark = pytest.mark.spark

ROW = {"order_id": 1, "customer_id": 1, "order_status": "X", "amount": 1.0, "ts": 1632463351000}


def _push(table: Table, segment: str, *amounts: float, **options: bool) -> JobReport:
    table.write_rows([{**ROW, "order_id": 100 + place, "amount": amount} for place, amount in enumerate(amounts)])
    return run_job(table.bench, table.spec, table.layout, table.job(segment), **options)  # type: ignore[arg-type]


def _merge(table: Table) -> MergeReport:
    levels = (MergeLevel(bucket_ms=86_400_000, buffer_ms=0, name="1day"),)
    return run_merges(table.bench, replace(table.spec, merge_levels=levels), table.layout)


def test_a_job_replaces_what_it_names_and_the_rest_stays(orders: Table) -> None:
    beside = _push(orders, "beside", 1.0, append=True)
    stored = orders.rows()
    (merged,) = _merge(orders).merged
    assert orders.segments() == set(merged.into) and len(orders.rows()) == 8
    with pytest.raises(
        ConflictError, match=f"Segment 'beside' was merged into segment '{merged.into[0]}' by '{merged.act}'"
    ):
        _push(orders, "beside", 2.0, 3.0, dry_run=True)
    assert orders.segments() == set(merged.into)
    done = _push(orders, "beside", 2.0, 3.0)
    assert orders.segments() == {SEGMENT, "beside"}
    assert (done.rows_before, done.rows_after) == (1, 2)
    assert len(orders.rows()) == len(stored) + 1
    kinds = [(entry.kind, entry.state, entry.reason) for entry in list_replacements(orders.layout)]
    assert kinds[1:3] == [("revert", "ACTIVE", "job-spec.yml replaces segment 'beside'"), ("merge", "REVERTED", None)]
    revert(orders.bench, orders.spec, orders.layout, str(done.act))
    assert orders.rows() == stored
    revert(orders.bench, orders.spec, orders.layout, str(beside.act))
    assert len(orders.rows()) == 7


def test_a_correction_is_reverted_after_the_merge(orders: Table) -> None:
    before = orders.rows(hidden=True)
    done = _push(orders, SEGMENT, 1.0)
    _push(orders, "beside", 2.0, append=True)
    (merged,) = _merge(orders).merged
    with pytest.raises(ConflictError, match=f"changed again since, by '{merged.act}'") as caught:
        revert(orders.bench, orders.spec, orders.layout, str(done.act))
    assert str(merged.act) in str(caught.value.hint)
    revert(orders.bench, orders.spec, orders.layout, str(merged.act))
    revert(orders.bench, orders.spec, orders.layout, str(done.act))
    assert [row for row in orders.rows(hidden=True) if row["_hy_segment"] == SEGMENT] == before


def test_what_a_merge_made_and_a_correction_replaced_is_not_brought_back(orders: Table) -> None:
    _push(orders, "beside", 1.0, append=True)
    (merged,) = _merge(orders).merged
    _push(orders, merged.into[0], 3.0)
    with pytest.raises(ConflictError, match="does not exist, and its times"):
        _push(orders, "beside", 4.0)
    assert orders.segments() == set(merged.into)


def test_a_corrected_upsert_table_answers_alike(upsert: Table) -> None:
    _push(upsert, "beside", 1.0, 2.0, append=True)
    before = _answers(upsert)
    assert len(_merge(upsert).merged) == 1
    assert _answers(upsert) == before


def _answers(table: Table) -> dict[object, dict[str, object]]:
    return {key: {**row, "_hy_segment": None} for key, row in table.visible().items()}
