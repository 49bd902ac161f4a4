"""Both recipes' jobs, as they are, against the tables as one move leaves them."""

from __future__ import annotations

import pytest

from hybrid.config.job_spec import JobSpec, load_job_spec
from hybrid.config.table_config import Half
from hybrid.replace.job import run_job
from hybrid.replace.job_options import JobOptions
from hybrid.replace.lineage import list_replacements
from tests.replace.tables import SEGMENT, Table, recipe

pytestmark = pytest.mark.spark


def _job(name: str) -> JobSpec:
    corrected = recipe(name, "corrected/orders.json").parent
    return load_job_spec(recipe(name, "job-spec.yml"), {"segmentName": SEGMENT}, str(corrected))


def test_orders_shows_the_corrected_amounts_under_the_same_name(orders: Table) -> None:
    report = run_job(orders.context, _job("orders"), JobOptions(reason="late prices", user="ann"))
    rows = sorted(orders.rows(), key=lambda row: row["order_id"])  # type: ignore[arg-type, return-value]
    amounts = [15.948, 251.22, 239.22, 3.888, 11.724, 66.624, 63.048]
    assert [row["amount"] for row in rows] == pytest.approx(amounts, rel=1e-6)
    assert orders.segments() == {SEGMENT}
    assert (report.rows_before, report.rows_after, report.added, report.removed) == (7, 7, 7, 7)  # keyless
    assert report.segments_from == report.segments_to == (SEGMENT,)
    (entry,) = list_replacements(orders.layout)
    assert (entry.id, entry.state, entry.reason, entry.version) == (report.act, "ACTIVE", "late prices", report.version)
    assert entry.result == report.sentence
    assert entry.lineage.inputs[0]["sha256"] and entry.lineage.user == "ann"


def test_arrived_after_everything_committed(orders: Table) -> None:
    run_job(orders.context, _job("orders"))
    rows = orders.rows(hidden=True)
    assert {row["_hy_timestamp"] for row in rows} == {13_000}
    assert {row["_hy_connector"] for row in rows} == {"~replacement"}
    assert {row["_hy_topic"] for row in rows} == {"act-000000000002"}
    assert sorted(row["_hy_offset"] for row in rows) == list(range(7))  # type: ignore[type-var]


def test_twice_changes_nothing(orders: Table) -> None:
    run_job(orders.context, _job("orders"))
    before = orders.fingerprint()
    again = run_job(orders.context, _job("orders"))
    assert again.sentence == f"Nothing to change: segment '{SEGMENT}' already holds exactly these 7 rows."
    assert (again.act, again.version) == (None, None)
    assert orders.fingerprint() == before


def test_a_dry_run_touches_nothing(orders: Table) -> None:
    before = orders.fingerprint()
    report = run_job(orders.context, _job("orders"), JobOptions(dry_run=True))
    assert report.dry_run and report.version is None and report.added == 7
    assert report.sentence.startswith("Would replace") and report.sentence.endswith("Nothing was touched.")
    assert orders.fingerprint() == before
    assert orders.staged() == []


def test_upsert_keeps_nine_orders(upsert: Table) -> None:
    report = run_job(upsert.context, _job("orders_upsert"))
    # The corrected file holds what the move kept: nothing to change.
    assert report.version is None and "already holds exactly these 4 rows" in report.sentence
    assert len(upsert.rows()) == 4 and len(upsert.visible()) == 9
    assert upsert.visible()[1]["order_status"] == "COMPLETED" and upsert.visible()[4]["order_status"] == "CANCELLED"


def test_upsert_of_a_concat_segment(concat: Table) -> None:
    table = concat
    report = run_job(table.context, _job("orders_upsert"))
    assert (report.rows_before, report.rows_after, report.changed) == (7, 4, 0)
    assert len(table.rows()) == 4 and len(table.visible()) == 9
    table.ingest(
        [{"order_id": 1, "customer_id": 104, "order_status": "RETURNED", "amount": 1, "ts": "1732463351000"}], 14
    )
    assert len(table.visible()) == 9 and table.visible()[1]["order_status"] == "RETURNED"
    assert len(table.rows(Half.REALTIME)) == 15
