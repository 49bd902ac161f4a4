"""Converts constants that are compared with a column to the column's type, while their positions are still known.

A query leaves much of this to DuckDB, which converts the constant's text at run time. Spark would take `1637490000000`
for seconds, and report only at run time that 'PENDNG' is no number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from sqlglot import exp

from hybrid.schema.types import DataType
from hybrid.schema.values import EXPECTED, to_boolean, to_bytes, to_decimal, to_double, to_timestamp
from hybrid.sql.calls import ColumnTypes, cast, literal_number, literal_text, text
from hybrid.sql.nodes import nodes_of

_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
Refuse = Callable[[exp.Expr, str], Exception]


def fit_compared(tree: exp.Expr, types: ColumnTypes, refuse: Refuse) -> None:
    """Converts every constant that is compared with a column to its type; `refuse` makes the error if that fails."""
    for side, other in list(_pairs(tree)):
        column = side.unnest()
        kind = types.get(column.name.lower()) if isinstance(column, exp.Column) else None
        if kind is not None:
            other.replace(fitted(other, kind, refuse))


def fitted(node: exp.Expr, kind: DataType, refuse: Refuse) -> exp.Expr:
    """The constant converted to type `kind`; any other expression unchanged."""
    plain = node.unnest()
    written, number = literal_text(plain), literal_number(plain)
    if written is None and number is None and not isinstance(plain, exp.Boolean):
        return node
    try:
        return _FIT[kind](plain, written) if kind in _FIT else node
    except (ValueError, ArithmeticError, TypeError, KeyError):
        raise refuse(node, f"{plain.sql('duckdb')} is not {EXPECTED[kind]}") from None


def moment_literal(moment: datetime) -> exp.Expr:
    """A constant instant, to the microsecond."""
    return cast(text(moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ")), "TIMESTAMP")


def _pairs(tree: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    for node in nodes_of(tree, *_COMPARED, exp.Between, exp.In):
        if isinstance(node, exp.Between):
            yield from ((node.this, node.args[end]) for end in ("low", "high"))
        elif isinstance(node, exp.In):
            yield from ((node.this, item) for item in node.expressions)
        else:
            yield from ((node.this, node.expression), (node.expression, node.this))


def _number(node: exp.Expr, written: str | None) -> exp.Expr:
    """A quoted number as a number."""
    if isinstance(node, exp.Boolean):
        raise TypeError("not a number")
    if written is None:
        return node.copy()
    if not math.isfinite(to_double(written)):
        return cast(text(written), "DOUBLE")
    digits = written.strip().lstrip("+")
    negative = digits.startswith("-")
    literal = exp.Literal.number(digits.lstrip("-"))
    return exp.Paren(this=exp.Neg(this=literal)) if negative else literal


def _float(node: exp.Expr, written: str | None) -> exp.Expr:
    """A number in 32 bits, like the column: 15.948 as a double is another number."""
    return cast(_number(node, written), "FLOAT")


def _decimal(node: exp.Expr, written: str | None) -> exp.Expr:
    if written is not None:
        to_decimal(written)
    return _number(node, written)


def _boolean(node: exp.Expr, written: str | None) -> exp.Expr:
    if isinstance(node, exp.Boolean):
        return node
    number = literal_number(node)
    return exp.Boolean(this=to_boolean(written if written is not None else number))


def _moment(node: exp.Expr, written: str | None) -> exp.Expr:
    """A text as an instant; a number is epoch milliseconds."""
    return moment_literal(to_timestamp(written if written is not None else int(node.sql("duckdb"))))


def _bytes(node: exp.Expr, written: str | None) -> exp.Expr:
    to_bytes(written)
    return node


_FIT: dict[DataType, Callable[[exp.Expr, str | None], exp.Expr]] = {
    DataType.INT: _number,
    DataType.LONG: _number,
    DataType.FLOAT: _float,
    DataType.DOUBLE: _number,
    DataType.BIG_DECIMAL: _decimal,
    DataType.BOOLEAN: _boolean,
    DataType.TIMESTAMP: _moment,
    DataType.BYTES: _bytes,
}
