"""CAST, after Pinot's DataTypeConversionFunctions: what a transform gives has the type that it names."""

from __future__ import annotations

from hybrid.spec.expression.arguments import number, shown, text, whole
from hybrid.spec.jsontext import JsonFloat
from hybrid.spec.types import DataType
from hybrid.spec.values import CONVERTERS, EXPECTED, millis_of, to_timestamp


def cast(value: object, kind: DataType) -> object:
    """`value` in a type; null stays null. INT and LONG cut a fraction; LONG gives a text that is a time as millis."""
    if value is None:
        return None
    if isinstance(value, (list, tuple, dict)) and kind not in {DataType.STRING, DataType.JSON}:
        raise TypeError(f"{shown(value)} is not {EXPECTED[kind]}")
    try:
        return CONVERTERS[kind](_prepared(value, kind))
    except (ValueError, ArithmeticError, TypeError, LookupError) as error:
        raise ValueError(f"{shown(value)} is not {EXPECTED[kind]}") from error


def _prepared(value: object, kind: DataType) -> object:
    if kind in {DataType.INT, DataType.LONG}:
        return _whole(value, kind)
    if kind is DataType.STRING:
        return text(value)
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
