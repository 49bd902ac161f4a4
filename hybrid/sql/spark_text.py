"""Literals and names in Spark SQL under its default settings, where a backslash in a text escapes."""

from __future__ import annotations


def quoted(text: str) -> str:
    """A string literal. `${` is escaped, because Spark substitutes settings for `${name}` even inside texts."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "$\\{")
    return f"'{escaped}'"


def backquoted(name: str) -> str:
    """A column's name in backquotes."""
    return "`" + name.replace("`", "``") + "`"
