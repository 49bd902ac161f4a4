"""Converts values to stored values of a data type, by the same rules for defaults, messages and files.

`CONVERTERS[data_type](value)` is the stored Python value: int, float, Decimal, bool, datetime in UTC, str, bytes. It
raises ValueError, ArithmeticError or TypeError for a value that does not fit; `EXPECTED[data_type]` says which values
do. Pure, and independent of locale and process: Spark's workers and the query's tail compute the same values.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Context, Decimal, Inexact, InvalidOperation

from hybrid.schema.datepattern import parse_offset
from hybrid.schema.jsontext import JsonFloat, compact, parse_json
from hybrid.schema.timeformat import MAX_MS, MIN_MS
from hybrid.schema.types import DataType

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

EXPECTED = {
    DataType.INT: f"an INT: a whole number from {INT_MIN} to {INT_MAX}",
    DataType.LONG: f"a LONG: a whole number from {LONG_MIN} to {LONG_MAX}",
    DataType.FLOAT: "a FLOAT: a number up to 3.4028235e38",
    DataType.DOUBLE: "a DOUBLE: a number up to 1.7976931348623157e308",
    DataType.BIG_DECIMAL: "a BIG_DECIMAL: a number of at most 20 digits before and 18 behind the point",
    DataType.BOOLEAN: "a BOOLEAN: true, false, 1 or 0",
    DataType.TIMESTAMP: "a TIMESTAMP: epoch milliseconds, 'yyyy-MM-dd HH:mm:ss' or ISO 8601, in the years 1 to 9999",
    DataType.STRING: "a STRING: text that UTF-8 can hold",
    DataType.JSON: "a JSON: a value, or a text that is itself JSON",
    DataType.BYTES: "BYTES: text of hexadecimal digits in pairs",
}

_FLOAT32 = struct.Struct("<f")
_SCALE = Decimal(1).scaleb(-18)
_DECIMAL38 = Context(prec=38, traps=[Inexact, InvalidOperation])
_JAVA_SPECIALS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
_MILLIS = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_INSTANT = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s?(Z|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)


def millis_of(moment: datetime) -> int:
    """Epoch milliseconds, rounded down; a datetime without zone is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(milliseconds=1)


def to_int(value: object) -> int:
    """A stored INT."""
    number = value if type(value) is int else _whole(value)
    if not INT_MIN <= number <= INT_MAX:
        raise ValueError("out of range")
    return number


def to_long(value: object) -> int:
    """A stored LONG. A datetime becomes epoch milliseconds."""
    number = value if type(value) is int else _whole(value)
    if not LONG_MIN <= number <= LONG_MAX:
        raise ValueError("out of range")
    return number


def to_float(value: object) -> float:
    """A stored FLOAT: rounded to 32 bits, so that every engine computes on the same number."""
    rounded: float = _FLOAT32.unpack(_FLOAT32.pack(to_double(value)))[0]
    return rounded


def shortest_float(value: float) -> float:
    """The double with the shortest text that rounds to the 32-bit float `value`: 15.948, not 15.947999954223633."""
    for digits in (6, 7, 8):
        short = float(f"{value:.{digits}g}")
        if _FLOAT32.pack(short) == _FLOAT32.pack(value):
            return short
    return float(f"{value:.9g}")


def to_double(value: object) -> float:
    """A stored DOUBLE. A text that overflows is refused; Java's spellings NaN, Infinity, -Infinity are read."""
    if isinstance(value, str):
        if value in _JAVA_SPECIALS:
            return _JAVA_SPECIALS[value]
        number = float(_number_text(value))
        if not math.isfinite(number):
            raise ValueError("out of range")
        return number
    if isinstance(value, (int, float, Decimal)):
        return float(value)
    raise TypeError("not a number")


def micros_of(value: datetime) -> int:
    """An aware time as epoch microseconds."""
    return (value - EPOCH) // timedelta(microseconds=1)


