"""Parses constants of an expression, once: patterns, zones, units, formats, paths. ValueError says what is wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from hybrid.errors import SpecError, suggestion
from hybrid.schema.datepattern import DatePattern, UnsupportedPattern, compile_pattern, parse_offset
from hybrid.schema.period import duration_ms
from hybrid.schema.timeformat import UNITS_NS, TimeFormat, TimeKind
from hybrid.schema.types import DataType

TRUNC_UNITS = ("millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
# The names of types in CAST and in jsonExtractScalar.
_TYPES = {
    **{str(kind): kind for kind in DataType}, "INTEGER": DataType.INT, "BIGINT": DataType.LONG,
    "VARCHAR": DataType.STRING, "TEXT": DataType.STRING, "VARBINARY": DataType.BYTES, "DECIMAL": DataType.BIG_DECIMAL,
}  # fmt: skip


def constant_text(value: object) -> str:
    """A constant that must be text."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a quoted text")
    return value


def count(value: object) -> int:
    """A constant that must be a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a whole number")
    return value


def step(value: object) -> int:
    """A whole number from 1 on, which is used as a divisor."""
    if count(value) < 1:
        raise ValueError(f"{value!r} is not a whole number from 1 on")
    return count(value)


def date_pattern(value: object) -> DatePattern:
    """A date pattern of Java."""
    try:
        return compile_pattern(constant_text(value))
    except UnsupportedPattern as error:
        raise ValueError(f"the date pattern {value!r} cannot be read: {error}") from error


def zone(value: object) -> tzinfo:
    """A time zone by name, or as an offset."""
    name = constant_text(value)
    if name.upper() in {"UTC", "GMT", "Z"}:
        return UTC
    if re.fullmatch(r"[+-][0-9]{2}:?[0-9]{2}", name):
        return parse_offset(name)
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"'{name}' is not a time zone. Write it like 'Europe/Berlin'") from error


def unit_ns(value: object) -> int:
    """The length of a unit of time, in nanoseconds."""
    name = constant_text(value).upper()
    if name not in UNITS_NS:
        near = suggestion(name, UNITS_NS)
        raise ValueError(f"'{value}' is not a time unit.{near} Known are {', '.join(UNITS_NS)}")
    return UNITS_NS[name]


def trunc_unit(value: object) -> str:
    """A unit to which a time is truncated, or which is added to a time."""
    name = constant_text(value).lower()
    singular = name.removesuffix("s")
    if singular not in TRUNC_UNITS:
        near = suggestion(singular, TRUNC_UNITS)
        raise ValueError(f"'{value}' is not a unit.{near} Known are {', '.join(TRUNC_UNITS)}")
    return singular


def duration(value: object) -> int:
    """A duration of ISO 8601, in milliseconds."""
    return duration_ms(constant_text(value))


def time_format(value: object) -> TimeFormat:
    """A time format of Pinot. Its values are texts for a pattern, and whole numbers for an epoch."""
    try:
        form = TimeFormat.parse(constant_text(value), "", "", DataType.STRING)
    except SpecError as error:
        raise ValueError(str(error).removeprefix(": : ").rstrip(".")) from error
    types = {TimeKind.EPOCH: DataType.LONG, TimeKind.PATTERN: DataType.STRING, TimeKind.TIMESTAMP: DataType.TIMESTAMP}
    return replace(form, data_type=types[form.kind])


def granularity(value: object) -> tuple[int, str]:
    """`15:MINUTES` or `MINUTES|15`: size and unit."""
    name = constant_text(value)
    match = re.fullmatch(r"([0-9]{1,9}):([A-Za-z]+)", name) or re.fullmatch(r"([A-Za-z]+)(?:\|([0-9]{1,9}))?", name)
    if match is None:
        raise ValueError(f"'{name}' is not a granularity. Write it like '1:HOURS'")
    size, unit = match.groups() if ":" in name else (match[2] or "1", match[1])
    unit_ns(unit)
    return step(int(size)), unit.upper()


def data_type(value: object) -> DataType:
    """A type by Pinot's name, or by SQL's."""
    name = constant_text(value).upper()
    if name not in _TYPES:
        near = suggestion(name, _TYPES)
        raise ValueError(f"'{value}' is not a type.{near} Known are {', '.join(DataType)}")
    return _TYPES[name]
