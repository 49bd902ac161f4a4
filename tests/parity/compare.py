"""When two answers are the same: by name, by wire type, by rows.

A whole number equals the double of the same value, since what differs in types alone is told by the types. FLOATs and
sums are compared to the digits that they have.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

Rows = Sequence[Sequence[Any]]

_FLOAT, _DOUBLE = 1e-6, 1e-12


def same_rows(left: Rows, right: Rows, *, ordered: bool) -> bool:
    """Whether the rows are equal; in any order unless `ordered`."""
    first, second = (list(rows) if ordered else sorted(rows, key=_key) for rows in (left, right))
    return len(first) == len(second) and all(
        len(one) == len(other) and all(same_value(*pair) for pair in zip(one, other, strict=True))
        for one, other in zip(first, second, strict=True)
    )


def same_value(left: Any, right: Any) -> bool:
    """Whether two values are equal."""
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(same_value(*pair) for pair in zip(left, right, strict=True))
    if isinstance(left, bool) or isinstance(right, bool) or left is None or right is None:
        return left is right
    if isinstance(left, int | Decimal) and isinstance(right, int | Decimal):
        return left == right
    if isinstance(left, int | float | Decimal) and isinstance(right, int | float | Decimal):
        return _same_number(float(left), float(right))
    if isinstance(left, str) and isinstance(right, str) and left[:1] in {"{", "["}:
        return left == right or _json(left) == _json(right)
    return type(left) is type(right) and bool(left == right)


def _same_number(left: float, right: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return math.isclose(left, right, rel_tol=_FLOAT if _is_float(left) or _is_float(right) else _DOUBLE)


def _is_float(value: float) -> bool:
    """Whether 32 bits hold the value, or its shortest decimal names one: then FLOAT has lost no more than this."""
    import struct

    try:
        narrow = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return False
    return bool(narrow == value or (math.isfinite(value) and float(f"{narrow:.7g}") == value))


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _key(row: Sequence[Any]) -> list[str]:
    return [_sortable(value) for value in row]


def _sortable(value: Any) -> str:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return str(int(value)) if float(value).is_integer() else f"{float(value):.5g}"
    return str(value)


def from_wire(value: Any, kind: str) -> Any:
    """A value of Pinot's JSON as Python holds it."""
    if kind.endswith("_ARRAY"):
        return [from_wire(one, kind.removesuffix("_ARRAY")) for one in value]
    read = _READ.get(kind)
    return value if read is None or value is None else read(value)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


_READ: dict[str, Callable[[Any], Any]] = {
    "FLOAT": float,
    "DOUBLE": float,
    "BIG_DECIMAL": lambda value: Decimal(str(value)),
    "TIMESTAMP": _moment,
    "BYTES": bytes.fromhex,
}
