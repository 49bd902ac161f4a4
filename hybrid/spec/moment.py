"""A moment as a user writes it on a command line: ISO 8601 with a zone, or as the time column itself writes times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hybrid.errors import DataError, UsageError
from hybrid.spec.schema import FieldSpec

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_moment(text: str, field: FieldSpec, option: str) -> int:
    """Epoch milliseconds, rounded down; the time column's own way counts first. UsageError, naming `option`, else."""
    if field.time_format is not None:
        try:
            return field.time_format.to_millis(text.strip())
        except DataError:
            pass  # it may be ISO 8601
    found = parse_instant(text)
    if isinstance(found, str):
        own = f", or as '{field.name}' writes times ({field.time_format.text})" if field.time_format else ""
        raise UsageError(f"{option} {text}: {found}. Write it like 2021-09-24T08:00:00Z{own}.")
    return found


def parse_instant(text: str) -> int | str:
    """Epoch milliseconds of ISO 8601 with a zone, rounded down; else what is wrong with it, in words."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return "is no time"
    return (moment - _EPOCH) // timedelta(milliseconds=1) if moment.tzinfo is not None else "has no zone"
