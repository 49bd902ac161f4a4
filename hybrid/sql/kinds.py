"""The numeric type of an expression, where its text determines it; arithmetic depends on it.

DuckDB computes INT with INT in 32 bits and FLOAT with FLOAT in 32 bits, and reads `2.5` as a decimal; Pinot computes
with doubles. `None`: the text does not determine the type, or it is no number.
"""

from __future__ import annotations

from sqlglot import exp

from hybrid.schema.types import DataType
from hybrid.sql.calls import ColumnTypes
from hybrid.sql.infer import DECIMAL, DOUBLE, FLOAT, INT, LONG, NUMBERS, is_fraction, type_of

__all__ = ["DECIMAL", "DOUBLE", "FLOAT", "INT", "LONG", "is_fraction", "kind_of"]


def kind_of(node: exp.Expr, types: ColumnTypes) -> DataType | None:
    """The numeric type of an expression before rewriting, or None."""
    kind = type_of(node, types)
    return kind if kind in NUMBERS else None
