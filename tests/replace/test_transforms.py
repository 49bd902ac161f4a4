"""Files of jobs go through the OFFLINE config's transforms and filter, whatever their format."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.config.table_config import Half
from hybrid.errors import DataError, UsageError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log import open_half
from hybrid.replace.job import JobReport, run_job
from hybrid.replace.job_options import JobOptions
from hybrid.schema.ingestion import IngestionConfig, Transform
from tests.replace.tables import SEGMENT, Table

pytestmark = pytest.mark.spark

STEPS = (
    Transform("ts", "fromDateTime(at, 'yyyy-MM-dd HH:mm:ss')"),
    Transform("order_status", "upper(state.name)"),
    Transform("amount", "net * 1.5"),
)
AT = "2021-09-24 06:02:31"
AT_MS = 1632463351000


@pytest.fixture
def table(workbench: CommitContext, tmp_path: Path) -> Table:
    from tests.replace.tables import recipe_spec

    made = Table.create(workbench, tmp_path, recipe_spec("orders"))
    return given(made, *STEPS, where="net < 0")


def given(table: Table, *steps: Transform, where: str | None = None, lenient: bool = False) -> Table:
    ingestion = {Half.OFFLINE: IngestionConfig(steps, where, lenient), Half.REALTIME: IngestionConfig((), "TRUE")}
    return replace(table, spec=replace(table.spec, ingestion=ingestion))


def run(table: Table, **options: object) -> JobReport:
    fields = {key: options.pop(key) for key in ("data_format", "reader_configs") if key in options}
    return run_job(table.context, table.job(**fields), JobOptions(**options))  # type: ignore[arg-type]


def record(number: int, **more: object) -> dict[str, object]:
    return {"order_id": number, "customer_id": 1, "state": {"name": "open"}, "net": 10, "at": AT, **more}


def stored(number: int, **more: object) -> dict[str, object]:
    return {"order_id": number, "customer_id": 1, "order_status": "OPEN", "amount": 15.0, "ts": AT_MS, **more}


def test_json(table: Table) -> None:
    table.write_rows([record(1), record(2, net=-1), record(3, order_status="kept", net=2)])
    report = run(table)
    assert table.rows() == [stored(1), stored(3, order_status="kept", amount=3.0)]
    assert report.sentence.endswith("0 changed; 1 record was filtered out.") and report.warnings == ()
    entry = open_half(table.path(Half.OFFLINE)).offline.act.detail
    assert entry["result"] == report.sentence
    again = run(table)
    assert again.version is None and again.sentence.endswith("exactly these 2 rows; 1 record was filtered out.")


def test_csv(table: Table) -> None:
    table = given(table, STEPS[0], Transform("amount", "net * 1.5"), where="net < 0")
    header = "order_id,customer_id,order_status,net,at\n"
    table.write("orders.csv", header + f"1,1,OPEN,10,{AT}\n2,1,OPEN,-5,{AT}\n3,1,OPEN,,{AT}\n")
    assert "1 record was filtered out" in run(table, data_format="csv").sentence
    assert table.rows() == [stored(3, amount=0.0), stored(1)]


def test_parquet(table: Table) -> None:
    rows = [record(1), record(2, net=-1)]
    path = table.write("orders.parquet", b"")
    pq.write_table(pa.Table.from_pylist(rows), path)
    assert "1 record was filtered out" in run(table, data_format="parquet").sentence
    assert table.rows() == [stored(1)]


def test_everything_filtered_is_an_empty_input(table: Table) -> None:
    table.write_rows([record(1, net=-1), record(2, net=-1)])
    with pytest.raises(UsageError, match=r"holds no rows; 2 records were filtered out; putting nothing in place of"):
        run(table)
    assert "2 records were filtered out" in run(table, allow_empty=True).sentence


def test_a_wrong_row_is_named_with_its_place(table: Table) -> None:
    table.write_rows([record(1), record(2, at="soon")])
    with pytest.raises(DataError) as caught:
        run(table)
    assert "orders.json, line 2: Column 'ts': the transform 'fromDateTime(at," in str(caught.value)
    assert '"soon" does not fit the date pattern. Nothing was changed.' in str(caught.value)
    table.write_rows([record(1), record(2, at=None)])
    with pytest.raises(DataError, match=r"line 2: time column 'ts' has no value"):
        run(table)
    table.write_rows([record(1, neet=5)])
    with pytest.raises(DataError, match=r"line 1: column 'neet' is not in the schema of 'orders'"):
        run(table)
    assert table.segments() == set()


def test_continue_on_error(table: Table) -> None:
    table = given(table, *STEPS, lenient=True)
    table.write_rows([record(1, net="much", customer_id="x"), record(2)])
    run(table)
    assert table.rows()[0] == stored(1, amount=0.0, customer_id=-(2**31))


def test_now_is_the_files_last_change(table: Table) -> None:
    table = given(table, Transform("ts", "now()"), where="net < 0")
    row = {key: value for key, value in record(1).items() if key not in {"at", "state"}}
    path = table.write_rows([row])
    os.utime(path, (AT_MS / 1000, AT_MS / 1000))
    run(table)
    assert [found["ts"] for found in table.rows()] == [AT_MS]
    assert run(table).version is None, "the same job twice changes nothing"
    assert json.loads(path.read_text()) == row and table.segments() == {SEGMENT}
