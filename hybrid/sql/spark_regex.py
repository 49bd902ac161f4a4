"""Patterns of row expressions for Spark, which matches them with Java's backtracking engine.

Spark has no other engine. So a pattern that may take very long is refused, and LIKE becomes a pattern that never tries
a position twice.
"""

from __future__ import annotations

import re

from hybrid.errors import VALIDATION, QueryError
from hybrid.expression.bounded_regex import repeats_of
from hybrid.expression.regex_cost import matching_cost

_JAVA = re.compile(
    r"(?P<named>\(\?<(?=[A-Za-z]))|(?P<end>\\z)|(?P<property>\\[pP](?:\{[^{}]*\}|[A-Za-z]))|\\.|&&|.", re.DOTALL
)
# In how many ways a pattern without unbounded repeats may match.
_TIMES_MAX = 100_000
_WORD = "[0-9A-Za-z_]"
# Parts that RE2 reads as ASCII, outside and inside of a class.
_RE2 = {
    r"\s": (r"[\t\n\f\r ]", r"\t\n\f\r "),
    r"\S": (r"[^\t\n\f\r ]", r"\S"),
    r"\b": (f"(?:(?<!{_WORD})(?={_WORD})|(?<={_WORD})(?!{_WORD}))", r"\b"),
    r"\B": (f"(?:(?<!{_WORD})(?!{_WORD})|(?<={_WORD})(?={_WORD}))", r"\B"),
}
_LIKE_PART = re.compile(r"\\[_%]|.", re.DOTALL)


def check_java_pattern(pattern: str, *, ignore_case: bool = False) -> None:
    """QueryError (700) for a pattern that may take Java's engine very long for some text in a row.

    Cost quadratic in the text is allowed, as of a search for `[a-z]+@`.
    """
    flags = (re.IGNORECASE if ignore_case else 0) | (re.ASCII if pattern.isascii() else 0)
    try:
        text = _in_python(pattern)
        re.compile(text, flags)
        cost = matching_cost(text, flags)
    except (re.error, OverflowError, RecursionError, ValueError) as error:
        raise QueryError(
            f"The regular expression '{pattern}' cannot be read: {error}.", pinot_code=VALIDATION
        ) from error
    if cost.factors is None or len(cost.factors) > 3 or sum(cost.factors) > _TIMES_MAX:
        raise QueryError(
            f"The regular expression '{pattern}' may take very long for some texts: {repeats_of(cost)}. Bound its "
            "repeats, as in {0,64}, or have them take no character that what follows begins with, as in [^,]*,.",
            pinot_code=VALIDATION,
        )


def as_re2_reads(pattern: str) -> str:
    r"""The pattern with the parts that Java reads otherwise than DuckDB's RE2 written out.

    In RE2 `$` is the end of the text, also behind a line end; a dot leaves out line feeds alone; `\s` and `\b` are of
    ASCII.
    """
    translated, in_class, has_lines = [], False, "(?m" in pattern
    for match in _JAVA.finditer(pattern):
        part = match[0]
        if part == "$" and not in_class and not has_lines:
            part = r"\z"
        elif part == "." and not in_class and "(?s" not in pattern:
            part = r"[^\n]"
        elif part in _RE2:
            part = _RE2[part][in_class]
        elif part in {"[", "]"}:
            in_class = part == "["
        translated.append(part)
    return "".join(translated)


def like_regex(pattern: str) -> str | None:
    """The pattern of LIKE as a regular expression for texts in lower case; None where Spark's own LIKE is fast.

    Java tries every way to divide a text between several `%`. Here each part is matched once, behind the previous one.
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
    middle_regex = "".join(f"(?>.*?{_run(run)})" for run in middle)
    return rf"(?s)^{_run(first)}{middle_regex}.*{_run(last)}\z"


def _run(run: list[str]) -> str:
    """The pattern of a part between two `%`; lower() changes nothing in it but letters."""
    return "".join("." if part == "_" else _plain(part[-1]) for part in run)


def _plain(character: str) -> str:
    return f"\\{character}" if character.isascii() and not character.isalnum() else character


def _in_python(pattern: str) -> str:
    r"""The pattern in Python's syntax. A named class (`\p{L}`) becomes one of all characters, which costs no less."""
    translated, in_class = [], False
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
        translated.append(part)
    return "".join(translated)
