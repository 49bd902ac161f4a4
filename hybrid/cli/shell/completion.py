"""Completion in the shell: tables behind FROM, columns of the statement's tables, functions, keywords, dot commands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hybrid.cli.output import FORMATS
from hybrid.cli.shell.commands import COMMANDS, SWITCHES, find_command
from hybrid.cli.shell.lexer import Lexeme, LexemeKind, lexemes
from hybrid.cli.shell.names import CatalogNames
from hybrid.cli.shell.statements import split_inputs
from hybrid.sql.tokens import VIRTUAL
from hybrid.sql.vocabulary import KEYWORDS, SET_OPTIONS, function_names, spelled_name

_TABLE_KEYWORDS = frozenset({"FROM", "JOIN"})
_COMMAND = re.compile(r"\s*(?:--[^\n]*\n\s*)*[.\\](?P<word>[\w?-]*)(?P<rest>\s.*)?", re.DOTALL)


@dataclass(frozen=True)
class TableMentioned:
    """A table in FROM, and the name by which its columns are qualified."""

    table: str
    alias: str


class ShellCompleter(Completer):
    """Completes statements and dot commands from the names of a catalog."""

    def __init__(self, names: CatalogNames) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """The completions at the cursor."""
        before = split_inputs(document.text_before_cursor)[1]
        command = _COMMAND.fullmatch(before)
        if command is not None:
            yield from self._of_command(command["word"], command["rest"])
        else:
            yield from self._of_statement(before, document.text_after_cursor)

    def _of_command(self, word: str, rest: str | None) -> Iterator[Completion]:
        if rest is None:
            for command in COMMANDS.values():
                if command.name.startswith(word.lower()):
                    yield Completion(command.name, -len(word), display=f".{command.name}", display_meta=command.help)
            return
        argument = rest.lstrip()
        known = find_command(word)
        name = known.name if known is not None else ""
        if name == "explain":
            yield from self._of_statement(argument, "")
        elif name in ("read", "output"):
            yield from _files(argument)
        else:
            yield from _matching(self._arguments(name), argument)

    def _arguments(self, name: str) -> Sequence[str]:
        match name:
            case "schema" | "tables":
                return self._names.whole_tables()
            case "format":
                return FORMATS
            case "timing" | "pager" | "wide" | "revision":
                return SWITCHES
            case "help":
                return tuple(COMMANDS)
            case "as-of":
                return ("now",)
        return ()

    def _of_statement(self, before: str, after: str) -> Iterator[Completion]:
        parts = list(lexemes(before))
        word = parts.pop() if parts and parts[-1].kind in (LexemeKind.WORD, LexemeKind.NAME) else None
        is_behind_name = word is not None and word.kind is LexemeKind.NAME and word.closed
        if is_behind_name or _is_unfinished(parts):
            return
        written = word.text if word is not None else ""
        before_word = [part for part in parts if part.has_meaning]
        mentioned = self._tables_in([*parts, *lexemes(_rest_of(after))])
        if before_word and before_word[-1].text == "." and len(before_word) > 1:
            yield from _matching(self._qualified(before_word[-2].name, mentioned), written, is_identifier=True)
            return
        previous = before_word[-1].text.upper() if before_word else ""
        if previous == "SET" and len(before_word) == 1:
            yield from _matching(SET_OPTIONS, written)
        elif _expects_table(before_word):
            yield from _matching(self._names.tables(), written, is_identifier=True)
        elif before_word or written:
            yield from self._of_expression(written, mentioned)

    def _of_expression(self, written: str, mentioned: Sequence[TableMentioned]) -> Iterator[Completion]:
        columns = self._names.columns([mention.table for mention in mentioned])
        if written.startswith("$"):
            yield from _matching(VIRTUAL, written)
            return
        yield from _matching(columns, written, is_identifier=True, meta="column")
        aliases = [mention.alias for mention in mentioned]
        yield from _matching(dict.fromkeys([*aliases, *self._names.tables()]), written, is_identifier=True)
        if written and not written.startswith('"'):  # else they would hide the columns
            yield from _matching(_in_case_of(written, sorted(KEYWORDS)), written)
            yield from _matching(function_names(), written, suffix="(", meta="function")

    def _qualified(self, qualifier: str, mentioned: Sequence[TableMentioned]) -> list[str]:
        found = [mention.table for mention in mentioned if mention.alias.lower() == qualifier.lower()]
        table = found[0] if found else self._names.table_of(qualifier)
        return self._names.columns([table]) if table is not None else []

    def _tables_in(self, parts: Sequence[Lexeme]) -> list[TableMentioned]:
        """The tables in the FROM clauses of a statement."""
        found: list[TableMentioned] = []
        words = [part for part in parts if part.has_meaning]
        for place, part in enumerate(words):
            if part.kind not in (LexemeKind.WORD, LexemeKind.NAME) or not _expects_table(words[:place]):
                continue
            table = self._names.table_of(part.name)
            if table is not None:
                found.append(TableMentioned(table, _alias_behind(words[place + 1 :]) or part.name))
        return found


def _expects_table(before: Sequence[Lexeme]) -> bool:
    """Whether a table's name follows: behind FROM or JOIN, or behind a comma in the list of FROM."""
    if not before:
        return False
    last = before[-1]
    if _keyword(last) in _TABLE_KEYWORDS:
        return True
    if last.text != ",":
        return False
    depth = 0
    for part in reversed(before):
        depth += (part.text == ")") - (part.text == "(")
        if depth < 0:
            return False
        keyword = _keyword(part)
        if not depth and keyword is not None and keyword not in ("AS",):
            return keyword in _TABLE_KEYWORDS
    return False


def _alias_behind(words: Sequence[Lexeme]) -> str | None:
    rest = list(words[:2])
    if rest and _keyword(rest[0]) == "AS":
        rest.pop(0)
    if rest and rest[0].kind in (LexemeKind.WORD, LexemeKind.NAME) and _keyword(rest[0]) is None:
        return rest[0].name
    return None


def _keyword(part: Lexeme) -> str | None:
    upper = part.text.upper()
    return upper if part.kind is LexemeKind.WORD and upper in KEYWORDS else None


def _is_unfinished(parts: Sequence[Lexeme]) -> bool:
    """Whether the cursor is inside a text or a comment."""
    last = parts[-1] if parts else None
    return last is not None and (not last.closed or last.text.startswith("--"))


def _rest_of(after: str) -> str:
    """The rest of the statement behind the cursor."""
    for part in lexemes(after):
        if part.text == ";":
            return after[: part.start]
    return after


def _matching(
    names: Iterable[str], written: str, *, is_identifier: bool = False, suffix: str = "", meta: str = ""
) -> Iterator[Completion]:
    """The names that begin as what was written, in any case."""
    prefix = written.lstrip('"').lower()
    for name in names:
        if not name.lower().startswith(prefix):
            continue
        spelled = spelled_name(name) if is_identifier else name
        if is_identifier and written.startswith('"'):
            spelled = f'"{name}"'
        yield Completion(spelled if spelled != name else f"{name}{suffix}", -len(written), display_meta=meta)


def _in_case_of(written: str, words: Iterable[str]) -> Iterable[str]:
    return (word.lower() for word in words) if written.islower() else words


def _files(written: str) -> Iterator[Completion]:
    """The files and folders that a path may become."""
    folder, name = os.path.split(written)
    try:
        entries = sorted(os.scandir(os.path.expanduser(folder) or "."), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(name) and (name.startswith(".") or not entry.name.startswith(".")):
            yield Completion(f"{entry.name}{os.sep if entry.is_dir() else ''}", -len(name))
