"""Rules of functions, and the closures of their calls.

A node is called with a record and the present time (epoch milliseconds, None where there is none).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Node = Callable[[Mapping[str, object], int | None], object]
Prepare = Callable[[object], object]


@dataclass(frozen=True)
class Rule:
    """The rule of a function: `fewest` to `most` arguments (None: any number), and `apply`, its implementation.

    `constants` maps positions of arguments that must be constants to their converters, which run once; a ValueError
    there refuses the expression. The result for a null argument is null unless `nulls`. With `clock` the first
    argument of `apply` is the present time.
    """

    fewest: int
    most: int | None
    apply: Callable[..., object]
    constants: Mapping[int, Prepare] = field(default_factory=dict)
    nulls: bool = False
    clock: bool = False


def call(rule: Rule, arguments: Sequence[Node]) -> Node:
    """The closure that applies `rule` to the values of its arguments."""
    if rule.clock:
        return _with_clock(rule.apply, arguments)
    if rule.nulls:
        return _with_nulls(rule.apply, arguments)
    return _of_one(rule.apply, arguments[0]) if len(arguments) == 1 else _of_many(rule.apply, arguments)


def constant(value: object) -> Node:
    """The closure of a constant."""
    return lambda record, now_ms: value


def _of_one(apply: Callable[..., object], argument: Node) -> Node:
    def node(record: Mapping[str, object], now_ms: int | None) -> object:
        value = argument(record, now_ms)
        return None if value is None else apply(value)

    return node


def _of_many(apply: Callable[..., object], arguments: Sequence[Node]) -> Node:
    def node(record: Mapping[str, object], now_ms: int | None) -> object:
        values = []
        for argument in arguments:
            value = argument(record, now_ms)
            if value is None:
                return None
            values.append(value)
        return apply(*values)

    return node


def _with_nulls(apply: Callable[..., object], arguments: Sequence[Node]) -> Node:
    return lambda record, now_ms: apply(*[argument(record, now_ms) for argument in arguments])


def _with_clock(apply: Callable[..., object], arguments: Sequence[Node]) -> Node:
    def node(record: Mapping[str, object], now_ms: int | None) -> object:
        if now_ms is None:
            raise ValueError("it is not known what counts as now")
        return apply(now_ms, *[argument(record, now_ms) for argument in arguments])

    return node
