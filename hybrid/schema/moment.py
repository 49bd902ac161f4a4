"""A moment as a user writes it: one grammar for every option that takes a time.

ISO 8601 with a zone (`2021-09-24T08:00:00Z`), a date (`2021-09-24`: its midnight in UTC), a time ago (`2d`), or epoch
milliseconds (11 digits and more). Where a table is known, the way in which its time column writes times counts first.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from hybrid.clock import wall_clock_ms
from hybrid.errors import DataError, SpecError, UsageError
from hybrid.schema.period import parse_period
from hybrid.schema.schema import FieldSpec

MOMENT_FORMS = "Write it like 2021-09-24T08:00:00Z, 2021-09-24 (UTC), 2d (ago) or in epoch milliseconds"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH_MS = re.compile(r"[0-9]{11,16}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_moment(text: str, field: FieldSpec, option: str, now_ms: int | None = None) -> int:
    """Epoch milliseconds, rounded down; the time column's own way counts first. UsageError, naming `option`, else."""
    if field.time_format is not None:
        try:
            return field.time_format.to_millis(text.strip())
        except DataError:
            pass  # it may be ISO 8601
    found = parse_time(text, wall_clock_ms() if now_ms is None else now_ms)
    if isinstance(found, str):
        own = f", or as '{field.name}' writes times ({field.time_format.text})" if field.time_format else ""
        raise UsageError(f"{option} {text}: {found}. {MOMENT_FORMS}{own}.")
    return found


def parse_time(text: str, now_ms: int) -> int | str:
    """Epoch milliseconds of a moment in any of the forms above but a column's; else what is wrong, in words."""
    found = parse_instant(text)
    if isinstance(found, int):
        return found
    if _EPOCH_MS.fullmatch(text.strip()):
        return int(text)
    try:
        return now_ms - parse_period(text, "", "")
    except SpecError:
        return found


def parse_instant(text: str) -> int | str:
    """Epoch milliseconds of ISO 8601 with a zone, or of a date in UTC, rounded down; else what is wrong, in words."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return "is no time"
    if _DATE.fullmatch(text.strip()):
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1) if moment.tzinfo is not None else "has no zone"
