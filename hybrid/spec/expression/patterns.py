"""Regular expressions of expressions, after Pinot's regexp package. Patterns are Python's, which most of Java's are.

Texts are anybody's: no pattern takes long for any of them, and one that could is refused with its expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import groupby

from hybrid.spec.bounded_regex import BoundedPattern, Match, Use
from hybrid.spec.expression.arguments import text, whole
from hybrid.spec.expression.constants import words
from hybrid.spec.expression.rules import Rule
from hybrid.spec.replacements import replacement_parts

_LIKE = {"_": "."}
_CLASSES = re.compile(r"\\[wWdDsSbB]")

Replacement = Callable[[Match], str]


def regex(value: object, flags: int = re.ASCII, use: Use = Use.FITS) -> BoundedPattern:
    r"""A compiled pattern, whose `\w`, `\d`, `\s` and `\b` are of ASCII, as in Java and in queries.

    ValueError for what Python does not read, or what neither it nor RE2 surely matches in a moment.
    """
    if "[:" in words(value):
        raise ValueError(f"the regular expression {value!r} has a class like [:alpha:]: write [a-zA-Z]")
    try:
        return BoundedPattern(words(value), flags, use)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the regular expression {value!r} cannot be read: {error}") from error


def regex_first(value: object) -> BoundedPattern:
    """As `regex`, for what is found first."""
    return regex(value, use=Use.FIRST)


def regex_all(value: object) -> BoundedPattern:
    """As `regex`, for all that is found."""
    return regex(value, use=Use.ALL)


class CasedPattern:
    """A pattern that is asked with regard to the case of letters or without it."""

    def __init__(self, value: object) -> None:
        """ValueError as for `regex`."""
        self._cased = regex(value)
        self._caseless = regex(value, _caseless_flags(words(value)))

    def fits(self, text: str, flags: str) -> bool:
        """Whether some part of the text matches: with regard to case when `flags` is `c`."""
        return (self._cased if flags == "c" else self._caseless).fits(text)


def cased_regex(value: object) -> CasedPattern:
    """As `regex`, with and without regard to case."""
    return CasedPattern(value)


class LikePattern:
    r"""A pattern of LIKE: `%` is any text, `_` one character; without regard to case, as in Pinot.

    A backslash makes a `%` or `_` behind it plain; before other characters it is plain itself. Each part between two
    `%` is looked for once, behind the one before it: if it fits anywhere it fits where it is found first.
    """

    def __init__(self, value: object) -> None:
        parts = re.findall(r"\\[_%]|.", words(value), re.DOTALL)
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
            found = part.search(text, place, end)
            if found is None:
                return False
            place = found.end()
        return True


def like(value: object) -> LikePattern:
    """A pattern of LIKE."""
    return LikePattern(value)


def _like_part(parts: Iterable[str]) -> re.Pattern[str]:
    joined = "".join(_LIKE.get(part) or re.escape(part[-1]) for part in parts)
    return re.compile(joined, re.IGNORECASE | re.DOTALL)


def is_like(value: object, pattern: LikePattern) -> bool:
    """A LIKE b"""
    return pattern.fits(text(value))


def _matches(value: object, pattern: CasedPattern, flags: str = "") -> bool:
    return pattern.fits(text(value), flags)


def _caseless_flags(pattern: str) -> int:
    r"""The flags that do not regard the case of all letters, as in queries and in Pinot 0.11.

    Python folds letters beyond ASCII only where `\w` and its like are of Unicode too: with these it folds ASCII's.
    """
    return re.IGNORECASE | (re.ASCII if _CLASSES.search(pattern) else re.NOFLAG)


def _extract(value: object, pattern: BoundedPattern, group: object = 0, default: object = "") -> object:
    found, number = pattern.search(text(value)), whole(group)
    return (found[number] or "") if found and 0 <= number <= pattern.groups else default


def _replace(
    value: object, pattern: BoundedPattern, replacement: Replacement, start: object = 0, nth: object = -1
) -> str:
    """Every occurrence from `start` on, or the `nth` one (from 0) alone."""
    found, begin, wanted = text(value), whole(start), whole(nth)
    if not 0 <= begin <= len(found):
        raise ValueError(f"the text has no character {begin} to start from")
    if wanted < 0:
        kept, pieces = found[:begin], pattern.pieces(found[begin:])
    else:
        kept, pieces = "", pattern.pieces(found, begin)
    parts = [kept]
    for number, (before, match) in enumerate(pieces):
        parts.append(before)
        if match is not None:
            parts.append(replacement(match) if wanted < 0 or wanted == number else match[0] or "")
    return "".join(parts)


def _replacement(value: object) -> Replacement:
    parts = list(replacement_parts(words(value)))
    if "$" in re.sub(r"\\.", "", words(value), flags=re.DOTALL) and "$" in parts:
        raise ValueError(f"the replacement {value!r} has a '$' that names no group; a plain one is '\\$'")

    def expand(match: Match) -> str:
        return "".join(part if isinstance(part, str) else match[_group(part)] or "" for part in parts)

    return expand


def _group(part: int | tuple[str]) -> int | str:
    return part if isinstance(part, int) else part[0]


def _flags(value: object) -> str:
    if words(value).lower() not in {"i", "c", ""}:
        raise ValueError(f"{value!r} is not 'i' (without regard to case) or 'c'")
    return words(value).lower()


RULES: dict[str, Rule] = {
    "regexpLike": Rule(2, 3, _matches, {1: cased_regex, 2: _flags}),
    "like": Rule(2, 2, is_like, {1: like}),
    "regexpExtract": Rule(2, 4, _extract, {1: regex_first}),
    "regexpReplace": Rule(3, 5, _replace, {1: regex_all, 2: _replacement}),
}
