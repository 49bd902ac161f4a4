"""Which numeric type an expression surely has: what must be known before it is computed with.

DuckDB computes INT with INT in 32 bits and FLOAT with FLOAT in 32 bits, and takes `2.5` for a decimal; Pinot computes
with doubles. `None` is anything that cannot be told from the text, or is no number.
"""

from __future__ import annotations

from sqlglot import exp

from hybrid.spec.types import DataType
from hybrid.sql.calls import ColumnTypes, literal_number

INT, LONG, FLOAT, DOUBLE, DECIMAL = DataType.INT, DataType.LONG, DataType.FLOAT, DataType.DOUBLE, DataType.BIG_DECIMAL
_NUMBERS = (INT, LONG, FLOAT, DOUBLE, DECIMAL)
_CASTS = {
    "INT": INT, "BIGINT": LONG, "SMALLINT": INT, "TINYINT": INT, "FLOAT": FLOAT, "DOUBLE": DOUBLE, "DECIMAL": DECIMAL,
}  # fmt: skip
# Calls whose value has the type of their first argument.
_SAME = frozenset(("min", "max", "abs", "any_value", "first", "last", "arg_min", "arg_max", "coalesce", "lag", "lead"))
_DOUBLE_CALLS = frozenset(
    ("avg", "sqrt", "exp", "ln", "log", "log2", "log10", "power", "pow", "percentile", "stddev", "variance", "floor")
)


def kind_of(node: exp.Expr, types: ColumnTypes) -> DataType | None:
    """The numeric type of an expression as its user wrote it, or None."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        found = types.get(node.name.lower())
        return found if found in _NUMBERS else None
    if isinstance(node, exp.Literal):
        return None if node.is_string else _literal_kind(node)
    if isinstance(node, exp.Neg):
        return kind_of(node.this, types)
    if isinstance(node, exp.Div):
        return DOUBLE
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod):
        return _wider(kind_of(node.this, types), kind_of(node.expression, types))
    if isinstance(node, exp.Cast):
        return _CASTS.get(node.to.this.name)
    if isinstance(node, exp.Filter | exp.Window):
        return kind_of(node.this, types)
    return _call_kind(node, types) if isinstance(node, exp.Anonymous) else None


def is_fraction(node: exp.Expr) -> bool:
    """Whether the node is a number literal with a point or an exponent, which DuckDB may read as a decimal."""
    return isinstance(node, exp.Literal) and not node.is_string and not node.name.isdigit()


def _literal_kind(node: exp.Literal) -> DataType | None:
    if literal_number(node) is None:
        return None
    if is_fraction(node):
        return DOUBLE
    return INT if int(node.name) < 2**31 else LONG


def _call_kind(node: exp.Anonymous, types: ColumnTypes) -> DataType | None:
    name = node.name.lower()
    if name in _DOUBLE_CALLS:
        return DOUBLE
    return kind_of(node.expressions[0], types) if name in _SAME and node.expressions else None


def _wider(left: DataType | None, right: DataType | None) -> DataType | None:
    if left is None or right is None:
        return None
    if DECIMAL in {left, right}:
        return DECIMAL
    return DOUBLE if {left, right} & {FLOAT, DOUBLE} else LONG
