"""A row expression, in DuckDB's words after rewriting, in those of Spark: the same value from the same row.

Spark runs in ANSI mode: what does not fit is an error there as it is in DuckDB. A division by zero is none in DuckDB
and in Pinot, so it is written out. `sql.row_sql` lets nothing through to here that has no rule.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from hybrid.errors import QueryError
from hybrid.sql.calls import literal_number, literal_text
from hybrid.sql.spark_calls import write_call, write_step
from hybrid.sql.spark_text import backquoted, quoted
from hybrid.sql.texts import like_pattern

# DuckDB's types by sqlglot's names.
TYPES = {
    "INT": "int", "BIGINT": "bigint", "FLOAT": "float", "DOUBLE": "double", "DECIMAL": "decimal", "BOOLEAN": "boolean",
    "TEXT": "string", "VARCHAR": "string", "TIMESTAMP": "timestamp", "TIMESTAMPNTZ": "timestamp", "JSON": "string",
    "VARBINARY": "binary",
}  # fmt: skip
_BINARY: dict[type[exp.Expr], str] = {
    exp.And: "AND", exp.Or: "OR", exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "<=>", exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Mod: "%", exp.IntDiv: "div", exp.DPipe: "||",
}  # fmt: skip
_COMPUTED = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv)
_INFINITY = "CAST('Infinity' AS double)"


def spark_sql(node: exp.Expr) -> str:
    """The expression as Spark SQL text. QueryError (700) for what cannot be said to Spark."""
    kind = type(node)
    if kind in _WRITERS:
        return _WRITERS[kind](node)
    if kind in _BINARY:
        return _binary(node)
    raise QueryError(f"'{node.sql('duckdb')}' cannot stand in a row expression.", pinot_code=700)


def _binary(node: exp.Expr) -> str:
    left, right = node.this, node.expression
    if isinstance(node, exp.Add):
        stepped = write_step(left, right, spark_sql)
        if stepped is not None:
            return stepped
    write = _operand if isinstance(node, _COMPUTED) else spark_sql
    return f"({write(left)} {_BINARY[type(node)]} {write(right)})"


def _operand(node: exp.Expr) -> str:
    """Whole numbers are computed with in 64 bits."""
    is_whole = isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()
    return f"{node.name}L" if is_whole and int(node.name) < 2**63 else spark_sql(node)


def _divided(node: exp.Expr) -> str:
    """In doubles; by zero it is infinite, and 0 / 0 not a number."""
    value, by = (f"CAST({spark_sql(side)} AS double)" for side in (node.this, node.expression))
    if literal_number(node.expression.unnest()):
        return f"({value} / {by})"
    return f"(CASE WHEN {by} = 0 THEN {value} * {_INFINITY} ELSE {value} / {by} END)"


def _literal(node: exp.Expr) -> str:
    written = literal_text(node)
    return node.name if written is None else quoted(written)


def _cast(node: exp.Expr) -> str:
    target = node.args["to"]
    name = TYPES.get(target.this.name, "")
    if not name:
        raise QueryError(f"'{target.sql('duckdb')}' is no type of a column.", pinot_code=700)
    if name == "decimal" and target.expressions:
        name = target.sql("spark").lower()
    inner = node.this
    if name in {"int", "bigint"} and isinstance(inner, exp.Anonymous) and inner.name == "trunc":
        inner = inner.expressions[0]  # Spark itself cuts fractions off
    word = "try_cast" if isinstance(node, exp.TryCast) else "CAST"
    return f"{word}({spark_sql(inner)} AS {name})"


def _case(node: exp.Expr) -> str:
    subject, default = node.this, node.args.get("default")
    branches = [f" WHEN {spark_sql(one.this)} THEN {spark_sql(one.args['true'])}" for one in node.args["ifs"]]
    head = f" {spark_sql(subject)}" if subject is not None else ""
    tail = f" ELSE {spark_sql(default)}" if default is not None else ""
    return f"(CASE{head}{''.join(branches)}{tail} END)"


def _between(node: exp.Expr) -> str:
    return f"({spark_sql(node.this)} BETWEEN {spark_sql(node.args['low'])} AND {spark_sql(node.args['high'])})"


def _in(node: exp.Expr) -> str:
    return f"({spark_sql(node.this)} IN ({', '.join(spark_sql(item) for item in node.expressions)}))"


def _like(node: exp.Expr) -> str:
    """A backslash escapes `_` and `%` only; Spark's escapes every sign."""
    written = literal_text(node.expression)
    if written is None:
        raise QueryError("LIKE: the pattern must be a quoted constant.", pinot_code=700)
    negated = "NOT " if node.args.get("negate") else ""
    return f"({spark_sql(node.this)} {negated}ILIKE {quoted(like_pattern(written))})"


def _substring(node: exp.Expr) -> str:
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    return f"substring({', '.join(spark_sql(part) for part in parts if part is not None)})"


def _trim(node: exp.Expr) -> str:
    characters = node.args.get("expression")
    which = f" {spark_sql(characters)}" if characters is not None else ""
    return f"trim({str(node.args.get('position') or 'BOTH').upper()}{which} FROM {spark_sql(node.this)})"


_WRITERS: dict[type[exp.Expr], Callable[..., str]] = {
    exp.Anonymous: lambda node: write_call(node, spark_sql),
    exp.Column: lambda node: backquoted(node.name),
    exp.Identifier: lambda node: backquoted(node.name),
    exp.Literal: _literal,
    exp.Boolean: lambda node: "TRUE" if node.this else "FALSE",
    exp.Null: lambda node: "NULL",
    exp.Paren: lambda node: f"({spark_sql(node.this)})",
    exp.Neg: lambda node: f"(- {_operand(node.this)})",
    exp.Not: lambda node: f"(NOT {spark_sql(node.this)})",
    exp.Is: lambda node: f"({spark_sql(node.this)} IS {spark_sql(node.expression)})",
    exp.NullSafeNEQ: lambda node: f"(NOT ({spark_sql(node.this)} <=> {spark_sql(node.expression)}))",
    exp.Div: _divided,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.Between: _between,
    exp.In: _in,
    exp.ILike: _like,
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.Lambda: lambda node: f"{backquoted(node.expressions[0].name)} -> {spark_sql(node.this)}",
}
