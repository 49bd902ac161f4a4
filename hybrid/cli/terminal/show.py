"""Prints results on a terminal: tables, objects, explanations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TextIO

from rich.text import Text

from hybrid.cli.cells import Row, View
from hybrid.cli.terminal.readable import grouped, without_twins
from hybrid.cli.terminal.screen import Screen
from hybrid.cli.terminal.tables import object_lines, table_lines

_COLOURS = {"error": "bold red", "warning": "bold yellow", "hint": "bold green"}
_COMMAND = re.compile(r"\bhybrid [a-z-]")


def show_table(rows: Sequence[Row], view: View, out: TextIO, *, wide: bool = False) -> None:
    """Print a list as a table that fits; with `wide` every column, and no line is broken."""
    screen = Screen(out)
    screen.lines(table_lines(rows, view, screen, wide=wide))


def show_object(row: Row, names: Sequence[str], out: TextIO, *, wide: bool = False) -> None:
    """Print an object: a line per value. Only `wide` has times in milliseconds beside the same times in words."""
    screen = Screen(out)
    if not wide:
        kept = without_twins(row)
        names = [name for name in names if name in kept or name not in row]
    screen.lines(object_lines(row, names, screen, wide=wide))


def show_message(message: str, out: TextIO) -> None:
    """Print a message for people, wrapped between words. A line that names a command stays whole, to be copied."""
    screen = Screen(out)
    for line in grouped(message).split("\n"):
        word, colon, _ = line.partition(": ")
        text = Text(line)
        if colon and word in _COLOURS:
            text.stylize(_COLOURS[word], 0, len(word))
        screen.lines([text] if _COMMAND.search(line) else screen.wrapped(text, screen.width))
    out.flush()


def show_explanation(lines: Sequence[Sequence[str]], out: TextIO) -> None:
    """Print the lines of EXPLAIN as a tree."""
    from hybrid.cli.terminal.explanations import explanation_tree

    Screen(out).tree(explanation_tree(lines))
