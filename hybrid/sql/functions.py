"""Rewrites function calls and operators: Pinot's become DuckDB's, DuckDB's harmless functions stay, others are errors.

Pinot ignores case and underscores in function names: DISTINCT_COUNT is DISTINCTCOUNT.
"""

from __future__ import annotations

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError, suggestion
from hybrid.schema.dialect import canonical
from hybrid.sql import aggregates, arithmetic, jsons, texts, times
from hybrid.sql.allowed import AGGREGATES, CALLABLE
from hybrid.sql.arity import is_wrong, takes, wrong_number
from hybrid.sql.calls import call, call_clocks, cast, is_made, number, text
from hybrid.sql.casts import rewrite_casts
from hybrid.sql.constants import fold_constants
from hybrid.sql.gapfill import settle_gapfill
from hybrid.sql.infer import DOUBLE, set_type, type_of
from hybrid.sql.lists import rewrite_lists
from hybrid.sql.nodes import nodes_of
from hybrid.sql.nulls import order_nulls
from hybrid.sql.scopes import note_column_types
from hybrid.sql.texts import Arguments, ScalarRule, renamed_function

_ABSENT = {
    "textmatch": "it needs a text index: use REGEXP_LIKE or LIKE",
    "jsonmatch": "it needs a JSON index: compare JSON_EXTRACT_SCALAR(column, '$.path', 'STRING')",
    "lookup": "join the table instead",
    "idset": "use a subquery: x IN (SELECT ...)",
    "inidset": "use a subquery: x IN (SELECT ...)",
}


def rewrite_functions(tree: exp.Query, context: times.TimeContext) -> None:
    """Rewrites every call and operator of `tree` into DuckDB's SQL.

    QueryError 700 for an unknown function or wrong arguments.
    """
    order_nulls(tree)
    call_clocks(tree)
    fold_constants(tree)
    if not context.rows:
        note_column_types(tree, context.types)
        settle_gapfill(tree, context.types)
    rewrite_lists(tree, context.lists)
    arithmetic.rewrite_arithmetic(tree, context.types, rows=context.rows)
    rewrite_casts(tree, context.types, rows=context.rows)
    texts.ignore_case(tree, rows=context.rows)
    texts.name_trimmed(tree)
    calls = [node for node in reversed(nodes_of(tree, exp.Anonymous)) if not is_made(node)]
    shown_as_double = aggregates.decimals_shown(tree, calls, context.types)
    for node in calls:
        kind = type_of(node, context.types)
        replacement = _rewritten(node, context)
        if id(node) in shown_as_double:
            replacement, kind = aggregates.as_double(replacement), DOUBLE
        if replacement is not node:
            if kind is not None:
                set_type(replacement, kind)
            aggregates.place(node, replacement)


def is_aggregate_call(node: exp.Expr) -> bool:
    """Whether a call in the user's statement, before rewriting, is an aggregation."""
    if not isinstance(node, exp.Anonymous):
        return isinstance(node, exp.GroupConcat | exp.AggFunc)
    return node.name.lower() in AGGREGATES or aggregates.is_aggregate(canonical(node.name))


def _rewritten(node: exp.Anonymous, context: times.TimeContext) -> exp.Expr:
    name, arguments = canonical(node.name), node.expressions
    if name in aggregates.RULES and _fits(node, *aggregates.RULES[name][:2]):
        return aggregates.RULES[name][2](arguments)
    if aggregates.is_percentile(name):
        replacement = aggregates.percentile(name, arguments)
        if replacement is None:
            raise _wrong(f"{node.name.upper()} takes a column and a percentage from 0 to 100")
        return replacement
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        return _count_distinct(node)
    if name in times.RULES and _fits(node, *times.RULES[name][:2]):
        return times.RULES[name][2](arguments, context)
    rule = _scalar_rule(node)
    if rule is not None:
        return rule(arguments)
    counts = argument_counts(name)
    if counts and (name in arithmetic.NAMES or node.name.lower() not in CALLABLE):
        raise _wrong(wrong_number(node.name, counts, len(arguments)))
    if node.name.lower() not in CALLABLE:
        raise _unknown(node.name, name)
    if is_wrong(node.name.lower(), len(arguments)):
        raise _wrong(takes(node.name, node.name.lower(), len(arguments)))
    return node


def argument_counts(name: str) -> frozenset[int]:
    """The numbers of arguments that Pinot's function takes, by its canonical name; empty for an unknown one."""
    of_operator = {2} if name in arithmetic.NAMES else set()
    of_scalar = SCALARS[name][0] if name in SCALARS else ()
    rule = aggregates.RULES.get(name) or times.RULES.get(name)
    return frozenset((*of_operator, *of_scalar, *(range(rule[0], rule[1] + 1) if rule else ())))


