"""Comparisons of a column with a constant of another type, as Pinot's users write them.

A TIMESTAMP is compared with epoch milliseconds, a STRING with a number by its text, BYTES with hex digits.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from hybrid.spec.types import DataType
from hybrid.sql.calls import ColumnTypes, call, cast, is_millis, is_temporal, literal_number, literal_text, text

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
Coercion = Callable[[exp.Expr], exp.Expr]


def coerce_timestamps(tree: exp.Query, types: ColumnTypes) -> None:
    """Makes of every constant that is compared with something of another type one that can be compared with it."""
    for node in list(tree.find_all(*_COMPARISONS, exp.Between, exp.In)):
        if isinstance(node, exp.Between):
            _coerce(node, "this", ("low", "high"), types)
        elif isinstance(node, exp.In):
            coercion = _coercion(node.this, types)
            if coercion is not None:
                node.set("expressions", [coercion(item) for item in node.expressions])
        else:
            _coerce(node, "this", ("expression",), types)
            _coerce(node, "expression", ("this",), types)


def _coerce(node: exp.Expr, side: str, others: tuple[str, ...], types: ColumnTypes) -> None:
    coercion = _coercion(node.args[side], types)
    if coercion is None:
        return
    for other in others:
        node.set(other, coercion(node.args[other]))


def _coercion(node: exp.Expr, types: ColumnTypes) -> Coercion | None:
    """What is done to what is compared with `node`, if anything is."""
    if is_temporal(node, types):
        return lambda other: _moment(other, types)
    column = node.unnest()
    if not isinstance(column, exp.Column):
        return None
    return _BY_TYPE.get(types.get(column.name.lower(), DataType.INT))


def _moment(node: exp.Expr, types: ColumnTypes) -> exp.Expr:
    if is_temporal(node, types):
        return node
    number = literal_number(node) is not None and literal_text(node) is None
    written = literal_text(node) or ""
    if number or written.lstrip("-").isdigit() or is_millis(node) or _is_arithmetic(node):
        return call("make_timestamp_ms", cast(node, "BIGINT"))
    return node


def _is_arithmetic(node: exp.Expr) -> bool:
    """Sums and products of numbers, as `now() - 3600000` is."""
    inner = node.unnest()
    if not isinstance(inner, exp.Add | exp.Sub | exp.Mul | exp.IntDiv):
        return False
    return all(
        literal_number(side.unnest()) is not None or _is_arithmetic(side) for side in (inner.this, inner.expression)
    )


def _written(node: exp.Expr) -> exp.Expr:
    """A number as its text."""
    inner = node.unnest()
    is_number = literal_text(inner) is None and literal_number(inner) is not None
    return text(inner.sql("duckdb")) if is_number else node


def _bytes(node: exp.Expr) -> exp.Expr:
    """Hex digits as bytes."""
    return node if literal_text(node) is None else call("unhex", node)


_BY_TYPE: dict[DataType, Coercion] = {
    DataType.STRING: _written,
    DataType.JSON: _written,
    DataType.BYTES: _bytes,
}
