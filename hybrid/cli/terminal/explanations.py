"""EXPLAIN as a tree: the statement's revision, then a branch per table, then the SQL, set in lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from rich.tree import Tree

from hybrid.cli.cells import printable
from hybrid.cli.terminal.readable import grouped

_SQL = frozenset({"relation", "statement"})


def explanation_tree(lines: Sequence[Sequence[str]]) -> Tree:
    """The tree of lines of subject and text. The subject of a table's line is `alias: subject`."""
    tree = Tree(Text("query", "bold"), guide_style="dim")
    branches: dict[str, Tree] = {}
    for subject, text in lines:
        alias, colon, name = subject.partition(": ")
        if not colon:
            _add(tree, subject, text)
        elif alias in branches:
            _add(branches[alias], name, text)
        else:
            branches[alias] = tree.add(Text(printable(alias if name != "table" else f"{alias} (table {text})"), "bold"))
            if name != "table":
                _add(branches[alias], name, text)
    return tree


def _add(branch: Tree, subject: str, text: str) -> None:
    lines = _sql_lines(text) if subject in _SQL else [grouped(text)]
    first = Text.assemble((printable(subject), "dim"), "  ", printable(lines[0]) if len(lines) == 1 else "")
    first.rstrip()
    below = branch.add(first)
    if len(lines) > 1:
        below.add(Text("\n".join(map(printable, lines))))


def _sql_lines(sql: str) -> list[str]:
    """A statement in lines as people write SQL; one line if it cannot be parsed."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.parse_one(sql, read="duckdb").sql("duckdb", pretty=True).split("\n")
    except (SqlglotError, RecursionError):
        return [sql]
