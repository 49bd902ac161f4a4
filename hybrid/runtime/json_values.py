"""JSON forms of values, and formatting of times and words: one form for `--json`, HTTP and stored reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The fields of our documents that hold times as text.
_STAMPS = frozenset(
    ("created_at", "started_at", "finished_at", "last_run", "at", "startTime", "executionStartTime", "finishTime")
)
_SAMPLES = frozenset({"sample", "samples"})


def json_value(value: object) -> Any:
    """A value in JSON: bytes as hex, BIG_DECIMAL and non-finite numbers as strings, times as `utc` formats them."""
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
            return {str(name): json_value(item) for name, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [json_value(item) for item in value]
    return str(value)


def without_samples(value: Any) -> Any:
    """A JSON value without the sample rows in plans, reports and results of expectations."""
    if isinstance(value, dict):
        empty = {
            name: type(item)() for name, item in value.items() if name in _SAMPLES and isinstance(item, list | dict)
        }
        return {name: without_samples(item) for name, item in value.items()} | empty
    return [without_samples(item) for item in value] if isinstance(value, list) else value


def utc(time_ms: int) -> str:
    """A time as UTC ISO 8601 with a Z, with a fraction only if it has one."""
    try:
        return _instant(_EPOCH + timedelta(milliseconds=time_ms))
    except (OverflowError, ValueError):
        return f"{time_ms} ms"


def stamp(now_ms: int) -> str:
    """A time for storage, always with milliseconds, so that texts sort like their times."""
    return f"{(_EPOCH + timedelta(milliseconds=now_ms)).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def json_document(document: Mapping[str, object]) -> dict[str, Any]:
    """One of our documents as JSON, with times as in `shown_stamps`."""
    return shown_stamps(json_value(document))


def shown_stamps(document: dict[str, Any]) -> dict[str, Any]:
    """One of our documents with its stored times in the form for output; older ones end in +00:00."""
    stored_times = {name: value for name, value in document.items() if name in _STAMPS and isinstance(value, str)}
    return {**document, **{name: _instant(datetime.fromisoformat(value)) for name, value in stored_times.items()}}


def epoch_ms(iso: str) -> int:
    """ISO 8601 with a zone, as epoch milliseconds."""
    return (datetime.fromisoformat(iso) - _EPOCH) // timedelta(milliseconds=1)


def capitalized(words: str) -> str:
    """Words with a capital first letter, for the start of a sentence; the rest is unchanged."""
    return f"{words[:1].upper()}{words[1:]}"


def _instant(value: datetime) -> str:
    plain = value.astimezone(UTC).replace(tzinfo=None) if value.utcoffset() is not None else value
    return f"{plain.isoformat(timespec='seconds' if not plain.microsecond else _fraction(plain))}Z"


def _fraction(value: datetime) -> str:
    return "microseconds" if value.microsecond % 1000 else "milliseconds"


def instant(time_ms: int | None) -> str | None:
    """Epoch milliseconds as ISO 8601 in UTC; None stays None."""
    return None if time_ms is None else utc(time_ms)
