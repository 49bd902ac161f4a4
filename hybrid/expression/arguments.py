"""What a function makes of its arguments: texts, numbers, truth values, bytes, and how two of them compare.

A message brings texts, whole numbers, `JsonFloat`, truth values, lists and objects; files bring Python's types too.
What does not fit is a ValueError or TypeError whose words, the same everywhere, end up in the reason of a rejected row.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal

from hybrid.schema.jsontext import JsonFloat, compact
from hybrid.schema.values import micros_of, millis_of, to_boolean, to_double, to_string, to_timestamp

Number = int | float | Decimal


class FractionLiteral(float):
    """A number with a point in an expression: a double, and beside a decimal the decimal that is written."""

    decimal: Decimal

    def __new__(cls, written: str) -> FractionLiteral:
        """The number that `written` is."""
        found = super().__new__(cls, written)
        found.decimal = Decimal(written)
        return found


# Longest text that repeating and padding may make.
LENGTH_MAX = 1_000_000

_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,4000}\s*", re.ASCII)
_SHOWN_MAX = 60
_SPECIAL = {math.inf: "Infinity", -math.inf: "-Infinity"}


_LISTS = (list, tuple)
_NESTED = (dict, *_LISTS)
_Pair = tuple[str, str] | tuple[bytes, bytes] | tuple[Number, Number]
# Types of numbers that are computed with as they are.
PLAIN = frozenset((int, float, FractionLiteral))


def shown(value: object) -> str:
    """A value in a reason: as JSON, short, in characters that UTF-8 can hold."""
    try:
        found = compact(value)
    except (ValueError, TypeError, RecursionError):
        found = text(value) if isinstance(value, float) else f"a value of type {type(value).__name__}"
    short = found if len(found) <= _SHOWN_MAX else found[: _SHOWN_MAX - 3] + "..."
    return short.encode("utf-8", "backslashreplace").decode()


def text(value: object) -> str:
    """A value as text: as a STRING column holds it, infinities and NaN in Java's spelling.

    Decimals and times are written as CAST writes them in queries, without zeros behind.
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Decimal) and value.is_finite():
        written = f"{value if value else value.copy_abs():f}"
        return written.rstrip("0").rstrip(".") if "." in written else written
    if isinstance(value, datetime):
        written = to_timestamp(value).replace(tzinfo=None).isoformat(sep=" ")
        return written.rstrip("0") if "." in written else written
    if isinstance(value, float) and not math.isfinite(value):
        return _SPECIAL.get(value, "NaN")
    return to_string(value)


def number(value: object) -> int | float:
    """A value as a number: whole ones exactly, all others as doubles; a time is epoch milliseconds."""
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, float):
        return value
    found = exact(value)
    return float(found) + 0.0 if isinstance(found, Decimal) else found  # a decimal zero has no sign


def exact(value: object) -> Number:
    """A value as a number that loses no digit: as `number`, and a decimal as it is."""
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, float):
        return value
    if isinstance(value, JsonFloat):
        return float(value)
    if isinstance(value, str):
        try:
            return int(value) if _WHOLE.fullmatch(value) else to_double(value)
        except ValueError as error:
            raise ValueError(f"{shown(value)} is not a number") from error
    if isinstance(value, Decimal):
        return value
    if isinstance(value, date):
        return millis_of(to_timestamp(value))
    raise TypeError(f"{shown(value)} is not a number")


def whole(value: object) -> int:
    """A value as a whole number; a fraction is cut, as Java does. A text must itself be whole."""
    if isinstance(value, str) and not isinstance(value, JsonFloat) and not _WHOLE.fullmatch(value):
        raise ValueError(f"{shown(value)} is not a whole number")
    found = exact(value)
    if isinstance(found, float) and not math.isfinite(found):
        raise ValueError(f"{shown(found)} is not a whole number")
    return int(found)


def truth(value: object) -> bool | None:
    """What AND, OR, NOT and WHEN take: true, false or null."""
    if value is None or isinstance(value, bool):
        return value
    raise TypeError(f"{shown(value)} is neither true nor false")


def raw(value: object) -> bytes:
    """Bytes; a text is hexadecimal, as in Pinot."""
    if isinstance(value, bytes):
        return value
    found = text(value)
    if not re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", found):
        raise ValueError(f"{shown(value)} is not hexadecimal; of a text's own bytes it is toUtf8(text)")
    return bytes.fromhex(found)


def items(value: object) -> list[object]:
    """The elements of a list; any other value is a list of one."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def equal(one: object, other: object) -> bool:
    """Texts as texts, everything else as numbers: 1, 1.0 and "1" are equal. Objects and lists by their content.

    A list equals a single value when one of its elements does, as a column of several values in queries.
    """
    if isinstance(one, _NESTED) or isinstance(other, _NESTED):
        if isinstance(one, _LISTS) == isinstance(other, _LISTS):
            return one == other
        many, single = (one, other) if isinstance(one, _LISTS) else (other, one)
        return any(item is not None and equal(item, single) for item in items(many))
    first, second = _comparable(one, other)
    return first == second or (first != first and second != second)  # NaN is NaN, as in queries


def less(one: object, other: object) -> bool:
    """Whether `one` comes before `other`: texts by code points, everything else as numbers.

    NaN is greater than all other numbers, as in queries and in PostgreSQL.
    """
    first, second = _comparable(one, other)
    if second != second:
        return first == first
    return first < second  # type: ignore[operator]


def _in_micros(value: object) -> Number:
    """What is compared with a time, as microseconds: a time, a text that is one, or epoch milliseconds."""
    if isinstance(value, date):
        return micros_of(to_timestamp(value))
    return micros_of(_instant_in(value)) if _is_text(value) else exact(value) * 1000


def _instant_in(written: object) -> datetime:
    try:
        return to_timestamp(written)
    except (ValueError, ArithmeticError) as error:
        raise ValueError(f"{shown(written)} is not a time") from error


def _comparable(one: object, other: object) -> _Pair:
    if type(one) in PLAIN and type(other) in PLAIN:
        return one, other  # type: ignore[return-value]
    if _is_text(one) and _is_text(other):
        return str(one), str(other)
    if isinstance(one, bytes) or isinstance(other, bytes):
        return raw(one), raw(other)
    if isinstance(one, date) or isinstance(other, date):
        return _in_micros(one), _in_micros(other)
    if isinstance(one, bool) and _is_text(other):
        return one, to_boolean(other) if _is_truth(other) else exact(other)
    if isinstance(other, bool) and _is_text(one):
        return to_boolean(one) if _is_truth(one) else exact(one), other
    return together(exact(one), exact(other))


def together(first: Number, second: Number) -> tuple[Number, Number]:
    """Two numbers that can be computed with: a decimal beside a double is a double."""
    if isinstance(first, Decimal) and isinstance(second, float):
        return (first, second.decimal) if isinstance(second, FractionLiteral) else (float(first), second)
    if isinstance(first, float) and isinstance(second, Decimal):
        return (first.decimal, second) if isinstance(first, FractionLiteral) else (first, float(second))
    return first, second


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not isinstance(value, JsonFloat)


def _is_truth(value: object) -> bool:
    return str(value).strip().lower() in {"true", "false"}
