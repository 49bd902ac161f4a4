"""Pinot's aggregation functions in DuckDB's SQL. Each rule takes the call's arguments and returns its replacement.

`core` makes the aggregations in a replacement. FILTER and OVER of the original call are attached to each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError
from hybrid.schema.dialect import canonical
from hybrid.sql.calls import ColumnTypes, call, cast, literal_number, literal_text, number, text
from hybrid.sql.casts import pinot_type
from hybrid.sql.infer import DECIMAL, type_of
from hybrid.sql.nodes import nodes_of
from hybrid.sql.wholes import as_whole

Rule = Callable[[Sequence[exp.Expr]], exp.Expr]

# Pinot takes element floor(n * p) of the sorted values where quantile_disc takes ceil(n * p) - 1: the two differ when
# n * p is whole, which this step undoes.
_STEP = 1e-12
_PERCENTILE = re.compile(r"percentile(est|tdigest|kll|rawest|rawtdigest|smarttdigest)?([0-9]{1,2})?(mv)?")
_BINS_MAX = 1000
# Aggregations that are DOUBLE in Pinot for any number; here those of `_OF_COLUMN` keep the type BIG_DECIMAL.
_SUMS = frozenset(("sum", "distinctsum"))
_OF_COLUMN = frozenset(("min", "max", "minmaxrange", "mode"))


def core(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """An aggregation, to which FILTER and OVER are attached."""
    node = call(name, *arguments)
    node.meta["core"] = True
    return node


def place(node: exp.Expr, replacement: exp.Expr) -> None:
    """Replaces `node` by `replacement`, and attaches FILTER and OVER of `node` to the aggregations in it."""
    outer, steps = node, 0
    while isinstance(outer.parent, exp.Filter | exp.Window | exp.IgnoreNulls) and outer.parent.this is outer:
        outer, steps = outer.parent, steps + 1
    cores = [aggregation for aggregation in nodes_of(replacement, exp.Anonymous) if aggregation.meta.get("core")]
    if outer is node or cores == [replacement]:
        node.replace(replacement)
        return
    for aggregation in cores:
        whole = outer.copy()
        inner = whole
        for _ in range(steps):
            inner = inner.this
        inner.replace(aggregation.copy())
        aggregation.replace(whole)
    outer.replace(replacement)


def decimals_shown(tree: exp.Query, calls: Sequence[exp.Anonymous], types: ColumnTypes) -> set[int]:
    """The ids of aggregations over BIG_DECIMAL that become DOUBLE, as in Pinot: sums, and others that an answer shows.

    Within a statement a minimum stays exact, so that it finds its row. Clients get a DOUBLE, as from Pinot.
    """
    named = [(canonical(node.name), node) for node in calls if node.expressions]
    affected = [(name, node) for name, node in named if name in _SUMS or name in _OF_COLUMN]
    decimal = [(name, node) for name, node in affected if type_of(_plain(node.expressions[0]), types) is DECIMAL]
    if not decimal:
        return set()
    shown = [part for select in _outermost(tree) for part in (*select.expressions, select.args.get("order")) if part]
    within = {id(call) for part in shown for call in _calls(part)}
    return {id(node) for name, node in decimal if name in _SUMS or id(node) in within}


def as_double(replacement: exp.Expr) -> exp.Expr:
    """An aggregation as a DOUBLE: computed exactly, then rounded once."""
    if isinstance(replacement, exp.Anonymous) and not replacement.meta.get("core"):
        replacement = core(replacement.name, *(argument.copy() for argument in replacement.expressions))
    return cast(replacement, "DOUBLE")


def _outermost(tree: exp.Expr) -> list[exp.Select]:
    """The SELECTs whose columns an answer shows."""
    if isinstance(tree, exp.SetOperation):
        return [*_outermost(tree.left), *_outermost(tree.right)]
    if isinstance(tree, exp.Subquery):
        return _outermost(tree.this)
    return [tree] if isinstance(tree, exp.Select) else []


def _calls(node: exp.Expr) -> list[exp.Anonymous]:
    """The calls in an expression, without those of subqueries."""
    inner = [child for child in node.walk(prune=lambda child: isinstance(child, exp.Query | exp.Subquery))]
    return [child for child in inner if isinstance(child, exp.Anonymous)]


def _plain(argument: exp.Expr) -> exp.Expr:
    return argument.expressions[0] if isinstance(argument, exp.Distinct) and argument.expressions else argument


def _distinct(name: str, kind: str | None = None) -> Rule:
    def rule(arguments: Sequence[exp.Expr]) -> exp.Expr:
        aggregation = core(name, exp.Distinct(expressions=[arguments[0]]))
        return aggregation if kind is None else cast(aggregation, kind)

    return rule


def _approximate_count(arguments: Sequence[exp.Expr]) -> exp.Expr:
    return core("approx_count_distinct", arguments[0])


def _difference(high: exp.Expr, low: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Sub(this=core("max", high), expression=core("min", low)))


def _with_time(name: str) -> Rule:
    """FIRSTWITHTIME(value, time, 'type'), the value at the lowest time, and LASTWITHTIME, at the highest."""

    def rule(arguments: Sequence[exp.Expr]) -> exp.Expr:
        aggregation = core(name, arguments[0], arguments[1])
        kind = pinot_type(literal_text(arguments[2])) if len(arguments) > 2 else None
        if kind is None:
            return aggregation
        return cast(as_whole(aggregation, {}) if kind in {"INTEGER", "BIGINT"} else aggregation, kind)

    return rule


def _precise_sum(arguments: Sequence[exp.Expr]) -> exp.Expr:
    return core("sum", cast(arguments[0], "DECIMAL(38, 18)"))


def _mode(arguments: Sequence[exp.Expr]) -> exp.Expr:
    """MODE(column [, 'MIN' | 'MAX']): of several equally frequent values the lowest or highest."""
    reducer = (literal_text(arguments[1]) or "").upper() if len(arguments) > 1 else "MIN"
    if reducer not in {"MIN", "MAX"}:
        raise QueryError("MODE: the second argument is 'MIN' or 'MAX'.", pinot_code=VALIDATION)
    ordered = exp.Ordered(this=arguments[0].copy(), desc=reducer == "MAX")
    return core("mode", exp.Order(this=arguments[0], expressions=[ordered]))


def _histogram(arguments: Sequence[exp.Expr]) -> exp.Expr:
    """HISTOGRAM(column, lower, upper, bins): the number of values per bin; the last bin includes its upper end."""
    ends = [literal_number(argument) for argument in arguments[1:]]
    if None in ends or not 0 < int(ends[2] or 0) <= _BINS_MAX:
        raise QueryError(f"HISTOGRAM takes a column, two ends and 1 to {_BINS_MAX} bins.", pinot_code=VALIDATION)
    low, high, bins = (float(end or 0) for end in ends)
    edges = [low + (high - low) * step / bins for step in range(int(bins) + 1)]
    return exp.Array(expressions=[_bin(arguments[0], *pair, high) for pair in pairwise(edges)])


def _bin(value: exp.Expr, low: float, high: float, last: float) -> exp.Expr:
    above = exp.GTE(this=value.copy(), expression=number(low))
    below = (exp.LTE if high == last else exp.LT)(this=value.copy(), expression=number(high))
    inside = exp.Case(ifs=[exp.If(this=exp.And(this=above, expression=below), true=number(1))])
    return cast(core("count", inside), "DOUBLE")


def _elements(arguments: Sequence[exp.Expr]) -> exp.Expr:
    """All values of a multi-value column."""
    return call("flatten", core("list", arguments[0]))


def _distinct_elements(kind: str) -> Rule:
    return lambda arguments: cast(call("len", call("list_distinct", _elements(arguments))), kind)


def _mean_element(arguments: Sequence[exp.Expr]) -> exp.Expr:
    total, count = core("sum", call("list_sum", arguments[0])), core("sum", call("len", arguments[0].copy()))
    return exp.Paren(this=exp.Div(this=total, expression=count))


# Canonical name -> (fewest arguments, most arguments, rule).
RULES: dict[str, tuple[int, int, Rule]] = {
    "distinctcount": (1, 1, _distinct("count", "INTEGER")),
    "distinctcountbitmap": (1, 1, _distinct("count", "INTEGER")),
    "segmentpartitioneddistinctcount": (1, 1, _distinct("count")),
    "distinctcounthll": (1, 2, _approximate_count),
    "distinctcounthllplus": (1, 3, _approximate_count),
    "distinctcountull": (1, 2, _approximate_count),
    "distinctcountsmarthll": (1, 2, _distinct("count", "INTEGER")),
    "distinctcountthetasketch": (1, 2, _approximate_count),
    "distinctcountcpcsketch": (1, 2, _approximate_count),
    "distinctsum": (1, 1, _distinct("sum")),
    "distinctavg": (1, 1, _distinct("avg")),
    "minmaxrange": (1, 1, lambda arguments: _difference(arguments[0], arguments[0].copy())),
    "firstwithtime": (2, 3, _with_time("arg_min")),
    "lastwithtime": (2, 3, _with_time("arg_max")),
    "sumprecision": (1, 3, _precise_sum),
    "mode": (1, 2, _mode),
    "histogram": (4, 4, _histogram),
    "boolagg": (1, 1, lambda arguments: core("bool_and", arguments[0])),
    "booland": (1, 1, lambda arguments: core("bool_and", arguments[0])),
    "boolor": (1, 1, lambda arguments: core("bool_or", arguments[0])),
    "stddevpop": (1, 1, lambda arguments: core("stddev_pop", arguments[0])),
    "stddevsamp": (1, 1, lambda arguments: core("stddev_samp", arguments[0])),
    "varpop": (1, 1, lambda arguments: core("var_pop", arguments[0])),
    "varsamp": (1, 1, lambda arguments: core("var_samp", arguments[0])),
    "covarpop": (2, 2, lambda arguments: core("covar_pop", *arguments)),
    "covarsamp": (2, 2, lambda arguments: core("covar_samp", *arguments)),
    "exprmin": (2, 2, lambda arguments: core("arg_min", *arguments)),
    "exprmax": (2, 2, lambda arguments: core("arg_max", *arguments)),
    "countmv": (1, 1, lambda arguments: cast(core("sum", call("len", arguments[0])), "BIGINT")),
    "distinctcountmv": (1, 1, _distinct_elements("INTEGER")),
    "distinctcountbitmapmv": (1, 1, _distinct_elements("INTEGER")),
    "distinctcounthllmv": (1, 2, _distinct_elements("BIGINT")),
    "summv": (1, 1, lambda arguments: core("sum", call("list_sum", arguments[0]))),
    "minmv": (1, 1, lambda arguments: core("min", call("list_min", arguments[0]))),
    "maxmv": (1, 1, lambda arguments: core("max", call("list_max", arguments[0]))),
    "avgmv": (1, 1, _mean_element),
    "minmaxrangemv": (
        1,
        1,
        lambda arguments: _difference(call("list_max", arguments[0]), call("list_min", arguments[0].copy())),
    ),
}


def is_percentile(name: str) -> bool:
    """Whether a canonical name is one of the PERCENTILE family, `percentile95` included."""
    return bool(_PERCENTILE.fullmatch(name))


def percentile(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr | None:
    """The replacement of a PERCENTILE call; None when its percentage is missing or not between 0 and 100."""
    match = _PERCENTILE.fullmatch(name)
    assert match is not None
    written = percentage(name, arguments)
    if not arguments or written is None or not 0 <= written <= 100:
        return None
    step = number(min(written / 100 + _STEP, 1.0))
    if match.group(3):
        return cast(call("list_aggregate", _elements(arguments), text("quantile_disc"), step), "DOUBLE")
    value = cast(arguments[0], "DOUBLE")
    if match.group(1) in {"tdigest", "rawtdigest", "kll"}:
        return core("approx_quantile", value, number(written / 100))
    quantile = core("quantile_disc", value, step)
    return cast(call("trunc", quantile), "BIGINT") if match.group(1) in {"est", "rawest"} else quantile


def percentage(name: str, arguments: Sequence[exp.Expr]) -> float | None:
    """The percentage of a PERCENTILE call: the number at the end of its name, or its second argument."""
    match = _PERCENTILE.fullmatch(name)
    if match is not None and match.group(2):
        return float(match.group(2))
    return literal_number(arguments[1]) if len(arguments) > 1 else None


def is_aggregate(name: str) -> bool:
    """Whether a canonical Pinot name is an aggregation function."""
    return name in RULES or is_percentile(name)
