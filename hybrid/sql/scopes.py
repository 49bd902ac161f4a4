"""Notes the types of columns that are results of subqueries and CTEs."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from hybrid.schema.types import DataType
from hybrid.sql.calls import ColumnTypes
from hybrid.sql.infer import set_type, type_of
from hybrid.sql.nodes import nodes_of


def note_column_types(tree: exp.Query, types: ColumnTypes) -> None:
    """Notes the types of subqueries' results on the columns that refer to them. Does nothing for a single SELECT."""
    selects = nodes_of(tree, exp.Select)
    if len(selects) > 1:
        notes = _Notes(types)
        for select in selects:
            notes.take(select)


class _Notes:
    """Notes types: `take` handles the columns of a SELECT, after those of the queries that it reads."""

    def __init__(self, types: ColumnTypes) -> None:
        self._types = types
        self._taken: set[int] = set()

    def take(self, select: exp.Select) -> None:
        if id(select) in self._taken:
            return
        self._taken.add(id(select))
        for column in nodes_of(select, exp.Column):
            if column.find_ancestor(exp.Select) is select:
                self._note(column, select)

    def _note(self, column: exp.Column, select: exp.Select) -> None:
        around: exp.Select | None = select
        while around is not None:
            fitting = [
                source
                for source in _sources(around)
                if not column.table or source.alias_or_name.lower() == column.table.lower()
            ]
            queries = [query for query in map(_query_of, fitting) if query is not None]
            holding = [query for query in queries if _has(query, column.name)]
            if holding:
                set_type(column, self._result_type(holding[0], column.name) if len(holding) == 1 else None)
                return
            if len(queries) < len(fitting):  # a table's own column
                return
            around = around.find_ancestor(exp.Select)

    def _result_type(self, query: exp.Query, name: str) -> DataType | None:
        if not isinstance(query, exp.Select):
            return None
        self.take(query)
        for item in query.expressions:
            if item.alias_or_name.lower() == name.lower():
                return type_of(item.unalias(), self._types)
        sources = list(_sources(query))  # the column comes from `*`
        inner = _query_of(sources[0]) if len(sources) == 1 else None
        if inner is not None:
            return self._result_type(inner, name)
        return self._types.get(name.lower()) if len(sources) == 1 else None


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    for part in (select.args.get("from_"), *(select.args.get("joins") or ())):
        if part is not None and isinstance(part.this, exp.Expr):
            yield part.this


def _query_of(source: exp.Expr) -> exp.Query | None:
    """The query behind a source: a subquery's, or that of the CTE it names; None for a table."""
    if isinstance(source, exp.Subquery):
        return source.this if isinstance(source.this, exp.Query) else None
    around = source.parent if isinstance(source, exp.Table) else None
    while around is not None:
        clause = around.args.get("with_")
        for cte in clause.expressions if isinstance(clause, exp.With) else ():
            if cte.alias.lower() == source.name.lower() and isinstance(cte.this, exp.Query):
                query: exp.Query = cte.this
                return query
        around = around.parent
    return None


def _has(query: exp.Query, name: str) -> bool:
    """Whether a query has, or may have, a result of that name."""
    if not isinstance(query, exp.Select):
        return True
    return any(item.alias_or_name.lower() == name.lower() or item.find(exp.Star) for item in query.expressions)
