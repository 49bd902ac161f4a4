"""Jobs and reverts on segments that were merged into others since."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybrid.config.table_config import Half, MergeLevel
from hybrid.errors import ConflictError
from hybrid.lake.log import open_half
from hybrid.lake.table_context import TableContext
from hybrid.move.merging.report import MergeReport
from hybrid.move.merging.run import run_merges
from hybrid.replace.job import run_job
from hybrid.replace.job_options import JobOptions
from hybrid.replace.merged import merges_since
from hybrid.replace.report import JobReport
from hybrid.replace.revert import revert
from tests.replace.tables import SEGMENT, Table

pytestmark = pytest.mark.spark

ROW = {"order_id": 1, "customer_id": 1, "order_status": "X", "amount": 1.0, "ts": 1632463351000}


def _push(table: Table, segment: str, *amounts: float, **options: bool) -> JobReport:
    table.write_rows([{**ROW, "order_id": 100 + place, "amount": amount} for place, amount in enumerate(amounts)])
    return run_job(table.context, table.job(segment), JobOptions(**options))  # type: ignore[arg-type]


def _merge(table: Table) -> MergeReport:
    levels = (MergeLevel(bucket_ms=86_400_000, buffer_ms=0, name="1day"),)
    return run_merges(TableContext(table.bench, replace(table.spec, merge_levels=levels), table.layout))


def test_a_job_that_names_a_merged_segment_says_what_would_do(orders: Table) -> None:
    """And so it does when the segment came back, was replaced, and was merged anew."""
    _push(orders, "beside", 1.0, append=True)
    (merged,) = _merge(orders).merged
    with pytest.raises(ConflictError, match="Segment 'beside' was merged into segment '") as caught:
        _push(orders, "beside", 2.0, 2.0)
    assert f"hybrid replacement revert orders {merged.act}. " in str(caught.value.hint)
    assert orders.segments() == set(merged.into)
    revert(orders.context, str(merged.act))
    _push(orders, "beside", 2.0, 2.0)
    assert orders.segments() == {SEGMENT, "beside"} and len(orders.rows()) == 9
    (again,) = _merge(orders).merged
    half = open_half(orders.path(Half.OFFLINE))
    assert [entry.id for entry in merges_since(half, "beside")] == [again.act]


def test_a_job_that_covers_the_time_replaces_what_was_merged(orders: Table) -> None:
    _push(orders, "beside", 1.0, append=True)
    _merge(orders)
    orders.write_rows([{**ROW, "order_id": 100, "amount": 2.0}])
    job = replace(orders.job("beside"), covers="day")
    run_job(orders.context, job)
    assert orders.segments() == {"beside"} and len(orders.rows()) == 1


def test_a_correction_is_reverted_after_the_merge(orders: Table) -> None:
    before = orders.rows(hidden=True)
    done = _push(orders, SEGMENT, 1.0)
    _push(orders, "beside", 2.0, append=True)
    (merged,) = _merge(orders).merged
    with pytest.raises(ConflictError, match=f"changed again since, by '{merged.act}'") as caught:
        revert(orders.context, str(done.act))
    assert str(merged.act) in str(caught.value.hint)
    revert(orders.context, str(merged.act))
    revert(orders.context, str(done.act))
    assert [row for row in orders.rows(hidden=True) if row["_hy_segment"] == SEGMENT] == before


def test_a_corrected_upsert_table_answers_alike(upsert: Table) -> None:
    _push(upsert, "beside", 1.0, 2.0, append=True)
    before = _answers(upsert)
    assert len(_merge(upsert).merged) == 1
    assert _answers(upsert) == before


def _answers(table: Table) -> dict[object, dict[str, object]]:
    return {key: {**row, "_hy_segment": None} for key, row in table.visible().items()}
