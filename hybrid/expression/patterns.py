"""Regular expressions of expressions, after Pinot's regexp package. Patterns are Python's, which most of Java's are."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from hybrid.expression.arguments import text, whole
from hybrid.expression.constants import constant_text
from hybrid.expression.replacements import replacement_parts
from hybrid.expression.rules import Rule

_LIKE = {"%": ".*", "_": "."}
_CLASSES = re.compile(r"\\[wWdDsSbB]")

Replacement = Callable[[re.Match[str]], str]


def regex(value: object, flags: int = re.ASCII) -> re.Pattern[str]:
    r"""A compiled pattern, whose `\w`, `\d`, `\s` and `\b` are of ASCII, as in Java and in queries.

    ValueError for what Python does not read.
    """
    if "[:" in constant_text(value):
        raise ValueError(f"the regular expression {value!r} has a class like [:alpha:]: write [a-zA-Z]")
    try:
        return re.compile(constant_text(value), flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the regular expression {value!r} cannot be read: {error}") from error


def like(value: object) -> re.Pattern[str]:
    """A pattern of LIKE: `%` is any text, `_` one character; without regard to case, as in Pinot.

    A backslash makes a `%` or `_` behind it plain; before other characters it is plain itself.
    """
    parts = re.findall(r"\\[_%]|.", constant_text(value), re.DOTALL)
    joined = "".join(_LIKE.get(part) or re.escape(part[-1]) for part in parts)
    return re.compile(joined, re.IGNORECASE | re.DOTALL)


def is_like(value: object, pattern: re.Pattern[str]) -> bool:
    """A LIKE b"""
    return pattern.fullmatch(text(value)) is not None


def _matches(value: object, pattern: re.Pattern[str], flags: str = "") -> bool:
    searched = pattern if flags == "c" else _caseless(pattern.pattern)
    return searched.search(text(value)) is not None


@lru_cache(maxsize=256)
def _caseless(pattern: str) -> re.Pattern[str]:
    r"""The pattern without regard to case, of all letters, as in queries and in Pinot 0.11.

    Python folds letters beyond ASCII only where `\w` and its like are of Unicode too: with these it folds ASCII's.
    """
    return re.compile(pattern, re.IGNORECASE | (re.ASCII if _CLASSES.search(pattern) else re.NOFLAG))


def _extract(value: object, pattern: re.Pattern[str], group: object = 0, default: object = "") -> object:
    found, number = pattern.search(text(value)), whole(group)
    return (found[number] or "") if found and 0 <= number <= pattern.groups else default


def _replace(
    value: object, pattern: re.Pattern[str], replacement: Replacement, start: object = 0, nth: object = -1
) -> str:
    """Every occurrence from `start` on, or the `nth` one (from 0) alone."""
    found, begin, wanted = text(value), whole(start), whole(nth)
    if not 0 <= begin <= len(found):
        raise ValueError(f"the text has no character {begin} to start from")
    if wanted < 0:
        return found[:begin] + pattern.sub(replacement, found[begin:])
    for number, match in enumerate(pattern.finditer(found, begin)):
        if number == wanted:
            return found[: match.start()] + replacement(match) + found[match.end() :]
    return found


def _replacement(value: object) -> Replacement:
    parts = list(replacement_parts(constant_text(value)))
    if "$" in re.sub(r"\\.", "", constant_text(value), flags=re.DOTALL) and "$" in parts:
        raise ValueError(f"the replacement {value!r} has a '$' that names no group; a plain one is '\\$'")

    def expand(match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match[_group(part)] or "" for part in parts)

    return expand


def _group(part: int | tuple[str]) -> int | str:
    return part if isinstance(part, int) else part[0]


def _flags(value: object) -> str:
    if constant_text(value).lower() not in {"i", "c", ""}:
        raise ValueError(f"{value!r} is not 'i' (without regard to case) or 'c'")
    return constant_text(value).lower()


RULES: dict[str, Rule] = {
    "regexpLike": Rule(2, 3, _matches, {1: regex, 2: _flags}),
    "like": Rule(2, 2, is_like, {1: like}),
    "regexpExtract": Rule(2, 4, _extract, {1: regex}),
    "regexpReplace": Rule(3, 5, _replace, {1: regex, 2: _replacement}),
}
