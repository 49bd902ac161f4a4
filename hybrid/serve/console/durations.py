"""Durations in words."""

from __future__ import annotations

_SECOND_MS, _MINUTE_MS, _HOUR_MS, _DAY_MS = 1000, 60_000, 3_600_000, 86_400_000


def about(seconds: float | None) -> str | None:
    """A duration in one unit: `4 min`. Rounded, for it is an estimate. None where it is not known."""
    if seconds is None:
        return None
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length:
            return f"{round(seconds / length)} {unit}"
    return f"{max(1, round(seconds / 5)) * 5} s"


def duration_words(took_ms: int) -> str:
    """A duration in at most two units: `0.4 s`, `12 s`, `4 min 10 s`, `2 h 5 min`."""
    if took_ms < 10 * _SECOND_MS:
        return f"{took_ms / _SECOND_MS:.1f} s"
    units = (("d", _DAY_MS), ("h", _HOUR_MS), ("min", _MINUTE_MS), ("s", _SECOND_MS))
    place = next(number for number, (_, length) in enumerate(units) if took_ms >= length)
    unit, length = units[place]
    words = f"{took_ms // length} {unit}"
    if place + 1 == len(units):
        return words
    smaller, smaller_length = units[place + 1]
    rest = took_ms % length // smaller_length
    return f"{words} {rest} {smaller}" if rest else words
