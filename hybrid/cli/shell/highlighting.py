"""Colours of statements while they are typed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from hybrid.cli.shell.lexer import Lexeme, LexemeKind, lexemes
from hybrid.sql.vocabulary import KEYWORDS

_CLASSES = {
    LexemeKind.STRING: "class:sql.string",
    LexemeKind.COMMENT: "class:sql.comment",
    LexemeKind.NUMBER: "class:sql.number",
    LexemeKind.NAME: "class:sql.name",
}


def shell_style() -> Style:
    """The colours; none where `NO_COLOR` is set."""
    if os.environ.get("NO_COLOR"):
        return Style([])
    return Style.from_dict({
        "prompt": "bold",
        "sql.keyword": "bold ansiblue",
        "sql.function": "ansicyan",
        "sql.string": "ansigreen",
        "sql.comment": "ansibrightblack",
        "sql.number": "ansimagenta",
        "sql.name": "ansigreen",
    })  # fmt: skip


class SqlHighlighter(Lexer):
    """Styles keywords, calls, texts, numbers and comments."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """The styled parts of each line of a document."""
        lines: list[StyleAndTextTuples] = [[]]
        for style, text in _styled(document.text):
            first, *more = text.split("\n")
            lines[-1].append((style, first))
            lines += [[(style, line)] for line in more]
        return lambda number: lines[number] if number < len(lines) else []


def _styled(text: str) -> Iterator[tuple[str, str]]:
    parts = list(lexemes(text))
    for part, following in zip(parts, [*parts[1:], None], strict=False):
        yield _class(part, following), part.text


def _class(part: Lexeme, following: Lexeme | None) -> str:
    if part.kind is not LexemeKind.WORD:
        return _CLASSES.get(part.kind, "")
    if part.text.upper() in KEYWORDS:
        return "class:sql.keyword"
    return "class:sql.function" if following is not None and following.text == "(" else ""
