"""Splits the text of a shell into statements, which end with `;`, and dot commands, which are lines of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from hybrid.cli.shell.lexer import Lexeme, LexemeKind, lexemes

_BARE_WORD = re.compile(r"\s*(exit|quit|help)\s*;?[^\S\n]*(?:\n|\Z)", re.IGNORECASE)


@dataclass(frozen=True)
class ShellInput:
    r"""One thing to do: an SQL statement without its `;`, or a dot command without its dot.

    A command behind a statement has it as `statement`: `select 1 \watch 2`.
    """

    text: str
    is_command: bool = False
    statement: str | None = None


def split_inputs(text: str, *, at_end: bool = False) -> tuple[list[ShellInput], str]:
    """The complete inputs at the start of a text, and the rest, which is empty where nothing was begun.

    `at_end`: nothing follows, so the rest is a statement too.
    """
    found: list[ShellInput] = []
    position = 0
    while position < len(text):
        step = _next_input(text, position, at_end)
        if step is None:
            break
        inputs, position = step
        found += inputs
    rest = text[position:]
    return found, rest if _has_begun(rest) else ""


def read_inputs(lines: Iterable[str]) -> Iterator[ShellInput]:
    """The inputs of a file or a pipe, each as soon as its last line is there."""
    rest = ""
    for line in lines:
        rest += line
        if ";" in line or "\\" in line or line.lstrip().startswith(".") or _BARE_WORD.match(rest):
            inputs, rest = split_inputs(rest)
            yield from inputs
    yield from split_inputs(rest, at_end=True)[0]


@lru_cache(maxsize=4)  # asked several times for each key
def is_complete(text: str) -> bool:
    """Whether Enter runs the text: nothing in it is unfinished."""
    return not split_inputs(f"{text}\n")[1]


def without_comments(text: str) -> str:
    """The text without its comments."""
    return "".join(part.text for part in lexemes(text) if part.kind is not LexemeKind.COMMENT).strip()


def _next_input(text: str, start: int, at_end: bool) -> tuple[list[ShellInput], int] | None:
    """The input that begins at a position, and the position behind it; None if it is not complete."""
    bare = _BARE_WORD.match(text, start)
    if bare is not None:
        return [ShellInput(bare[1].lower(), is_command=True)], bare.end()
    has_begun = False
    for lexeme in lexemes(text, start):
        place = lexeme.start
        if lexeme.kind is LexemeKind.SIGN:
            if _begins_command(lexeme, text, place, has_begun):
                return _command(text, start, place, has_begun, at_end)
            if lexeme.text == ";":
                statement = text[start:place].strip()
                return [ShellInput(statement)] if has_begun else [], place + 1
        has_begun = has_begun or lexeme.has_meaning
    if not at_end or not has_begun:
        return None
    return [ShellInput(text[start:].strip())], len(text)


def _begins_command(lexeme: Lexeme, text: str, place: int, has_begun: bool) -> bool:
    if lexeme.text == "\\":  # SQL has none outside of quotes
        return True
    return lexeme.text == "." and not has_begun and text[place + 1 : place + 2].isalpha()


def _command(text: str, start: int, place: int, has_begun: bool, at_end: bool) -> tuple[list[ShellInput], int] | None:
    """The command whose sign is at a place: to the end of its line."""
    end = text.find("\n", place)
    if end < 0 and not at_end:
        return None
    line = text[place + 1 : end if end >= 0 else len(text)].strip()
    statement = text[start:place].strip() if has_begun else None
    return [ShellInput(line.rstrip(";").rstrip() or "help", True, statement)], len(text) if end < 0 else end + 1


def _has_begun(text: str) -> bool:
    """Whether there is more than spaces and complete comments."""
    return any(lexeme.has_meaning or not lexeme.closed for lexeme in lexemes(text))
