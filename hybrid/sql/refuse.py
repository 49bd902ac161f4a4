"""Refuses statements that parse but do more than read tables.

This is the first of three checks. The second is DuckDB's own parser over the rewritten statement
(query/ast_allow_list). The third is the connection, which can access only the files of the tables (query/connection).
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from hybrid.errors import PARSE_ERROR, QueryError
from hybrid.sql.nodes import all_nodes

_REFUSED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Into, "SELECT INTO writes; only reading is possible here"),
    (exp.DDL, "Only reading is possible here"),
    (exp.DML, "Only reading is possible here"),
    (exp.Command, "Only reading is possible here"),
    (exp.Lock, "FOR UPDATE locks; only reading is possible here"),
    (exp.Placeholder, "Parameters are not supported; write the value"),
    (exp.Parameter, "Parameters are not supported; write the value"),
    (exp.SessionParameter, "Settings cannot be read here"),
    (exp.Pivot, "PIVOT is not supported; use CASE or FILTER"),
    (exp.MatchRecognize, "MATCH_RECOGNIZE is not supported"),
    (exp.Describe, "DESCRIBE is not supported in a query"),
    (exp.Summarize, "SUMMARIZE is not supported in a query"),
    (exp.PositionalColumn, "Columns are named, not numbered"),
    (exp.CurrentUser, "Sessions cannot be asked here"),
    (exp.CurrentRole, "Sessions cannot be asked here"),
    (exp.CurrentCatalog, "Sessions cannot be asked here"),
    (exp.SessionUser, "Sessions cannot be asked here"),
)
_REFUSED_KINDS = tuple(kind for kind, _ in _REFUSED)
_SOURCES = (exp.Table, exp.Subquery, exp.Unnest, exp.Values, exp.Lateral)


def _wrong_limit(limit: exp.Limit | exp.Offset) -> str | None:
    """What is wrong with a LIMIT or an OFFSET; None for one that DuckDB takes as it is written."""
    if isinstance(limit.expression, exp.Neg):
        return "cannot be negative"
    number = limit.expression.unnest() if limit.expression is not None else None
    if limit.args.get("limit_options") or not isinstance(number, exp.Literal) or number.is_string:
        return None  # a share may be a fraction
    value = Decimal(number.this)
    return None if value == value.to_integral_value() else "are whole numbers"


def refuse_hostile(tree: exp.Query) -> None:
    """QueryError (150) when the statement does anything but read."""
    for node in all_nodes(tree):
        for kind, message in _REFUSED if isinstance(node, _REFUSED_KINDS) else ():
            if isinstance(node, kind) and not isinstance(node, exp.Query):
                raise QueryError(f"{message}: '{node.sql('duckdb')[:60]}'.", pinot_code=PARSE_ERROR)
        if isinstance(node, exp.Limit | exp.Offset) and (wrong := _wrong_limit(node)) is not None:
            raise QueryError(f"LIMIT and OFFSET {wrong}: '{node.sql('duckdb').strip()}'.", pinot_code=PARSE_ERROR)
        if isinstance(node, exp.From | exp.Join) and not isinstance(node.this, _SOURCES):
            raise QueryError(f"A table is expected after FROM: '{node.sql('duckdb')[:60]}'.", pinot_code=PARSE_ERROR)
        if isinstance(node, exp.Lateral) and not isinstance(node.this, exp.Subquery | exp.Unnest):
            raise QueryError("Only tables can be used in FROM; a function cannot.", pinot_code=PARSE_ERROR)
