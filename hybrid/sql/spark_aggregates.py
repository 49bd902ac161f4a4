"""Aggregations and window functions in Spark SQL with DuckDB's results, by DuckDB's name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sqlglot import exp

_LONG = "CAST({} AS decimal(20, 0))"
_WHOLE = frozenset(("TINYINT", "SMALLINT", "INTEGER"))


class Operands(Protocol):
    """Writes operands and knows their types; `refusal` makes the error for a node."""

    def write(self, node: exp.Expr) -> str:
        """The Spark SQL of a node."""

    def duckdb_type(self, node: exp.Expr) -> str | None:
        """DuckDB's type of a node; None where it is not known."""

    def refusal(self, node: exp.Expr, reason: str | None = None) -> Exception:
        """The error for a node that Spark does not run."""


class Call:
    """A call of an aggregation. `condition` is its FILTER, `over` the window; Spark has no FILTER in windows."""

    def __init__(self, node: exp.Anonymous, operands: Operands, condition: str = "", over: str = "") -> None:
        self.node, self.operands, self.condition, self.over = node, operands, condition, over
        first = node.expressions[0] if node.expressions else None
        self.is_distinct = isinstance(first, exp.Distinct)
        self.arguments: Sequence[exp.Expr] = [
            *(first.expressions if isinstance(first, exp.Distinct) else [first] if first is not None else []),
            *node.expressions[1:],
        ]

    def kind(self, place: int = 0) -> str:
        """DuckDB's type of an argument. An error when it is not known."""
        kind = self.operands.duckdb_type(self.arguments[place])
        if kind is None:
            raise self.refused("has an argument whose type is not known here: CAST it")
        return kind

    def refused(self, reason: str) -> Exception:
        """The error for the call."""
        return self.operands.refusal(self.node, reason)

    def plain(self, place: int = 0) -> str:
        """An argument in Spark SQL."""
        return self.operands.write(self.arguments[place])

    def double(self, place: int = 0) -> str:
        """An argument as a double."""
        return f"CAST({self.plain(place)} AS double)"

    def aggregate(self, name: str, *arguments: str) -> str:
        """`name(arguments)` with DISTINCT, FILTER and OVER of the call."""
        first, *rest = arguments
        if self.over and self.is_distinct:
            raise self.refused("takes no DISTINCT in a window")
        if self.condition and self.over:
            first = f"CASE WHEN {self.condition} THEN {'1' if first == '*' else first} END"
        words = "DISTINCT " if self.is_distinct else ""
        filtered = f" FILTER (WHERE {self.condition})" if self.condition and not self.over else ""
        return f"{name}({words}{', '.join([first, *rest])}){filtered}{self.over}"


Rule = Callable[[Call], str]


def write_aggregate(call: Call) -> str | None:
    """The call in Spark SQL; None when it is no aggregation with a rule."""
    rule = _RULES.get(call.node.name.lower())
    return None if rule is None else rule(call)


def _count(call: Call) -> str:
    if len(call.arguments) > 1:
        raise call.refused("counts one expression at a time")
    if not call.arguments or isinstance(call.arguments[0], exp.Star):
        return call.aggregate("count", "*")
    return call.aggregate("count", call.plain())


def _summed(call: Call) -> str:
    """A sum. DuckDB sums whole numbers in 128 bits."""
    kind = call.kind()
    if kind == "BOOLEAN":
        return call.aggregate("sum", f"CAST({call.plain()} AS int)")
    if kind in {"BIGINT", "UINTEGER"}:
        return call.aggregate("sum", _LONG.format(call.plain()))
    if kind in _WHOLE or kind in {"HUGEINT", "FLOAT", "DOUBLE"} or kind.startswith("DECIMAL"):
        return call.aggregate("sum", call.plain())
    raise call.refused(f"does not sum a {kind}")


