"""Conversions to whole numbers and instants: fractions are cut towards zero and never rounded, as in Pinot.

DuckDB's casts round. Where the text does not determine a value's type, DuckDB checks it at run time; for Spark (`rows`)
a plain cast is written.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from hybrid.sql.calls import SAME_AS, ColumnTypes, call, cast, literal_text, number, text, to_millis
from hybrid.sql.infer import DECIMAL, DOUBLE, FLOAT, INT, LONG, STRING, is_time, type_of

_VALUE = "_hy_value"
_WHOLE_TYPES = (INT, LONG)
_FRACTIONS = (FLOAT, DOUBLE, DECIMAL)
_EXACT = "DECIMAL(38, 18)"
# An expression with more nodes than this is computed once, under a name.
_PLAIN_NODES = 8


def once(value: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """`body` of a value that it uses several times; a long value is written and computed once."""
    if sum(1 for _ in zip(value.walk(), range(_PLAIN_NODES + 1), strict=False)) <= _PLAIN_NODES:
        return body(value)
    return _named_once(value, body)


def _named_once(value: exp.Expr, body: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    function = exp.Lambda(this=body(exp.column(_VALUE)), expressions=[exp.to_identifier(_VALUE)])
    return call("list_extract", call("list_transform", exp.Array(expressions=[value]), function), number(1))


def as_whole(node: exp.Expr, types: ColumnTypes, *, rows: bool = False) -> exp.Expr:
    """The expression as a BIGINT: fractions are cut, a timestamp is epoch milliseconds."""
    if is_time(node, types):
        return cut_millis(node, rows=rows)
    kind = type_of(node, types)
    if kind in _FRACTIONS:
        return cast(call("trunc", node), "BIGINT")
    if kind is STRING:
        return cast(call("trunc", cast(node, _EXACT)), "BIGINT")
    if kind is not None or rows or isinstance(node.unnest(), exp.Null):
        return cast(node, "BIGINT")
    whole = _named_once(node, _whole_of_any)
    whole.meta[SAME_AS] = _plain_whole
    return whole


def as_instant(node: exp.Expr, types: ColumnTypes, *, rows: bool = False) -> exp.Expr:
    """The expression as a timestamp (UTC); a number is epoch milliseconds."""
    if is_time(node, types):
        return node
    if type_of(node, types) is not None or rows or literal_text(node) is not None:
        return call("make_timestamp_ms", as_whole(node, types, rows=rows))
    return _named_once(node, _instant_of_any)


def as_milliseconds(node: exp.Expr, types: ColumnTypes, *, rows: bool = False) -> exp.Expr:
    """The expression as epoch milliseconds."""
    return as_whole(node, types, rows=rows)


def cut_millis(moment: exp.Expr, *, rows: bool = False) -> exp.Expr:
    """A timestamp as epoch milliseconds. DuckDB's epoch_ms rounds microseconds, so they are cut off first."""
    plain = isinstance(moment.unnest(), exp.Anonymous) and moment.unnest().name.lower() in {
        "make_timestamp_ms",
        "date_trunc",
    }
    return to_millis(moment if plain or rows else call("date_trunc", text("millisecond"), moment))


def try_whole(value: exp.Expr, kind: str) -> exp.Expr:
    """A text as a whole number of the type, its fraction cut; null for a text that is no number."""
    exact = exp.TryCast(this=value, to=exp.DataType.build(_EXACT, dialect="duckdb"))
    return exp.TryCast(this=call("trunc", exact), to=exp.DataType.build(kind, dialect="duckdb"))


def _plain_whole(node: exp.Expr) -> exp.Expr:
    """The plain cast of a value that DuckDB checks at run time."""
    return cast(node.expressions[0].expressions[0].expressions[0].copy(), "BIGINT")


def _whole_of_any(value: exp.Expr) -> exp.Expr:
    kind = call("typeof", value)
    moments = exp.In(this=kind.copy(), expressions=[text("TIMESTAMP"), text("DATE"), text("TIMESTAMP WITH TIME ZONE")])
    floats = exp.In(this=kind.copy(), expressions=[text("DOUBLE"), text("FLOAT")])
    exact = exp.Or(
        this=exp.EQ(this=kind.copy(), expression=text("VARCHAR")),
        expression=call("starts_with", kind.copy(), text("DECIMAL")),
    )
    return exp.Case(
        ifs=[
            exp.If(this=moments, true=cut_millis(cast(value.copy(), "TIMESTAMP"))),
            exp.If(this=floats, true=cast(call("trunc", cast(value.copy(), "DOUBLE")), "BIGINT")),
            exp.If(this=exact, true=cast(call("trunc", cast(value.copy(), _EXACT)), "BIGINT")),
        ],
        default=cast(value.copy(), "BIGINT"),
    )


def _instant_of_any(value: exp.Expr) -> exp.Expr:
    kind = call("typeof", value)
    names = ("TIMESTAMP", "DATE", "TIMESTAMP WITH TIME ZONE")
    moments = exp.In(this=kind.copy(), expressions=[text(name) for name in names])
    is_text = exp.EQ(this=kind.copy(), expression=text("VARCHAR"))
    digits = call(
        "make_timestamp_ms", exp.TryCast(this=value.copy(), to=exp.DataType.build("BIGINT", dialect="duckdb"))
    )
    return exp.Case(
        ifs=[
            exp.If(this=moments, true=cast(value.copy(), "TIMESTAMP")),
            exp.If(this=is_text, true=call("coalesce", digits, cast(value.copy(), "TIMESTAMP"))),
        ],
        default=call("make_timestamp_ms", _whole_of_any(value.copy())),
    )
