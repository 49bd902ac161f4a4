"""The terminal: its width, its colours, and printing of lines that are laid out already."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

_ROWS = 25  # never used: without a height rich asks the terminal for both


class Screen:
    """One terminal. Lines are printed as they are: nothing in them is read as markup, and no line is broken here."""

    def __init__(self, out: TextIO) -> None:
        self.width = shutil.get_terminal_size().columns
        self.console = Console(
            file=out,
            width=self.width,
            height=_ROWS,
            force_terminal=True,
            color_system=None if os.environ.get("NO_COLOR") else "auto",
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def lines(self, lines: Iterable[Text]) -> None:
        """Print lines, however long."""
        for line in lines:
            self.console.print(line, soft_wrap=True)

    def tree(self, tree: Tree) -> None:
        """Print a tree; its labels wrap."""
        for segments in self.console.render_lines(tree, pad=False):
            line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
            self.lines([_without_end(line)])

    def wrapped(self, text: Text, width: int) -> list[Text]:
        """A text as lines of at most `width`: between words, else within them."""
        return [_without_end(line) for line in text.wrap(self.console, max(1, width), overflow="fold")] or [Text()]


def _without_end(line: Text) -> Text:
    """The line without spaces at its end."""
    line.rstrip()
    return line
