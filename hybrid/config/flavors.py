"""Decodes values for which JSON has no type: Feldera's `json_flavor`.

Debezium writes a date as days, an instant as milliseconds, and a time as microseconds (MySQL) or milliseconds (others,
with time.precision.mode connect). Bytes are in base64. A text is read as in the default flavor.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import timedelta

from hybrid.config.json_flavor import JsonFlavor
from hybrid.schema.schema import FieldSpec
from hybrid.schema.sqltypes import parse_sql_type
from hybrid.schema.types import DataType
from hybrid.schema.values import EPOCH

Converter = Callable[[object], object]

_TIME_UNITS = {
    JsonFlavor.DEBEZIUM_MYSQL: timedelta(microseconds=1),
    JsonFlavor.DEBEZIUM_POSTGRES: timedelta(milliseconds=1),
}
_DAY = timedelta(days=1)


def flavored(convert: Converter, field: FieldSpec, flavor: JsonFlavor) -> Converter:
    """The converter of a column's values in a flavor; it raises the errors of `convert`."""
    if flavor is JsonFlavor.DEFAULT:
        return convert
    if field.data_type is DataType.BYTES:
        return lambda value: convert(base64.b64decode(value, validate=True) if isinstance(value, str) else value)
    name = parse_sql_type(field.sql_type, field.name).name if field.sql_type else ""
    if name == "DATE":
        return lambda value: convert((EPOCH + value * _DAY).date() if type(value) is int else value)
    if name == "TIME":
        unit = _TIME_UNITS[flavor]
        return lambda value: convert(_time(value, unit) if type(value) is int else value)
    return convert


def _time(value: int, unit: timedelta) -> object:
    since = value * unit
    if not timedelta() <= since < _DAY:
        raise ValueError("not a time of day")
    return (EPOCH + since).time()
