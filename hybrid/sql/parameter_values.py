"""Values of query parameters: Python's and JSON's values as typed literals, and their JSON form for a server.

JSON has no times, decimals and bytes, so a value may be an object with its Pinot type:
`{"type": "TIMESTAMP", "value": "2021-09-24T07:00:00Z"}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AnySet
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from numbers import Integral, Real
from typing import Any, NamedTuple

from hybrid.errors import VALIDATION, QueryError

_DIGITS_MAX, _SCALE_MAX, _WHOLE_MAX = 38, 18, 20
_NESTED = "is a list that holds lists"
_SPECIAL = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


class LiteralKind(Enum):
    """What kind of literal a value is. DOUBLE: a NaN or an infinity, which no number literal expresses."""

    NULL = "null"
    BOOLEAN = "boolean"
    NUMBER = "number"
    DOUBLE = "double"
    DECIMAL = "decimal"
    TIMESTAMP = "timestamp"
    TEXT = "text"
    LIST = "list"


class Value(NamedTuple):
    """A value as a literal: its kind and text, for a list its items."""

    kind: LiteralKind
    text: str = ""
    items: tuple[Value, ...] = ()


def value_of(name: str, given: Any, *, is_item: bool = False) -> Value:
    """The literal of a parameter's value. QueryError (700) for a value that none of Pinot's types has."""
    if given is None:
        return Value(LiteralKind.NULL)
    if isinstance(given, bool):
        return Value(LiteralKind.BOOLEAN, "true" if given else "false")
    if isinstance(given, Mapping):
        return _typed(name, given, is_item=is_item)
    for kinds, convert in _CONVERSIONS:
        if isinstance(given, kinds):
            return convert(name, given)
    if isinstance(given, Sequence | AnySet):
        if is_item:
            raise _wrong(name, _NESTED)
        return Value(LiteralKind.LIST, "", tuple(value_of(name, item, is_item=True) for item in given))
    message = f"has the Python type {type(given).__name__}, which is no value of a statement"
    hint = "Values are numbers, texts, booleans, None, dates, datetimes, decimals, bytes, and lists of them for IN."
    raise _wrong(name, message, hint)


def json_parameters(parameters: Any) -> Any:
    """Parameters as a JSON document, for a server. QueryError (700) for a value that is none of a statement."""
    if isinstance(parameters, Mapping):
        return {str(name): _json(value_of(str(name), value)) for name, value in parameters.items()}
    if isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes | bytearray):
        return [_json(value_of(str(number), value)) for number, value in enumerate(parameters, 1)]
    return parameters


def _json(value: Value) -> Any:
    match value.kind:
        case LiteralKind.NULL:
            return None
        case LiteralKind.BOOLEAN:
            return value.text == "true"
        case LiteralKind.NUMBER:
            return int(value.text) if value.text.lstrip("-").isdigit() else float(value.text)
        case LiteralKind.LIST:
            return [_json(item) for item in value.items]
        case LiteralKind.TEXT:
            return value.text
        case LiteralKind.DECIMAL:
            return {"type": "BIG_DECIMAL", "value": value.text}
    return {"type": value.kind.name, "value": value.text}


def _text(name: str, given: str) -> Value:
    text = str.__str__(given)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _wrong(name, "holds half of a character") from None
    if "\0" in text:
        raise _wrong(name, "holds the character NUL, which no statement can hold")
    return Value(LiteralKind.TEXT, text)


def _whole(name: str, given: Any) -> Value:
    number = int(given)
    if abs(number) >= 10**_DIGITS_MAX:
        raise _wrong(name, f"has more than {_DIGITS_MAX} digits")
    return Value(LiteralKind.NUMBER, str(number))


def _fraction(name: str, given: Any) -> Value:
    written = repr(float(given))
    return Value(LiteralKind.DOUBLE, _SPECIAL[written]) if written in _SPECIAL else Value(LiteralKind.NUMBER, written)


def _decimal(name: str, given: Decimal) -> Value:
    if not given.is_finite():
        raise _wrong(name, f"is {given}, which is no BIG_DECIMAL")
    if given and (given.adjusted() >= _WHOLE_MAX or given.adjusted() < -_DIGITS_MAX):
        raise _wrong(name, _BEYOND)
    written = format(given, "f") if given else "0"
    whole, _, part = written.lstrip("-").partition(".")
    if len(part.rstrip("0")) > _SCALE_MAX or len(whole.lstrip("0")) > _WHOLE_MAX:
        raise _wrong(name, _BEYOND)
    return Value(LiteralKind.DECIMAL, written)


_BEYOND = f"does not fit BIG_DECIMAL: at most {_WHOLE_MAX} digits before the point and {_SCALE_MAX} behind it"


def _moment(name: str, given: date) -> Value:
    """A date is its first instant; without a zone, times are UTC."""
    if given != given:  # pandas.NaT is a datetime
        return Value(LiteralKind.NULL)
    moment = given if isinstance(given, datetime) else datetime.combine(given, time())
    try:
        plain = moment if moment.utcoffset() is None else moment.astimezone(UTC)
    except OverflowError:
        raise _wrong(name, "lies outside of the years 1 to 9999") from None
    return Value(LiteralKind.TIMESTAMP, plain.replace(tzinfo=None).isoformat(sep=" "))


def _bytes(name: str, given: bytes | bytearray | memoryview) -> Value:
    return Value(LiteralKind.TEXT, bytes(given).hex())


_CONVERSIONS: tuple[tuple[Any, Callable[[str, Any], Value]], ...] = (
    (str, _text),
    (Integral, _whole),
    (Decimal, _decimal),
    (Real, _fraction),
    (date, _moment),
    ((bytes, bytearray, memoryview), _bytes),
)


def _typed(name: str, given: Mapping[str, Any], *, is_item: bool) -> Value:
    """The value of an object with a type."""
    if set(given) != {"type", "value"} or not isinstance(given["type"], str):
        raise _wrong(name, 'is an object; one is written {"type": "TIMESTAMP", "value": ...}')
    kind, value = given["type"].upper(), given["value"]
    convert = _BY_TYPE.get(kind)
    if convert is None:
        raise _wrong(name, f"has the type '{given['type']}'; types are {', '.join(_BY_TYPE)}")
    if value is None:
        return Value(LiteralKind.NULL)
    if isinstance(value, list):
        if is_item:
            raise _wrong(name, _NESTED)
        items = tuple(_typed(name, {"type": kind, "value": item}, is_item=True) for item in value)
        return Value(LiteralKind.LIST, "", items)
    try:
        return convert(name, value)
    except (ValueError, TypeError, ArithmeticError, InvalidOperation):
        raise _wrong(name, f"is no {kind}: {str(value)[:40]!r}") from None


def _typed_whole(name: str, value: Any) -> Value:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError
    return _whole(name, int(value))


def _typed_fraction(name: str, value: Any) -> Value:
    return _fraction(name, float(value))


def _typed_decimal(name: str, value: Any) -> Value:
    return _decimal(name, Decimal(repr(value) if isinstance(value, float) else value))


def _typed_boolean(name: str, value: Any) -> Value:
    if not isinstance(value, bool):
        raise ValueError
    return Value(LiteralKind.BOOLEAN, "true" if value else "false")


def _typed_text(name: str, value: Any) -> Value:
    if not isinstance(value, str):
        raise ValueError
    return _text(name, value)


def _typed_moment(name: str, value: Any) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError
    if isinstance(value, str):
        return _moment(name, datetime.fromisoformat(value))
    seconds, millis = divmod(value, 1000)
    return _moment(name, datetime.fromtimestamp(seconds, UTC).replace(microsecond=millis * 1000))


def _typed_bytes(name: str, value: Any) -> Value:
    return _bytes(name, bytes.fromhex(value))


_BY_TYPE: dict[str, Callable[[str, Any], Value]] = {
    "INT": _typed_whole, "LONG": _typed_whole, "FLOAT": _typed_fraction, "DOUBLE": _typed_fraction,
    "BIG_DECIMAL": _typed_decimal, "BOOLEAN": _typed_boolean, "TIMESTAMP": _typed_moment, "STRING": _typed_text,
    "JSON": _typed_text, "BYTES": _typed_bytes,
}  # fmt: skip


def _wrong(name: str, message: str, hint: str | None = None) -> QueryError:
    return QueryError(f"Parameter '{name}' {message}.", pinot_code=VALIDATION, hint=hint)
