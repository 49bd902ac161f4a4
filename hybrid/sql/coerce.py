"""Comparisons of TIMESTAMP columns with numbers: Pinot stores them as epoch milliseconds and lets users say so."""

from __future__ import annotations

from sqlglot import exp

from hybrid.sql.calls import ColumnTypes, call, cast, is_temporal, literal_number, literal_text

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_MILLIS_CALLS = frozenset({"epoch_ms"})


def coerce_timestamps(tree: exp.Query, types: ColumnTypes) -> None:
    """Makes a timestamp of every number that is compared with a date or timestamp."""
    for node in list(tree.find_all(*_COMPARISONS, exp.Between, exp.In)):
        if isinstance(node, exp.Between):
            _coerce(node, "this", ("low", "high"), types)
        elif isinstance(node, exp.In):
            if is_temporal(node.this, types):
                node.set("expressions", [_moment(item, types) for item in node.expressions])
        else:
            _coerce(node, "this", ("expression",), types)
            _coerce(node, "expression", ("this",), types)


def _coerce(node: exp.Expr, side: str, others: tuple[str, ...], types: ColumnTypes) -> None:
    if not is_temporal(node.args[side], types):
        return
    for other in others:
        node.set(other, _moment(node.args[other], types))


def _moment(node: exp.Expr, types: ColumnTypes) -> exp.Expr:
    if is_temporal(node, types):
        return node
    number = literal_number(node) is not None and literal_text(node) is None
    text = literal_text(node) or ""
    computed = isinstance(node.unnest(), exp.Anonymous) and node.unnest().name.lower() in _MILLIS_CALLS
    if number or text.lstrip("-").isdigit() or computed or _is_arithmetic(node):
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
