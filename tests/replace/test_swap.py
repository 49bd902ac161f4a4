"""Swaps: names, formats, what differs, markers for removed winners, and acts that come in between."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from hybrid.config.job_names import NameParts
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, OvertakenError
from hybrid.replace.job import run_job
from hybrid.replace.job_options import JobOptions
from hybrid.replace.lineage import list_replacements
from hybrid.replace.report import JobReport
from tests.replace.tables import SEGMENT, Table, recipe

pytestmark = pytest.mark.spark


def _corrected(name: str = "orders") -> list[dict[str, Any]]:
    return [json.loads(line) for line in recipe(name, "corrected/orders.json").read_text().splitlines()]


def _run(
    table: Table, segment: str | None = SEGMENT, fields: dict[str, Any] | None = None, **options: Any
) -> JobReport:
    return run_job(table.context, table.job(segment, **(fields or {})), JobOptions(**options))


def test_every_format_gives_the_same_rows(orders: Table) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, _corrected()[0])
    writer.writeheader()
    writer.writerows(_corrected())
    orders.write("orders.csv", text.getvalue())
    pq.write_table(pa.Table.from_pylist(_corrected()), orders.write("orders.parquet", b""))
    orc.write_table(pa.Table.from_pylist(_corrected()), orders.write("orders.orc", b""))
    kinds = {int: "long", str: "string", float: "double"}
    fields = [{"name": name, "type": kinds[type(value)]} for name, value in _corrected()[0].items()]
    with orders.write("orders.avro", b"").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, _corrected(), "snappy")
    assert _run(orders, fields={"data_format": "csv", "include": "glob:**.csv"}).added == 7
    for data_format in ("parquet", "orc", "avro"):
        report = _run(orders, fields={"data_format": data_format, "include": f"glob:**.{data_format}"})
        assert report.sentence.endswith("already holds exactly these 7 rows.")


def test_simple_names_add_segments_and_then_replace_them(orders: Table) -> None:
    first, second = ({**row, "ts": 1600000000000 + row["order_id"]} for row in _corrected()[:2])
    orders.write_rows([first], "a.json")
    orders.write_rows([second, {**second, "order_id": 8}], "b.json")
    names = {"name_parts": NameParts(postfix="q")}
    report = _run(orders, None, names)
    a, b = "orders_1600000000001_1600000000001_q_0", "orders_1600000000002_1600000000002_q_1"
    assert (report.segments_from, report.segments_to) == ((), (a, b)) and report.added == 3
    assert report.sentence.startswith(f"Added 2 segments '{a}' to '{b}'")
    assert orders.segments() == {SEGMENT, a, b}
    orders.write_rows([{**first, "amount": 1.0}], "a.json")
    report = _run(orders, None, names)
    assert report.segments_from == (a, b) and (report.added, report.removed) == (1, 1)
    assert len(orders.rows()) == 10


def test_append_adds_rows_beside_others(orders: Table) -> None:
    orders.write_rows([{"order_id": 99, "ts": 1632463352000}])
    report = _run(orders, "more", append=True)
    assert report.sentence == "Added segment 'more': 0 rows before, 1 after; 1 added, 0 removed, 0 changed."
    assert report.warnings == (
        "No row of the input has column 'customer_id', 'order_status', 'amount' of table 'orders'; "
        "its default was written.",
    )
    assert orders.segments() == {SEGMENT, "more"}
    assert len(orders.rows()) == 8


def test_append_replaces_no_rows_of_a_name_that_other_times_made(orders: Table) -> None:
    """Files of the same times get the same name: the rows of the first would be gone."""
    first = {**_corrected()[0], "ts": 1600000000000}
    orders.write_rows([first], "a.json")
    assert _run(orders, None, append=True).added == 1
    assert "already holds exactly" in _run(orders, None, append=True).sentence
    orders.write_rows([first, {**first, "order_id": 8}], "a.json")
    assert _run(orders, None, append=True).added == 1, "nothing is lost"
    orders.write_rows([{**first, "order_id": 9}], "a.json")
    for options in ({"append": True}, {"append": True, "dry_run": True}):
        with pytest.raises(ConflictError, match="would be replaced, not added to") as refused:
            _run(orders, None, **options)
        assert "segment.name.postfix" in str(refused.value.hint)
    assert _run(orders, None).removed == 2


def test_an_empty_input_that_was_confirmed(orders: Table) -> None:
    orders.write("orders.json", "[]")
    report = _run(orders, allow_empty=True)
    assert (report.segments_from, report.segments_to, report.removed) == ((SEGMENT,), (), 7)
    assert orders.segments() == set()
    assert _run(orders, allow_empty=True).sentence == (
        f"Nothing to change: the input holds no rows and segment '{SEGMENT}' does not exist."
    )


def test_changed_columns_and_samples(upsert: Table) -> None:
    rows = _corrected("orders_upsert")
    rows[0]["amount"] = 1.5
    del rows[3]
    upsert.write_rows([*rows, {**rows[1], "order_id": 77}])
    report = _run(upsert)
    assert (report.added, report.removed, report.changed) == (1, 1, 1)
    assert report.changed_columns == {"amount": 1}
    assert [sample.change for sample in report.samples] == ["changed", "removed", "added"]
    assert report.samples[0].before and report.samples[0].before["order_id"] == 1


def test_a_key_without_upsert_counts_rows(orders: Table) -> None:
    """All rows of a key are seen there: what goes and comes are rows; pairs that are told apart by their key change."""
    schema = replace(orders.spec.schema, primary_key=("customer_id",))
    keyed = replace(orders, spec=replace(orders.spec, schema=schema))
    rows = [json.loads(line) for line in recipe("orders", "events.jsonl").read_text().splitlines()][:7]
    keyed.write_rows([{**row, "customer_id": 1} for row in rows])
    assert (_run(keyed).added, len(keyed.rows())) == (7, 7)
    keyed.write_rows([{**row, "customer_id": 1} for row in rows[:5]])
    report = _run(keyed)
    assert (report.added, report.removed, report.changed) == (0, 2, 0) and len(keyed.rows()) == 5
    keyed.write_rows([{**row, "customer_id": place} for place, row in enumerate(rows[:3])])
    _run(keyed)
    keyed.write_rows([{**row, "customer_id": place, "amount": 77.0} for place, row in enumerate(rows[:3])])
    report = _run(keyed)
    assert (report.added, report.removed, report.changed) == (0, 0, 3)


def test_a_removed_winner_does_not_come_back(concat: Table) -> None:
    # An older version of order 2 in another offline segment, and one of order 3 that arrived late in REALTIME.
    concat.add_offline("old", [({"order_id": 2, "order_status": "OLD", "ts": 1632400000000}, 100)])
    concat.ingest([{"order_id": 3, "order_status": "LATE", "ts": 1632400000001}], start=14)
    concat.write_rows([row for row in _corrected("orders_upsert") if row["order_id"] in (1, 4)])
    assert len(concat.visible()) == 9
    report = _run(concat)
    assert (report.rows_after, report.removed) == (2, 2)
    assert set(concat.visible()) == {1, 4, 5, 6, 7, 8, 9}
    markers = [row for row in concat.rows(hidden=True) if row["_hy_op"] == "delete"]
    assert sorted((row["order_id"], row["_hy_segment"]) for row in markers) == [(2, SEGMENT), (3, SEGMENT)]
    # The markers are carried on, and no change.
    assert _run(concat).version is None
    concat.write_rows([row for row in _corrected("orders_upsert") if row["order_id"] == 1])
    assert _run(concat).removed == 1
    assert set(concat.visible()) == {1, 5, 6, 7, 8, 9}


def test_it_gives_up_when_others_never_stop(orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def overtaken(*_: Any) -> int:
        raise OvertakenError("Another operation came first.")

    monkeypatch.setattr("hybrid.replace.job.commit_swap", overtaken)
    orders.write_rows(_corrected())
    before = orders.fingerprint()
    with pytest.raises(OvertakenError, match="came first 6 times"):
        _run(orders, fields={"push_attempts": 6})
    assert orders.fingerprint() == before


def test_lineage_is_found_past_foreign_commits(orders: Table) -> None:
    orders.write_rows(_corrected())
    first = _run(orders)
    orders.bench.spark.sql(f"OPTIMIZE delta.`{orders.path(Half.OFFLINE)}`")
    orders.bench.spark.sql(f"ALTER TABLE delta.`{orders.path(Half.OFFLINE)}` SET TBLPROPERTIES ('x' = 'y')")
    orders.write_rows(_corrected()[:3])
    second = _run(orders)
    assert [entry.id for entry in list_replacements(orders.layout)] == [second.act, first.act]
