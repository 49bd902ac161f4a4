"""Converts source columns to stored columns at once: the fast path for values that need no check.

It converts only where nothing can fail. A batch with a doubtful type, null or value is returned unconverted. The
decoder then converts it row by row and reports the exact error. A test compares the rows of both paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.schema.schema import FieldSpec
from hybrid.schema.sqltypes import parse_sql_type
from hybrid.schema.timeformat import MAX_MS, MIN_MS
from hybrid.schema.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa

# DDL types whose values always fit the data type and need no check.
_PLAIN = frozenset({"INTEGER", "BIGINT", "REAL", "DOUBLE", "BOOLEAN", "TIMESTAMP", "VARBINARY", "VARCHAR"})
_MICROS_PER_MS = 1000


class _NotPlain(Exception):
    """The batch must be converted row by row."""


class Columnar:
    """Converts a source's columns to a table's. `wanted` maps our column names to the source's."""

    def __init__(self, spec: TableSpec, wanted: Mapping[str, str]) -> None:
        config = spec.ingestion.get(Half.OFFLINE)
        shaped = config is not None and bool(config.transforms or config.filter_function)
        self._spec, self._wanted = spec, wanted
        upsert = spec.upsert
        plain = upsert is None or (upsert.delete_column is None and not upsert.further_comparison_columns)
        self._is_possible = not shaped and plain

    def convert(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], pa.Array] | None:
        """The user columns and the time in ms, or None."""
        import pyarrow as pa

        if not self._is_possible:
            return None
        try:
            columns = [self._column(batch, field) for field in self._spec.schema.fields]
            times = self._times(batch.num_rows, columns)
        except (_NotPlain, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        return columns, times

    def _column(self, batch: pa.RecordBatch, field: FieldSpec) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        null = None if (self._spec.null_handling and not field.not_null) or field.sql_type else field.default_null
        source = self._wanted.get(field.name)
        if not field.single_value:
            raise _NotPlain
        if source is None:
            value = field.missing[0] if field.missing else null
            if value is None and self._is_needed(field):
                raise _NotPlain
            return pa.repeat(pa.scalar(value, field.arrow_type()), batch.num_rows)
        values = _CONVERT[field.data_type](batch.column(source), field)
        if values.null_count and self._is_needed(field):
            raise _NotPlain
        return values if null is None or not values.null_count else pc.fill_null(values, pa.scalar(null, values.type))

    def _is_needed(self, field: FieldSpec) -> bool:
        upsert = self._spec.upsert
        newest = upsert is not None and upsert.comparison_column == field.name
        key = field.name in self._spec.primary_key or field.name == self._spec.time_column
        return field.is_required or key or newest or (field.not_null and field.sql_type is not None)

    def _times(self, rows: int, columns: list[pa.Array]) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        field = self._spec.time_field
        if field is None:
            return pa.nulls(rows, pa.int64())
        times = columns[self._spec.schema.fields.index(field)]
        if field.data_type is DataType.TIMESTAMP:
            micros = times.cast(pa.int64())
            times = pc.divide(micros, _MICROS_PER_MS)  # rounds towards 0; times before 1970 must be rounded down
            times = pc.if_else(pc.greater(pc.multiply(times, _MICROS_PER_MS), micros), pc.subtract(times, 1), times)
        elif field.data_type is not DataType.LONG or field.time_format is None or not field.time_format.is_millis:
            raise _NotPlain
        _check_within(times, MIN_MS, MAX_MS)
        return times


def _check_within(values: pa.Array, low: int, high: int) -> None:
    import pyarrow.compute as pc

    least_most = pc.min_max(values)
    least, most = least_most["min"].as_py(), least_most["max"].as_py()
    if least is not None and (least < low or most > high):
        raise _NotPlain


def _check_plain(field: FieldSpec) -> None:
    if field.sql_type is not None and field.sql_type not in _PLAIN:
        raise _NotPlain


def _whole(values: pa.Array, field: FieldSpec) -> pa.Array:
    import pyarrow as pa

    _check_plain(field)
    if not pa.types.is_integer(values.type):
        raise _NotPlain
    return values.cast(field.arrow_type())


def _floating(values: pa.Array, field: FieldSpec) -> pa.Array:
    import pyarrow as pa

    _check_plain(field)
    wide = field.data_type is DataType.DOUBLE
    if values.type != field.arrow_type() and not (wide and pa.types.is_float32(values.type)):
        raise _NotPlain
    return values.cast(field.arrow_type())


def _decimal(values: pa.Array, field: FieldSpec) -> pa.Array:
    import pyarrow as pa

    if not pa.types.is_decimal128(values.type):
        raise _NotPlain
    before, behind = 20, 18
    if field.sql_type is not None:
        kind = parse_sql_type(field.sql_type, field.name)
        digits, scale = kind.length or 0, kind.scale or 0
        before, behind = min(before, digits - scale), min(behind, scale)
    if values.type.precision - values.type.scale > before or values.type.scale > behind:
        raise _NotPlain
    return values.cast(field.arrow_type())


def _same(values: pa.Array, field: FieldSpec) -> pa.Array:
    _check_plain(field)
    if values.type != field.arrow_type():
        raise _NotPlain
    return values


def _timestamp(values: pa.Array, field: FieldSpec) -> pa.Array:
    import pyarrow as pa

    _check_plain(field)
    if not pa.types.is_timestamp(values.type) or values.type.unit == "ns":
        raise _NotPlain
    micros = values.cast(pa.timestamp("us", tz=values.type.tz)).cast(pa.int64())
    _check_within(micros, MIN_MS * _MICROS_PER_MS, MAX_MS * _MICROS_PER_MS)
    return micros.cast(field.arrow_type())


def _text(values: pa.Array, field: FieldSpec) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if field.time_format is not None and field.sql_type != "DATE":
        raise _NotPlain
    if field.sql_type == "DATE":
        if not pa.types.is_date32(values.type):
            raise _NotPlain
        _check_within(values.cast(pa.int32()), MIN_MS // 86_400_000 + 1, MAX_MS // 86_400_000 - 1)
        return values.cast(pa.string())
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        raise _NotPlain
    texts = values.cast(pa.string())
    kind = parse_sql_type(field.sql_type, field.name) if field.sql_type is not None else None
    if kind is None or kind.length is None:
        _check_plain(field)
        return texts
    if kind.name == "CHAR":
        texts = pc.utf8_rtrim(texts, characters=" ")
    _check_within(pc.utf8_length(texts), 0, kind.length)
    return texts


def _row_by_row(values: pa.Array, field: FieldSpec) -> pa.Array:
    raise _NotPlain


_CONVERT: Mapping[DataType, Callable[[pa.Array, FieldSpec], pa.Array]] = {
    DataType.INT: _whole,
    DataType.LONG: _whole,
    DataType.FLOAT: _floating,
    DataType.DOUBLE: _floating,
    DataType.BIG_DECIMAL: _decimal,
    DataType.BOOLEAN: _same,
    DataType.TIMESTAMP: _timestamp,
    DataType.STRING: _text,
    DataType.JSON: _row_by_row,
    DataType.BYTES: _same,
}
