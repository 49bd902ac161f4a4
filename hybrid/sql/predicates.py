"""Extracts predicates on a table reference: the comparisons with constants that its WHERE joins by AND.

A row for which one of these is not true cannot be in the answer. So a file whose statistics rule it out need not be
read. Only certain predicates are used; in doubt a file is read.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from hybrid.sql.calls import literal_number, literal_text
from hybrid.sql.tables import TableMention

Constant = int | float | str
_WHOLE = re.compile("[0-9]+")
_DIGITS_MAX = 100


@dataclass(frozen=True)
class Comparison:
    """A predicate `column op value`; op is one of `< <= > >= = in`. `values` has one element, except for `in`."""

    column: str
    op: str
    values: tuple[Constant, ...]

    def possible(self, low: object, high: object) -> bool:
        """Whether a value between `low` and `high` (either may be unknown: None) can satisfy it."""
        return any(_possible(self.op, value, low, high) for value in self.values)


_OPS: dict[type[exp.Expr], str] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.EQ: "="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_TESTS: dict[str, Callable[..., bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def comparisons_on(ref: TableMention, columns: Sequence[str]) -> list[Comparison]:
    """The certain comparisons on the reference's `columns` (the table's own spelling)."""
    select = ref.node.find_ancestor(exp.Select)
    if select is None or not _direct(ref, select):
        return []
    where = select.args.get("where")
    names = {name.lower(): name for name in columns}
    alone = _only_source(select)
    comparisons: list[Comparison] = []
    for condition in _conjuncts(where.this) if where else ():
        comparisons.extend(_comparison(condition, ref.alias.lower(), names, alone))
    return comparisons


def _direct(ref: TableMention, select: exp.Select) -> bool:
    """Whether the reference is a plain source in this SELECT's FROM, and no join looks for the *nearest* of its rows.

    References with column aliases do not count, nor sources that WHERE does not see: there a name means another column.
    """
    joins = [join for join in select.args.get("joins") or ()]
    if ref.node.alias_column_names:
        return False
    if isinstance(ref.node.parent, exp.Join) and (ref.node.parent.args.get("kind") or "").upper() in {"ANTI", "SEMI"}:
        return False
    if any((join.args.get("method") or "").upper() in {"ASOF", "POSITIONAL"} for join in joins):
        return False
    if ref.node.args.get("sample") or select.args.get("sample") or ref.node.args.get("joins"):
        return False
    from_ = select.args.get("from_")
    return ref.node.parent in (from_, *joins)


def _only_source(select: exp.Select) -> bool:
    return not (select.args.get("joins") or select.args.get("laterals"))


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    waiting = [node]
    while waiting:
        node = waiting.pop().unnest()
        if isinstance(node, exp.And):
            waiting += [node.expression, node.this]
        else:
            yield node


def _comparison(node: exp.Expr, alias: str, known: dict[str, str], alone: bool) -> Iterator[Comparison]:
    def column(side: exp.Expr) -> str | None:
        side = side.unnest()
        if not isinstance(side, exp.Column) or (side.table.lower() != alias and (side.table or not alone)):
            return None
        return known.get(side.name.lower())

    if type(node) in _OPS:
        yield from _two_sided(_OPS[type(node)], node.this, node.expression, column)
    elif isinstance(node, exp.Between):
        yield from _two_sided(">=", node.this, node.args["low"], column)
        yield from _two_sided("<=", node.this, node.args["high"], column)
    elif isinstance(node, exp.In) and node.expressions:
        name, values = column(node.this), [constant(item) for item in node.expressions]
        certain = tuple(value for value in values if value is not None)
        if name and len(certain) == len(values):
            yield Comparison(name, "in", certain)


def _two_sided(
    op: str, left: exp.Expr, right: exp.Expr, column: Callable[[exp.Expr], str | None]
) -> Iterator[Comparison]:
    for side, other, directed in ((left, right, op), (right, left, _MIRRORED[op])):
        name, value = column(side), constant(other)
        if name and value is not None:
            yield Comparison(name, directed, (value,))


def constant(node: exp.Expr) -> Constant | None:
    """The value of a literal; whole numbers are exact integers. None for any other expression."""
    node = node.unnest()
    text = literal_text(node)
    if text is not None:
        return text
    value = literal_number(node)
    if value is None:
        return None
    sign, literal = (-1, node.this.unnest()) if isinstance(node, exp.Neg) else (1, node)
    if not isinstance(literal, exp.Literal) or _WHOLE.fullmatch(literal.name) is None:
        return value if math.isfinite(value) else None
    return sign * int(literal.name) if len(literal.name) <= _DIGITS_MAX else None  # no column holds so many digits


def _possible(op: str, value: Constant, low: object, high: object) -> bool:
    if op in {"=", "in"}:
        return _possible("<=", value, low, high) and _possible(">=", value, low, high)
    bound = low if op in {"<", "<="} else high
    if isinstance(value, str) != isinstance(bound, str) or not isinstance(bound, int | float | str):
        return True  # unknown, or of another type: DuckDB would convert, we do not
    return isinstance(bound, bool) or _TESTS[op](bound, value)
