"""Resolves names in a statement: halves of tables, and columns whose names have dots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from sqlglot import exp

from hybrid.config.table_halves import raw_table_name
from hybrid.errors import NO_SUCH_TABLE, QueryError
from hybrid.sql.nodes import nodes_of
from hybrid.sql.tables import TableMention


class _Tables(Protocol):
    def names(self) -> list[str]: ...

    def open(self, name: str) -> Any: ...


def refuse_missing_halves(refs: Iterable[TableMention], opened: Mapping[str, Any]) -> None:
    """QueryError (190) for a half that a table does not have. An empty answer would suggest that it exists."""
    for ref in refs:
        if ref.half is not None and ref.half not in opened[ref.table].spec.halves:
            raise QueryError(f"Table '{ref.table}' has no {ref.half} half.", pinot_code=NO_SUCH_TABLE)


def join_dotted(tree: exp.Query, tables: _Tables) -> None:
    """Joins an unquoted `product.name` into one column name, as in Pinot, if FROM has nothing named `product`.

    Nested records have such columns. A name stays unchanged if no table of the statement has such a column.
    """
    written, sources = list[exp.Column](), set[str]()
    for node in nodes_of(tree, exp.Column, exp.Table, exp.Subquery, exp.CTE):
        if not isinstance(node, exp.Column):
            sources.update((node.alias_or_name.lower(), node.name.lower()))
        elif node.table:
            written.append(node)
    if not written:
        return
    parted = [(column, [part.name for part in column.parts]) for column in written]
    waiting = [(column, parts) for column, parts in parted if len(parts) > 2 or parts[0].lower() not in sources]
    if not waiting:
        return
    there = _columns_of(tables, {raw_table_name(node.name).lower() for node in nodes_of(tree, exp.Table)})
    for column, parts in waiting:
        table = parts[0] if parts[0].lower() in sources else None
        name = ".".join(parts if table is None else parts[1:])
        if name in there:
            column.replace(exp.column(exp.to_identifier(name, quoted=True), table=table))


def _columns_of(tables: _Tables, names: set[str]) -> set[str]:
    opened = [tables.open(name) for name in tables.names() if name.lower() in names]
    return {column for table in opened for column in table.spec.schema.column_names}
