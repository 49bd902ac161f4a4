"""Statements for the newest rows, in forms in which DuckDB reads few of the others.

Rows are stored newest first; behind them lie those that the stream has brought since, newest last (`cached_rows.py`).

At once
    For a LIMIT of at most `late_materialization_max_rows` DuckDB finds the first rows by one column, and fetches their
    other columns by a join on row ids. That pays where rows lie in another order. The newest rows lie together, and the
    join takes longer than the rest of the statement. So such a statement runs with a LIMIT beyond that number, and only
    the rows that it asks for are read from the result.

Latest first
    DuckDB keeps the best rows so far, and skips what cannot beat them. Read in the order of the stream, each row beats
    those before it, and nothing is skipped: after 120,000 rows a statement took ten times as long. So the rows that
    were inserted last are read before the others. Both together are the relation, whatever the row id that parts them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sqlglot import exp

from hybrid.config.table_config import TableSpec
from hybrid.query.rewrite import Rewritten

# One more than DuckDB's default of `late_materialization_max_rows`.
_LIMIT = 51
# DuckDB's name of a row's id, unless a column of the table has it.
_ROW_ID = "rowid"


class FirstRows(NamedTuple):
    """A statement to run, and how many rows of its result to read; None: all."""

    rewritten: Rewritten
    rows: int | None = None


def newest_at_once(rewritten: Rewritten) -> FirstRows:
    """The statement with a higher LIMIT, if it asks for few of the newest rows of one table; else unchanged."""
    tree, rows = rewritten.statement.tree, newest_rows(rewritten)
    if rows is None or rows >= _LIMIT or _sql(tree) != rewritten.body:
        return FirstRows(rewritten)
    raised = tree.copy()
    raised.set("limit", exp.Limit(expression=exp.Literal.number(_LIMIT)))
    return FirstRows(replace(rewritten, body=_sql(raised)), rows)


def newest_rows(rewritten: Rewritten) -> int | None:
    """The LIMIT of a SELECT from one table that sorts by descending time first; None for any other statement."""
    tree = rewritten.statement.tree
    if not isinstance(tree, exp.Select) or len(rewritten.refs) != 1 or tree.args.get("joins") or tree.args.get("with_"):
        return None
    (ref,) = rewritten.refs
    limit, order = tree.args.get("limit"), tree.args.get("order")
    if order is None or not isinstance(limit, exp.Limit) or limit.args.get("limit_options"):
        return None
    if ref.node.find_ancestor(exp.Select) is not tree:
        return None
    first, time_column = order.expressions[0], rewritten.tables[ref.table].spec.time_column
    if time_column is None or not first.args.get("desc") or not isinstance(first.this, exp.Column):
        return None
    count = limit.expression
    is_number = isinstance(count, exp.Literal) and count.name.isdigit()
    return int(count.name) if is_number and first.this.name.lower() == time_column.lower() else None


def has_row_ids(spec: TableSpec) -> bool:
    """Whether `rowid` names the ids of a table's rows, and no column of its own, which may hold NULL."""
    return all(name.lower() != _ROW_ID for name in spec.schema.column_names)


def latest_first(select: str, parameter: int) -> str:
    """`select`, which has no WHERE, in two parts: the rows from the row id in this parameter on, then the others."""
    return f"{select} WHERE {_ROW_ID} >= ${parameter}::BIGINT UNION ALL {select} WHERE {_ROW_ID} < ${parameter}::BIGINT"


def _sql(tree: exp.Expr) -> str:
    return tree.sql("duckdb", comments=False)
