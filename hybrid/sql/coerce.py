"""Coerces constants in comparisons with a column of another type, as Pinot's users write them.

A TIMESTAMP is compared with epoch milliseconds, a STRING with a number by its text, BYTES with hex digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError
from hybrid.schema.types import DataType
from hybrid.sql.calls import ColumnTypes, call, cast, literal_number, literal_text, number, text
from hybrid.sql.infer import DECIMAL, DOUBLE, FLOAT, INT, LONG, TIMESTAMP, is_time, type_of
from hybrid.sql.nodes import nodes_of
from hybrid.sql.wholes import as_instant, cut_millis

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_ONE_OF = frozenset(("coalesce", "ifnull", "nullif", "greatest", "least", "if"))
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BARE_DATE = re.compile(r"[12]\d{3}-(?:0\d-[0-3]\d|1[0-2]-0\d)")
Coercion = Callable[[exp.Expr], exp.Expr]


def coerce_timestamps(tree: exp.Query, types: ColumnTypes) -> None:
    """Converts every constant that is compared with a value of another type so that DuckDB can compare them."""
    for node in nodes_of(tree, *_COMPARISONS, exp.Between, exp.In):
        _refuse_bare_dates(node)
        _count_instants(node, types)
        if isinstance(node, exp.Between):
            _coerce(node, "this", ("low", "high"), types)
        elif isinstance(node, exp.In):
            _coerce_in(node, types)
        else:
            _coerce(node, "this", ("expression",), types)
            _coerce(node, "expression", ("this",), types)
    for node in nodes_of(tree, exp.Case, exp.Anonymous):
        _coerce_values(node, types)


def _coerce(node: exp.Expr, side: str, others: tuple[str, ...], types: ColumnTypes) -> None:
    coercion = _coercion(node.args[side], types)
    if coercion is None:
        return
    for other in others:
        node.set(other, coercion(node.args[other]))


def _count_instants(node: exp.Expr, types: ColumnTypes) -> None:
    """Writes timestamps that a whole-number column is compared with as epoch milliseconds, which prune files."""
    sides = list(node.iter_expressions())
    if any(isinstance(side.unnest(), exp.Column) and type_of(side, types) in {INT, LONG} for side in sides):
        for side in sides:
            millis = _literal_millis(side)
            if millis is not None:
                side.replace(millis)


def _literal_millis(node: exp.Expr) -> exp.Expr | None:
    """The epoch milliseconds of `CAST('2021-09-24 07:00:00' AS TIMESTAMP)`; None for any other expression."""
    cast_node = node.unnest()
    written = literal_text(cast_node.this) if type(cast_node) is exp.Cast else None
    if written is None or type_of(cast_node, {}) is not TIMESTAMP or _INSTANT.fullmatch(written) is None:
        return None
    try:
        micros = (datetime.fromisoformat(written).replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
    except ValueError:  # DuckDB reports it
        return None
    digits = format(abs(Decimal(micros)).scaleb(-3).normalize(), "f")
    return exp.Literal.number(digits) if micros >= 0 else exp.Paren(this=exp.Neg(this=exp.Literal.number(digits)))


def _coerce_in(node: exp.In, types: ColumnTypes) -> None:
    query = node.args.get("query")
    if query is None:
        coercion = _coercion(node.this, types)
        if coercion is not None:
            node.set("expressions", [coercion(item) for item in node.expressions])
        return
    left, right = type_of(node.this, types), type_of(query, types)
    if left is TIMESTAMP and right in {INT, LONG}:
        node.set("this", cut_millis(node.this))
    elif left in {INT, LONG} and right is TIMESTAMP:
        node.set("this", as_instant(node.this, types))


def _coerce_values(node: exp.Expr, types: ColumnTypes) -> None:
    """Converts the alternatives of CASE, COALESCE and so on: beside a TIMESTAMP, numbers are epoch milliseconds."""
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        values = [branch.args["true"] for branch in node.args["ifs"]] + ([default] if default is not None else [])
    elif node.name.lower() in _ONE_OF:
        values = node.expressions[1:] if node.name.lower() == "if" else node.expressions
    else:
        return
    kinds = [type_of(value, types) for value in values]
    if TIMESTAMP in kinds:
        for value, kind in zip(values, kinds, strict=True):
            if kind in {INT, LONG}:
                value.replace(as_instant(value.copy(), types))


def _coercion(node: exp.Expr, types: ColumnTypes) -> Coercion | None:
    """The conversion of values that are compared with `node`, or None."""
    if is_time(node, types):
        return lambda other: _moment(other, types)
    column = node.unnest()
    if not isinstance(column, exp.Column):
        return None
    return _BY_TYPE.get(type_of(column, types) or INT)


def _moment(node: exp.Expr, types: ColumnTypes) -> exp.Expr:
    """A value that is compared with a timestamp, as a timestamp: numbers are epoch milliseconds with fractions."""
    if is_time(node, types):
        return node
    kind, written = type_of(node, types), literal_text(node.unnest()) or ""
    if kind in {INT, LONG} or written.lstrip("-").isdigit():
        return call("make_timestamp_ms", cast(node, "BIGINT"))
    if kind in {FLOAT, DOUBLE, DECIMAL}:
        micros = exp.Mul(this=exp.Paren(this=node), expression=number(1000))
        return call("make_timestamp", cast(call("trunc", micros), "BIGINT"))
    return node


def _refuse_bare_dates(node: exp.Expr) -> None:
    """QueryError (700) for `day >= 2023-08-02`, which is a difference of numbers."""
    for side in node.iter_expressions():
        inner = side.unnest()
        if not isinstance(inner, exp.Sub) or not isinstance(inner.this, exp.Sub):
            continue
        parts = [part.name for part in (inner.this.this, inner.this.expression, inner.expression)]
        literals = all(isinstance(part, exp.Literal) for part in (inner.this.this, inner.this.expression))
        if literals and _BARE_DATE.fullmatch("-".join(parts)):
            date = "-".join(parts)
            message = f"{date} without quotes is a difference of three numbers; write '{date}' for the day."
            raise QueryError(message, pinot_code=VALIDATION)


def _written(node: exp.Expr) -> exp.Expr:
    """A number literal as the text literal of its digits."""
    inner = node.unnest()
    is_number = literal_text(inner) is None and literal_number(inner) is not None
    return text(inner.sql("duckdb")) if is_number else node


def _bytes(node: exp.Expr) -> exp.Expr:
    """A literal of hex digits as bytes."""
    return node if literal_text(node) is None else call("unhex", node)


_BY_TYPE: dict[DataType, Coercion] = {
    DataType.STRING: _written,
    DataType.JSON: _written,
    DataType.BYTES: _bytes,
}
