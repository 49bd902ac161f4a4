"""JSON functions of expressions, after Pinot's JsonFunctions. Their argument is a value, or a text of JSON."""

from __future__ import annotations

from collections.abc import Callable

from hybrid.expression.arguments import number, shown, text, whole
from hybrid.expression.casts import cast
from hybrid.expression.constants import data_type
from hybrid.expression.jsonpath import JsonPath, json_path
from hybrid.expression.rules import Rule
from hybrid.schema.jsontext import JsonFloat, compact, parse_json
from hybrid.schema.types import DataType
from hybrid.schema.values import LONG_MAX, LONG_MIN

_NUMBERS = (DataType.INT, DataType.LONG, DataType.FLOAT, DataType.DOUBLE, DataType.BIG_DECIMAL)
_TRUTHS = ("true", "false", "1", "0")
_UNFIT = (ValueError, ArithmeticError, TypeError, LookupError)


def _parsed(value: object) -> object:
    if not isinstance(value, str) or isinstance(value, JsonFloat):
        return value
    try:
        return parse_json(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{shown(value)} is not JSON") from error


def _find(value: object, path: JsonPath) -> object:
    return path.find(_parsed(value))


def _with_default(convert: Callable[[object], object]) -> Callable[..., object]:
    """A path function. Of null it is null, or the default; with a default also of a value that does not fit."""

    def apply(value: object, path: JsonPath, *default: object) -> object:
        if value is None:
            return default[0] if default else None
        try:
            item = _find(value, path)
            if item is not None:
                return convert(item)
        except _UNFIT:
            if not default:
                raise
        return default[0] if default else None

    return apply


def _long(value: object) -> int:
    """jsonPathLong: a number, or a number as text, truncated."""
    whole_number = whole(_double(value))
    if not LONG_MIN <= whole_number <= LONG_MAX:
        raise ValueError(f"{shown(value)} is not a LONG")
    return whole_number


def _text(value: object) -> str:
    """A value as text. A fraction is written as a double, as in queries and in Java: 1e3 is `1000.0`."""
    return text(float(value)) if isinstance(value, JsonFloat) else text(value)


def _double(value: object) -> int | float:
    if isinstance(value, (bool, dict, list)):
        raise ValueError(f"{shown(value)} is not a number")
    return number(value)


def _elements(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _array(value: object, path: JsonPath) -> object:
    item = _find(value, path)
    return None if item is None else _elements(item)


def _array_or_empty(value: object, path: JsonPath) -> object:
    try:
        return (_array(value, path) or []) if value is not None else []
    except _UNFIT:
        return []


def _exists(value: object, path: JsonPath) -> bool:
    try:
        return _find(value, path) is not None
    except _UNFIT:
        return False


def _extract_scalar(value: object, path: JsonPath, kind: DataType, *default: object) -> object:
    prepared = [cast(fallback, kind) for fallback in default]
    return _with_default(lambda item: _scalar(item, kind))(value, path, *prepared)


def _scalar(value: object, kind: DataType) -> object:
    """A JSON value in a type: a boolean is no number, and a number as text may be truncated."""
    if isinstance(value, bool) and kind in _NUMBERS:
        raise ValueError(f"{shown(value)} is not a number")
    if kind is DataType.BOOLEAN and (isinstance(value, JsonFloat) or value not in (0, 1, *_TRUTHS)):
        raise ValueError(f"{shown(value)} is neither true nor false")
    return _text(value) if kind is DataType.STRING else cast(value, kind)


def _is_json(value: object) -> bool:
    try:
        parse_json(text(value))
    except (ValueError, RecursionError):
        return False
    return True


def _object(*kinds: type) -> Callable[[object], object]:
    """A function that parses a list or object in a text; null for any other text."""

    def apply(value: object) -> object:
        try:
            parsed = _parsed(value)
        except ValueError:
            return None
        return parsed if isinstance(parsed, kinds) else None

    return apply


RULES: dict[str, Rule] = {
    "jsonPath": Rule(2, 2, _find, {1: json_path}),
    "jsonPathString": Rule(2, 3, _with_default(_text), {1: json_path}, nulls=True),
    "jsonPathLong": Rule(2, 3, _with_default(_long), {1: json_path}, nulls=True),
    "jsonPathDouble": Rule(2, 3, _with_default(_double), {1: json_path}, nulls=True),
    "jsonPathArray": Rule(2, 2, _array, {1: json_path}),
    "jsonPathArrayDefaultEmpty": Rule(2, 2, _array_or_empty, {1: json_path}, nulls=True),
    "jsonPathExists": Rule(2, 2, _exists, {1: json_path}),
    "jsonExtractScalar": Rule(3, 4, _extract_scalar, {1: json_path, 2: data_type}, nulls=True),
    "jsonFormat": Rule(1, 1, compact),
    "toJsonMapStr": Rule(1, 1, compact, nulls=True),
    "isJson": Rule(1, 1, _is_json),
    "jsonStringToArray": Rule(1, 1, _object(list)),
    "jsonStringToMap": Rule(1, 1, _object(dict)),
    "jsonStringToListOrMap": Rule(1, 1, _object(list, dict)),
    "jsonExtractObject": Rule(1, 1, _object(list, dict)),
}
