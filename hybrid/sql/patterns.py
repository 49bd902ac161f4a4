"""Java's date patterns, as Pinot's users write them, as DuckDB's strftime patterns."""

from __future__ import annotations

import re

from hybrid.errors import QueryError

_LETTERS = {
    "yyyy": "%Y", "YYYY": "%Y", "xxxx": "%G", "yy": "%y", "MM": "%m", "MMM": "%b", "MMMM": "%B", "M": "%-m",
    "dd": "%d", "d": "%-d", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M", "m": "%-M", "ss": "%S",
    "s": "%-S", "SSS": "%g", "a": "%p", "E": "%a", "EEE": "%a", "EEEE": "%A", "D": "%-j", "DDD": "%j", "ww": "%V",
    "e": "%u", "Z": "%z", "ZZ": "%z",
}  # fmt: skip
_OFFSETS = {"Z": "+0000", "ZZ": "+00:00"}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")


def strftime_pattern(pattern: str, *, utc: bool | None = None) -> str:
    """A Java date pattern as strftime's. QueryError (700) for a letter that is not known.

    `utc` says in which zone a time is written: UTC (True), another (False), or that it is read (None). DuckDB writes
    offsets of UTC only, and not as Java does.
    """
    parts: list[str] = []
    for match in _TOKEN.finditer(pattern):
        found = match.group()
        if match.group(1) is not None:
            parts.append((match.group(1).replace("''", "'") or "'").replace("%", "%%"))
        elif match.group(2) is None:
            parts.append(found.replace("%", "%%"))
        elif found in _OFFSETS and utc:
            parts.append(_OFFSETS[found])
        elif found in _LETTERS and not (found in _OFFSETS and utc is False):
            parts.append(_LETTERS[found])
        else:
            known = "not supported with a zone" if found in _OFFSETS else "not supported"
            raise QueryError(f"Date pattern '{pattern}': the letters '{found}' are {known}.", pinot_code=700)
    return "".join(parts)


_ZONE = re.compile(r"(?P<pattern>.*?)\s+tz\((?P<zone>[^)]+)\)")


def split_zone(pattern: str) -> tuple[str, str]:
    """`yyyy-MM-dd tz(Asia/Tokyo)` as its pattern and its zone; UTC without one."""
    match = _ZONE.fullmatch(pattern.strip())
    return (match["pattern"], match["zone"]) if match else (pattern, "UTC")
