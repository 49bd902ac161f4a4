"""Operators as Pinot computes them: never in 32 bits, decimal literals as doubles, `divide(a, b)` as `a / b`.

Whole numbers stay exact, in 64 bits; an operation with a fraction is DOUBLE. BIG_DECIMALs stay exact.
"""

from __future__ import annotations

from sqlglot import exp

from hybrid.schema.dialect import canonical
from hybrid.schema.types import DataType
from hybrid.sql.calls import ColumnTypes, cast
from hybrid.sql.infer import TIMESTAMP, is_step, is_time, type_of
from hybrid.sql.kinds import DECIMAL, FLOAT, INT, is_fraction, kind_of
from hybrid.sql.nodes import nodes_of
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
    """Rewrites operators and number literals so that DuckDB computes as Pinot does."""
    for node in nodes_of(tree, exp.Anonymous):
        if canonical(node.name) in _OPERATORS and len(node.expressions) == 2:
            left, right = (exp.Paren(this=side) for side in node.expressions)
            node.replace(exp.Paren(this=_OPERATORS[canonical(node.name)](this=left, expression=right)))
    for operation in reversed(nodes_of(tree, exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Div)):
        _count_millis(operation, types, rows)
    # All operands are collected before any is changed, because a cast around one changes the types that others see.
    operands = [pair for node in nodes_of(tree, exp.Binary, exp.Neg, exp.Anonymous) for pair in _operands(node, types)]
    fractions = [node for node in nodes_of(tree, exp.Literal) if is_fraction(node) and _is_computed(node, types)]
    for operand, kind in operands:
        operand.replace(cast(operand.copy(), _WIDER[kind]))
    for fraction in fractions:
        fraction.replace(cast(fraction.copy(), "DOUBLE"))


def _count_millis(node: exp.Binary, types: ColumnTypes, rows: bool) -> None:
    """Turns a TIMESTAMP operand into epoch milliseconds, unless the other operand is a step of time."""
    sides = (node.this, node.expression)
    if TIMESTAMP not in {type_of(side, types) for side in sides} or any(is_step(side) for side in sides):
        return
    if any(is_time(side, types) and type_of(side, types) is not TIMESTAMP for side in sides):
        return  # a DATE: DuckDB computes in days
    for side in sides:
        if type_of(side, types) is TIMESTAMP:
            side.replace(cut_millis(side.copy(), rows=rows))


def _operands(node: exp.Expr, types: ColumnTypes) -> list[tuple[exp.Expr, DataType]]:
    """The operands that DuckDB would compute in 32 bits, and their types."""
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
    typed_sides = [(side, kind_of(side, types)) for side in sides]
    widened = {FLOAT} if isinstance(node, exp.Div) else set(_WIDER)  # whole numbers are divided in doubles anyway
    return [
        (side, kind) for side, kind in typed_sides if kind in widened and not isinstance(side.unnest(), exp.Literal)
    ]


def _is_computed(node: exp.Expr, types: ColumnTypes) -> bool:
    """Whether a literal is an operand of arithmetic or is shown.

    In comparisons with a column DuckDB's own rule is right, and as arguments most functions need plain literals.
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
