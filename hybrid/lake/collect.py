"""The rows of a frame as Python values.

Spark's own conversion uses this process's time zone for instants and fails at both ends of the time range.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def collect_rows(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows by column name. Instants are in UTC; one outside the years 1 to 9999 is its epoch milliseconds."""
    return rows_of(frame.toArrow())


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of an Arrow table, as `collect_rows` gives them."""
    plain = pa.schema([pa.field(field.name, _plain(field.type)) for field in table.schema])
    values = [column.to_pylist() for column in table.cast(plain).columns]
    kinds = [(field.name, field.type) for field in table.schema]
    return [
        {name: _value(value, kind) for (name, kind), value in zip(kinds, row, strict=True)}
        for row in zip(*values, strict=True)
    ]


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type with int64 in place of timestamps, at every level."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind.fields])
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return _instant(value)
    if pa.types.is_struct(kind):
        return {field.name: _value(value[field.name], field.type) for field in kind.fields}
    if pa.types.is_list(kind):
        return [_value(item, kind.value_type) for item in value]
    return value


def _instant(micros: int) -> datetime | str:
    """The instant of epoch microseconds, Spark's unit; text when Python cannot represent it."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return f"{micros // 1000} ms"
