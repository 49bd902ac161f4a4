"""Type mapping between Pinot (for clients), DuckDB (for computing) and Python (values of rows)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any

from hybrid.schema.schema import FieldSpec
from hybrid.schema.types import DataType
from hybrid.schema.values import shortest_float
from hybrid.table.columns import HIDDEN

_DUCKDB = {
    DataType.INT: "INTEGER",
    DataType.LONG: "BIGINT",
    DataType.FLOAT: "FLOAT",
    DataType.DOUBLE: "DOUBLE",
    DataType.BIG_DECIMAL: "DECIMAL(38,18)",
    DataType.BOOLEAN: "BOOLEAN",
    # Without zone: all times are UTC, and so is the connection.
    DataType.TIMESTAMP: "TIMESTAMP",
    DataType.STRING: "VARCHAR",
    DataType.JSON: "VARCHAR",
    DataType.BYTES: "BLOB",
}
_HIDDEN = {"string": "VARCHAR", "int": "INTEGER", "bigint": "BIGINT"}
# The hidden columns of a stored row, in physical order.
HIDDEN_TYPES = {name: _HIDDEN[kind] for name, kind in HIDDEN}
_DIGITS = Context(prec=76)  # Python's own context has 28, DuckDB's decimals 38
_WIRE = {
    "TINYINT": "INT", "SMALLINT": "INT", "INTEGER": "INT", "UTINYINT": "INT", "USMALLINT": "INT", "UINTEGER": "LONG",
    "BIGINT": "LONG", "UBIGINT": "DOUBLE", "HUGEINT": "DOUBLE", "UHUGEINT": "DOUBLE", "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN", "VARCHAR": "STRING", "JSON": "JSON", "BLOB": "BYTES",
    "TIMESTAMP": "TIMESTAMP", "TIMESTAMP_NS": "TIMESTAMP", "TIMESTAMP_MS": "TIMESTAMP", "TIMESTAMP_S": "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
}  # fmt: skip


def duckdb_type(field: FieldSpec) -> str:
    """The type a column has inside of queries."""
    kind = _DUCKDB[field.data_type]
    return kind if field.single_value else f"{kind}[]"


def wire_type(duckdb_name: str) -> str:
    """Pinot's name for a result column of this DuckDB type. Sums of integers (HUGEINT) are DOUBLE, as in Pinot."""
    name = duckdb_name.upper()
    if name.endswith("[]"):
        element = wire_type(name[:-2])
        return f"{element}_ARRAY" if element in _ARRAYS else "STRING_ARRAY"
    if name.startswith("DECIMAL"):
        return "BIG_DECIMAL"
    return _WIRE.get(name, "STRING")


_ARRAYS = ("INT", "LONG", "FLOAT", "DOUBLE", "BOOLEAN", "TIMESTAMP", "STRING", "BYTES")


def converter(duckdb_name: str, wire: str) -> Callable[[Any], object] | None:
    """The function that converts DuckDB's Python value to ours; None where they are the same.

    FLOAT becomes the shortest decimal that identifies it, BIG_DECIMAL loses trailing zeros, times are UTC without zone,
    values without a Pinot type become text.
    """
    name = duckdb_name.upper()
    if wire.endswith("_ARRAY"):
        inner = converter(name[:-2], wire.removesuffix("_ARRAY"))
        return None if inner is None else lambda values: [None if value is None else inner(value) for value in values]
    if wire == "FLOAT":
        return shortest_float
    if wire == "DOUBLE" and name != "DOUBLE":
        return float
    if wire == "BIG_DECIMAL":
        return _plain_decimal
    if name == "TIMESTAMP WITH TIME ZONE":
        return _without_zone
    return _as_text if wire == "STRING" and name != "VARCHAR" else None


def convert_rows(rows: Sequence[tuple[Any, ...]], converters: Sequence[Callable[[Any], object] | None]) -> list[Any]:
    """The rows with each column converted; nulls stay."""
    changing = [(place, convert) for place, convert in enumerate(converters) if convert is not None]
    if not changing:
        return list(rows)
    converted = []
    for row in rows:
        values = list(row)
        for place, convert in changing:
            if values[place] is not None:
                values[place] = convert(values[place])
        converted.append(tuple(values))
    return converted


def _plain_decimal(value: Decimal) -> Decimal:
    plain = value.normalize(_DIGITS)
    return plain.quantize(Decimal(1), context=_DIGITS) if int(plain.as_tuple().exponent) > 0 else plain


def _without_zone(value: datetime) -> datetime:
    return value.replace(tzinfo=None)


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)
