"""Cells and head of a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence


def markdown_head(names: Sequence[str], numbers: Sequence[bool]) -> str:
    """The two first lines of a table; columns of numbers are set to the right."""
    rules = ("---:" if is_number else "---" for is_number in numbers)
    return f"{markdown_row([markdown_cell(name) for name in names])}{markdown_row(list(rules))}"


def markdown_row(cells: Sequence[str]) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |\n"


def markdown_cell(text: str) -> str:
    """A text in a cell: one line, no bar, and nothing that a terminal would obey."""
    return "".join(map(_sign, text.replace("\r\n", "\n")))


def _sign(sign: str) -> str:
    if sign == "|":
        return "\\|"
    if sign in "\r\n":
        return "<br>"
    code = ord(sign)
    if code >= 32 and not 127 <= code < 160 and not _is_bidirectional(code):
        return sign
    return " " if sign == "\t" else f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _is_bidirectional(code: int) -> bool:
    """Whether a character shows a text in another order than it has, or breaks the line."""
    return code in (0x061C, 0x200E, 0x200F) or 0x2028 <= code < 0x202F or 0x2066 <= code < 0x206A
