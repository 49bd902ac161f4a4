"""Parses and writes JSON, the same in every process: strict, limited in depth, with numbers as they were written.

A number with a point or exponent is read as `JsonFloat`, its text. So BIG_DECIMAL is exact, and STRING and JSON columns
show the number as it was sent.
"""

from __future__ import annotations

import json
import math
import re
from datetime import date
from decimal import Decimal
from json.encoder import encode_basestring
from typing import NoReturn

# Deeper JSON is refused before it is parsed. Python's own limit depends on the depth of the caller's stack, so that two
# engines could disagree about the same bytes.
DEPTH_MAX = 200

# An unclosed string runs to the end, which keeps the scan linear on hostile text.
_STRINGS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKETS = re.compile(r"[^\[\]{}]+")


class JsonFloat(str):
    """The text of a JSON number that has a point or an exponent."""

    __slots__ = ()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def finite_float(text: str) -> float:
    """The double of a number with a point or exponent. ValueError for one beyond the largest double."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{shortened(text, 40)} is beyond the largest number, about 1.8e308")
    return number


_DECODER = json.JSONDecoder(parse_float=JsonFloat, parse_constant=_refuse_constant)


def parse_json(text: str) -> object:
    """The value of a JSON text. ValueError for invalid JSON, NaN and Infinity, and nesting beyond DEPTH_MAX."""
    if text.count("[") + text.count("{") > DEPTH_MAX and depth(text) > DEPTH_MAX:
        raise ValueError(f"it nests deeper than {DEPTH_MAX} levels")
    value: object = _DECODER.decode(text)
    return value


def parse_plain_json(text: str) -> object:
    """The value of a JSON text with Python's own numbers. ValueError for invalid JSON, NaN, Infinity and 1e999."""
    value: object = json.loads(text, parse_float=finite_float, parse_constant=_refuse_as_number)
    return value


def _refuse_as_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def depth(text: str) -> int:
    """The depth of nested brackets outside of strings; never less than the depth that a parser of `text` reaches."""
    level = deepest = 0
    for bracket in _NO_BRACKETS.sub("", _STRINGS.sub("", text)):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
    return deepest


def shortened(text: str, chars_max: int) -> str:
    """A text for a message: at most so many characters, all of which UTF-8 can encode."""
    short = text if len(text) <= chars_max else text[: chars_max - 3] + "..."
    return short.encode("utf-8", "backslashreplace").decode()


def compact(value: object) -> str:
    """Compact JSON text, keys in their order. TypeError for values without a JSON form, NaN and Infinity included."""
    if type(value) is str:
        return encode_basestring(value)
    if isinstance(value, JsonFloat):
        return str(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ",".join([f"{encode_basestring(_key(key))}:{compact(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([compact(item) for item in value]) + "]"
    return _scalar(value)


def _key(key: object) -> str:
    """A key of a map: a text as it is, any other value as its JSON text would be without quotes."""
    return key if isinstance(key, str) else compact(key).strip('"')


def _scalar(value: object) -> str:
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    if isinstance(value, date):  # a datetime too
        return encode_basestring(value.isoformat())
    if isinstance(value, bytes):
        return encode_basestring(value.hex())
    raise TypeError(f"{type(value).__name__} has no JSON text")
