"""Pinot's aggregation functions in DuckDB's words. Each rule takes the call's arguments and gives its replacement.

A replacement is one call, so that FILTER and OVER behind it still fit; what cannot be one call says so in `COMPOUND`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from hybrid.sql.calls import call, cast, literal_number, number

Rule = Callable[[Sequence[exp.Expr]], exp.Expr]

# Pinot takes element floor(n * p) of the sorted values where quantile_disc takes ceil(n * p) - 1: the two differ when
# n * p is whole, which this step undoes.
_STEP = 1e-12
_PERCENTILE = re.compile(r"percentile(est|tdigest|kll|rawest|rawtdigest|smarttdigest)?([0-9]{1,2})?")


def _distinct_count(arguments: Sequence[exp.Expr]) -> exp.Expr:
    return call("count", exp.Distinct(expressions=[arguments[0]]))


def _distinct_sum(arguments: Sequence[exp.Expr]) -> exp.Expr:
    return call("sum", exp.Distinct(expressions=[arguments[0]]))


def _distinct_avg(arguments: Sequence[exp.Expr]) -> exp.Expr:
    return call("avg", exp.Distinct(expressions=[arguments[0]]))


def _approximate_count(arguments: Sequence[exp.Expr]) -> exp.Expr:
    return call("approx_count_distinct", arguments[0])


def _min_max_range(arguments: Sequence[exp.Expr]) -> exp.Expr:
    return exp.Paren(this=exp.Sub(this=call("max", arguments[0]), expression=call("min", arguments[0].copy())))


def _with_time(name: str) -> Rule:
    """FIRSTWITHTIME(value, time, 'type') is the value at the lowest time, LASTWITHTIME at the highest."""
    return lambda arguments: call(name, arguments[0], arguments[1])


def _precise_sum(arguments: Sequence[exp.Expr]) -> exp.Expr:
    return call("sum", cast(arguments[0], "DECIMAL(38, 9)"))


# Canonical name -> (fewest arguments, most arguments, rule).
RULES: dict[str, tuple[int, int, Rule]] = {
    "distinctcount": (1, 1, _distinct_count),
    "distinctcountbitmap": (1, 1, _distinct_count),
    "segmentpartitioneddistinctcount": (1, 1, _distinct_count),
    "distinctcounthll": (1, 2, _approximate_count),
    "distinctcounthllplus": (1, 3, _approximate_count),
    "distinctcountull": (1, 2, _approximate_count),
    "distinctcountsmarthll": (1, 2, _distinct_count),
    "distinctcountthetasketch": (1, 2, _approximate_count),
    "distinctcountcpcsketch": (1, 2, _approximate_count),
    "distinctsum": (1, 1, _distinct_sum),
    "distinctavg": (1, 1, _distinct_avg),
    "minmaxrange": (1, 1, _min_max_range),
    "firstwithtime": (2, 3, _with_time("arg_min")),
    "lastwithtime": (2, 3, _with_time("arg_max")),
    "sumprecision": (1, 3, _precise_sum),
    "boolagg": (1, 1, lambda arguments: call("bool_and", arguments[0])),
    "booland": (1, 1, lambda arguments: call("bool_and", arguments[0])),
    "boolor": (1, 1, lambda arguments: call("bool_or", arguments[0])),
    "stddevpop": (1, 1, lambda arguments: call("stddev_pop", arguments[0])),
    "stddevsamp": (1, 1, lambda arguments: call("stddev_samp", arguments[0])),
    "varpop": (1, 1, lambda arguments: call("var_pop", arguments[0])),
    "varsamp": (1, 1, lambda arguments: call("var_samp", arguments[0])),
    "covarpop": (2, 2, lambda arguments: call("covar_pop", *arguments)),
    "covarsamp": (2, 2, lambda arguments: call("covar_samp", *arguments)),
    "exprmin": (2, 2, lambda arguments: call("arg_min", *arguments)),
    "exprmax": (2, 2, lambda arguments: call("arg_max", *arguments)),
}
COMPOUND = frozenset({"minmaxrange"})


def is_percentile(name: str) -> bool:
    """Whether a canonical name is one of the PERCENTILE family, `percentile95` included."""
    return bool(_PERCENTILE.fullmatch(name))


def percentile(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr | None:
    """The replacement of a PERCENTILE call; None when its percentage is missing or not between 0 and 100."""
    match = _PERCENTILE.fullmatch(name)
    assert match is not None
    if not arguments:
        return None
    written = float(match.group(2)) if match.group(2) else literal_number(arguments[1]) if len(arguments) > 1 else None
    if written is None or not 0 <= written <= 100:
        return None
    value = cast(arguments[0], "DOUBLE")
    if match.group(1) in {"tdigest", "rawtdigest", "smarttdigest", "kll"}:
        return call("approx_quantile", value, number(written / 100))
    return call("quantile_disc", value, number(min(written / 100 + _STEP, 1.0)))


def is_aggregate(name: str) -> bool:
    """Whether a canonical Pinot name is an aggregation function."""
    return name in RULES or is_percentile(name)
