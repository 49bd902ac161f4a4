"""Every command that a message or hint names exists, with the options that it gives: it does not fail by usage."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click

from hybrid.cli.main import hybrid
from tests.docs import hint_list
from tests.docs.pages import ROOT

_COMMAND = re.compile(r"\bhybrid((?: +(?:--?[A-Za-z][\w-]*|[\w<>{}./\"'=*\[\]|@-]+|\.\.\.))+)")
_NOUNS = hybrid.list_commands(click.Context(hybrid))
# In the source of a module, before texts of several lines are put together.
_WRITTEN = re.compile(rf"\bhybrid +(?:(?:{'|'.join(_NOUNS)})\b|[\"'])")
_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")
_PLACE = "{}"


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a module, values in them as `{}`; docstrings are not for users."""
    source = path.read_text(encoding="utf-8")
    if not _WRITTEN.search(source):  # most modules; parsing them all takes seconds
        return
    skipped, constants = set[int](), list[ast.Constant]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant):
            constants.append(node)
        elif isinstance(node, ast.JoinedStr):
            skipped |= {id(value) for value in node.values}
            yield node.lineno, "".join(v.value if isinstance(v, ast.Constant) else _PLACE for v in node.values)
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            skipped |= {id(first.value) for first in node.body[:1] if isinstance(first, ast.Expr)}
    for node in constants:
        if isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def named() -> Iterator[tuple[str, str]]:
    """Where, and the words after `hybrid`, of each command in a text."""
    for path in sorted((ROOT / "hybrid").rglob("*.py")):
        for line, text in texts(path):
            for found in _COMMAND.finditer(text):
                yield f"{path.relative_to(ROOT)}:{line}", found[1].strip()


def test_each_command_is_one() -> None:
    commands = [(where, words) for where, words in named() if words.split()[0] in _NOUNS]
    assert len(commands) > 60
    for where, words in commands:
        check(where, words)


def check(where: str, words: str) -> None:
    """The words after `hybrid` are a command's, with options that it has."""
    command: click.Command = hybrid
    rest = [word.rstrip(".,;:)`'\"") for word in words.split()]
    while isinstance(command, click.Group):
        word = rest.pop(0) if rest else None
        if word is None or not _WORD.fullmatch(word):
            return  # the noun alone
        found = command.get_command(click.Context(command), word)
        assert found is not None, f"{where}: there is no `hybrid ... {word}`"
        command = found
    options = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    given = [word.partition("=")[0] for word in rest if re.fullmatch(r"--?[A-Za-z][\w-]*(?:=.*)?", word)]
    assert not set(given) - options - {"--help", "-h"}, f"{where}: {words}"


def test_the_page_of_hints_is_that_of_the_source() -> None:
    """Every hint is on the page, with its message."""
    page = hint_list.page()
    assert page.count("\n- ") > 300
    assert hint_list.PAGE.read_text(encoding="utf-8") == page, "python -m tests.docs.hint_list writes it"


# Every command takes these, so that they need none.
_GLOBAL = {name for option in hybrid.params for name in option.opts}
_LEFT_OUT = re.compile(r"Leave --[a-z-]+")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_PROGRAM = re.compile(r"\b(?:hybrid|pip install) |^\.output ")


def test_a_hint_names_an_option_with_its_command() -> None:
    """The command stands before it in the hint; what is to be left out stands in the command that failed."""
    alone = []
    for hint in hint_list.hints():
        text = _LEFT_OUT.sub("", hint.hint)
        options = [found for found in _OPTION.finditer(text) if found[0] not in _GLOBAL]
        if options and not _PROGRAM.search(text[: options[0].start()]):
            alone.append(f"{hint.message} -> {hint.hint}")
    assert alone == []
