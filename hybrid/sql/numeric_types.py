"""The numeric type of a rewritten expression in DuckDB, by which its Spark SQL is chosen.

`None`: the expression is no number, or its type is known only at run time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError
from hybrid.schema.types import DataType
from hybrid.sql.calls import ColumnTypes, literal_number
from hybrid.sql.kinds import DECIMAL, DOUBLE, FLOAT, INT, LONG

DIGITS_MAX = 38
_CAST = {
    "INT": INT, "SMALLINT": INT, "TINYINT": INT, "BIGINT": LONG, "FLOAT": FLOAT, "DOUBLE": DOUBLE, "DECIMAL": DECIMAL,
}  # fmt: skip
_COLUMN_SCALE = 18
_LONGS = frozenset(
    ("length", "len", "strpos", "epoch_ms", "date_sub", "year", "quarter", "month", "week", "day", "isodow", "isoyear",
     "dayofyear", "hour", "minute", "second", "millisecond")
)  # fmt: skip
_DOUBLES = frozenset(("sqrt", "exp", "ln", "log2", "log10", "pow", "power"))
_ONE_OF = frozenset(("coalesce", "ifnull", "least", "greatest"))


@dataclass(frozen=True)
class NumericType:
    """A numeric type. `scale` counts the decimal places of a BIG_DECIMAL, `digits` the digits before the point."""

    kind: DataType
    scale: int = 0
    digits: int = DIGITS_MAX

    @property
    def is_whole(self) -> bool:
        """Whether it is INT or LONG."""
        return self.kind in {INT, LONG}


_OF_DIGITS = {INT: 10, LONG: 19}


def numeric_type(node: exp.Expr, types: ColumnTypes) -> NumericType | None:
    """The type of a rewritten expression. QueryError (700) for a decimal product with too many places."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return _of_column(types.get(node.name.lower()))
    if isinstance(node, exp.Literal):
        return _of_literal(node)
    if isinstance(node, exp.Neg):
        return numeric_type(node.this, types)
    if isinstance(node, exp.Div):
        return NumericType(DOUBLE)
    if isinstance(node, exp.IntDiv):
        return NumericType(LONG)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod):
        return _computed(node, types)
    if isinstance(node, exp.Cast):
        return _of_cast(node)
    if isinstance(node, exp.Case):
        values = [branch.args["true"] for branch in node.args["ifs"]]
        default = node.args.get("default")
        return _common([*values, *([default] if default is not None else [])], types)
    return _of_call(node, types) if isinstance(node, exp.Anonymous) else None


def _of_column(kind: DataType | None) -> NumericType | None:
    if kind is DECIMAL:
        return NumericType(DECIMAL, _COLUMN_SCALE, DIGITS_MAX - _COLUMN_SCALE)
    return NumericType(kind) if kind in {INT, LONG, FLOAT, DOUBLE} else None


def _of_literal(node: exp.Literal) -> NumericType | None:
    if node.is_string or literal_number(node) is None:
        return None
    if node.name.isdigit():
        return NumericType(INT if int(node.name) < 2**31 else LONG, 0, len(node.name))
    if "e" in node.name.lower():
        return NumericType(DOUBLE)
    whole, _, fraction = node.name.partition(".")
    return NumericType(DECIMAL, len(fraction), len(whole.lstrip("0")))


def _of_cast(node: exp.Cast) -> NumericType | None:
    kind = _CAST.get(node.to.this.name if isinstance(node.to.this, exp.DType) else "")
    if kind is not DECIMAL:
        return NumericType(kind) if kind else None
    sizes = [int(size.name) for size in node.to.expressions if size.name.isdigit()] or [18, 3]
    scale = sizes[1] if len(sizes) > 1 else 0
    return NumericType(DECIMAL, scale, sizes[0] - scale)


def _computed(node: exp.Binary, types: ColumnTypes) -> NumericType | None:
    left, right = numeric_type(node.this, types), numeric_type(node.expression, types)
    if left is None or right is None:
        return None
    if {left.kind, right.kind} & {FLOAT, DOUBLE}:
        return NumericType(DOUBLE)
    if DECIMAL not in {left.kind, right.kind}:
        return NumericType(LONG)
    scale = left.scale + right.scale if isinstance(node, exp.Mul) else max(left.scale, right.scale)
    if scale > DIGITS_MAX:
        raise QueryError(
            f"'{node.sql('duckdb')}' needs {scale} decimal places; a decimal has at most {DIGITS_MAX}. "
            "Cast a side to DOUBLE, or to a DECIMAL with fewer places.",
            pinot_code=VALIDATION,
        )
    return NumericType(DECIMAL, scale, DIGITS_MAX - scale)


def _of_call(node: exp.Anonymous, types: ColumnTypes) -> NumericType | None:
    name, arguments = node.name.lower(), node.expressions
    if name in _LONGS:
        return NumericType(LONG)
    if name in _DOUBLES:
        return NumericType(DOUBLE)
    if name in _ONE_OF:
        return _common(arguments, types)
    if name == "if" and len(arguments) == 3:
        return _common(arguments[1:], types)
    if name in {"abs", "nullif"}:
        return numeric_type(arguments[0], types)
    return _rounded(name, numeric_type(arguments[0], types), arguments[1:]) if name in _ROUNDING else None


_ROUNDING = frozenset(("ceil", "ceiling", "floor", "round", "trunc"))


def _rounded(name: str, given: NumericType | None, places: list[exp.Expr]) -> NumericType | None:
    if given is None or given.kind in {FLOAT, DOUBLE}:
        return given
    if given.kind is DECIMAL:
        scale = int(literal_number(places[0]) or 0) if places else 0
        return NumericType(DECIMAL, min(max(scale, 0), given.scale), given.digits)
    return NumericType(DOUBLE) if name in {"ceil", "ceiling", "floor"} else given


def _common(nodes: Iterable[exp.Expr], types: ColumnTypes) -> NumericType | None:
    """The common type of several values; nulls are ignored."""
    numerics = [numeric_type(node, types) for node in nodes if not isinstance(node.unnest(), exp.Null)]
    numbers = [numeric for numeric in numerics if numeric is not None]
    if not numbers or len(numbers) != len(numerics):
        return None
    kinds = {numeric.kind for numeric in numbers}
    for kind in (DOUBLE, FLOAT):
        if kind in kinds:
            return NumericType(DOUBLE if DECIMAL in kinds else kind)
    if DECIMAL in kinds:
        scale = max(numeric.scale for numeric in numbers)
        return NumericType(
            DECIMAL, scale, max(min(numeric.digits, _OF_DIGITS.get(numeric.kind, DIGITS_MAX)) for numeric in numbers)
        )
    return NumericType(LONG if LONG in kinds else INT)
