"""Decoding rules per field, looked up once: how a value is converted, and what is stored for a missing one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import NamedTuple

from hybrid.config.flavors import flavored
from hybrid.config.json_flavor import JsonFlavor
from hybrid.config.table_config import TableSpec
from hybrid.errors import DataError
from hybrid.records.outcome import shown
from hybrid.schema.schema import FieldSpec
from hybrid.schema.sqlvalues import sql_column
from hybrid.schema.timeformat import MAX_MS, MIN_MS
from hybrid.schema.types import DataType
from hybrid.schema.values import CONVERTERS, millis_of, to_timestamp

# What a converter raises when a value does not fit. RecursionError: a record from another parser is nested too deeply.
UNFIT = (ValueError, ArithmeticError, TypeError, LookupError, RecursionError)

_NEVER_NULL = "a row whose time is null is rejected"
_DECIDES = "it decides which row of a key is newest"


class Field(NamedTuple):
    """The decoding rules of one field. `null` is stored for a null; `required` is why a null is rejected, or None.

    `missing` holds the value for a record without the field, where that value is not `null`.
    """

    name: str
    convert: Callable[[object], object]
    multiple: bool
    null: object
    required: str | None
    missing: tuple[object, ...]


def fields_of(spec: TableSpec, flavor: JsonFlavor) -> tuple[Field, ...]:
    """The fields of a table, in the schema's order; `flavor` says how records write types that JSON does not have."""
    return tuple(_field(spec, field, flavor) for field in spec.schema.fields)


def _field(spec: TableSpec, field: FieldSpec, flavor: JsonFlavor) -> Field:
    keeps_null = spec.null_handling and not field.not_null
    multiple = not field.single_value
    default = [field.default_null] if multiple else field.default_null
    convert_value = _one_value(field, flavor)
    convert = _many_values(convert_value, field.default_null, keeps_null) if multiple else convert_value
    null = None if keeps_null or field.sql_type is not None else default
    return Field(field.name, convert, multiple, null, _why_required(spec, field), field.missing)


def marker_fields(spec: TableSpec, fields: Sequence[Field]) -> tuple[Field, ...]:
    """The fields of a delete by key: only the key and the comparison column are required.

    A delete without a comparison value would lose against every row of its key. A default would be a guess.
    """
    key = spec.primary_key

    def of_marker(field: Field) -> Field:
        if field.name in key:
            return field
        return field._replace(null=None, required=_DECIDES if _decides(spec, field.name) else None, missing=())

    return tuple(map(of_marker, fields))


def is_deciding(spec: TableSpec, name: str) -> bool:
    """Whether a column identifies or orders a row: a key column, the time column or a comparison column."""
    compared = spec.upsert.comparison_columns if spec.upsert is not None else ()
    return name in (*spec.primary_key, *compared, spec.time_column)


def _decides(spec: TableSpec, name: str) -> bool:
    """Whether rows of a key are compared by this column alone."""
    return spec.upsert is not None and spec.upsert.comparison_columns == (name,)


def _why_required(spec: TableSpec, field: FieldSpec) -> str | None:
    name = field.name
    if name == spec.time_column:
        return _NEVER_NULL
    if name in spec.primary_key:
        return "it is part of the primary key"
    if _decides(spec, name):
        return _DECIDES
    return "it is NOT NULL" if field.is_required else None


def _one_value(field: FieldSpec, flavor: JsonFlavor) -> Callable[[object], object]:
    convert = sql_column(field.sql_type, field.data_type).convert if field.sql_type else CONVERTERS[field.data_type]
    convert = flavored(convert, field, flavor)
    form = field.time_format
    if form is None:
        return convert

    def convert_time(value: object) -> object:
        """Writes the dates and instants of files in the column's own format."""
        return form.from_millis(millis_of(to_timestamp(value))) if isinstance(value, date) else convert(value)

    # A TIMESTAMP column stores instants to the microsecond, so milliseconds would lose digits.
    return convert if field.data_type is DataType.TIMESTAMP else convert_time


def _many_values(one: Callable[[object], object], default: object, keeps_null: bool) -> Callable[[object], object]:
    """A converter of lists; a single value becomes a list of one. An empty list is a null, as in Pinot."""

    def convert_all(value: object) -> object:
        items = value if isinstance(value, (list, tuple)) else (value,)
        if not items:
            return None if keeps_null else [default]
        return [default if item is None else one(item) for item in items]

    return convert_all


def time_reader(spec: TableSpec) -> Callable[[object], int]:
    """The function from the stored value of the time column to epoch ms. It raises DataError."""
    field = spec.time_field
    form = field.time_format if field else None
    if form is None:
        return _no_time
    return read_millis if form.is_millis and form.data_type is not DataType.TIMESTAMP else form.to_millis


def _no_time(value: object) -> int:
    raise DataError(f"{shown(value)} is no time: the table has no time column.")


def read_millis(value: object) -> int:
    """The fast path for epoch milliseconds, the format of nearly every table."""
    if type(value) is int and MIN_MS <= value <= MAX_MS:
        return value
    raise DataError(f"{shown(value)} is not a time in epoch milliseconds in the years 1 to 9999.")


def are_millis(values: Sequence[object]) -> bool:
    """Whether `read_millis` would accept all values."""
    return set(map(type, values)) == {int} and min(values) >= MIN_MS and max(values) <= MAX_MS  # type: ignore[type-var, operator]