def _mean(call: Call) -> str:
    """A mean: whole numbers and decimals are summed exactly, then divided in doubles."""
    kind = call.kind()
    if kind in {"FLOAT", "DOUBLE"}:
        return call.aggregate("avg", call.double())
    if kind in _WHOLE or kind in {"BIGINT", "HUGEINT"} or kind.startswith("DECIMAL"):
        count = call.aggregate("count", call.plain())
        return f"(CAST({_summed(call)} AS double) / CAST(nullif({count}, 0) AS double))"
    raise call.refused(f"makes no mean of a {kind}")


def _same(name: str) -> Rule:
    def rule(call: Call) -> str:
        if len(call.arguments) > 1:
            raise call.refused("takes one argument")
        return call.aggregate(name, call.plain())

    return rule


def _any(call: Call) -> str:
    return call.aggregate("any_value", call.plain(), "true")


def _spread(name: str, count: int = 1) -> Rule:
    """A deviation, variance or covariance of doubles."""
    return lambda call: call.aggregate(name, *(call.double(place) for place in range(count)))


def _at(name: str) -> Rule:
    """The value at the lowest or highest place; rows without a value do not count."""

    def rule(call: Call) -> str:
        if len(call.arguments) != 2 or call.is_distinct:
            raise call.refused("takes a value and an order")
        value, place = call.plain(0), call.plain(1)
        if call.condition and call.over:
            raise call.refused("takes no FILTER in a window")
        return call.aggregate(name, value, f"CASE WHEN {value} IS NOT NULL THEN {place} END")

    return rule


def _most_frequent(call: Call) -> str:
    order = call.arguments[0]
    if call.over:
        raise call.refused("is no window function")
    if not isinstance(order, exp.Order):
        raise call.refused("may choose among equally frequent values: name 'MIN' or 'MAX'")
    ordered = order.expressions[0]
    direction = "DESC" if ordered.args.get("desc") else "ASC"
    filtered = f" FILTER (WHERE {call.condition})" if call.condition else ""
    return f"mode() WITHIN GROUP (ORDER BY {call.operands.write(order.this)} {direction}){filtered}"


def _quantile(call: Call) -> str:
    if call.over or call.is_distinct:
        raise call.refused("is run neither over a window nor with DISTINCT")
    filtered = f" FILTER (WHERE {call.condition})" if call.condition else ""
    place = f"CAST({call.plain(1)} AS double)"
    return f"percentile_disc({place}) WITHIN GROUP (ORDER BY {call.double()}){filtered}"


def _ranked(name: str) -> Rule:
    def rule(call: Call) -> str:
        if "ORDER BY" not in call.over:
            raise call.refused("needs an ORDER BY in its window: Spark keeps no order of rows")
        return f"{name}({', '.join(call.operands.write(argument) for argument in call.arguments)}){call.over}"

    return rule


_RULES: dict[str, Rule] = {
    "count": _count,
    "sum": _summed,
    "avg": _mean,
    "mean": _mean,
    "min": _same("min"),
    "max": _same("max"),
    "bool_and": _same("bool_and"),
    "bool_or": _same("bool_or"),
    "count_if": _same("count_if"),
    "countif": _same("count_if"),
    "any_value": _any,
    "list": _same("collect_list"),  # only of aggregates of lists, for which the order is nothing
    "arg_min": _at("min_by"),
    "argmin": _at("min_by"),
    "min_by": _at("min_by"),
    "arg_max": _at("max_by"),
    "argmax": _at("max_by"),
    "max_by": _at("max_by"),
    "mode": _most_frequent,
    "quantile_disc": _quantile,
    "stddev": _spread("stddev_samp"),
    "stddev_samp": _spread("stddev_samp"),
    "stddev_pop": _spread("stddev_pop"),
    "variance": _spread("var_samp"),
    "var_samp": _spread("var_samp"),
    "var_pop": _spread("var_pop"),
    "covar_pop": _spread("covar_pop", 2),
    "covar_samp": _spread("covar_samp", 2),
    **{name: _ranked(name) for name in ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")},
}
