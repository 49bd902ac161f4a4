"""What a query prints is read back the same: every type, every format that a program reads."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hybrid.cli.output import emit
from hybrid.config.connectors import ConnectorCsvFormat as FelderaCsv
from hybrid.config.table_config import Half, MessageFormat, TableSpec
from hybrid.files.inputs import DataFormat, inspect
from hybrid.files.reading import read_slice
from hybrid.flow.connectors.file_source import _csv_format
from hybrid.formats.csv_cells import rows_of
from hybrid.formats.csv_format import CsvFormat, multi_value_columns, text_columns
from hybrid.query.types import convert_rows, converter, duckdb_type, wire_type
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded
from hybrid.replace.backfill.inputs import inspect_input
from tests.records.test_decode import table, to_arrow
from tests.shared_duckdb import plain_duckdb

TYPES = {
    "i": "INT", "l": "LONG", "f": "FLOAT", "d": "DOUBLE", "n": "BIG_DECIMAL", "b": "BOOLEAN", "t": "TIMESTAMP",
    "s": "STRING", "j": "JSON", "x": "BYTES",
}  # fmt: skip
MANY = {f"m{name}": kind for name, kind in TYPES.items() if kind not in ("JSON", "BIG_DECIMAL")}
NOON = datetime(1021, 9, 24, 12, 0, 0, 123456, tzinfo=UTC)
ROWS: list[dict[str, Any]] = [
    {"i": -1, "l": 2**63 - 1, "f": 0.1, "d": 5e-324, "n": Decimal("12345678901234567890.123456789012345678"),
     "b": False, "t": NOON, "s": "", "j": '{"a":[1,null,"é"]}', "x": b""},
    {"i": 2**31 - 1, "l": -(2**63), "f": math.nan, "d": -math.inf, "n": Decimal("-1e-18"), "b": True,
     "t": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "s": '["a"];"b",\r\n\t', "j": '"text"',
     "x": b"\x00,"},
    {"f": -0.0, "d": 1e300, "s": " blanks \t", "j": "null", "x": b"\xff"},
    {"s": "null", "j": "[]", "f": math.inf, "d": math.nan},
    {"s": "NaN", "j": '""'}, {"s": "\ufeffmark;\u2028\x85"}, {"s": "'#-\\N"}, {},
]  # fmt: skip
LISTS: list[dict[str, Any]] = [
    {f"m{name}": [value, None, value] for name, value in row.items() if f"m{name}" in MANY} for row in ROWS
]
FORMATS = ("csv", "json", "jsonl", "feldera.csv")


def spec_of(nulls: bool) -> TableSpec:
    return replace(table({**TYPES, **MANY}, many=tuple(MANY)), null_handling=nulls)


def answered(spec: TableSpec, stored: list[Any]) -> tuple[list[str], list[Any]]:
    """The stored rows as a query answers them."""
    names = spec.schema.column_names
    arrays = to_arrow(spec, [list(column) for column in zip(*stored, strict=True)])
    data = pa.Table.from_arrays(list(arrays), names=list(names))
    kinds = [duckdb_type(field) for field in spec.schema.fields]
    with plain_duckdb().cursor() as connection:
        connection.register("data", data)
        cells = ", ".join(f'CAST("{name}" AS {kind})' for name, kind in zip(names, kinds, strict=True))
        rows = connection.execute(f"select {cells} from data").fetchall()
    return list(names), convert_rows(rows, [converter(kind, wire_type(kind)) for kind in kinds])


def read_back(spec: TableSpec, path: Path, form: str) -> list[Any]:
    if form == "feldera.csv":
        files = [inspect(path, DataFormat.CSV)]
        csv_format = _csv_format(FelderaCsv(headers=True), spec)
    else:
        found, csv_format = inspect_input(spec, path)
        files = list(found)
    decoder = Decoder(spec, Half.OFFLINE, MessageFormat.RECORD)
    outcomes = [
        decoder.convert(record.values)
        for file in files
        for piece in file.slices
        for record in read_slice(piece, csv_format)
    ]
    assert all(isinstance(one, Decoded) for one in outcomes), outcomes
    return [one.values for one in outcomes if isinstance(one, Decoded)]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("nulls", [True, False])
def test_what_a_query_prints_is_read_back_the_same(tmp_path: Path, form: str, nulls: bool) -> None:
    spec = spec_of(nulls)
    records = [{**one, **many, "ts": number} for number, (one, many) in enumerate(zip(ROWS, LISTS, strict=True))]
    outcomes = [Decoder(spec, Half.OFFLINE, MessageFormat.RECORD).convert(record) for record in records]
    stored = [one.values for one in outcomes if isinstance(one, Decoded)]
    assert len(stored) == len(records), outcomes
    names, rows = answered(spec, stored)
    out = io.StringIO()
    printed = form.rpartition(".")[2]
    emit([dict(zip(names, row, strict=True)) for row in rows], names, printed, out)
    path = tmp_path / f"rows.{printed}"
    path.write_text(out.getvalue(), encoding="utf-8", newline="")
    assert repr(read_back(spec, path, form)) == repr(stored)


def test_empty_texts_and_nulls_are_told_apart_in_csv() -> None:
    out = io.StringIO()
    emit([{"a": None, "b": ""}, {"a": " x", "b": b""}], ["a", "b"], "csv", out)
    assert out.getvalue() == 'a,b\n,""\n" x",""\n'


def test_cells_of_other_writers_are_read_as_before() -> None:
    """Quotes around every cell make no text of a number that is missing; a split cell needs no brackets."""
    spec = spec_of(True)
    form = CsvFormat(multi_value=multi_value_columns(spec.schema), texts=text_columns(spec.schema))
    ((_, cells),) = rows_of(iter(['"","","[1];[2]","[x"\n']), form.dialect)
    assert [form.value(name, cell) for name, cell in zip(("i", "s", "ms", "ms"), cells, strict=True)] == [
        None, "", ["[1]", "[2]"], ["[x"],
    ]  # fmt: skip
    splits_nothing = CsvFormat.of({"multiValueDelimiter": ""}, frozenset({"m"}), "job.yml")
    assert splits_nothing.value("m", "a;b") == "a;b"
