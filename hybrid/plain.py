"""Values as JSON can hold them, and words as sentences begin: one form for `--json`, HTTP and kept reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAMPLES = frozenset({"sample", "samples"})


def json_value(value: object) -> Any:
    """A value as JSON can hold it: bytes as hex, BIG_DECIMAL and not-a-number as strings, times as ISO 8601."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case Decimal():
            return format(value, "f")
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case datetime():
            return _instant(value)
        case date():
            return value.isoformat()
        case Mapping():
            return {str(name): json_value(one) for name, one in value.items()}
        case list() | tuple() | set() | frozenset():
            return [json_value(one) for one in value]
    return str(value)


def without_samples(value: Any) -> Any:
    """A JSON value without the rows that plans, reports and results of expectations show as samples."""
    if isinstance(value, dict):
        empty = {name: type(one)() for name, one in value.items() if name in _SAMPLES and isinstance(one, list | dict)}
        return {name: without_samples(one) for name, one in value.items()} | empty
    return [without_samples(one) for one in value] if isinstance(value, list) else value


def utc(time_ms: int) -> str:
    """A time as UTC ISO 8601 with a Z, without trailing zeros of its milliseconds."""
    try:
        text = (_EPOCH + timedelta(milliseconds=time_ms)).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError):
        return f"{time_ms} ms"
    return text.replace("+00:00", "Z").replace(".000Z", "Z")


def epoch_ms(iso: str) -> int:
    """ISO 8601 with zone as epoch milliseconds."""
    return (datetime.fromisoformat(iso) - _EPOCH) // timedelta(milliseconds=1)


def capitalized(words: str) -> str:
    """Words as a sentence begins with them; what follows the first letter stays."""
    return f"{words[:1].upper()}{words[1:]}"


def _instant(value: datetime) -> str:
    if value.utcoffset() is None:
        return value.isoformat()
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
