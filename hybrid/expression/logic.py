"""Conditions of expressions: comparisons, three-valued logic, CASE, and replacements of nulls.

After Pinot's LogicalFunctions, ObjectFunctions and comparison package. Pinot compares only doubles in transforms; here
two texts are compared as texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hybrid.expression.arguments import equal, items, less, text, truth
from hybrid.expression.rules import Node, Rule


def not_less(one: object, other: object) -> bool:
    """The comparison `a >= b`; NaN is the greatest number, and equals itself."""
    return less(other, one) or equal(one, other)


def between(value: object, low: object, high: object) -> bool | None:
    """The comparison `low <= value <= high`: false when one bound is violated, even if the other is null."""
    if value is None:
        return None
    bounds = [low is None or not_less(value, low), high is None or not_less(high, value)]
    return False if not all(bounds) else None if low is None or high is None else True


def contained(value: object, *others: object) -> bool | None:
    """The test `a IN (...)`: null when no value is equal and one of them is null."""
    if value is None:
        return None
    if any(other is not None and equal(value, other) for other in others):
        return True
    return None if any(other is None for other in others) else False


def distinct(one: object, other: object) -> bool:
    """The test `a IS DISTINCT FROM b`."""
    return (one is None) != (other is None) if one is None or other is None else not equal(one, other)


def negation(value: object) -> bool | None:
    """NOT a."""
    operand = truth(value)
    return None if operand is None else not operand


def all_of(nodes: Sequence[Node]) -> Node:
    """AND, which stops at the first operand that is false."""
    return _joined(nodes, stop=False)


def any_of(nodes: Sequence[Node]) -> Node:
    """OR, which stops at the first operand that is true."""
    return _joined(nodes, stop=True)


def _joined(nodes: Sequence[Node], *, stop: bool) -> Node:
    def node(record: Mapping[str, object], now_ms: int | None) -> object:
        result: bool | None = not stop
        for operand in nodes:
            value = truth(operand(record, now_ms))
            if value is stop:
                return stop
            if value is None:
                result = None
        return result

    return node


def case(branches: Sequence[tuple[Node, Node]], otherwise: Node) -> Node:
    """CASE WHEN ... THEN ... ELSE ... END. Only the chosen branch is evaluated."""

    def node(record: Mapping[str, object], now_ms: int | None) -> object:
        for condition, result in branches:
            if condition(record, now_ms) is True:
                return result(record, now_ms)
        return otherwise(record, now_ms)

    return node


def _coalesce(*values: object) -> object:
    return next((value for value in values if value is not None), None)


def _null_if(one: object, other: object) -> object:
    return None if one is None or (other is not None and equal(one, other)) else one


def _compare(one: object, other: object) -> int:
    """strcmp: -1, 0 or 1, where Pinot returns Java's distance."""
    first, second = text(one), text(other)
    return (first > second) - (first < second)


def _opposite(test: Callable[..., bool]) -> Callable[..., bool]:
    return lambda *values: not test(*values)


RULES: dict[str, Rule] = {
    "equals": Rule(2, 2, equal),
    "notEquals": Rule(2, 2, _opposite(equal)),
    "lessThan": Rule(2, 2, less),
    "lessThanOrEqual": Rule(2, 2, lambda value, other: not_less(other, value)),
    "greaterThan": Rule(2, 2, lambda value, other: less(other, value)),
    "greaterThanOrEqual": Rule(2, 2, not_less),
    "strcmp": Rule(2, 2, _compare),
    "isNull": Rule(1, 1, lambda value: value is None, nulls=True),
    "isNotNull": Rule(1, 1, lambda value: value is not None, nulls=True),
    "isDistinctFrom": Rule(2, 2, distinct, nulls=True),
    "isNotDistinctFrom": Rule(2, 2, _opposite(distinct), nulls=True),
    "coalesce": Rule(1, None, _coalesce, nulls=True),
    "ifNull": Rule(2, 2, _coalesce, nulls=True),
    "nullIf": Rule(2, 2, _null_if, nulls=True),
    "arrayLength": Rule(1, 1, lambda value: len(items(value))),
}
