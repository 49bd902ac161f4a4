"""Regular expressions that users write, matched by RE2 in time linear in the text and without the interpreter's lock.

RE2 reads Java's syntax but for look-around, back references, and possessive or atomic groups.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import re2

_LENGTH_MAX = 4096


class PatternError(ValueError):
    """A pattern that cannot be read; the message says why."""


class PatternMatch(Protocol):
    """What a pattern found."""

    def groups(self, default: str | None = None) -> tuple[str | None, ...]:
        """The text of each group, `default` for one that took no part."""


class UserPattern(Protocol):
    """A compiled pattern."""

    def fullmatch(self, text: str) -> PatternMatch | None:
        """The match of the whole text; None when there is none."""


@lru_cache(maxsize=256)
def compile_user_pattern(text: str, *, dot_matches_newline: bool = False) -> UserPattern:
    """The pattern, compiled. PatternError for what RE2 does not read."""
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
