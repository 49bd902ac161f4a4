"""Names of unnamed result columns, as Pinot makes them: `plus(a,'1')`, `sum(times(a,b))`.

Expressions without a name in Pinot (windows, subqueries, lambdas) are named by their text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal

from sqlglot import exp

from hybrid.schema.dialect import canonical
from hybrid.sql import aggregates, arithmetic, functions, times
from hybrid.sql.calls import literal_number

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "plus", exp.Sub: "minus", exp.Mul: "times", exp.Div: "divide", exp.Mod: "mod", exp.EQ: "equals",
    exp.NEQ: "not_equals", exp.GT: "greater_than", exp.GTE: "greater_than_or_equal", exp.LT: "less_than",
    exp.LTE: "less_than_or_equal", exp.Like: "like",
}  # fmt: skip
_FOLDED: dict[type[exp.Expr], Callable[[float, float], float]] = {
    exp.Add: lambda left, right: left + right,
    exp.Sub: lambda left, right: left - right,
    exp.Mul: lambda left, right: left * right,
    exp.Div: lambda left, right: left / right,
    exp.Mod: math.fmod,
}
# Standard types are named in upper case; Pinot's own types stay as written.
_TYPES = {"INT": "INTEGER"}
_OWN_TYPES = frozenset(("LONG", "STRING", "BIG_DECIMAL", "BYTES", "JSON"))
# Aggregations whose further arguments Pinot leaves out of the name.
_FIRST_ONLY = frozenset(("distinctcounthll", "mode", "histogram", "distinctcountthetasketch"))


class _Wordless(Exception):
    """Pinot has no name for an expression."""


def constant_name(item: exp.Expr) -> str | None:
    """The name of a constant result, in a SELECT of constants only; None for any other result."""
    try:
        return _constant(item)
    except _Wordless:
        return None


def result_name(item: exp.Expr) -> str:
    """The name of an unnamed result column."""
    try:
        return _aggregate_name(item) or _name(item)
    except _Wordless:
        return item.sql("duckdb", normalize_functions="lower")


def _aggregate_name(item: exp.Expr) -> str | None:
    """The special name of some aggregations that are a whole result; None for all others."""
    node = item.unnest()
    if isinstance(node, exp.Filter):
        return _aggregate_name(node.this) or _name(node.this)
    if not isinstance(node, exp.Anonymous) or not node.expressions:
        return None
    name, first = canonical(node.name), node.expressions[0]
    if name == "count" and not isinstance(first, exp.Distinct) and _counts_rows(first):
        return "count(*)"
    if aggregates.is_percentile(name) and len(node.expressions) > 1:
        percentage = aggregates.percentage(name, node.expressions)
        return None if percentage is None else f"{name}({_name(first)}, {_double(percentage)})"
    return f"{name}({_name(first)})" if name in _FIRST_ONLY else None


def _counts_rows(argument: exp.Expr) -> bool:
    """Whether COUNT of this argument counts all rows: `*` and constants."""
    return isinstance(argument.unnest(), exp.Star | exp.Literal | exp.Boolean)


def _name(node: exp.Expr) -> str:
    node = node.unnest()
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Star):
        return "*"
    constant = _constant(node)
    if constant is not None:
        return f"'{constant}'"
    if type(node) in _BINARY and not node.args.get("negate"):
        return _call(_BINARY[type(node)], (node.this, node.expression))
    rule = _RULES.get(type(node))
    if rule is None:
        raise _Wordless
    return rule(node)


def _constant(node: exp.Expr) -> str | None:
    """The text of a constant; arithmetic of constants is computed in doubles."""
    node = node.unnest()
    if isinstance(node, exp.Boolean):
        return str(node.this).lower()
    if isinstance(node, exp.Literal) and (node.is_string or node.name.isdigit()):
        return node.name
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        inner = _constant(node.this)
        return None if inner is None or node.this.is_string else f"-{inner}"
    value = _folded(node)
    return None if value is None else _double(value)


def _folded(node: exp.Expr) -> float | None:
    node = node.unnest()
    operation = _FOLDED.get(type(node))
    if operation is None:
        return None if isinstance(node, exp.Literal) and node.is_string else literal_number(node)
    left, right = _folded(node.this), _folded(node.expression)
    if left is None or right is None:
        return None
    try:
        return operation(left, right)
    except (ArithmeticError, ValueError):
        raise _Wordless from None


def _double(value: float) -> str:
    """A double as Java prints it."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    exact = Decimal(repr(value))
    digits = "".join(str(digit) for digit in exact.as_tuple().digits).rstrip("0")
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{exact.adjusted()}"


