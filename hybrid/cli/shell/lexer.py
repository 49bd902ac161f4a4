"""Lexemes of SQL text that may be unfinished: for splitting, completion and highlighting.

It reads quotes and comments as `hybrid.schema.dialect` does (a test compares them), and never fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto


class LexemeKind(Enum):
    """What a lexeme is. NAME is an identifier in double quotes; SIGN is any other character."""

    SPACE = auto()
    COMMENT = auto()
    STRING = auto()
    NAME = auto()
    WORD = auto()
    NUMBER = auto()
    SIGN = auto()


@dataclass(frozen=True)
class Lexeme:
    """A part of a text from `start` to before `end`. `closed` is False where a quote or comment has no end."""

    kind: LexemeKind
    text: str
    start: int
    closed: bool = True

    @property
    def end(self) -> int:
        """The position behind it."""
        return self.start + len(self.text)

    @property
    def has_meaning(self) -> bool:
        """Whether it is more than a space or a comment."""
        return self.kind not in (LexemeKind.SPACE, LexemeKind.COMMENT)

    @property
    def name(self) -> str:
        """The identifier that it spells, without its quotes."""
        return self.text.strip('"') if self.kind is LexemeKind.NAME else self.text


_KINDS = {kind.name.lower(): kind for kind in LexemeKind}
_LEXEME = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<comment>--[^\n]*|\{\#.*?(?:\#\}|\Z))
    | (?P<string>[eE]'(?:[^'\\]|\\.|'')*(?:'|\\?\Z) | '[^']*(?:'|\Z))
    | (?P<name>"[^"]*(?:"|\Z))
    | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    | (?P<word>[\w$\#]+)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def lexemes(text: str, position: int = 0) -> Iterator[Lexeme]:
    """The lexemes of a text from a position on, which together are the text."""
    while position < len(text):
        if text.startswith("/*", position):
            found = _block_comment(text, position)
        else:
            match = _LEXEME.match(text, position)
            assert match is not None and match.lastgroup is not None  # a sign is any character
            found = _lexeme(_KINDS[match.lastgroup], match[0], position)
        yield found
        position = found.end


def _lexeme(kind: LexemeKind, text: str, start: int) -> Lexeme:
    if kind is LexemeKind.NAME:
        return Lexeme(kind, text, start, len(text) > 1 and text.endswith('"'))
    if kind is LexemeKind.STRING:
        return Lexeme(kind, text, start, _is_closed_string(text))
    return Lexeme(kind, text, start, not text.startswith("{#") or text.endswith("#}"))


def _is_closed_string(text: str) -> bool:
    body = text.lstrip("eE")[1:]
    if text[0] == "'":
        return body.endswith("'")
    return re.fullmatch(r"(?:[^'\\]|\\.|'')*'", body, re.DOTALL) is not None


def _block_comment(text: str, start: int) -> Lexeme:
    """A comment with the comments nested in it."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return Lexeme(LexemeKind.COMMENT, text[start : edge.end()], start)
    return Lexeme(LexemeKind.COMMENT, text[start:], start, closed=False)