def to_decimal(value: object) -> Decimal:
    """A stored BIG_DECIMAL: decimal(38,18), exact or refused."""
    if isinstance(value, str):
        value = Decimal(_number_text(value))
    elif isinstance(value, float):
        value = Decimal(repr(value))
    elif isinstance(value, int):
        value = Decimal(int(value))
    if not isinstance(value, Decimal) or not value.is_finite():
        raise ValueError("not a finite number")
    return value.quantize(_SCALE, context=_DECIMAL38)


def to_boolean(value: object) -> bool:
    """A stored BOOLEAN."""
    if type(value) is bool:
        return value
    if isinstance(value, str):
        return _BOOLEANS[value.strip().lower()] if not isinstance(value, JsonFloat) else to_boolean(_whole(value))
    number = _whole(value)
    if number not in (0, 1):
        raise ValueError("neither 0 nor 1")
    return number == 1


def to_timestamp(value: object) -> datetime:
    """A stored TIMESTAMP: an aware datetime in UTC, to the microsecond; text without a zone is UTC."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, str) and not isinstance(value, JsonFloat) and not _MILLIS.fullmatch(value.strip()):
        return _instant(value.strip())
    millis = _whole(value)
    if not MIN_MS <= millis <= MAX_MS:
        raise ValueError("out of range")
    return EPOCH + timedelta(milliseconds=millis)


def to_string(value: object) -> str:
    """A stored STRING: numbers and booleans as JSON text, objects and arrays as compact JSON."""
    if type(value) is str:
        text = value
    elif isinstance(value, datetime):
        text = to_timestamp(value).replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
    elif isinstance(value, date):
        text = value.isoformat()
    elif isinstance(value, bytes):
        text = value.hex()
    else:
        text = compact(value)
    if not text.isascii():
        text.encode()
    return text


def to_json(value: object) -> str:
    """A stored JSON, compact, keys in their order. A text must itself be JSON, as in Pinot."""
    if type(value) is str:
        value = parse_json(value)
    text = compact(value)
    if not text.isascii():
        text.encode()
    return text


def to_bytes(value: object) -> bytes:
    """Stored BYTES, from hexadecimal text as Pinot writes it, or from bytes."""
    if isinstance(value, bytes):
        return value
    if type(value) is not str:
        raise TypeError("not text")
    raw = bytes.fromhex(value)
    if 2 * len(raw) != len(value):
        raise ValueError("spaces between the digits")
    return raw


CONVERTERS: dict[DataType, Callable[[object], object]] = {
    DataType.INT: to_int,
    DataType.LONG: to_long,
    DataType.FLOAT: to_float,
    DataType.DOUBLE: to_double,
    DataType.BIG_DECIMAL: to_decimal,
    DataType.BOOLEAN: to_boolean,
    DataType.TIMESTAMP: to_timestamp,
    DataType.STRING: to_string,
    DataType.JSON: to_json,
    DataType.BYTES: to_bytes,
}


def _number_text(text: str) -> str:
    """`text`, stripped, if it may be an ASCII number, else ValueError. Python accepts more forms than other engines."""
    if not text.isascii() or "_" in text or not any(map(str.isdigit, text)):
        raise ValueError("not a number")
    return text.strip()


def _whole(value: object) -> int:
    """A whole number in any form, 1.0 and "1" included. Its size is limited, so that 1e999999999 costs nothing."""
    if isinstance(value, str):
        text = _number_text(value)
        try:
            return int(text)
        except ValueError:
            value = Decimal(text)
    elif isinstance(value, (bool, int)):
        return int(value)
    elif isinstance(value, datetime):
        return millis_of(value)
    elif isinstance(value, float):
        value = Decimal(value)
    if not isinstance(value, Decimal) or not value.is_finite() or value.adjusted() > 20:
        raise ValueError("not a whole number")
    number = int(value)
    if number != value:
        raise ValueError("not a whole number")
    return number


def _instant(text: str) -> datetime:
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise ValueError("not an instant")
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    zone: tzinfo = parse_offset(offset) if offset else UTC
    micros = int((fraction or "").ljust(6, "0")[:6])
    moment = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micros, zone)
    return moment.astimezone(UTC)
