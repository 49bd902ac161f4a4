"""What a column's name may refer to in a statement: columns of subqueries and CTEs, and other results of its SELECT."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def referents(column: exp.Column) -> Iterator[exp.Expr]:
    """What a name may refer to: columns of subqueries and CTEs, sources in FROM, other results of its SELECT."""
    around = column.find_ancestor(exp.Select)
    name = column.name.lower()
    if around is not None and not column.table:
        yield from (item for item in around.expressions if isinstance(item, exp.Alias) and item.alias.lower() == name)
    while around is not None:
        for source in _sources(around):
            if column.table and source.alias_or_name.lower() != column.table.lower():
                continue
            query, names = _query_of(source)
            if query is not None:
                yield from _results(query, name, names)
            elif not isinstance(source, exp.Table):
                yield from (part for part in source.iter_expressions() if not isinstance(part, exp.TableAlias))
        around = around.find_ancestor(exp.Select)


def _results(query: exp.Query, name: str, names: list[str]) -> Iterator[exp.Expr]:
    """The results of that name, in each part of a UNION."""
    selects = list(_selects(query))
    if not selects:
        return
    column_names = names or [item.alias_or_name.lower() for item in selects[0].expressions]
    place = column_names.index(name) if name in column_names else None
    for select in selects:
        if place is not None and place < len(select.expressions) and not select.expressions[place].is_star:
            yield select.expressions[place]
        elif any(item.is_star for item in select.expressions):
            for source in _sources(select):
                inner, inner_names = _query_of(source)
                if inner is not None and inner is not query:
                    yield from _results(inner, name, inner_names)


def _selects(query: exp.Expr) -> Iterator[exp.Select]:
    waiting = [query]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, exp.Select):
            yield part
        elif isinstance(part, exp.SetOperation):
            waiting += [part.this, part.expression]
        elif isinstance(part, exp.Subquery):
            waiting.append(part.this)


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    for part in (select.args.get("from_"), *(select.args.get("joins") or ()), *(select.args.get("laterals") or ())):
        if part is not None and isinstance(part.this, exp.Expr):
            yield part.this


def _query_of(source: exp.Expr) -> tuple[exp.Query | None, list[str]]:
    """The query behind a source in FROM, and the names that its alias gives to columns."""
    if isinstance(source, exp.Subquery):
        inner = source.this
        return (inner if isinstance(inner, exp.Query) else None), _column_names(source)
    around = source.parent if isinstance(source, exp.Table) else None
    while around is not None:
        clause = around.args.get("with_")
        for cte in clause.expressions if isinstance(clause, exp.With) else ():
            if cte.alias.lower() == source.name.lower() and isinstance(cte.this, exp.Query):
                return cte.this, _column_names(source) or _column_names(cte)
        around = around.parent
    return None, []


def _column_names(node: exp.Expr) -> list[str]:
    alias = node.args.get("alias")
    return [name.name.lower() for name in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []
