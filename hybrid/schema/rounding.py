"""Rounds times down to multiples of a period since 1970 (UTC), and checks that the time column can hold them. Pure."""

from __future__ import annotations

from hybrid.schema.timeformat import MIN_MS, TimeFormat, TimeKind
from hybrid.schema.types import DataType

_MS_NS = 1_000_000
_DAY_MS = 86_400_000
# The possible resolutions of a date pattern, finest first.
_PATTERN_STEPS_MS = (1, 10, 100, 1000, 60_000, 3_600_000, _DAY_MS)


def rounded_down(time_ms: int, period_ms: int) -> int:
    """The multiple of a period at or before a time; never before the year 1, because no column can hold it."""
    return max(time_ms // period_ms * period_ms, MIN_MS)


def why_not_rounded(form: TimeFormat, period_ms: int) -> str | None:
    """Why a column of this format cannot hold times that are rounded to a period; None when it can."""
    if form.data_type is DataType.TIMESTAMP or form.kind is TimeKind.TIMESTAMP:
        return None
    if form.kind is TimeKind.EPOCH:
        period_ns = period_ms * _MS_NS
        if period_ns % form.step_ns and form.step_ns % period_ns:
            return f"counts in steps ('{form.text}') that do not divide it"
        return None
    if form.zone != "UTC":
        return f"is written in the zone {form.zone}, and times are rounded in UTC"
    step_ms = next((ms for ms in _PATTERN_STEPS_MS if form.from_millis(ms) != form.from_millis(0)), None)
    # The lengths of months and years vary, but all of them begin with a day.
    fits = _DAY_MS % period_ms == 0 if step_ms is None else period_ms % step_ms == 0 or step_ms % period_ms == 0
    return None if fits else f"cannot write such times ('{form.text}')"