def _call(name: str, arguments: Iterable[exp.Expr]) -> str:
    return f"{name}({','.join(_name(argument) for argument in arguments)})"


def _anonymous(node: exp.Anonymous) -> str:
    written = canonical(node.name)
    arguments = node.expressions
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct) and written == "count":
        return _call("distinctcount", arguments[0].expressions)
    is_known = written in _KNOWN or aggregates.is_percentile(written)
    if written in {"firstwithtime", "lastwithtime"} and len(arguments) == 3:
        arguments = [*arguments[:2], exp.Literal.string(arguments[2].name.upper())]
    return _call(written if is_known else node.name.lower(), arguments)


def _connected(node: exp.Connector) -> str:
    """AND and OR, with all operands of a chain as arguments."""
    return _call("and" if isinstance(node, exp.And) else "or", node.flatten())


def _not(node: exp.Not) -> str:
    inner = node.this.unnest()
    if isinstance(inner, exp.In) and not inner.args.get("query"):
        return _call("not_in", (inner.this, *inner.expressions))
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return _call("is_not_null", (inner.this,))
    return _call("not", (inner,))


def _like(node: exp.Like) -> str:
    return f"not({_call('like', (node.this, node.expression))})"


def _in(node: exp.In) -> str:
    if node.args.get("query") or not node.expressions:
        raise _Wordless
    return _call("in", (node.this, *node.expressions))


def _is(node: exp.Is) -> str:
    if not isinstance(node.expression, exp.Null):
        raise _Wordless
    return _call("is_null", (node.this,))


def _case(node: exp.Case) -> str:
    """CASE: all conditions, then all values, then the default."""
    default = node.args.get("default")
    if default is None:
        raise _Wordless
    of = node.this
    conditions = [
        exp.EQ(this=of.copy(), expression=branch.this.copy()) if of else branch.this for branch in node.args["ifs"]
    ]
    return _call("case", (*conditions, *(branch.args["true"] for branch in node.args["ifs"]), default))


def _cast(node: exp.Cast) -> str:
    written = str(node.to.meta.get("written", ""))
    if not written or isinstance(node, exp.TryCast):
        raise _Wordless
    kind = written if written.upper() in _OWN_TYPES else _TYPES.get(written.upper(), written.upper())
    return f"cast({_name(node.this)},'{kind}')"


def _trim(node: exp.Trim) -> str:
    return f"trim('{node.args.get('position') or 'BOTH'}',{_name(node.expression or exp.Literal.string(' '))}," + (
        f"{_name(node.this)})"
    )


def _filter(node: exp.Filter) -> str:
    return _call("filter", (node.this, node.expression.this))


_KNOWN = frozenset((*aggregates.RULES, *times.RULES, *functions.SCALARS, *arithmetic.NAMES))
_RULES: dict[type[exp.Expr], Callable[..., str]] = {
    exp.Anonymous: _anonymous,
    exp.And: _connected,
    exp.Or: _connected,
    exp.Not: _not,
    exp.Like: _like,
    exp.In: _in,
    exp.Is: _is,
    exp.Between: lambda node: _call("between", (node.this, node.args["low"], node.args["high"])),
    exp.Neg: lambda node: _call("minusprefix", (node.this,)),
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Trim: _trim,
    exp.Filter: _filter,
}
