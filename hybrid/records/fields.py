"""What decoding takes, field by field, looked up once: how a value becomes the stored one, and what stands for none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import NamedTuple

from hybrid.config.connectors import JsonFlavor
from hybrid.config.flavors import flavored
from hybrid.config.table_config import TableSpec
from hybrid.errors import DataError
from hybrid.records.outcome import shown
from hybrid.schema.schema import FieldSpec
from hybrid.schema.sqlvalues import sql_column
from hybrid.schema.timeformat import MAX_MS, MIN_MS
from hybrid.schema.types import DataType
from hybrid.schema.values import CONVERTERS, millis_of, to_timestamp

# What a converter raises when a value does not fit; RecursionError comes from records that were not parsed here.
UNFIT = (ValueError, ArithmeticError, TypeError, LookupError, RecursionError)

_NEVER_NULL = "a row whose time is null is rejected"
_DECIDES = "it decides which row of a key is newest"


class Field(NamedTuple):
    """What decoding one field takes. `required` is why a null is not taken, or None.

    `missing` holds the value for a record without the field, where that is another one than for a null.
    """

    name: str
    convert: Callable[[object], object]
    multiple: bool
    null: object
    required: str | None
    missing: tuple[object, ...]


def fields_of(spec: TableSpec, flavor: JsonFlavor) -> tuple[Field, ...]:
    """Those of a table, in the schema's order; `flavor` says how records write what JSON has no type for."""
    return tuple(_field(spec, field, flavor) for field in spec.schema.fields)


def _field(spec: TableSpec, field: FieldSpec, flavor: JsonFlavor) -> Field:
    keeps_null = spec.null_handling and not field.not_null
    multiple = not field.single_value
    default = [field.default_null] if multiple else field.default_null
    one = _one_value(field, flavor)
    convert = _many_values(one, field.default_null, keeps_null) if multiple else one
    null = None if keeps_null or field.sql_type is not None else default
    return Field(field.name, convert, multiple, null, _why_required(spec, field), field.missing)


def marker_fields(spec: TableSpec, fields: Sequence[Field]) -> tuple[Field, ...]:
    """What a delete by key takes: the key, and the column that rows are compared by; everything else may be null.

    A delete without a comparison value would be below every row of its key, and lost. A default would be a guess.
    """
    key = spec.primary_key

    def of_marker(field: Field) -> Field:
        if field.name in key:
            return field
        return field._replace(null=None, required=_DECIDES if _decides(spec, field.name) else None, missing=())

    return tuple(map(of_marker, fields))


def is_deciding(spec: TableSpec, name: str) -> bool:
    """Whether a column says which row it is and where it stands: of the key, the time, or what rows are compared by."""
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
        """Files know dates and instants; the column has a format of its own."""
        return form.from_millis(millis_of(to_timestamp(value))) if isinstance(value, date) else convert(value)

    # A TIMESTAMP column holds instants as they are, to the microsecond.
    return convert if field.data_type is DataType.TIMESTAMP else convert_time


def _many_values(one: Callable[[object], object], default: object, keeps_null: bool) -> Callable[[object], object]:
    """A list of values; one value is a list of one. An empty list is a null, as in Pinot."""

    def convert_all(value: object) -> object:
        items = value if isinstance(value, (list, tuple)) else (value,)
        if not items:
            return None if keeps_null else [default]
        return [default if item is None else one(item) for item in items]

    return convert_all


def time_reader(spec: TableSpec) -> Callable[[object], int]:
    """What reads the time of a row in epoch ms from the stored value. It raises DataError."""
    field = spec.time_field
    form = field.time_format if field else None
    if form is None:
        return _no_time
    return read_millis if form.is_millis and form.data_type is not DataType.TIMESTAMP else form.to_millis


def _no_time(value: object) -> int:
    raise DataError(f"{shown(value)} is no time: the table has no time column.")


def read_millis(value: object) -> int:
    """The short way for what nearly every table has."""
    if type(value) is int and MIN_MS <= value <= MAX_MS:
        return value
    raise DataError(f"{shown(value)} is not a time in epoch milliseconds in the years 1 to 9999.")


def are_millis(values: Sequence[object]) -> bool:
    """Whether `read_millis` would take all of these."""
    return set(map(type, values)) == {int} and min(values) >= MIN_MS and max(values) <= MAX_MS  # type: ignore[type-var, operator]
