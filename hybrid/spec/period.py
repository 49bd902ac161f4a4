"""Periods as Pinot writes them: `2h`, `1d12h`, `30s`, `500ms`."""

from __future__ import annotations

import re

from hybrid.errors import SpecError

UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_PERIOD = re.compile(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?(?:([0-9]+)ms)?")
# A period longer than this overflows when it is added to a time; nobody means it.
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
