"""CAST as Pinot does it: its names of types, fractions cut off towards zero, timestamps as epoch milliseconds."""

from __future__ import annotations

from sqlglot import exp

from hybrid.spec.types import DataType
from hybrid.sql.calls import ColumnTypes, as_millis, as_timestamp, call, cast, is_temporal, literal_text, text
from hybrid.sql.kinds import DECIMAL, DOUBLE, FLOAT, INT, LONG, kind_of

_WHOLE = ("INT", "BIGINT")
_TEXTS = ("TEXT", "VARCHAR")
_MOMENTS = ("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME")
# Pinot's names that DuckDB does not know.
_OWN = {"BIG_DECIMAL": "DECIMAL(38, 18)", "BYTES": "BLOB"}
PINOT_TYPES = {
    "INT": "INTEGER", "LONG": "BIGINT", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN", "STRING": "VARCHAR",
    "BIG_DECIMAL": "DECIMAL(38, 18)", "TIMESTAMP": "TIMESTAMP", "JSON": "VARCHAR",
}  # fmt: skip


def pinot_type(name: str | None) -> str | None:
    """DuckDB's name of one of Pinot's types; None when it is none."""
    return PINOT_TYPES.get((name or "").upper())


def rewrite_casts(tree: exp.Query, types: ColumnTypes) -> None:
    """Puts every CAST of `tree` into DuckDB's words."""
    for node in reversed(list(tree.find_all(exp.Cast))):
        known = _OWN.get(str(node.to.args.get("kind") or "").upper())
        if known is not None:
            node.set("to", exp.DataType.build(known, dialect="duckdb"))
        target = node.to.this.name if isinstance(node.to.this, exp.DType) else ""
        if target in _WHOLE:
            node.set("this", _whole(node, types))
        elif target in _TEXTS and kind_of(node.this, types) is DECIMAL:
            # DuckDB writes all digits of the scale; the zeros behind are none of the number's.
            plain = cast(node.this, "VARCHAR")
            node.replace(call("regexp_replace", plain, text(r"\.?0*$"), text("")))
        elif target in _MOMENTS and kind_of(node.this, types) in {INT, LONG}:
            node.replace(as_timestamp(node.this, types))


def _whole(node: exp.Cast, types: ColumnTypes) -> exp.Expr:
    value: exp.Expr = node.this
    if is_temporal(value, types) and isinstance(value.unnest(), exp.Column):
        return as_millis(value, types)
    if kind_of(value, types) in {FLOAT, DOUBLE, DECIMAL}:
        return call("trunc", value)
    if not _is_text(value, types):
        return value
    number = cast(value, "DECIMAL(38, 9)")
    return call("trunc", exp.TryCast(this=value, to=number.to) if isinstance(node, exp.TryCast) else number)


def _is_text(value: exp.Expr, types: ColumnTypes) -> bool:
    inner = value.unnest()
    if isinstance(inner, exp.Column):
        return types.get(inner.name.lower()) is DataType.STRING
    return literal_text(inner) is not None
