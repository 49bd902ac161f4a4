"""Parses and formats times by Java's date patterns (SimpleDateFormat, the part that Pinot's users write).

Letters: `yyyy MM M MMM MMMM dd d HH H hh h a mm m ss s S.. Z ZZ X XX XXX` and quoted text. English month names. Parts
that are missing in a pattern are those of 1970-01-01 00:00:00. Any other letter is refused: guessing a time is worse
than an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_SHORT_MONTHS = tuple(month[:3] for month in MONTHS)
_OFFSET = r"Z|[+-][0-9]{2}:?[0-9]{2}|[+-][0-9]{2}"
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+|'")

_Printer = Callable[[datetime], str]


class UnsupportedPattern(ValueError):
    """A pattern has a letter, or a run of letters, that is not supported; the message names it."""


class DatePattern:
    """A compiled pattern, from `compile_pattern`. It cannot be pickled; pickle the pattern's text."""

    def __init__(self, text: str) -> None:
        self._printers: list[_Printer] = []
        parts: list[str] = []
        seen: set[str] = set()
        for match in _TOKEN.finditer(text):
            parts.append(self._part(match, seen))
        if not seen:
            raise UnsupportedPattern("it holds no date or time letter")
        if ("hour12" in seen) != ("half" in seen):
            raise UnsupportedPattern("'h' and 'a' stand only together; a day of 24 hours is 'HH'")
        self._regex = re.compile("".join(parts), re.IGNORECASE | re.ASCII)

    def parse(self, text: str, zone: tzinfo) -> datetime:
        """The instant that `text` names, in `zone` where the pattern has no offset. ValueError when it does not fit."""
        match = self._regex.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} does not fit the pattern")
        groups = match.groupdict()
        micros = int(groups.get("fraction", "").ljust(6, "0")[:6] or 0)
        return datetime(
            int(groups.get("year", 1970)), _month(groups), int(groups.get("day", 1)), _hour(groups),
            int(groups.get("minute", 0)), int(groups.get("second", 0)), micros,
            tzinfo=parse_offset(groups["offset"]) if "offset" in groups else zone,
        )  # fmt: skip

    def format(self, moment: datetime) -> str:
        """`moment`, which must have a zone, as text in the pattern."""
        return "".join(printer(moment) for printer in self._printers)

    def format_last(self, moment: datetime) -> str:
        """The last text of the microsecond `moment`: a fraction may have more digits than a datetime."""
        text = self.format(moment)
        match = self._regex.fullmatch(text)
        if match is None or "fraction" not in self._regex.groupindex:
            return text
        start, end = match.span("fraction")
        return text[: min(start + 6, end)] + "9" * max(0, end - start - 6) + text[end:]

    def _part(self, match: re.Match[str], seen: set[str]) -> str:
        letters = match.group() if match.group(2) else ""
        if not letters:
            return self._literal(match)
        name, regex, printer = _field(letters)
        if name in seen:
            raise UnsupportedPattern(f"'{letters}' is given twice for the same part")
        seen.add(name)
        self._printers.append(printer)
        return f"(?P<{name}>{regex})"

    def _literal(self, match: re.Match[str]) -> str:
        if match.group() == "'":
            raise UnsupportedPattern("a quote is not closed")
        quoted = match.group(1)
        text = match.group() if quoted is None else (quoted.replace("''", "'") or "'")
        self._printers.append(lambda _: text)
        return re.escape(text)


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> DatePattern:
    """The compiled pattern. UnsupportedPattern names what is not supported."""
    return DatePattern(text)


def parse_offset(text: str) -> tzinfo:
    """`Z`, `+02`, `+0200` or `+02:00` as a zone. ValueError beyond 24 hours."""
    if text in {"Z", "z"}:
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)


def _field(letters: str) -> tuple[str, str, _Printer]:
    """Group name, regular expression and printer of a run of the same letter."""
    if set(letters) == {"S"} and len(letters) <= 9:
        count = len(letters)
        return "fraction", f"[0-9]{{{count}}}", lambda moment: f"{moment.microsecond:06d}000"[:count]
    if letters in _FIELDS:
        return _FIELDS[letters]
    raise UnsupportedPattern(f"the letters '{letters}' are not supported; known are: {' '.join(_FIELDS)} S")


def _number(name: str, width: int, get: Callable[[datetime], int]) -> tuple[str, str, _Printer]:
    regex = f"[0-9]{{{width}}}" if width > 1 else "[0-9]{1,2}"
    return name, regex, lambda moment: f"{get(moment):0{width}d}"


def _names(names: tuple[str, ...]) -> tuple[str, str, _Printer]:
    return "name", "|".join(names), lambda moment: names[moment.month - 1]


def _offset(colon: bool, utc: str) -> tuple[str, str, _Printer]:
    def print_offset(moment: datetime) -> str:
        text = moment.strftime("%z")[:5]
        if utc and text == "+0000":
            return utc
        return f"{text[:3]}:{text[3:]}" if colon else text

    return "offset", _OFFSET, print_offset


def _month(found: dict[str, str]) -> int:
    if "name" not in found:
        return int(found.get("month", 1))
    return _SHORT_MONTHS.index(found["name"][:3].title()) + 1


def _hour(found: dict[str, str]) -> int:
    if "hour12" not in found:
        return int(found.get("hour", 0))
    hour = int(found["hour12"])
    if not 1 <= hour <= 12:
        raise ValueError("the hour of a half day is 1 to 12")
    return hour % 12 + (12 if found["half"].upper() == "PM" else 0)


_FIELDS: dict[str, tuple[str, str, _Printer]] = {
    "yyyy": _number("year", 4, lambda moment: moment.year),
    "MM": _number("month", 2, lambda moment: moment.month),
    "M": _number("month", 1, lambda moment: moment.month),
    "MMM": _names(_SHORT_MONTHS),
    "MMMM": _names(MONTHS),
    "dd": _number("day", 2, lambda moment: moment.day),
    "d": _number("day", 1, lambda moment: moment.day),
    "HH": _number("hour", 2, lambda moment: moment.hour),
    "H": _number("hour", 1, lambda moment: moment.hour),
    "hh": _number("hour12", 2, lambda moment: (moment.hour + 11) % 12 + 1),
    "h": _number("hour12", 1, lambda moment: (moment.hour + 11) % 12 + 1),
    "a": ("half", "AM|PM", lambda moment: "AM" if moment.hour < 12 else "PM"),
    "mm": _number("minute", 2, lambda moment: moment.minute),
    "m": _number("minute", 1, lambda moment: moment.minute),
    "ss": _number("second", 2, lambda moment: moment.second),
    "s": _number("second", 1, lambda moment: moment.second),
    "Z": _offset(colon=False, utc=""),
    "ZZ": _offset(colon=True, utc=""),
    "X": _offset(colon=False, utc="Z"),
    "XX": _offset(colon=False, utc="Z"),
    "XXX": _offset(colon=True, utc="Z"),
}
