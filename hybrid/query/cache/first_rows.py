"""Statements for the newest rows, in a form in which DuckDB reads their rows at once.

For a LIMIT of at most `late_materialization_max_rows` DuckDB finds the first rows by one column, and fetches their
other columns by a join on row ids. That pays where rows lie in another order. The newest rows lie together
(`cached_rows.py`), and the join takes longer than the rest of the statement. So such a statement runs with a LIMIT
beyond that number, and only the rows that it asks for are read from the result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sqlglot import exp

from hybrid.query.plan import Rewritten

# One more than DuckDB's default of `late_materialization_max_rows`.
_LIMIT = 51


class FirstRows(NamedTuple):
    """A statement to run, and how many rows of its result to read; None: all."""

    rewritten: Rewritten
    rows: int | None = None


def newest_at_once(rewritten: Rewritten) -> FirstRows:
    """The statement with a higher LIMIT, if it asks for few of the newest rows of one table; else unchanged."""
    tree = rewritten.statement.tree
    rows = _newest_rows(rewritten, tree) if isinstance(tree, exp.Select) else None
    if rows is None or _sql(tree) != rewritten.body:
        return FirstRows(rewritten)
    raised = tree.copy()
    raised.set("limit", exp.Limit(expression=exp.Literal.number(_LIMIT)))
    return FirstRows(replace(rewritten, body=_sql(raised)), rows)


def _newest_rows(rewritten: Rewritten, tree: exp.Select) -> int | None:
    """The LIMIT of a SELECT from one table that sorts by descending time first; None for any other statement."""
    if len(rewritten.refs) != 1 or tree.args.get("joins") or tree.args.get("with_"):
        return None
    (ref,) = rewritten.refs
    limit, order = tree.args.get("limit"), tree.args.get("order")
    if order is None or not isinstance(limit, exp.Limit) or ref.node.find_ancestor(exp.Select) is not tree:
        return None
    first, time_column = order.expressions[0], rewritten.tables[ref.table].spec.time_column
    if time_column is None or not first.args.get("desc") or not isinstance(first.this, exp.Column):
        return None
    count = limit.expression
    is_few = isinstance(count, exp.Literal) and count.name.isdigit() and int(count.name) < _LIMIT
    return int(count.name) if is_few and first.this.name.lower() == time_column.lower() else None


def _sql(tree: exp.Expr) -> str:
    return tree.sql("duckdb", comments=False)
