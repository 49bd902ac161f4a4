"""Reads a statement's text as tokens, and names places in it for errors."""

from __future__ import annotations

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token

from hybrid.errors import PARSE_ERROR, QueryError
from hybrid.schema.dialect import PinotReader

VIRTUAL = ("$segmentName", "$partition", "$offset", "$docId", "$hostName")
_NEAR_CHARS_MAX = 30
# Parsing a statement cannot be interrupted; a list of so many values takes seconds.
_TOKENS_MAX = 50_000


def check_text(sql: str) -> None:
    """QueryError (150) for a text with half of a surrogate pair: JSON can contain one, but no engine accepts it."""
    if sql.isascii():
        return
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        written = sql[error.start].encode("unicode_escape").decode()
        raise QueryError(
            f"The statement holds half of a character ({written}) at position {error.start + 1}.",
            pinot_code=PARSE_ERROR,
            hint="Send it as UTF-8.",
        ) from None


def error_at(sql: str, position: int, message: str, hint: str | None = None) -> QueryError:
    """`message`, then where: line, column (from 1) and the text at `position` (characters from the start)."""
    near = sql[position : position + _NEAR_CHARS_MAX].split("\n")[0].rstrip()
    where = f"near '{near}'" if near else "at the end"
    return QueryError(f"{message} at {place_of(sql, position)}, {where}.", pinot_code=PARSE_ERROR, hint=hint)


def place_of(sql: str, position: int) -> str:
    """A position (characters from the start) as `line 1, column 8`."""
    return f"line {sql.count(chr(10), 0, position) + 1}, column {position - sql.rfind(chr(10), 0, position)}"


def tokens_of(sql: str) -> list[Token]:
    """The tokens of a text. QueryError (150) for a quote that is not closed, and for too many tokens."""
    try:
        tokens: list[Token] = PinotReader().tokenize(sql)
    except TokenError as error:
        position = _unclosed(sql)
        what = "A quote or a comment is not closed" if position is not None else f"This cannot be read ({error})"
        raise error_at(sql, position or 0, what) from None
    if len(tokens) > _TOKENS_MAX:
        raise error_at(sql, tokens[_TOKENS_MAX].start, f"The statement is longer than {_TOKENS_MAX} words")
    return tokens


def _unclosed(sql: str) -> int | None:
    """The position of a quote or comment that is never closed; None without one."""
    position = 0
    while position < len(sql):
        opened = next((mark for mark in ("--", "/*", "'", '"') if sql.startswith(mark, position)), None)
        if opened is None:
            position += 1
            continue
        closing = {"--": "\n", "/*": "*/"}.get(opened, opened)
        end = sql.find(closing, position + len(opened))
        if end < 0:
            return None if opened == "--" else position
        position = end + len(closing)
    return None
