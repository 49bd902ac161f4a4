"""Converters for SQL types, which check more than the data types that store their values.

`hybrid.sqlType` of a field holds the type's canonical text: `DECIMAL(15,2)`, `CHAR(10)`, `DATE`. CHAR is stored without
its padding blanks, DATE as ISO text. A DECIMAL is stored exactly, or refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Context, Decimal
from typing import NamedTuple

from hybrid.schema.sqltypes import parse_sql_type
from hybrid.schema.types import DataType
from hybrid.schema.values import CONVERTERS, EXPECTED

Converter = Callable[[object], object]

_RANGES = {"TINYINT": 2**7, "SMALLINT": 2**15}
# Enough for the 38 digits of a value at the scale of any DECIMAL; Python's own context has 28.
_DIGITS = Context(prec=100)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class SqlColumn(NamedTuple):
    """The converter of a column's values to stored values, and a text that says which values it accepts."""

    convert: Converter
    expected: str


def sql_column(sql_type: str, data_type: DataType) -> SqlColumn:
    """The converter of a SQL type. SpecError for an unknown type; `convert` raises as CONVERTERS do."""
    kind = parse_sql_type(sql_type, "hybrid.sqlType")
    name, first, second = kind.name, kind.length or 0, kind.scale or 0
    base, plain = CONVERTERS[data_type], EXPECTED[data_type]
    if name in _RANGES:
        limit = _RANGES[name]
        return SqlColumn(_within(base, limit), f"a {name}: a whole number from {-limit} to {limit - 1}")
    if name == "DECIMAL" and first:
        expected = f"a {sql_type}: at most {first - second} digits before and {second} behind the point"
        return SqlColumn(_decimal(base, first, second), expected)
    if name in {"CHAR", "VARCHAR"}:
        return SqlColumn(_text(base, name, first), f"a {sql_type}: {plain[len('a STRING: ') :]}{_at_most(first)}")
    if name == "DATE":
        return SqlColumn(_date, "a DATE: 'yyyy-MM-dd'")
    if name == "TIME":
        return SqlColumn(_time, "a TIME: 'HH:mm:ss', with a fraction or without")
    return SqlColumn(base, plain)


def _within(base: Converter, limit: int) -> Converter:
    def convert(value: object) -> object:
        number = base(value)
        if not isinstance(number, int) or not -limit <= number < limit:
            raise ValueError("out of range")
        return number

    return convert


def _decimal(base: Converter, precision: int, scale: int) -> Converter:
    largest, smallest = Decimal(1).scaleb(precision - scale), Decimal(1).scaleb(-scale)

    def convert(value: object) -> object:
        number = base(value)
        assert isinstance(number, Decimal)
        if number.copy_abs() >= largest or _DIGITS.remainder(number, smallest):
            raise ValueError("too many digits")
        return number

    return convert


def _text(base: Converter, name: str, length: int) -> Converter:
    padded = name == "CHAR"

    def convert(value: object) -> object:
        text = base(value)
        assert isinstance(text, str)
        if padded:
            text = text.rstrip(" ")
        if length and len(text) > length:
            raise ValueError("too long")
        return text

    return convert


def _at_most(length: int) -> str:
    return f", at most {length} characters" if length else ""


def _date(value: object) -> str:
    """A DATE as ISO text, from a date of a file or a text of JSON."""
    if isinstance(value, datetime):
        if value.time() != time():
            raise ValueError("not a date")
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, str) or not _ISO_DATE.fullmatch(value):
        raise ValueError("not a date")
    return date.fromisoformat(value).isoformat()


def _time(value: object) -> str:
    if isinstance(value, time):
        return value.isoformat()
    if not isinstance(value, str):
        raise ValueError("not a time")
    return time.fromisoformat(value).isoformat()
