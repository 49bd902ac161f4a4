"""Patterns of row expressions for Spark, which matches them with Java's engine: it backtracks.

There is no other engine in Spark, so a pattern that may take long is refused by name, and LIKE is written in a way
that never tries a place twice.
"""

from __future__ import annotations

import re

from hybrid.errors import QueryError
from hybrid.spec.bounded_regex import repeats_of
from hybrid.spec.regex_cost import matching_cost

_JAVA = re.compile(
    r"(?P<named>\(\?<(?=[A-Za-z]))|(?P<end>\\z)|(?P<property>\\[pP](?:\{[^{}]*\}|[A-Za-z]))|\\.|&&|.", re.DOTALL
)
# Ways in which a pattern without unbounded repeats may match.
_TIMES_MAX = 100_000
_LIKE_PART = re.compile(r"\\[_%]|.", re.DOTALL)


def check_java_pattern(pattern: str, *, ignore_case: bool = False) -> None:
    """QueryError (700) for a pattern that Java's engine may need very long for, with some text that a row may hold.

    What is quadratic in the text is let through: a search for `[a-z]+@` is.
    """
    flags = (re.IGNORECASE if ignore_case else 0) | (re.ASCII if pattern.isascii() else 0)
    try:
        text = _in_python(pattern)
        re.compile(text, flags)
        cost = matching_cost(text, flags)
    except (re.error, OverflowError, RecursionError, ValueError) as error:
        raise QueryError(f"The regular expression '{pattern}' cannot be read: {error}.", pinot_code=700) from error
    if cost.factors is None or len(cost.factors) > 3 or sum(cost.factors) > _TIMES_MAX:
        raise QueryError(
            f"The regular expression '{pattern}' may take very long for some texts: {repeats_of(cost)}. Bound its "
            "repeats, as in {0,64}, or have them take no character that what follows begins with, as in [^,]*,.",
            pinot_code=700,
        )


def like_regex(pattern: str) -> str | None:
    """The pattern of LIKE as a regular expression for texts in lower case; None where Spark's own LIKE is fast.

    Java tries every way to divide a text between several `%`. Each part is found once here, behind the one before it.
    """
    parts = _LIKE_PART.findall(pattern)
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == "%":
            runs.append([])
        else:
            runs[-1].append(part)
    if len(runs) == 1:
        return None
    first, last, middle = runs[0], runs[-1], [run for run in runs[1:-1] if run]
    if len(middle) + bool(last) < 2:
        return None
    found = "".join(f"(?>.*?{_run(run)})" for run in middle)
    return rf"(?s)^{_run(first)}{found}.*{_run(last)}\z"


def _run(run: list[str]) -> str:
    """A part between two `%`, whose letters alone are changed by lower()."""
    return "".join("." if part == "_" else _plain(part[-1]) for part in run)


def _plain(character: str) -> str:
    return f"\\{character}" if character.isascii() and not character.isalnum() else character


def _in_python(pattern: str) -> str:
    r"""The pattern in Python's syntax. A class by name (`\p{L}`) becomes one of all characters: it takes no less."""
    found, in_class = [], False
    for match in _JAVA.finditer(pattern):
        part = match[0]
        if match["named"]:
            part = "(?P<"
        elif match["end"]:
            part = r"\Z"
        elif match["property"]:
            part = r"\s\S" if in_class else r"[\s\S]"
        elif in_class and part in {"[", "&&"}:
            raise ValueError(f"write '\\{part[0]}' in a class: Java takes '{part}' for more than a character")
        elif part in {"[", "]"}:
            in_class = part == "["
        found.append(part)
    return "".join(found)
