"""`Redaction`: texts without the constants of conditions, for records that must not name a person.

A text constant of at least `TELLING_MIN` characters that is no number is masked wherever it is a word. So is a number
of at least `DIGITS_MIN` digits. Others are masked in quotes, and where a column of the condition is compared with them:
behind its name and each masked constant, and in front of an operator with the name. Alone, `7` is a count somewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from mmap import mmap
from typing import Any, AnyStr, Generic
from urllib.parse import quote, quote_plus

from sqlglot.tokenizer_core import Token, TokenType

from hybrid.sql.tokens import tokens_of

TELLING_MIN = 4
DIGITS_MIN = 6
MASK = "?"
# A constant is masked in this many characters behind the name of its column, or behind another masked one.
_NEAR = 80
# The longest list of IN that is read to its end.
_LIST_MAX = 1_000_000
_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.][0-9]+)?")
_LINES = re.compile(rb"[^\n]+")
# The texts of a record of a log, with their quotes.
_RECORD_TEXTS = re.compile(rb'"(?:message|error|statement|client)": ?("(?:[^"\\]|\\.)*")')
# The keys of our documents whose texts people or statements have written. Names and ids stay.
TEXT_KEYS = frozenset((
    "change", "comment", "error", "expect", "failed_checks", "hint", "message", "notes", "outside", "reason", "result",
    "sentence", "sql", "statement", "update", "warnings", "where",
))  # fmt: skip
# Lists of results of expectations: an unnamed expectation has its condition as its name.
_CHECKS = frozenset(("checks", "expectations"))
_NAME = "name"


@dataclass(frozen=True)
class Redaction:
    """The constants to mask, as texts, and the names of the columns that conditions read.

    `digests` are those that plain purges have recorded of the conditions: unsalted, so whoever guesses can try them.
    """

    constants: tuple[str, ...]
    columns: tuple[str, ...]
    digests: frozenset[str] = frozenset()

    @classmethod
    def of_conditions(cls, conditions: Iterable[tuple[str, Iterable[str]]]) -> Redaction:
        """What to mask of conditions, each with the columns that it reads."""
        constants: dict[str, None] = {}
        names: dict[str, None] = {}
        digests: set[str] = set()
        for text, reads in conditions:
            digests.add(plain_digest(text))
            constants |= dict.fromkeys(constants_of(text))
            names |= dict.fromkeys(reads)
        return cls(tuple(constants), tuple(names), frozenset(digests))

    def of(self, text: str) -> str:
        """The text with `?` for each constant."""
        for start, end in reversed(list(_merged(self._in_text.spans(text)))):
            text = f"{text[:start]}{MASK}{text[end:]}"
        return text

    def document(self, value: Any, key: str = "") -> Any:
        """A JSON value whose free texts have no constant; other texts stay as they are."""
        match value:
            case str():
                if value in self.digests:
                    return MASK
                return self.of(value) if key in TEXT_KEYS else value
            case Mapping():
                return {name: self.document(item, _context(name, key)) for name, item in value.items()}
            case list() | tuple():
                return [self.document(item, key) for item in value]
        return value

    def is_in(self, value: Any) -> bool:
        """Whether a JSON value has a constant anywhere, also where `document` leaves it."""
        return bool(self.spans(json.dumps(value, default=str).encode()))

    def spans(self, data: bytes | mmap) -> list[tuple[int, int]]:
        """[start, end) of each constant in the bytes of a text, also where it is escaped; in order, none overlaps."""
        return list(_merged(self._in_bytes.spans(data)))

    def log_spans(self, data: bytes | mmap) -> list[tuple[int, int]]:
        """`spans` in the bytes of a log, line by line.

        Of a record only what people and statements have written counts: its time and its names stay.
        """
        return [span for line in _LINES.finditer(data) for span in self._of_line(line[0], line.start())]

    def _of_line(self, line: bytes, offset: int) -> Iterator[tuple[int, int]]:
        texts = [found.span(1) for found in _RECORD_TEXTS.finditer(line)] if line.startswith(b"{") else []
        for first, last in texts or [(0, len(line))]:  # a line that is no record is all text
            yield from ((offset + first + start, offset + first + end) for start, end in self.spans(line[first:last]))

    @cached_property
    def _in_text(self) -> _Finder[str]:
        forms = dict.fromkeys(form for constant in self.constants for form in _quoted_forms(constant))
        patterns = (re.compile(pattern, re.IGNORECASE) if pattern else None for pattern in self._patterns(forms))
        return _Finder(max(map(len, forms), default=0), *patterns)

    @cached_property
    def _in_bytes(self) -> _Finder[bytes]:
        forms = dict.fromkeys(form for constant in self.constants for form in _escaped_forms(constant))
        patterns = (pattern.encode() if pattern else None for pattern in self._patterns(forms))
        compiled = (re.compile(pattern, re.IGNORECASE) if pattern else None for pattern in patterns)
        return _Finder(max((len(form.encode()) for form in forms), default=0), *compiled)

    def _patterns(self, forms: Iterable[str]) -> tuple[str | None, str | None, str | None, str | None]:
        """The patterns of `_Finder`."""
        longest_first = sorted(forms, key=len, reverse=True)
        every = "|".join(map(re.escape, longest_first))
        telling = "|".join(map(re.escape, filter(_is_telling, longest_first)))
        names = "|".join(map(re.escape, self.columns))
        if not every:
            return None, None, None, None
        url = r"(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt])"  # the end of an escape is no part of a word
        behind = rf"(?:(?<![\w.])|{url})(?:{every})(?![\w]|\.[0-9])"
        alone = [rf"(?<=['\"])(?:{every})(?=\\*['\"])"]
        if telling:
            alone.append(rf"(?:(?<![\w@.-])|{url})(?:{telling})(?![\w@-]|\.\w)")
        if long := "|".join(map(re.escape, filter(_is_long_number, longest_first))):
            alone.append(rf"(?:(?<![\w.])|{url})(?:{long})(?![\w]|\.[0-9])")
        if not names:
            return "|".join(alone), None, None, behind
        space = r"(?:\s|%20|\+)*"
        operator = r"(?:[=<>!]|%3[CDE]|%21)+"
        alone.append(rf'{behind}(?={space}{operator}{space}(?:\w+\.)?(?:\\*"|%22)?(?:{names})(?!\w))')
        listed = rf'(?:\\*"|%22)?{space}(?:not{space})?in{space}(?:\(|%28)'
        return "|".join(alone), rf"(?:(?<![\w])|{url})(?:{names})(?![\w])", listed, behind


@dataclass(frozen=True)
class _Finder(Generic[AnyStr]):
    """The patterns of one kind of text.

    Constants that count alone, columns, the begin of a list behind one, and constants that count behind a column.
    """

    longest: int
    alone: re.Pattern[AnyStr] | None
    names: re.Pattern[AnyStr] | None
    listed: re.Pattern[AnyStr] | None
    every: re.Pattern[AnyStr] | None

    def spans(self, text: Any) -> Iterator[tuple[int, int]]:
        """[start, end) of each constant, in no order."""
        if self.alone is None or self.every is None:
            return
        yield from (found.span() for found in self.alone.finditer(text))
        for name in self.names.finditer(text) if self.names is not None else ():
            yield from self._behind(text, name.end())

    def _behind(self, text: Any, place: int) -> Iterator[tuple[int, int]]:
        """[start, end) of each constant near behind a place, or behind another one, or in the list that begins here."""
        assert self.every is not None and self.listed is not None
        near = place + _NEAR
        if (opened := self.listed.match(text, place)) is not None:
            near = max(near, _end_of_list(text, opened.end()))
        # The text goes on behind the window, so that no part of a longer word counts.
        while (found := self.every.search(text, place, near + self.longest + 2)) is not None and found.start() < near:
            yield found.span()
            place, near = found.end(), max(near, found.end() + _NEAR)


def _end_of_list(text: Any, start: int) -> int:
    """Where the list that is open at `start` is closed; `start` for one that is too long, or not closed."""
    closing = (")", "%29") if isinstance(text, str) else (b")", b"%29")
    ends = [end for end in (text.find(mark, start, start + _LIST_MAX) for mark in closing) if end >= 0]
    return min(ends, default=start)


def _merged(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Spans in order, overlapping ones as one."""
    last: tuple[int, int] | None = None
    for start, end in sorted(spans):
        if last is not None and start < last[1]:
            last = last[0], max(last[1], end)
            continue
        if last is not None:
            yield last
        last = start, end
    if last is not None:
        yield last


