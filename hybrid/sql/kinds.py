"""Which numeric type an expression surely has: what must be known before it is computed with.

DuckDB computes INT with INT in 32 bits and FLOAT with FLOAT in 32 bits, and takes `2.5` for a decimal; Pinot computes
with doubles. `None` is anything that cannot be told from the text, or is no number.
"""

from __future__ import annotations

from sqlglot import exp

from hybrid.schema.types import DataType
from hybrid.sql.calls import ColumnTypes
from hybrid.sql.infer import DECIMAL, DOUBLE, FLOAT, INT, LONG, NUMBERS, is_fraction, type_of

__all__ = ["DECIMAL", "DOUBLE", "FLOAT", "INT", "LONG", "is_fraction", "kind_of"]


def kind_of(node: exp.Expr, types: ColumnTypes) -> DataType | None:
    """The numeric type of an expression as its user wrote it, or None."""
    found = type_of(node, types)
    return found if found in NUMBERS else None
