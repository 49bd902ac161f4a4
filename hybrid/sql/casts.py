"""CAST as in Pinot: its names of types, fractions cut towards zero, timestamps as epoch milliseconds."""

from __future__ import annotations

from sqlglot import exp

from hybrid.schema.dialect import canonical
from hybrid.schema.types import DataType
from hybrid.sql.calls import ColumnTypes, call, cast, literal_text, text
from hybrid.sql.infer import is_time, type_of
from hybrid.sql.kinds import DECIMAL, DOUBLE, FLOAT, kind_of
from hybrid.sql.nodes import nodes_of
from hybrid.sql.wholes import as_instant, as_milliseconds, as_whole, cut_millis

_WHOLE = ("INT", "BIGINT", "SMALLINT", "TINYINT", "INT128", "UINT", "UBIGINT", "USMALLINT", "UTINYINT")
_FRACTIONS = ("FLOAT", "DOUBLE", "DECIMAL")
_DOUBLES = (FLOAT, DOUBLE)
_TEXTS = ("TEXT", "VARCHAR")
_MOMENTS = ("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME")
# Pinot's names that DuckDB does not know.
_OWN = {"BIG_DECIMAL": "DECIMAL(38, 18)", "BYTES": "BLOB"}
PINOT_TYPES = {
    "INT": "INTEGER", "LONG": "BIGINT", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN", "STRING": "VARCHAR",
    "BIG_DECIMAL": "DECIMAL(38, 18)", "TIMESTAMP": "TIMESTAMP", "JSON": "VARCHAR",
}  # fmt: skip


def pinot_type(name: str | None) -> str | None:
    """DuckDB's name of one of Pinot's types; None for any other name."""
    return PINOT_TYPES.get((name or "").upper())


def rewrite_casts(tree: exp.Query, types: ColumnTypes, *, rows: bool = False) -> None:
    """Rewrites every CAST of `tree` for DuckDB; for row expressions (`rows`) only into forms that Spark has too."""
    for operand in [value for node in nodes_of(tree, exp.DPipe, exp.Anonymous) for value in _joined(node, types)]:
        operand.replace(cast(operand.copy(), "VARCHAR"))
    for node in reversed(nodes_of(tree, exp.Cast)):
        own_type = _OWN.get(str(node.to.args.get("kind") or "").upper())
        if own_type is not None:
            node.set("to", exp.DataType.build(own_type, dialect="duckdb"))
        _rewrite_cast(node, types, rows)


def _rewrite_cast(node: exp.Cast, types: ColumnTypes, rows: bool) -> None:
    target = node.to.this.name if isinstance(node.to.this, exp.DType) else ""
    if target in _WHOLE:
        node.set("this", _whole(node, types, rows))
    elif target in _TEXTS:
        _rewrite_cast_to_text(node, types, rows)
    elif target in _FRACTIONS and type_of(node.this, types) is DataType.TIMESTAMP:
        node.set("this", as_milliseconds(node.this, types, rows=rows))
    elif target == "DECIMAL" and (kind := kind_of(node.this, types)) in _DOUBLES and (kind is FLOAT or not rows):
        # By its shortest text, as in Java and Spark: 0.1 becomes 0.1, not the exact value of the double.
        node.set("this", cast(node.this, "VARCHAR"))
    elif target in _MOMENTS and _is_instant(node.this, types, rows):
        node.replace(as_instant(node.this, types, rows=rows))


def _rewrite_cast_to_text(node: exp.Cast, types: ColumnTypes, rows: bool) -> None:
    kind = kind_of(node.this, types)
    if kind is DECIMAL:
        # DuckDB writes all digits of the scale, at most 38: trailing zeros are removed.
        plain = cast(node.this, "VARCHAR")
        node.replace(call("regexp_replace", plain, text(r"(\.[0-9]{0,40}[1-9])0+$|\.0+$"), text(r"\1")))
    elif type_of(node.this, types) is DataType.BYTES:
        node.set("this", call("lower", call("hex", node.this)))
    elif kind in _DOUBLES and not rows:
        node.replace(_named_specials(node))


def _joined(node: exp.Expr, types: ColumnTypes) -> list[exp.Expr]:
    """The fractional numbers that are concatenated with texts, which must be written as CAST writes them."""
    if isinstance(node, exp.DPipe):
        values = [node.this, node.expression]
    elif isinstance(node, exp.Anonymous) and canonical(node.name) in {"concat", "concatws"}:
        values = list(node.expressions)
    else:
        return []
    return [value for value in values if kind_of(value, types) in {FLOAT, DOUBLE, DECIMAL}]


def _named_specials(node: exp.Cast) -> exp.Expr:
    """The text of a double, with NaN and infinities as Java and PostgreSQL name them."""
    plain: exp.Expr = node.copy()
    for ours, name in (("-nan", "nan"), ("nan", "NaN"), ("inf", "Infinity")):
        plain = call("replace", plain, text(ours), text(name))
    return cast(plain, "VARCHAR")


def _is_instant(value: exp.Expr, types: ColumnTypes, rows: bool) -> bool:
    """Whether a value that is cast to a timestamp is, or may be, epoch milliseconds."""
    if kind_of(value, types) is not None:
        return True
    written = literal_text(value.unnest())
    if written is not None:
        return written.lstrip("-").isdigit()
    return not rows and type_of(value, types) is None and not is_time(value, types) and not _is_null(value)


def _is_null(value: exp.Expr) -> bool:
    return isinstance(value.unnest(), exp.Null)


def _whole(node: exp.Cast, types: ColumnTypes, rows: bool) -> exp.Expr:
    value: exp.Expr = node.this
    if is_time(value, types):
        return cut_millis(value, rows=rows)
    kind = type_of(value, types)
    if kind in {FLOAT, DOUBLE, DECIMAL}:
        return call("trunc", value)
    if kind is DataType.STRING or literal_text(value.unnest()) is not None:
        exact = exp.DataType.build("DECIMAL(38, 18)", dialect="duckdb")
        return call("trunc", (exp.TryCast if isinstance(node, exp.TryCast) else exp.Cast)(this=value, to=exact))
    if kind is not None or rows or _is_null(value) or isinstance(node, exp.TryCast):
        return value
    return as_whole(value, types)
