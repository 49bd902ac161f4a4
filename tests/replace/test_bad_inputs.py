"""Bad input of every format stops with file, line or row group, and value: what a worker notes of a slice.

That a noted problem ends the job before anything is touched is shown in test_refusals.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from hybrid.config.table_config import ARRIVED, TableSpec, UpsertConfig
from hybrid.errors import DataError
from hybrid.files.csvfile import ends_line
from hybrid.files.inputs import DataFormat, inspect
from hybrid.formats.csv_format import CsvFormat
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log_entries import DataFile
from hybrid.replace.duplicates import refuse_duplicate_keys
from hybrid.replace.stage import StagedFile, StagedRows, _CellNote, _Converter, _stage_slice, stage
from hybrid.replace.targets import refuse_times_outside_name
from hybrid.table.columns import TIME
from tests.replace.tables import SEGMENT, recipe_spec

GOOD = {"order_id": 1, "customer_id": 101, "order_status": "OPEN", "amount": 13.29, "ts": 1632463351000}
Rows = Sequence[dict[str, Any]]


def _csv(rows: Rows) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _json(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _parquet(rows: Rows) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink, row_group_size=2, compression="zstd")
    return sink.getvalue()


def _orc(rows: Rows) -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.Table.from_pylist(list(rows)), sink, compression="zstd")
    return sink.getvalue()


def _avro(rows: Rows) -> bytes:
    kinds = {int: "long", str: "string", float: "double", type(None): "null"}
    kept = [{name: [kinds[type(row[name])] for row in rows] for name in rows[0]}]
    fields = [{"name": name, "type": sorted(set(found))} for name, found in kept[0].items()]
    out = io.BytesIO()
    fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows, "deflate", sync_interval=40)
    return out.getvalue()


WRITE: dict[str, Callable[[Rows], bytes]] = {
    "json": _json, "csv": _csv, "parquet": _parquet, "avro": _avro, "orc": _orc,
}  # fmt: skip
# Where the fourth row of a file stands.
FOURTH = {
    "json": ", line 4", "csv": ", line 5", "parquet": ", row 4 (row group 1)", "avro": ", row 4 (block ",
    "orc": ", row 4 (stripe 0)",
}  # fmt: skip


def _noted(path: Path, data_format: str, spec: TableSpec) -> str:
    """The first thing that is wrong with a file, with its place."""
    converter = _Converter(spec, ())
    try:
        for piece in inspect(path, DataFormat(data_format)).slices:
            note = _CellNote(0)
            list(_stage_slice(converter, note, piece, CsvFormat(), 0))
            if note.problems:
                _, at, reason = note.problems[0]
                return f"{path.name}{at}: {reason}"
    except DataError as error:
        return str(error)
    return "nothing"


@pytest.fixture(params=list(WRITE))
def data_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _file(folder: Path, data_format: str, rows: Rows) -> Path:
    path = folder / f"a.{data_format}"
    path.write_bytes(WRITE[data_format](rows))
    return path


def _rows(**bad: object) -> list[dict[str, Any]]:
    rows = [{**GOOD, "order_id": number, "ts": GOOD["ts"] + number} for number in range(1, 6)]
    return [*rows[:3], {**rows[3], **bad}, rows[4]]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"order_id": 2**40}, "Column 'order_id': {1099511627776} does not fit"),
        ({"ts": None}, "time column 'ts' has no value"),
    ],
)
def test_a_value_that_does_not_fit(tmp_path: Path, data_format: str, bad: dict[str, object], message: str) -> None:
    found = _noted(_file(tmp_path, data_format, _rows(**bad)), data_format, recipe_spec("orders"))
    assert found.startswith(f"a.{data_format}{FOURTH[data_format]}"), found
    shown = '"1099511627776"' if data_format == "csv" else "1099511627776"
    assert message.replace("{1099511627776}", shown) in found


def test_a_column_of_another_type(tmp_path: Path, data_format: str) -> None:
    rows = [{**row, "amount": "much"} for row in _rows()]
    found = _noted(_file(tmp_path, data_format, rows), data_format, recipe_spec("orders"))
    assert "Column 'amount': \"much\" does not fit" in found and ", " in found.partition(":")[0]


def test_columns_that_are_missing_or_misspelt(tmp_path: Path, data_format: str) -> None:
    timeless = [{name: value for name, value in row.items() if name != "ts"} for row in _rows()]
    found = _noted(_file(tmp_path, data_format, timeless), data_format, recipe_spec("orders"))
    assert "time column 'ts' has no value" in found
    keyless = [{name: value for name, value in row.items() if name != "order_id"} for row in _rows()]
    found = _noted(_file(tmp_path, data_format, keyless), data_format, recipe_spec("orders_upsert"))
    assert "primary key column 'order_id' has no value" in found
    misspelt = [{**row, "amout": 1.0} for row in _rows()]
    found = _noted(_file(tmp_path, data_format, misspelt), data_format, recipe_spec("orders"))
    assert "column 'amout' is not in the schema of 'orders'. Did you mean 'amount'?" in found


def test_a_file_that_was_cut_off(tmp_path: Path, data_format: str) -> None:
    path = _file(tmp_path, data_format, [{**GOOD, "order_id": number} for number in range(500)])
    whole = path.read_bytes()
    # A CSV file that is cut within its last cell, or between lines, is one all the same; the job warns of it.
    path.write_bytes(whole[: whole.rindex(b"OPEN")] if data_format == "csv" else whole[: len(whole) * 2 // 3])
    assert data_format != "csv" or not ends_line(path)
    found = _noted(path, data_format, recipe_spec("orders"))
    assert "damaged or cut off?" in found or "is not JSON" in found or "cells where the header has 5" in found, found


def test_a_file_in_another_encoding(tmp_path: Path, data_format: str) -> None:
    path = tmp_path / f"a.{data_format}"
    text = WRITE["json" if data_format == "json" else "csv"](_rows(order_status="OFFEN"))
    path.write_bytes(text.replace(b"OFFEN", b"GE\xd6FFNET"))
    found = _noted(path, data_format, recipe_spec("orders"))
    if data_format in {"json", "csv"}:
        assert f"{FOURTH[data_format]}: is not UTF-8: byte 0xd6" in found
    else:
        assert f"cannot be read as {data_format.capitalize() if data_format != 'orc' else 'ORC'}" in found


def test_a_file_of_another_format(tmp_path: Path, data_format: str) -> None:
    for other in WRITE.keys() - {data_format}:
        path = tmp_path / f"a.{data_format}"
        path.write_bytes(WRITE[other](_rows()))
        assert _noted(path, data_format, recipe_spec("orders")) != "nothing"


def test_times_outside_of_a_name() -> None:
    spec, first, last = recipe_spec("orders"), 1632463351000, 1632467070000

    def staged(low: int, high: int) -> StagedRows:
        file = StagedFile(Path("/in/a.csv"), 2, 0, low, high, low_at=", line 2", high_at=", line 3")
        return StagedRows(SimpleNamespace(), (file,), ())  # type: ignore[arg-type]

    def check(low: int, high: int, name: str = SEGMENT) -> None:
        refuse_times_outside_name(spec, 1, name, staged(low, high), ())

    check(first, last)
    check(0, 1, "september")
    check(0, 1, "orders_early_late_0")
    with pytest.raises(DataError) as caught:
        check(first - 1, last)
    assert str(caught.value).startswith(
        f"/in/a.csv, line 2: time {first - 1} is outside of the times in the name of segment '{SEGMENT}', {first} to"
    )
    with pytest.raises(DataError, match=f"/in/a.csv, line 3: time {last + 1} is outside"):
        check(first, last + 1)
    name = f"orders_{first // 3_600_000 * 3_600_000}_{last // 3_600_000 * 3_600_000}_0"
    refuse_times_outside_name(spec, 3_600_000, name, staged(first, last), ())
    with pytest.raises(DataError):
        refuse_times_outside_name(spec, 3_600_000, name, staged(first, last + 3_600_000), ())
    with pytest.raises(DataError):
        refuse_times_outside_name(replace(spec, name="t"), 1, "t_1_2_0", staged(3, 3), ())
    for file in (f"old_{first}_{last}_0", f"old-1_{first}_{last}_v2_17"):
        held = [DataFile("a.parquet", file, 2, 1, 0, {TIME: first}, {TIME: last})]
        refuse_times_outside_name(spec, 1, file, staged(first, last), held)
        refuse_times_outside_name(spec, 1, "september", staged(0, 1), held)
        with pytest.raises(DataError, match=f"time {last + 1} is outside of the times in the name of segment '{file}'"):
            refuse_times_outside_name(spec, 1, file, staged(first, last + 1), held)
    held = [DataFile("a.parquet", "september", 2, 1, 0, {TIME: first}, {TIME: last})]
    refuse_times_outside_name(spec, 1, "september", staged(0, 1), held)


@pytest.mark.spark
def test_a_key_that_stands_twice(tmp_path: Path, workbench: CommitContext) -> None:
    spec = recipe_spec("orders_upsert")
    paths = [tmp_path / name for name in ("a.json", "b.json")]
    paths[0].write_bytes(_json(_rows()))
    paths[1].write_bytes(_json([{**GOOD, "order_id": 9}, {**_rows()[1], "amount": 1.0}, {**GOOD, "order_id": 1}]))
    files = [inspect(path, DataFormat.JSON) for path in paths]
    staged = stage(workbench, spec, files, CsvFormat(), tmp_path / "rows")
    with pytest.raises(DataError) as caught:
        refuse_duplicate_keys(spec, files, CsvFormat(), staged)
    assert str(caught.value).startswith(
        f"{paths[1]}, line 2: the row has the key and the comparison value (order_id 2, ts 1632463351002) of "
        f"{paths[0]}, line 2; nothing tells which"
    )
    by_arrival = replace(spec, upsert=UpsertConfig(ARRIVED))
    with pytest.raises(DataError) as caught:
        refuse_duplicate_keys(by_arrival, files, CsvFormat(), staged)
    assert f"{paths[1]}, line 2: the row has the key (order_id 2) of {paths[0]}, line 2; nothing" in str(caught.value)
    refuse_duplicate_keys(recipe_spec("orders"), files, CsvFormat(), staged)
    named = replace(staged, frame=staged.frame.withColumnsRenamed({"ts": "n", "order_id": "at"}))
    schema = replace(spec.schema, primary_key=("at",))
    with pytest.raises(DataError, match="comparison value \\(at 2, n 1632463351002\\)"):
        refuse_duplicate_keys(replace(spec, schema=schema, upsert=UpsertConfig("n")), files, CsvFormat(), named)
