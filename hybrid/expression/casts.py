"""CAST, after Pinot's DataTypeConversionFunctions: converts a value to the type that it names."""

from __future__ import annotations

from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal

from hybrid.expression.arguments import exact, number, shown, text, whole
from hybrid.schema.jsontext import JsonFloat
from hybrid.schema.types import DataType
from hybrid.schema.values import CONVERTERS, EXPECTED, millis_of, to_timestamp

_WIDE = Context(prec=400)


def cast(value: object, kind: DataType) -> object:
    """`value` in a type; null is null. INT and LONG truncate fractions; LONG of a time's text is epoch milliseconds."""
    if value is None:
        return None
    if isinstance(value, (list, tuple, dict)) and kind not in {DataType.STRING, DataType.JSON}:
        raise TypeError(f"{shown(value)} is not {EXPECTED[kind]}")
    try:
        return CONVERTERS[kind](_prepared(value, kind))
    except (ValueError, ArithmeticError, TypeError, LookupError) as error:
        raise ValueError(f"{shown(value)} is not {EXPECTED[kind]}") from error


def cast_decimal(value: object, precision: int, scale: int) -> Decimal:
    """`value` as a DECIMAL(precision, scale): halves are rounded away from zero, as in queries."""
    source_number = exact(value)
    try:
        decimal = Decimal(repr(source_number)) if isinstance(source_number, float) else Decimal(source_number)
        rounded = decimal.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=_WIDE)
    except ArithmeticError as error:
        raise ValueError(f"{shown(value)} is not a number") from error
    if rounded.adjusted() >= precision - scale and rounded:
        raise ValueError(f"{shown(value)} does not fit a DECIMAL({precision},{scale})")
    return rounded


def _prepared(value: object, kind: DataType) -> object:
    if kind in {DataType.INT, DataType.LONG}:
        return _whole(value, kind)
    if kind is DataType.STRING:
        return text(value)
    if kind in {DataType.FLOAT, DataType.DOUBLE} and isinstance(value, date):
        return number(value)
    if kind is DataType.BOOLEAN and isinstance(value, (int, float, JsonFloat)):
        return number(value) != 0
    if kind is DataType.TIMESTAMP and isinstance(value, (float, JsonFloat)):
        return whole(value)
    return value


def _whole(value: object, kind: DataType) -> int:
    if not isinstance(value, str) or isinstance(value, JsonFloat):
        return whole(value)
    try:
        return int(number(value))
    except (ValueError, OverflowError):
        if kind is DataType.INT:
            raise
    return millis_of(to_timestamp(value))
