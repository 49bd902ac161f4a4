"""Values as JSON can hold them, and words as sentences begin: one form for `--json`, HTTP and kept reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# How the documents of ours name times that were kept as text.
_STAMPS = frozenset(
    ("created_at", "started_at", "finished_at", "last_run", "at", "startTime", "executionStartTime", "finishTime")
)
_SAMPLES = frozenset({"sample", "samples"})


def json_value(value: object) -> Any:
    """A value as JSON can hold it: bytes as hex, BIG_DECIMAL and not-a-number as strings, times as `utc` has them."""
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
    """A time as UTC ISO 8601 with a Z; a fraction only where there is one."""
    try:
        return _instant(_EPOCH + timedelta(milliseconds=time_ms))
    except (OverflowError, ValueError):
        return f"{time_ms} ms"


def stamp(now_ms: int) -> str:
    """A time to be kept, always with milliseconds, so that texts sort as their times do."""
    return f"{(_EPOCH + timedelta(milliseconds=now_ms)).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def json_document(document: Mapping[str, object]) -> dict[str, Any]:
    """A document of ours as JSON, its times as `shown_stamps` has them."""
    return shown_stamps(json_value(document))


def shown_stamps(document: dict[str, Any]) -> dict[str, Any]:
    """A document of ours with the times that were kept as all times are shown; older ones end in +00:00."""
    found = {name: value for name, value in document.items() if name in _STAMPS and isinstance(value, str)}
    return {**document, **{name: _instant(datetime.fromisoformat(value)) for name, value in found.items()}}


def epoch_ms(iso: str) -> int:
    """ISO 8601 with zone as epoch milliseconds."""
    return (datetime.fromisoformat(iso) - _EPOCH) // timedelta(milliseconds=1)


def capitalized(words: str) -> str:
    """Words as a sentence begins with them; what follows the first letter stays."""
    return f"{words[:1].upper()}{words[1:]}"


def _instant(value: datetime) -> str:
    plain = value.astimezone(UTC).replace(tzinfo=None) if value.utcoffset() is not None else value
    return f"{plain.isoformat(timespec='seconds' if not plain.microsecond else _fraction(plain))}Z"


def _fraction(value: datetime) -> str:
    return "microseconds" if value.microsecond % 1000 else "milliseconds"


def instant(time_ms: int | None) -> str | None:
    """Epoch milliseconds as ISO 8601 in UTC; None stays None."""
    return None if time_ms is None else utc(time_ms)
