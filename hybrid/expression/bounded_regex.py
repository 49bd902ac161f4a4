"""Regular expressions in bounded time: matched by Python's `re`, or by RE2 where `re` may take long.

A call of RE2 takes 6 microseconds, a call of `re` 0.3. So `re` matches where its number of steps is bounded: all texts
for patterns of linear cost, short texts for others. Both give the same values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Protocol

from hybrid.expression.regex_cost import Cost, matching_cost
from hybrid.expression.regex_re2 import LinearPattern, NotTranslated

# The most steps that `re` may take for a value: less than a millisecond.
STEPS_MAX = 40_000
# The most steps for each character of a text of any length.
_LINEAR_MAX = 1000


class Use(Enum):
    """How a pattern is used: whether it matches, its first match, or all matches."""

    FITS = auto()
    FIRST = auto()
    ALL = auto()


class Match(Protocol):
    """A match of a pattern."""

    def __getitem__(self, group: int | str, /) -> str | None:
        """The text of a group, None for a group that did not take part; IndexError for a missing group."""


class BoundedPattern:
    """A compiled pattern. `groups` is the number of its groups."""

    def __init__(self, text: str, flags: int, use: Use) -> None:
        """ValueError for a pattern that cannot be matched in bounded time."""
        self._re = re.compile(text, flags)
        self.groups = self._re.groups
        cost = matching_cost(text, flags)
        self._length_max: int | None = None
        if not is_linear(cost):
            self._length_max = cost.length_within(STEPS_MAX)
            self._linear = _linear(text, flags, use, cost)

    def fits(self, text: str) -> bool:
        """Whether some part of the text matches."""
        if self._length_max is None or len(text) <= self._length_max:
            return self._re.search(text) is not None
        return self._linear.fits(text)

    def search(self, text: str) -> Match | None:
        """The first match."""
        if self._length_max is None or len(text) <= self._length_max:
            return self._re.search(text)
        return self._linear.search(text)

    def pieces(self, text: str, begin: int = 0) -> Iterator[tuple[str, Match | None]]:
        """Every match with the text between it and the previous match; at the end the rest of the text, and None.

        Matches are searched from the character `begin` on.
        """
        if self._length_max is None or len(text) <= self._length_max:
            return _pieces(self._re, text, begin)
        return self._linear.pieces(text, begin)


def is_linear(cost: Cost) -> bool:
    """Whether a backtracking engine is fast for every text."""
    return cost.factors is not None and len(cost.factors) <= 2 and sum(cost.factors) <= _LINEAR_MAX


def _pieces(pattern: re.Pattern[str], text: str, begin: int) -> Iterator[tuple[str, Match | None]]:
    last = 0
    for match in pattern.finditer(text, begin):
        yield text[last : match.start()], match
        last = match.end()
    yield text[last:], None


def _linear(text: str, flags: int, use: Use, cost: Cost) -> LinearPattern:
    try:
        pattern = LinearPattern(text, flags, values=use is not Use.FITS)
        if use is Use.ALL:
            pattern.check_replaces()
    except NotTranslated as error:
        raise ValueError(
            f"the regular expression {text!r} may take very long: {repeats_of(cost)}, and RE2, which is always fast, "
            f"does not match it as it is meant: {error}. Bound its repeats, as in {{0,64}}, or write it without that"
        ) from error
    return pattern


def repeats_of(cost: Cost) -> str:
    """Why a pattern may take long, for messages."""
    if cost.factors is None:
        return "a repeat stands in a repeat, or beside one that takes the same characters"
    if len(cost.factors) > 2:
        return "its repeats can divide a text in many ways"
    return "it has large repeats"
