"""Regular expressions of users, matched by RE2 in linear time and without the interpreter's lock.

RE2 supports Java's syntax except look-around, back references, and possessive or atomic groups.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import re2

_LENGTH_MAX = 4096


class PatternError(ValueError):
    """The error for an invalid pattern; the message says why."""


class PatternMatch(Protocol):
    """A match of a pattern."""

    def groups(self, default: str | None = None) -> tuple[str | None, ...]:
        """The text of each group, `default` for a group that did not take part."""


class UserPattern(Protocol):
    """A compiled pattern."""

    def fullmatch(self, text: str) -> PatternMatch | None:
        """The match of the whole text; None when there is none."""


@lru_cache(maxsize=256)
def compile_user_pattern(text: str, *, dot_matches_newline: bool = False) -> UserPattern:
    """The compiled pattern. PatternError for a pattern that RE2 does not support."""
    if len(text) > _LENGTH_MAX:
        raise PatternError(f"it is longer than {_LENGTH_MAX} characters")
    options = re2.Options()
    options.dot_nl, options.log_errors = dot_matches_newline, False
    try:
        compiled: UserPattern = re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        words = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        hint = "; look-around and references back are not read" if "perl operator" in words else ""
        raise PatternError(f"{words}{hint}") from error
    return compiled
