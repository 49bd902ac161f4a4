"""The same rows in every format that jobs read give the same table. No JVM."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from hybrid.config.table_json import parse_table
from hybrid.files.inputs import DataFormat, inspect
from hybrid.files.reading import read_slice
from hybrid.formats.csv_format import CsvFormat
from hybrid.records.decode import Decoded, Decoder

AT = datetime(2021, 9, 24, 6, 2, 31, 123000, tzinfo=UTC)
SCHEMA = {
    "schemaName": "t",
    "enableColumnBasedNullHandling": True,
    "dimensionFieldSpecs": [
        {"name": "id", "dataType": "LONG"},
        {"name": "name", "dataType": "STRING"},
        {"name": "key", "dataType": "STRING"},
        {"name": "price", "dataType": "BIG_DECIMAL"},
        {"name": "ratio", "dataType": "DOUBLE"},
        {"name": "open", "dataType": "BOOLEAN"},
        {"name": "raw", "dataType": "BYTES"},
        {"name": "tags", "dataType": "STRING", "singleValueField": False},
        {"name": "notes", "dataType": "JSON"},
    ],
    "dateTimeFieldSpecs": [
        {"name": "at", "dataType": "TIMESTAMP", "format": "TIMESTAMP", "granularity": "1:MILLISECONDS"},
        {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"},
        {"name": "day", "dataType": "STRING", "format": "SIMPLE_DATE_FORMAT|yyyy-MM-dd", "granularity": "1:DAYS"},
    ],
}
CONFIG: dict[str, object] = {"tableName": "t", "tableType": "OFFLINE", "segmentsConfig": {"timeColumnName": "ts"}}
SPEC = parse_table(SCHEMA, "schema.json", [(CONFIG, "table.json")])
KEY = uuid.UUID("5f0c9b1e-52ef-4b5c-9d4e-7a2f5c3b1a90")
# As files with types of their own hold them; the second row has nothing but its id and time.
ROWS: list[dict[str, Any]] = [
    {
        "id": 2**40,
        "name": 'Käse, "alt"',
        "key": KEY,
        "price": Decimal("12345678901234.50"),
        "ratio": 0.1,
        "open": True,
        "raw": b"\x00\xff",
        "tags": ["a", "b"],
        "notes": {"deep": "yes"},
        "at": AT,
        "ts": AT,
        "day": date(2021, 9, 24),
    },
    {"id": 2, "ts": AT},
]


def _json(path: Path) -> None:
    def text(value: object) -> object:
        return value.isoformat() if isinstance(value, date) else value.hex() if isinstance(value, bytes) else str(value)

    rows = [{**row, "ts": int(AT.timestamp() * 1000)} for row in ROWS]
    path.write_text("".join(json.dumps(row, default=text) + "\n" for row in rows))


def _csv(path: Path) -> None:
    ts = int(AT.timestamp() * 1000)
    path.write_text(
        "id,name,key,price,ratio,open,raw,tags,notes,at,ts,day\n"
        f'{2**40},"Käse, ""alt""",{KEY},12345678901234.50,0.1,true,00ff,a;b,"{{""deep"":""yes""}}",'
        f"2021-09-24 06:02:31.123,{ts},2021-09-24\n"
        f"2,,,,,,,,,,{ts},\n"
    )


ARROW = pa.schema(
    [
        ("id", pa.int64()), ("name", pa.string()), ("key", pa.string()), ("price", pa.decimal128(20, 2)),
        ("ratio", pa.float64()), ("open", pa.bool_()), ("raw", pa.binary()), ("tags", pa.list_(pa.string())),
        ("notes", pa.map_(pa.string(), pa.string())), ("at", pa.timestamp("us", "UTC")),
        ("ts", pa.timestamp("us", "UTC")), ("day", pa.date32()),
    ]
)  # fmt: skip


def _arrow() -> pa.Table:
    rows = [{**row, "key": str(row["key"]) if "key" in row else None} for row in ROWS]
    maps = [{**row, "notes": list(row["notes"].items()) if "notes" in row else None} for row in rows]
    return pa.Table.from_pylist(maps, ARROW)


def _avro(path: Path) -> None:
    types: dict[str, Any] = {
        "id": "long", "name": "string", "key": {"type": "string", "logicalType": "uuid"},
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}, "ratio": "double",
        "open": "boolean", "raw": "bytes", "tags": {"type": "array", "items": "string"},
        "notes": {"type": "map", "values": "string"}, "at": {"type": "long", "logicalType": "timestamp-micros"},
        "ts": {"type": "long", "logicalType": "timestamp-millis"}, "day": {"type": "int", "logicalType": "date"},
    }  # fmt: skip
    fields = [{"name": name, "type": ["null", kind]} for name, kind in types.items()]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, ROWS, "snappy")


WRITERS: dict[str, Callable[[Path], object]] = {
    "json": _json,
    "csv": _csv,
    "parquet": lambda path: pq.write_table(_arrow(), path),
    "avro": _avro,
    "orc": lambda path: orc.write_table(_arrow(), path),
}


@pytest.mark.parametrize("data_format", WRITERS)
def test_the_same_rows_in_every_format(tmp_path: Path, data_format: str) -> None:
    path = tmp_path / f"rows.{data_format}"
    WRITERS[data_format](path)
    form, decoder, rows = CsvFormat.of({}, frozenset({"tags"}), "job.yml"), Decoder(SPEC), []
    for piece in inspect(path, DataFormat(data_format)).slices:
        for record in read_slice(piece, form):
            found = decoder.convert(record.values)
            assert isinstance(found, Decoded), found
            rows.append(dict(zip(SPEC.schema.column_names, found.values, strict=True)))
    ts = int(AT.timestamp() * 1000)
    assert rows == [
        {
            "id": 2**40,
            "name": 'Käse, "alt"',
            "key": str(KEY),
            "price": Decimal("12345678901234.50"),
            "ratio": 0.1,
            "open": True,
            "raw": b"\x00\xff",
            "tags": ["a", "b"],
            "notes": '{"deep":"yes"}',
            "at": AT,
            "ts": ts,
            "day": "2021-09-24",
        },
        {**dict.fromkeys(SPEC.schema.column_names), "id": 2, "ts": ts},
    ]
