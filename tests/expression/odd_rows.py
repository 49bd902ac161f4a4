"""A table of odd rows: every type with its bounds, nulls, NaN, zones, decimal scales, Unicode and JSON shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from hybrid.config.schema_json import parse_schema
from hybrid.config.table_config import Half, TableSpec

COUNT = 160
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPES = {
    "id": "INT", "i": "INT", "k": "INT", "l": "LONG", "f": "FLOAT", "d": "DOUBLE", "e": "DOUBLE", "p": "BIG_DECIMAL",
    "q": "BIG_DECIMAL", "b": "BOOLEAN", "s": "STRING", "u": "STRING", "w": "STRING", "t": "TIMESTAMP", "m": "LONG",
    "r": "BYTES", "j": "JSON",
}  # fmt: skip


def _millis(*texts: str) -> list[int]:
    return [(datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1) for text in texts]


# Clocks of Berlin, New York, Lord Howe (half an hour) and Havana (at midnight) jump and repeat here; both ends of time.
_INSTANTS = _millis(
    "2021-11-21T10:20:30.400Z", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z", "1900-02-28T12:34:56.789Z",
    "0001-01-01T00:00:00Z", "0001-01-03T01:30:00Z", "9999-12-31T23:59:59.999Z", "9999-12-29T10:00:00Z",
    "2023-10-29T00:30:15Z", "2023-10-29T01:30:15Z", "2023-10-29T02:00:00Z", "2023-03-26T00:59:59.999Z",
    "2023-03-26T01:00:00Z", "2023-11-05T05:30:00.500Z", "2023-11-05T06:30:00.500Z", "2023-11-05T09:10:11Z",
    "2023-03-12T06:59:59Z", "2023-03-12T07:00:00Z", "2023-04-01T14:45:00Z", "2023-04-01T15:15:00Z",
    "2023-11-05T04:30:00Z", "2023-11-05T05:10:00Z", "2024-02-29T23:59:59.999Z", "2024-12-30T12:00:00Z",
    "2020-12-31T23:30:00Z", "2021-01-03T22:15:00Z", "1883-11-18T17:00:00Z", "2038-01-19T03:14:08Z",
    "1911-03-10T23:50:00Z", "2011-12-30T09:59:59Z",
)  # fmt: skip
_VALUES: dict[str, Sequence[object]] = {
    "i": [7, -7, None, 0, 1, -1, 2**31 - 1, -(2**31), 12, 100, -3],
    "k": [2, None, 3, -2, 0, 10, 1, 5, -1],
    "l": [1_637_490_030_400, -5, None, 0, 2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 1, 10**15, 86_399_999, -1],
    "f": [15.948, -2.5, None, 0.0, math.nan, math.inf, -math.inf, -0.0, 3.4028234663852886e38, 1.401298464324817e-45,
          0.1, 16777216.0, 1e10],
    "d": [114.99999999999999, -2.5, None, 0.0, math.nan, math.inf, -math.inf, -0.0, 1e300, -1e300, 5e-324, 0.1, 1e7,
          12345678.9, 0.001, 1e-5, 2.5, 3.5, -0.3, 1e22, 4503599627370497.5, 9.2e18, 1.005],
    "e": [2.0, 0.0, None, -1.0, math.nan, 0.5, math.inf, 3.0, -math.inf, 1e-300, 10.0, -0.0, 1.0],
    "p": [Decimal("12.5"), Decimal("-3"), None, Decimal(0), Decimal("0.00000123"), Decimal("0.000000000000000001"),
          Decimal("99999999999999999999.999999999999999999"), Decimal("-99999999999999999999.999999999999999999"),
          Decimal("1.10"), Decimal("0.1"), Decimal("1234567890.123456789"), Decimal("-0.5"), Decimal("2.675")],
    "q": [Decimal(2), Decimal("0.5"), None, Decimal("-1.25"), Decimal("0.000001"), Decimal(0), Decimal("3.7")],
    "b": [True, False, None],
    "s": ["Ab,c", "", None, "abc", "a,b,,c", " a ", "x_y", "100%", "a\\b", "it's", "$1", ",", "aXbXc"],
    "u": ["stra\u00dfe", "\u0130stanbul", "e\u0301a", "\U0001f468\u200d\U0001f469x", None,
          "\u039f\u03a3", "\ufb01x", "\u0149", "\u01c6",
          "\u00c9t\u00e9", "\u00a0a\u00a0", "\u65e5\u672c\u8a9e", "\tq\n", "a\u0000b", "\U0001d11e"],
    "w": ["5", "-7.9", "1e3", "", None, "abc", " 12 ", "NaN", "Infinity", "9223372036854775808", "0x10", "1.0", "+3",
          "true", "2021-11-21 10:20:30.4", "007", "2.5", "00"],
    "m": [*_INSTANTS, None],
    "r": [b"\xff\x00", b"", None, b"abc", "\u00e9".encode(), b"\x80"],
    "j": ['{"a": 1.0, "b": "2.5", "c": [1, 2], "o": {"x y": 5}}', '{"a": 7.9, "b": true}', None, '{"a": "1.0"}',
          '{"a": "12"}', '{"a": null}', "{}", '{"a": 9223372036854775807}', '{"a": 1e3, "c": []}', '{"a": true}',
          '{"a": {"b": [1, {"c": "x"}]}}', "[1, 2]", '"text"', "5", '{"a": -0.5}', '{"a": "abc", "b": ""}',
          '{"a": 12345678901234567890}', '{"a": [1]}', '{"a": "\\u00e9"}', '{"a": " 3 "}'],
}  # fmt: skip


def odd_table() -> TableSpec:
    """The table: a column of each type, nulls kept."""
    fields = [{"name": name, "dataType": kind} for name, kind in _TYPES.items()]
    tags = {"name": "tags", "dataType": "STRING", "singleValueField": False}
    schema = parse_schema({"schemaName": "odd", "dimensionFieldSpecs": [*fields, tags]}, "odd.json")
    return TableSpec("odd", schema, frozenset({Half.OFFLINE}), None, None, None, None, null_handling=True)


def odd_records() -> list[dict[str, object]]:
    """The rows, as a transform reads them. Lists of other lengths than each other's meet in many pairs."""
    found: list[dict[str, object]] = []
    for number in range(COUNT):
        row: dict[str, object] = {"id": number}
        for name, values in _VALUES.items():
            row[name] = values[number % len(values)]
        millis = _INSTANTS[(number * 7) % len(_INSTANTS)]
        row["t"] = None if number % 31 == 3 else EPOCH + timedelta(milliseconds=millis, microseconds=number % 3 * 333)
        row["f"] = _float32(row["f"])
        row["tags"] = [["red", "BLUE"], ["green"], None, [""]][number % 4]
        if millis == max(_INSTANTS):
            row["t"] = EPOCH + timedelta(milliseconds=millis, microseconds=600)  # rounded up, it is in the year 10000
        found.append(row)
    return found


def odd_arrow() -> pa.Table:
    """The rows in Arrow, for DuckDB and Spark."""
    fields = odd_table().schema.fields
    schema = pa.schema([pa.field(field.name, field.arrow_type()) for field in fields])
    records = odd_records()
    return pa.table({field.name: [row[field.name] for row in records] for field in fields}, schema=schema)


def _float32(value: object) -> object:
    return value if value is None else pa.scalar(value, pa.float32()).as_py()