def plain_digest(condition: str) -> str:
    """The digest by which plain purges record a condition, as it was written."""
    return hashlib.sha256(condition.encode()).hexdigest()


def constants_of(condition: str) -> tuple[str, ...]:
    """The constants of a condition as texts, each once. QueryError for a text that cannot be read."""
    texts = (token.text for token in tokens_of(condition) if _is_constant(token))
    return tuple(dict.fromkeys(text for text in texts if text.strip()))


def without_constants(condition: str) -> str:
    """The condition with `?` for each constant, and without comments. QueryError for a text that cannot be read."""
    return " ".join(MASK if _is_constant(token) else _written(token) for token in tokens_of(condition))


def _context(name: str, key: str) -> str:
    """The key that decides over the texts below `name`, whose own mapping is below `key`."""
    if name == _NAME and key in _CHECKS:
        return "sentence"
    return name if name in TEXT_KEYS or name in _CHECKS else key


def _is_constant(token: Token) -> bool:
    return token.token_type is TokenType.NUMBER or token.token_type.name.endswith("STRING")


def _written(token: Token) -> str:
    return f'"{token.text}"' if token.token_type is TokenType.IDENTIFIER else token.text


def _is_telling(constant: str) -> bool:
    return len(constant) >= TELLING_MIN and not _NUMBER.fullmatch(constant)


def _is_long_number(constant: str) -> bool:
    return bool(_NUMBER.fullmatch(constant)) and sum(map(str.isdigit, constant)) >= DIGITS_MIN


def _quoted_forms(constant: str) -> tuple[str, ...]:
    """A constant as texts write it: plain, and in a quoted text of SQL."""
    return constant, constant.replace("'", "''")


def _escaped_forms(constant: str) -> Iterator[str]:
    """A constant as bytes of logs hold it: plain, escaped in JSON once and twice, and in a URL."""
    for form in _quoted_forms(constant):
        yield form
        for ascii_only in (True, False):
            once = json.dumps(form, ensure_ascii=ascii_only)[1:-1]
            yield once
            yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    yield quote(constant)
    yield quote_plus(constant)
