"""Multi-value columns as in Pinot: a condition holds if any value meets it, and GROUP BY and DISTINCT use each value.

A negated condition (`<>`, NOT IN) holds if no value equals the named one.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from hybrid.schema.dialect import canonical
from hybrid.sql.calls import call, number
from hybrid.sql.nodes import nodes_of

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.Between, exp.In)
_MIRRORED: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.EQ, exp.NEQ: exp.NEQ, exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE,
}  # fmt: skip
_ELEMENT = "element"


def rewrite_lists(tree: exp.Query, lists: Collection[str]) -> None:
    """Rewrites conditions on and groups by the columns `lists` (lower case) into DuckDB's SQL."""
    if not lists:
        return
    for node in nodes_of(tree, *_COMPARISONS):
        _rewrite_condition(node, lists)
    for node in nodes_of(tree, exp.Anonymous):
        if canonical(node.name) == "regexplike" and node.expressions and _is_list(node.expressions[0], lists):
            _any_element(node, node.expressions[0])
    for select in nodes_of(tree, exp.Select):
        _group_by_elements(select, lists)


def _rewrite_condition(node: exp.Expr, lists: Collection[str]) -> None:
    if type(node) in _MIRRORED and _is_list(node.args["expression"], lists):
        mirrored = _MIRRORED[type(node)](this=node.args["expression"], expression=node.this)
        node.replace(mirrored)
        node = mirrored
    if not _is_list(node.this, lists) or _is_list(node.args.get("expression"), lists):
        return
    if isinstance(node, exp.NEQ):
        equal = exp.EQ(this=node.this, expression=node.expression)
        node.replace(exp.Not(this=exp.Paren(this=equal)))
        node = equal
    if not (isinstance(node, exp.In) and node.args.get("query")):
        _any_element(node, node.this)


def _any_element(condition: exp.Expr, column: exp.Expr) -> None:
    """Turns a condition on a list into a condition on any of its values."""
    of_one = condition.copy()
    first = of_one.expressions[0] if isinstance(of_one, exp.Anonymous) else of_one.this
    first.replace(exp.column(_ELEMENT))
    test = exp.Lambda(this=of_one, expressions=[exp.to_identifier(_ELEMENT)])
    condition.replace(exp.GT(this=call("len", call("list_filter", column.copy(), test)), expression=number(0)))


def _group_by_elements(select: exp.Select, lists: Collection[str]) -> None:
    group = select.args.get("group")
    shown = [item for item in select.expressions if _is_list(item.unalias(), lists)]
    aliases = {item.alias.lower(): item.this for item in shown if isinstance(item, exp.Alias)}
    meant = [(key, aliases.get(key.name.lower(), key)) for key in group.expressions] if group else []
    keys = [(key, column) for key, column in meant if _is_list(column, lists)]
    names = {column.name.lower() for _, column in keys}
    if select.args.get("distinct"):
        names |= {item.unalias().name.lower() for item in shown}
    for key, column in keys:
        key.replace(call("unnest", column.copy()))
    for item in shown:
        if item.unalias().name.lower() in names:
            item.replace(exp.alias_(call("unnest", item.unalias().copy()), item.alias_or_name, quoted=True))


def _is_list(node: exp.Expr | None, lists: Collection[str]) -> bool:
    inner = node.unnest() if node is not None else None
    return isinstance(inner, exp.Column) and inner.name.lower() in lists
