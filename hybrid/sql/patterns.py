"""Java's date patterns, as Pinot's users write them, in DuckDB's SQL: formatted by strftime, parsed by strptime.

Parts that strftime cannot format (a fraction of some digits, an offset other than UTC's) are computed separately. Parts
that a pattern omits are those of 1970-01-01 00:00:00.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError
from hybrid.sql.calls import call, cast, number, text, to_millis
from hybrid.sql.wholes import once
from hybrid.sql.zones import is_utc, to_local

_LETTERS = {
    "yyyy": "%Y", "YYYY": "%Y", "xxxx": "%G", "yy": "%y", "MM": "%m", "MMM": "%b", "MMMM": "%B", "M": "%-m",
    "dd": "%d", "d": "%-d", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M", "m": "%-M", "ss": "%S",
    "s": "%-S", "SSS": "%g", "a": "%p", "E": "%a", "EEE": "%a", "EEEE": "%A", "D": "%-j", "DDD": "%j", "ww": "%V",
    "e": "%u",
}  # fmt: skip
# Whether a colon separates hours and minutes, and how UTC is written.
_OFFSETS = {"Z": (False, "+0000"), "ZZ": (True, "+00:00"), "X": (False, "Z"), "XX": (False, "Z"), "XXX": (True, "Z")}
_DIGITS_MAX = 9
_YEARS = ("%Y", "%G", "%y")
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_ZONE = re.compile(r"(?P<pattern>.*?)\s*tz\(\s*(?P<zone>[^)]+?)\s*\)")


def format_time(moment: exp.Expr, pattern: str, zone: str) -> exp.Expr:
    """Formats an instant by the pattern, in the zone."""
    pieces = list(_pieces(pattern))
    if not any(letters for _, letters in pieces):
        return call("strftime", to_local(moment, zone), text("".join(plain for plain, _ in pieces)))
    return once(moment, lambda instant: _joined(pieces, instant, zone))


def parse_time(written: exp.Expr, pattern: str) -> tuple[exp.Expr, bool]:
    """Parses a text by the pattern. True: the pattern has an offset and the time is an instant; else it is local."""
    parts: list[str] = []
    pieces = list(_pieces(pattern))
    offsets = [place for place, (_, letters) in enumerate(pieces) if letters in _OFFSETS]
    has_offset = bool(offsets)
    for plain, letters in pieces:
        parts.append("%z" if letters in _OFFSETS else "%n" if letters else plain)
    form = "".join(parts)
    if has_offset:
        written = _with_digits(written, offsets[0], len(pieces))
    if not any(year in form for year in _YEARS):
        form, written = f"%Y {form}", call("concat", text("1970 "), written)
    moment = call("strptime", written, text(form))
    return (call("timezone", text("UTC"), moment) if has_offset else moment), has_offset


def _with_digits(written: exp.Expr, place: int, count: int) -> exp.Expr:
    """A text whose offset Z, which strptime does not parse, is replaced by digits."""
    before = "^()" if place == 0 else r"([^A-Za-z])"
    after = "$" if place == count - 1 and place > 0 else ""
    return call("regexp_replace", written, text(f"{before}[zZ]{after}"), text(r"\1+0000"))


def split_zone(pattern: str) -> tuple[str, str]:
    """Splits `yyyy-MM-dd tz(Asia/Tokyo)` into pattern and zone; UTC without a zone."""
    match = _ZONE.fullmatch(pattern.strip())
    return (match["pattern"], match["zone"]) if match else (pattern, "UTC")


def _pieces(pattern: str) -> Iterator[tuple[str, str]]:
    """The pattern as pairs: (strftime's format, "") or ("", letters that strftime does not support).

    QueryError (700) for unknown letters.
    """
    for match in _TOKEN.finditer(pattern):
        token = match.group()
        if match.group(1) is not None:
            yield (match.group(1).replace("''", "'") or "'").replace("%", "%%"), ""
        elif match.group(2) is None:
            yield token.replace("%", "%%"), ""
        elif token in _LETTERS:
            yield _LETTERS[token], ""
        elif token in _OFFSETS or (set(token) == {"S"} and len(token) <= _DIGITS_MAX):
            yield "", token
        else:
            supported = " ".join(dict.fromkeys([*_LETTERS, *_OFFSETS, "S"]))
            message = f"Date pattern '{pattern}': the letters '{token}' are not supported; known are {supported}."
            raise QueryError(message, pinot_code=VALIDATION)


def _joined(pieces: Sequence[tuple[str, str]], instant: exp.Expr, zone: str) -> exp.Expr:
    parts: list[exp.Expr] = []
    plain = ""
    for words, letters in (*pieces, ("", "end")):
        plain += words
        if letters and plain:
            parts.append(call("strftime", to_local(instant.copy(), zone), text(plain)))
            plain = ""
        if letters and letters != "end":
            parts.append(_offset(instant, letters, zone) if letters in _OFFSETS else _fraction(instant, len(letters)))
    joined: exp.Expr = parts[0]
    for part in parts[1:]:  # a null stays a null, while concat() would skip it
        joined = exp.DPipe(this=joined, expression=part)
    return exp.Paren(this=joined)


def _fraction(instant: exp.Expr, digits: int) -> exp.Expr:
    """The first digits of the fraction of the second."""
    return call("left", call("strftime", instant.copy(), text("%n")), number(digits))


def _offset(instant: exp.Expr, letters: str, zone: str) -> exp.Expr:
    """The zone's offset at an instant, as Java writes it."""
    colon, utc = _OFFSETS[letters]
    if is_utc(zone):  # depends on the instant, so that a null stays a null
        return exp.Case(
            ifs=[exp.If(this=exp.Not(this=exp.Is(this=instant.copy(), expression=exp.Null())), true=text(utc))]
        )
    local = to_millis(to_local(instant.copy(), zone))
    minutes = exp.Paren(
        this=exp.IntDiv(
            this=exp.Paren(this=exp.Sub(this=local, expression=to_millis(instant.copy()))), expression=number(60_000)
        )
    )
    sign = exp.Case(
        ifs=[exp.If(this=exp.LT(this=minutes, expression=number(0)), true=text("-"))],
        default=text("+"),
    )
    hours = exp.IntDiv(this=call("abs", minutes.copy()), expression=number(60))
    rest = exp.Mod(this=call("abs", minutes.copy()), expression=number(60))
    parts = [sign, _two_digits(hours), *([text(":")] if colon else []), _two_digits(rest)]
    written: exp.Expr = call("concat", *parts)
    if utc == "Z":
        zero = exp.EQ(this=minutes.copy(), expression=number(0))
        return exp.Case(ifs=[exp.If(this=zero, true=text("Z"))], default=written)
    return written


def _two_digits(value: exp.Expr) -> exp.Expr:
    return call("lpad", cast(exp.Paren(this=value), "VARCHAR"), number(2), text("0"))
