"""Helpers for generated Python code."""

from __future__ import annotations

from collections.abc import Sequence


def commented(lines: Sequence[str]) -> str:
    """The lines as Python comments."""
    return "\n".join(f"# {line}" for line in lines)


def long_text(text: str) -> str:
    """A text of several lines as a Python literal."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""\n{escaped}\n"""'
