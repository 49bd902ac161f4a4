"""Converts arguments of functions to texts, numbers, booleans or bytes, and compares them.

Messages hold texts, whole numbers, `JsonFloat`, booleans, lists and objects; files also hold Python's other types. A
value that does not fit raises ValueError or TypeError, whose message becomes the reason of a rejected row.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal

from hybrid.schema.jsontext import JsonFloat, compact, shortened
from hybrid.schema.values import micros_of, millis_of, to_boolean, to_double, to_string, to_timestamp

Number = int | float | Decimal


class FractionLiteral(float):
    """A number with a point in an expression: a double, with its exact `decimal` for operations with decimals."""

    decimal: Decimal

    def __new__(cls, written: str) -> FractionLiteral:
        """The literal of the text `written`."""
        literal = super().__new__(cls, written)
        literal.decimal = Decimal(written)
        return literal


# The longest text that repeating and padding may produce.
LENGTH_MAX = 1_000_000

_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,4000}\s*", re.ASCII)
_SHOWN_MAX = 60
_SPECIAL = {math.inf: "Infinity", -math.inf: "-Infinity"}


_LISTS = (list, tuple)
_NESTED = (dict, *_LISTS)
_Pair = tuple[str, str] | tuple[bytes, bytes] | tuple[Number, Number]
# Types of numbers that need no conversion.
PLAIN = frozenset((int, float, FractionLiteral))


def shown(value: object) -> str:
    """A value for an error message: as short JSON, in characters that UTF-8 can encode."""
    try:
        written = compact(value)
    except (ValueError, TypeError, RecursionError):
        written = text(value) if isinstance(value, float) else f"a value of type {type(value).__name__}"
    return shortened(written, _SHOWN_MAX)


def text(value: object) -> str:
    """A value as text: as a STRING column stores it, with infinities and NaN as Java writes them.

    Decimals and times are written as CAST writes them in queries, without trailing zeros.
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
    """A value as a number: a whole number exactly, any other as a double; a time is epoch milliseconds."""
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, float):
        return value
    exact_value = exact(value)
    return float(exact_value) + 0.0 if isinstance(exact_value, Decimal) else exact_value  # a decimal zero has no sign


def exact(value: object) -> Number:
    """A value as a number without loss of digits: as `number`, but a decimal remains a decimal."""
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
    """A value as a whole number; a fraction is truncated, as in Java. A text must be a whole number itself."""
    if isinstance(value, str) and not isinstance(value, JsonFloat) and not _WHOLE.fullmatch(value):
        raise ValueError(f"{shown(value)} is not a whole number")
    exact_value = exact(value)
    if isinstance(exact_value, float) and not math.isfinite(exact_value):
        raise ValueError(f"{shown(exact_value)} is not a whole number")
    return int(exact_value)


def truth(value: object) -> bool | None:
    """A value as an operand of AND, OR, NOT and WHEN: true, false or null. TypeError for any other value."""
    if value is None or isinstance(value, bool):
        return value
    raise TypeError(f"{shown(value)} is neither true nor false")


def raw(value: object) -> bytes:
    """A value as bytes; a text is hexadecimal, as in Pinot."""
    if isinstance(value, bytes):
        return value
    digits = text(value)
    if not re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", digits):
        raise ValueError(f"{shown(value)} is not hexadecimal; of a text's own bytes it is toUtf8(text)")
    return bytes.fromhex(digits)


def items(value: object) -> list[object]:
    """The elements of a list; any other value is a list of one."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def equal(one: object, other: object) -> bool:
    """Whether two values are equal: texts as texts, others as numbers, so that 1, 1.0 and "1" are equal.

    Objects and lists are compared by content. A list equals a single value when one of its elements does, as a column
    of several values in queries.
    """
    if isinstance(one, _NESTED) or isinstance(other, _NESTED):
        if isinstance(one, _LISTS) == isinstance(other, _LISTS):
            return one == other
        many, single = (one, other) if isinstance(one, _LISTS) else (other, one)
        return any(item is not None and equal(item, single) for item in items(many))
    first, second = _comparable(one, other)
    return first == second or (first != first and second != second)  # NaN is NaN, as in queries


def less(one: object, other: object) -> bool:
    """Whether `one` is less than `other`: texts by code points, everything else as numbers.

    NaN is greater than all other numbers, as in queries and in PostgreSQL.
    """
    first, second = _comparable(one, other)
    if second != second:
        return first == first
    return first < second  # type: ignore[operator]


def _in_micros(value: object) -> Number:
    """A value that is compared with a time, in microseconds: a time, its text, or epoch milliseconds."""
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
    return together(_compared(one, other), _compared(other, one))


def _compared(value: object, other: object) -> Number:
    try:
        return exact(value)
    except ValueError as error:
        raise ValueError(f"{shown(value)}, which is compared with {shown(other)}, is not a number") from error


def together(first: Number, second: Number) -> tuple[Number, Number]:
    """Two numbers of compatible types: a decimal with a double becomes a double, unless that is a literal."""
    if isinstance(first, Decimal) and isinstance(second, float):
        return (first, second.decimal) if isinstance(second, FractionLiteral) else (float(first), second)
    if isinstance(first, float) and isinstance(second, Decimal):
        return (first.decimal, second) if isinstance(first, FractionLiteral) else (first, float(second))
    return first, second


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not isinstance(value, JsonFloat)


def _is_truth(value: object) -> bool:
    return str(value).strip().lower() in {"true", "false"}
