"""Cells and head of a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.runtime.text_table import CONTROL

_ESCAPED = {**CONTROL, **str.maketrans({"|": "\\|", "\t": " ", "\n": "<br>", "\r": "<br>"})}


def markdown_head(names: Sequence[str], numbers: Sequence[bool]) -> str:
    """The two first lines of a table; columns of numbers are set to the right."""
    rules = ("---:" if is_number else "---" for is_number in numbers)
    return f"{markdown_row([markdown_cell(name) for name in names])}{markdown_row(list(rules))}"


def markdown_row(cells: Sequence[str]) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |\n"


def markdown_cell(text: str) -> str:
    """A text in a cell: one line, no bar, and nothing that a terminal would obey."""
    return text.replace("\r\n", "\n").translate(_ESCAPED)
