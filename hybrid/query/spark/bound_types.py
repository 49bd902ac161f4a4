"""DuckDB's types of a statement's parts: DuckDB binds them over empty relations, so no row is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from hybrid.query.connection import identifier
from hybrid.query.error_mapping import query_error
from hybrid.query.scan import Scan, relation_sql
from hybrid.sql.aggregates import is_aggregate
from hybrid.sql.allowed import AGGREGATES
from hybrid.sql.nodes import nodes_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# What the writer for Spark has as one call, and DuckDB in another form.
_OWN_CALLS = ("CREATE TEMP MACRO truncate_local(unit, moment, zone) AS date_trunc('day', moment)",)


def create_empty(connection: DuckDBPyConnection, relations: dict[str, Scan]) -> None:
    """Create the relations of a statement as views without rows."""
    for statement in _OWN_CALLS:
        connection.execute(statement)
    for name, scan in relations.items():
        empty = Scan(scan.spec, scan.half, (), (), None, None, scan.virtual)
        connection.execute(f"CREATE TEMP VIEW {identifier(name)} AS {relation_sql(empty)}")


def described(connection: DuckDBPyConnection, sql: str) -> list[tuple[str, str]]:
    """Name and type of each column of a SELECT. duckdb.Error when it cannot be bound."""
    return [(str(row[0]), str(row[1])) for row in connection.execute(f"DESCRIBE {sql}").fetchall()]


class BoundTypes:
    """The types of the expressions and queries of a tree, asked of DuckDB once each."""

    def __init__(self, connection: DuckDBPyConnection, columns: Sequence[str]) -> None:
        self._connection, self._names = connection, columns
        self._known: dict[int, tuple[exp.Expr, str | None]] = {}

    @cached_property
    def _error(self) -> type[Exception]:
        import duckdb

        return duckdb.Error

    def of(self, node: exp.Expr) -> str | None:
        """The type of an expression; None where DuckDB cannot tell it by itself."""
        entry = self._known.get(id(node))
        if entry is None:
            entry = self._known[id(node)] = node, self._asked(node)  # the node is kept, so that its id stays its own
        return entry[1]

    def columns(self, query: exp.Expr) -> Sequence[str] | None:
        """The types of a query's columns; None where DuckDB cannot tell them, as of a correlated subquery."""
        inner = query.unnest() if isinstance(query, exp.Subquery) else query
        found = self._described(f"{_ctes(inner)}{_sql(inner)}" if not inner.args.get("with_") else _sql(inner))
        return None if found is None else [kind for _, kind in found]

    def constant(self, node: exp.Expr) -> str:
        """The text of a constant's value."""
        try:
            row = self._connection.execute(f"SELECT CAST({_sql(node)} AS VARCHAR)").fetchone()
        except self._error as error:
            raise query_error(error, self._names, None) from error
        assert row is not None
        return str(row[0])

    def _asked(self, node: exp.Expr) -> str | None:
        if isinstance(node, exp.Literal) and node.is_string:
            return "VARCHAR"
        select = node.find_ancestor(exp.Select)
        if select is None or node.find_ancestor(exp.Lambda, exp.Select) is not select:
            return None
        if select.args.get("from_") is None:
            return self._type(f"SELECT {_sql(node)}")
        sources = _ctes(select), _from(select)
        aliases = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
        for change in (_alone, lambda part: _alone(_unaliased(part, aliases))):
            found = self._type(f"{sources[0]}SELECT {_sql(change(node.copy()))} {sources[1]}")
            if found is not None:
                return found
        return None

    def _type(self, sql: str) -> str | None:
        found = self._described(sql)
        return None if found is None or len(found) != 1 else found[0][1]

    def _described(self, sql: str) -> list[tuple[str, str]] | None:
        try:
            return described(self._connection, sql)
        except self._error:
            return None


def _sql(node: exp.Expr) -> str:
    return node.sql("duckdb", comments=False)


def _from(select: exp.Select) -> str:
    joins = "".join(
        _sql(join) if _sql(join).startswith(",") else f" {_sql(join)}" for join in select.args.get("joins") or ()
    )
    return f"{_sql(select.args['from_'])}{joins}"


def _ctes(node: exp.Expr) -> str:
    """The WITH of all CTEs in scope at a query, outermost first."""
    found: list[list[exp.Expr]] = []
    around: exp.Expr | None = node
    while around is not None:
        clause = around.args.get("with_")
        if isinstance(clause, exp.With):
            found.append(list(clause.expressions))
        while isinstance(around, exp.CTE) and isinstance(around.parent, exp.With):
            before = around.parent.expressions  # of its own WITH only what stands before it
            found.append(before[: next(place for place, cte in enumerate(before) if cte is around)])
            around = around.parent.parent
            assert around is not None
        around = around.parent
    ctes = [_sql(cte) for part in reversed(found) for cte in part]
    return f"WITH {', '.join(ctes)} " if ctes else ""


def _unaliased(node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
    """The expression with results that it names replaced by what they are."""

    def meant(part: exp.Expr) -> exp.Expr:
        is_name = isinstance(part, exp.Column) and not part.table and part.name.lower() in aliases
        return exp.Paren(this=aliases[part.name.lower()].copy()) if is_name else part

    return node.transform(meant, copy=False)


def _alone(node: exp.Expr) -> exp.Expr:
    """The expression with columns beside aggregations as any of their values, so that it needs no GROUP BY."""
    if not any(_is_aggregate(call) for call in nodes_of(node, exp.Anonymous, exp.Filter)):
        return node
    for column in nodes_of(node, exp.Column):
        if not _is_within(column, node, _is_aggregate):
            column.replace(exp.Anonymous(this="any_value", expressions=[column.copy()]))
    return node


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Filter):
        return True
    named = isinstance(node, exp.Anonymous) and (node.name.lower() in AGGREGATES or is_aggregate(node.name.lower()))
    return named and not isinstance(node.parent, exp.Window)


def _is_within(node: exp.Expr, root: exp.Expr, test: Callable[[exp.Expr], Any]) -> bool:
    around: exp.Expr | None = node
    while around is not None and around is not root.parent:
        if test(around) or isinstance(around, exp.Query):
            return True
        around = around.parent
    return False
