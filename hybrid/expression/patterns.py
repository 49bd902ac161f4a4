"""Regular expressions in transforms and filters, after Pinot's regexp package.

Patterns have Python's syntax, which includes most of Java's. Texts may be hostile: an expression is refused when its
pattern could take long for some text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import groupby

from hybrid.expression.arguments import text, whole
from hybrid.expression.bounded_regex import BoundedPattern, Match, Use
from hybrid.expression.constants import constant_text
from hybrid.expression.replacements import replacement_parts
from hybrid.expression.rules import Rule

_LIKE = {"_": "."}
_CLASSES = re.compile(r"\\[wWdDsSbB]")

Replacement = Callable[[Match], str]


def regex(value: object, flags: int = re.ASCII, use: Use = Use.FITS) -> BoundedPattern:
    r"""A compiled pattern, whose `\w`, `\d`, `\s` and `\b` are ASCII only, as in Java and in queries.

    ValueError for a pattern that Python cannot parse, or that neither `re` nor RE2 matches in bounded time.
    """
    if "[:" in constant_text(value):
        raise ValueError(f"the regular expression {value!r} has a class like [:alpha:]: write [a-zA-Z]")
    try:
        return BoundedPattern(constant_text(value), flags, use)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the regular expression {value!r} cannot be read: {error}") from error


def regex_first(value: object) -> BoundedPattern:
    """As `regex`, for the first match."""
    return regex(value, use=Use.FIRST)


def regex_all(value: object) -> BoundedPattern:
    """As `regex`, for all matches."""
    return regex(value, use=Use.ALL)


class CasedPattern:
    """A pattern that can be matched with or without regard to case."""

    def __init__(self, value: object) -> None:
        """ValueError as for `regex`."""
        self._cased = regex(value)
        self._caseless = regex(value, _caseless_flags(constant_text(value)))

    def fits(self, text: str, flags: str) -> bool:
        """Whether some part of the text matches, with regard to case if `flags` is `c`."""
        return (self._cased if flags == "c" else self._caseless).fits(text)


def cased_regex(value: object) -> CasedPattern:
    """As `regex`, with and without regard to case."""
    return CasedPattern(value)


class LikePattern:
    r"""A pattern of LIKE: `%` is any text, `_` a single character; without regard to case, as in Pinot.

    A backslash before a `%` or `_` escapes it; before other characters it is itself. Each part between two `%` is
    searched once, after the previous part: if there is a match at all, there is one with the first occurrence.
    """

    def __init__(self, value: object) -> None:
        parts = re.findall(r"\\[_%]|.", constant_text(value), re.DOTALL)
        runs = [list(run) for is_any, run in groupby(parts, lambda part: part == "%") if not is_any]
        self._is_whole = "%" not in parts
        first = [] if not parts or parts[0] == "%" else runs.pop(0)
        last = [] if not runs or parts[-1] == "%" else runs.pop()
        self._first, self._last = _like_part(first), _like_part(last)
        self._first_length, self._last_length = len(first), len(last)
        self._middle = [_like_part(run) for run in runs]

    def fits(self, text: str) -> bool:
        """Whether the whole text matches."""
        if self._is_whole:
            return self._first.fullmatch(text) is not None
        place, end = self._first_length, len(text) - self._last_length
        if end < place or not self._first.match(text) or not self._last.match(text, end):
            return False
        for part in self._middle:
            match = part.search(text, place, end)
            if match is None:
                return False
            place = match.end()
        return True


def like(value: object) -> LikePattern:
    """A pattern of LIKE."""
    return LikePattern(value)


def _like_part(parts: Iterable[str]) -> re.Pattern[str]:
    joined = "".join(_LIKE.get(part) or re.escape(part[-1]) for part in parts)
    return re.compile(joined, re.IGNORECASE | re.DOTALL)


def is_like(value: object, pattern: LikePattern) -> bool:
    """The test `a LIKE b`."""
    return pattern.fits(text(value))


def _matches(value: object, pattern: CasedPattern, flags: str = "") -> bool:
    return pattern.fits(text(value), flags)


def _caseless_flags(pattern: str) -> int:
    r"""The flags to ignore the case of all letters, as in queries and in Pinot 0.11.

    Python folds letters beyond ASCII only where `\w` and similar classes are Unicode, too. A pattern with such classes
    therefore folds ASCII letters only.
    """
    return re.IGNORECASE | (re.ASCII if _CLASSES.search(pattern) else re.NOFLAG)


def _extract(value: object, pattern: BoundedPattern, group: object = 0, default: object = "") -> object:
    match, number = pattern.search(text(value)), whole(group)
    return (match[number] or "") if match and 0 <= number <= pattern.groups else default


def _replace(
    value: object, pattern: BoundedPattern, replacement: Replacement, start: object = 0, nth: object = -1
) -> str:
    """The text with every match from `start` on replaced, or only the `nth` match (from 0)."""
    content, begin, occurrence = text(value), whole(start), whole(nth)
    if not 0 <= begin <= len(content):
        raise ValueError(f"the text has no character {begin} to start from")
    if occurrence < 0:
        head, pieces = content[:begin], pattern.pieces(content[begin:])
    else:
        head, pieces = "", pattern.pieces(content, begin)
    parts = [head]
    for number, (before, match) in enumerate(pieces):
        parts.append(before)
        if match is not None:
            parts.append(replacement(match) if occurrence < 0 or occurrence == number else match[0] or "")
    return "".join(parts)


def _replacement(value: object) -> Replacement:
    parts = list(replacement_parts(constant_text(value)))
    if "$" in re.sub(r"\\.", "", constant_text(value), flags=re.DOTALL) and "$" in parts:
        raise ValueError(f"the replacement {value!r} has a '$' that names no group; a plain one is '\\$'")

    def expand(match: Match) -> str:
        return "".join(part if isinstance(part, str) else match[_group(part)] or "" for part in parts)

    return expand


def _group(part: int | tuple[str]) -> int | str:
    return part if isinstance(part, int) else part[0]


def _flags(value: object) -> str:
    if constant_text(value).lower() not in {"i", "c", ""}:
        raise ValueError(f"{value!r} is not 'i' (without regard to case) or 'c'")
    return constant_text(value).lower()


RULES: dict[str, Rule] = {
    "regexpLike": Rule(2, 3, _matches, {1: cased_regex, 2: _flags}),
    "like": Rule(2, 2, is_like, {1: like}),
    "regexpExtract": Rule(2, 4, _extract, {1: regex_first}),
    "regexpReplace": Rule(3, 5, _replace, {1: regex_all, 2: _replacement}),
}