def _count_distinct(node: exp.Anonymous) -> exp.Expr:
    """COUNT(DISTINCT x), which is DISTINCTCOUNT(x)."""
    return cast(aggregates.core("count", node.expressions[0].copy()), "INTEGER")


def _fits(node: exp.Anonymous, fewest: int, most: int) -> bool:
    """Whether Pinot's function takes that many arguments. If not, DuckDB's function of the same name may."""
    if fewest <= len(node.expressions) <= most:
        return True
    if node.name.lower() in CALLABLE:
        return False
    raise _wrong(wrong_number(node.name, range(fewest, most + 1), len(node.expressions)))


def _unknown(written: str, name: str) -> QueryError:
    if name in _ABSENT:
        return QueryError(f"Function '{written}' is not supported: {_ABSENT[name]}.", pinot_code=VALIDATION)
    names = [*CALLABLE, *aggregates.RULES, *times.RULES, *SCALARS, *arithmetic.NAMES]
    return QueryError(
        f"Function '{written}' does not exist or is not allowed.{suggestion(written.lower(), names)}",
        pinot_code=VALIDATION,
    )


def _wrong(message: str) -> QueryError:
    return QueryError(f"{message}.", pinot_code=VALIDATION)


def _scalar_rule(node: exp.Anonymous) -> ScalarRule | None:
    entry = SCALARS.get(canonical(node.name))
    if entry is None or len(node.expressions) not in entry[0]:
        return None
    return entry[1]


def _round_decimal(arguments: Arguments) -> exp.Expr:
    """ROUNDDECIMAL(value [, digits]): halves are rounded up; with digits, halves of the number's decimal text."""
    value = cast(arguments[0], "DOUBLE")
    if len(arguments) == 1:
        return call("floor", exp.Add(this=value, expression=cast(number(0.5), "DOUBLE")))
    return call("coalesce", cast(call("round", _as_written(arguments[0]), arguments[1]), "DOUBLE"), value.copy())


def _sign(arguments: Arguments) -> exp.Expr:
    """SIGN(value); the sign of NaN is NaN, as in Java."""
    value = cast(arguments[0], "DOUBLE")
    is_nan = exp.EQ(this=value, expression=cast(text("NaN"), "DOUBLE"))
    return exp.Case(ifs=[exp.If(this=is_nan, true=value.copy())], default=cast(call("sign", value.copy()), "DOUBLE"))


def _truncate(arguments: Arguments) -> exp.Expr:
    """TRUNCATE(value [, places]): with places it cuts the number's decimal text, so that 1.15 stays 1.15."""
    if len(arguments) == 1:
        return call("trunc", arguments[0])
    value = cast(arguments[0], "DOUBLE")
    return call("coalesce", cast(call("trunc", _as_written(arguments[0]), arguments[1]), "DOUBLE"), value)


def _as_written(value: exp.Expr) -> exp.Expr:
    """A number as the decimal of its shortest text; null for a number that no decimal can hold."""
    return exp.TryCast(this=cast(value.copy(), "VARCHAR"), to=exp.DataType.build("DECIMAL(38, 18)", dialect="duckdb"))


def _divided(arguments: Arguments) -> exp.Expr:
    """DIVIDE(a, b, default): the default when b is zero, and null when a is null."""
    value, by, default = arguments
    there = exp.Not(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.Null()))
    zero = exp.And(this=exp.EQ(this=exp.Paren(this=by.copy()), expression=number(0)), expression=there)
    divided = exp.Div(this=exp.Paren(this=value), expression=exp.Paren(this=by))
    return exp.Case(ifs=[exp.If(this=zero, true=cast(default, "DOUBLE"))], default=divided)


# Canonical name -> (numbers of arguments, rule). With another number of arguments DuckDB's own function applies.
SCALARS: dict[str, tuple[tuple[int, ...], ScalarRule]] = {
    **texts.RULES,
    **jsons.RULES,
    "div": ((3,), _divided),
    "divide": ((3,), _divided),
    "log": ((1,), renamed_function("ln")),
    "sign": ((1,), _sign),
    "rounddecimal": ((1, 2), _round_decimal),
    "truncate": ((1, 2), _truncate),
    "arraylength": ((1,), lambda arguments: cast(call("len", arguments[0]), "INTEGER")),
    "arraysum": ((1,), lambda arguments: cast(call("list_sum", arguments[0]), "DOUBLE")),
    "arraymin": ((1,), renamed_function("list_min")),
    "arraymax": ((1,), renamed_function("list_max")),
    "arrayaverage": ((1,), renamed_function("list_avg")),
    "isnull": ((1,), lambda arguments: exp.Paren(this=exp.Is(this=arguments[0], expression=exp.Null()))),
    "isnotnull": (
        (1,),
        lambda arguments: exp.Not(this=exp.Paren(this=exp.Is(this=arguments[0], expression=exp.Null()))),
    ),
}
