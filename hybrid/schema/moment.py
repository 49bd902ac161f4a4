"""Parses moments: one grammar for every option that takes a time.

ISO 8601 with a zone (`2021-09-24T08:00:00Z`), a date (`2021-09-24`: its midnight in UTC), a time ago (`2d`), or epoch
milliseconds (11 digits and more). Where a table is known, the format of its time column takes precedence.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from hybrid.clock import wall_clock_ms
from hybrid.errors import DataError, SpecError, UsageError
from hybrid.schema.period import parse_period
from hybrid.schema.schema import FieldSpec

MOMENT_FORMS = "Write it like 2021-09-24T08:00:00Z, 2021-09-24 (UTC), 2d (ago) or in epoch milliseconds"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH_MS = re.compile(r"[0-9]{11,16}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_moment(text: str, field: FieldSpec, option: str, now_ms: int | None = None) -> int:
    """Epoch milliseconds, rounded down; the time column's format takes precedence. UsageError names `option`."""
    if field.time_format is not None:
        try:
            return field.time_format.to_millis(text.strip())
        except DataError:
            pass  # it may be ISO 8601
    instant = parse_time(text, wall_clock_ms() if now_ms is None else now_ms)
    if isinstance(instant, str):
        own = f", or as '{field.name}' writes times ({field.time_format.text})" if field.time_format else ""
        raise UsageError(f"{option} {text}: {instant}. {MOMENT_FORMS}{own}.")
    return instant


def parse_time(text: str, now_ms: int) -> int | str:
    """Epoch milliseconds of a moment in any form above except a column's format; else the reason, as text."""
    instant = parse_instant(text)
    if isinstance(instant, int):
        return instant
    if _EPOCH_MS.fullmatch(text.strip()):
        return int(text)
    try:
        return now_ms - parse_period(text, "", "")
    except SpecError:
        return instant


def parse_instant(text: str, zone: tzinfo | None = None) -> int | str:
    """Epoch milliseconds of ISO 8601, rounded down; else the reason, as text.

    A date is in UTC. A time of day without a zone is in `zone`, or an error.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return "is no time"
    if _DATE.fullmatch(text.strip()):
        moment = moment.replace(tzinfo=UTC)
    elif moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return (moment - _EPOCH) // timedelta(milliseconds=1) if moment.tzinfo is not None else "has no zone"
