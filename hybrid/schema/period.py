"""Parses periods in Pinot's syntax (`2h`, `1d12h`, `30s`, `500ms`), and durations of ISO 8601."""

from __future__ import annotations

import re

from hybrid.errors import SpecError

UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_PERIOD = re.compile(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?(?:([0-9]+)ms)?")
_NUMBER = r"([0-9.]{1,18})"
_DURATION = re.compile(rf"-?P(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?", re.IGNORECASE)
# A longer period could overflow when it is added to a time, and is a mistake.
_MAX_MS = 1000 * 366 * UNITS_MS["d"]


def parse_period(text: object, source: str, path: str) -> int:
    """Milliseconds of a period. SpecError at `source`, `path` when `text` is not one."""
    match = _PERIOD.fullmatch(text.strip().lower()) if isinstance(text, str) and len(text) <= 40 else None
    if match is None or not any(match.groups()):
        raise SpecError.at(source, path, f"{text!r} is not a period. Write it like '2h', '1d', '30s' or '1d12h'.")
    millis = sum(int(count) * unit for count, unit in zip(match.groups(), UNITS_MS.values(), strict=True) if count)
    if millis > _MAX_MS:
        raise SpecError.at(source, path, f"{text!r} is longer than a thousand years. Write it like '2h' or '1d'.")
    return millis


def period_text(millis: int) -> str:
    """The shortest text that `parse_period` reads as these milliseconds: `1d`, `1d12h`, `0s`."""
    parts, rest = [], millis
    for unit, unit_ms in UNITS_MS.items():
        count, rest = divmod(rest, unit_ms)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def duration_ms(text: str) -> int:
    """Milliseconds of a duration of ISO 8601, such as `P1D` or `PT2H30M`. ValueError when `text` is not one."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise ValueError(f"'{text}' is not a period; write it like 'P1D' or 'PT2H30M'")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    total = round(((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000)
    return -total if text.strip().startswith("-") else total
