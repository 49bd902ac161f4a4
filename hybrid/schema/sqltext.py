"""A tokenizer for SQL text, and a cursor over its tokens whose errors say `line 12, column 5`.

Comments (`-- ...`, `/* ... */`) are skipped. Quotes are doubled inside of quotes: `'it''s'`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from hybrid.errors import SpecError


class Kind(StrEnum):
    """The kind of a token. A single END follows the last token."""

    WORD = "word"
    QUOTED = "name in quotes"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


# An unclosed quote or comment matches none of the closed forms, and is recognised by its first character.
_TOKEN = re.compile(
    r"(?P<skip>\s+|--[^\n]*|/\*.*?\*/)"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|'(?P<string>(?:[^']|'')*+)'"
    r'|"(?P<quoted>(?:[^"]|"")*+)"'
    r"|(?P<open>'|\"|/\*)"
    r"|(?P<symbol>::|.)",
    re.DOTALL,
)
_OPEN = {"'": "this string has no closing '", '"': 'this name has no closing "', "/*": "this comment has no closing */"}


@dataclass(frozen=True)
class Token:
    """A token: `text` without quotes and doubling, `raw` as it is written, from offset `start`."""

    kind: Kind
    text: str
    raw: str
    start: int

    @property
    def shown(self) -> str:
        """The token for a message, at most 60 characters."""
        if self.kind is Kind.END:
            return "the end of the text"
        text = self.raw if self.kind in (Kind.STRING, Kind.QUOTED) else f"'{self.raw}'"
        return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True)
class SqlText:
    """The text of the file `source`."""

    text: str
    source: str

    def place(self, offset: int) -> str:
        """The position of the character at `offset`: `line 12, column 5`, both counted from 1."""
        line = self.text.count("\n", 0, offset) + 1
        return f"line {line}, column {offset - self.text.rfind(chr(10), 0, offset)}"

    def fail(self, offset: int, message: str, *, hint: str | None = None) -> NoReturn:
        """Raise a SpecError that points at `offset`."""
        raise SpecError.at(self.source, self.place(offset), message, hint=hint)

    def warning(self, offset: int, message: str) -> str:
        """A warning in the common form: file, position, message."""
        return f"{self.source}: {self.place(offset)}: {message}"

    def tokens(self) -> Iterator[Token]:
        """All tokens and an END. SpecError where a string, a name or a comment is not closed."""
        for match in _TOKEN.finditer(self.text):
            kind, start = match.lastgroup, match.start()
            if kind == "open":
                self.fail(start, f"{_OPEN[match[0]]}.")
            elif kind == "string":
                yield Token(Kind.STRING, match["string"].replace("''", "'"), match[0], start)
            elif kind == "quoted":
                yield Token(Kind.QUOTED, match["quoted"].replace('""', '"'), match[0], start)
            elif kind and kind != "skip":
                yield Token(Kind[kind.upper()], match[0], match[0], start)
        yield Token(Kind.END, "", "", len(self.text))


class Cursor:
    """A cursor over the tokens of a SQL text. Words are compared without regard to case."""

    def __init__(self, sql: SqlText) -> None:
        self.sql = sql
        self._tokens = list(sql.tokens())
        self._next = 0

    @property
    def token(self) -> Token:
        """The next token; END after the last one, any number of times."""
        return self.ahead(0)

    def is_done(self) -> bool:
        """Whether all tokens have been read."""
        return self.token.kind is Kind.END

    def ahead(self, count: int) -> Token:
        """The token `count` places after the next one."""
        return self._tokens[min(self._next + count, len(self._tokens) - 1)]

    def take(self) -> Token:
        """Return the next token and advance."""
        token = self.token
        self._next += 1
        return token

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these words or symbols, in this order. The cursor does not advance."""
        return all(_is(self.ahead(count), word) for count, word in enumerate(words))

    def skip(self, *words: str) -> bool:
        """Advance over these words or symbols if all of them are next; whether they were."""
        matches = self.at(*words)
        self._next += len(words) if matches else 0
        return matches

    @property
    def place(self) -> int:
        """The number of tokens that have been read."""
        return self._next

    def leave(self, place: int, *symbols: str) -> None:
        """Go on at one of these symbols behind a place, outside of parentheses that open behind it, or at the end."""
        self._next, depth = place, 0
        while not self.is_done() and (depth > 0 or not any(map(self.at, symbols))):
            depth += self.at("(") - self.at(")")
            self.take()

    def expect(self, word: str, where: str) -> Token:
        """Read this word or symbol. SpecError, with the token there, when it is missing; `where` says after what."""
        if not self.at(word):
            self.fail(f"'{word}' is missing {where}; here is {self.token.shown}.")
        return self.take()

    def expect_kind(self, kind: Kind, what: str) -> Token:
        """Read a token of this kind. SpecError says that `what` was expected."""
        if self.token.kind is not kind:
            self.fail(f"{self.token.shown} is not {what}.")
        return self.take()

    def name(self, what: str) -> Token:
        """Read the name of `what`: its text is in lower case unless it is quoted."""
        token = self.token
        if token.kind is Kind.WORD:
            self.take()
            return Token(token.kind, token.text.lower(), token.raw, token.start)
        if token.kind is not Kind.QUOTED or not token.text:
            self.fail(f"{token.shown} is not the name of {what}.")
        return self.take()

    def fail(self, message: str, *, hint: str | None = None) -> NoReturn:
        """Raise a SpecError that points at the next token."""
        self.sql.fail(self.token.start, message, hint=hint)

    def warning(self, token: Token, message: str) -> str:
        """A warning that points at `token`."""
        return self.sql.warning(token.start, message)


def _is(token: Token, word: str) -> bool:
    return token.kind in (Kind.WORD, Kind.SYMBOL) and token.text.upper() == word.upper()
