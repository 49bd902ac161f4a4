"""Operators as Pinot computes them: never in 32 bits, decimals as doubles, `divide(a, b)` as `a / b`.

Whole numbers stay whole and exact, in 64 bits; as soon as a fraction takes part, all is DOUBLE. BIG_DECIMALs stay
exact.
"""

from __future__ import annotations

from sqlglot import exp

from hybrid.schema.dialect import canonical
from hybrid.schema.types import DataType
from hybrid.sql.calls import ColumnTypes, cast
from hybrid.sql.infer import TIMESTAMP, is_step, is_time, type_of
from hybrid.sql.kinds import DECIMAL, FLOAT, INT, is_fraction, kind_of
from hybrid.sql.wholes import cut_millis

_OPERATORS: dict[str, type[exp.Binary]] = {
    "add": exp.Add, "plus": exp.Add, "sub": exp.Sub, "minus": exp.Sub, "mult": exp.Mul, "times": exp.Mul,
    "div": exp.Div, "divide": exp.Div, "mod": exp.Mod,
}  # fmt: skip
NAMES = frozenset(_OPERATORS)
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
# Functions whose value is one of their arguments.
_VALUES = frozenset(("least", "greatest", "coalesce", "ifnull", "nullif", "if", "sum", "avg", "min", "max", "abs"))
_WIDER = {INT: "BIGINT", FLOAT: "DOUBLE"}


def rewrite_arithmetic(tree: exp.Query, types: ColumnTypes, *, rows: bool = False) -> None:
    """Puts operators and number literals into the words in which DuckDB computes as Pinot does."""
    for node in list(tree.find_all(exp.Anonymous)):
        if canonical(node.name) in _OPERATORS and len(node.expressions) == 2:
            left, right = (exp.Paren(this=side) for side in node.expressions)
            node.replace(exp.Paren(this=_OPERATORS[canonical(node.name)](this=left, expression=right)))
    for operation in reversed(list(tree.find_all(exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Div))):
        _count_millis(operation, types, rows)
    # All are found before one is changed: a cast put around an operand must not change what others see of it.
    operands = [found for node in tree.find_all(exp.Binary, exp.Neg, exp.Anonymous) for found in _operands(node, types)]
    fractions = [node for node in tree.find_all(exp.Literal) if is_fraction(node) and _is_computed(node, types)]
    for operand, kind in operands:
        operand.replace(cast(operand.copy(), _WIDER[kind]))
    for fraction in fractions:
        fraction.replace(cast(fraction.copy(), "DOUBLE"))


def _count_millis(node: exp.Binary, types: ColumnTypes, rows: bool) -> None:
    """A TIMESTAMP that is computed with is epoch milliseconds, unless a step of time is added to it."""
    sides = (node.this, node.expression)
    if TIMESTAMP not in {type_of(side, types) for side in sides} or any(is_step(side) for side in sides):
        return
    if any(is_time(side, types) and type_of(side, types) is not TIMESTAMP for side in sides):
        return  # a DATE, which DuckDB computes with in days
    for side in sides:
        if type_of(side, types) is TIMESTAMP:
            side.replace(cut_millis(side.copy(), rows=rows))


def _operands(node: exp.Expr, types: ColumnTypes) -> list[tuple[exp.Expr, DataType]]:
    """The operands that would be computed with in 32 bits, and their types."""
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod | exp.Div):
        sides = [node.this, node.expression]
        if any(isinstance(side, exp.Interval) or is_time(side, types) for side in sides):
            return []
    elif isinstance(node, exp.Neg) and not isinstance(node.this, exp.Literal):
        sides = [node.this]
    elif isinstance(node, exp.Anonymous) and canonical(node.name) in {"abs", "minmaxrange"}:
        sides = list(node.expressions[:1])
    else:
        return []
    found = [(side, kind_of(side, types)) for side in sides]
    widened = {FLOAT} if isinstance(node, exp.Div) else set(_WIDER)  # whole numbers are divided in doubles anyway
    return [(side, kind) for side, kind in found if kind in widened and not isinstance(side.unnest(), exp.Literal)]


def _is_computed(node: exp.Expr, types: ColumnTypes) -> bool:
    """Whether a literal is computed with or shown.

    Compared with a column DuckDB's own rule is right, and as an argument most functions want it plain.
    """
    inside, around = node, node.parent
    while isinstance(around, exp.Paren | exp.Neg):
        inside, around = around, around.parent
    if isinstance(around, (*_COMPARED, exp.Cast, exp.Limit, exp.Offset, exp.Interval, exp.TableSample)):
        return False
    if isinstance(around, exp.Anonymous):
        return canonical(around.name) in _VALUES
    if isinstance(around, exp.Binary):
        other = around.expression if around.this is inside else around.this
        return kind_of(other, types) is not DECIMAL
    return True
