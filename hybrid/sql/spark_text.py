"""Literals and names as Spark's SQL writes them, under its default settings: a backslash in a text escapes."""

from __future__ import annotations


def quoted(text: str) -> str:
    """A string literal of Spark's SQL. `${name}` would be a setting of Spark's to it, inside of texts too."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "$\\{")
    return f"'{escaped}'"


def backquoted(name: str) -> str:
    """A column's name."""
    return "`" + name.replace("`", "``") + "`"
