"""Function calls: Pinot's are put into DuckDB's words, DuckDB's harmless ones stay, everything else is an error.

Pinot does not distinguish case and underscores in function names: DISTINCT_COUNT is DISTINCTCOUNT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from hybrid.errors import QueryError, suggestion
from hybrid.spec.dialect import canonical
from hybrid.sql import aggregates, times
from hybrid.sql.allowed import AGGREGATES, CALLABLE
from hybrid.sql.calls import call, cast, literal_number, literal_text, number

VALIDATION = 700
_PINOT_TYPES = {
    "INT": "INTEGER", "LONG": "BIGINT", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN", "STRING": "VARCHAR",
    "BIG_DECIMAL": "DECIMAL(38, 18)", "TIMESTAMP": "TIMESTAMP", "JSON": "VARCHAR",
}  # fmt: skip
_ABSENT = {
    "textmatch": "it needs a text index: use REGEXP_LIKE or LIKE",
    "jsonmatch": "it needs a JSON index: compare JSON_EXTRACT_SCALAR(column, '$.path', 'STRING')",
    "lookup": "join the table instead",
    "idset": "use a subquery: x IN (SELECT ...)",
    "inidset": "use a subquery: x IN (SELECT ...)",
}


def rewrite_functions(tree: exp.Query, context: times.Context) -> None:
    """Puts every call of `tree` into DuckDB's words. QueryError 700 for an unknown function or wrong arguments."""
    for node in reversed(list(tree.find_all(exp.Anonymous))):
        replacement = _rewritten(node, context)
        if replacement is not node:
            node.replace(replacement)


def is_aggregate_call(node: exp.Expr) -> bool:
    """Whether a call, as it was written, is an aggregation."""
    if not isinstance(node, exp.Anonymous):
        return isinstance(node, exp.GroupConcat | exp.AggFunc)
    return node.name.lower() in AGGREGATES or aggregates.is_aggregate(canonical(node.name))


def _rewritten(node: exp.Anonymous, context: times.Context) -> exp.Expr:
    name, arguments = canonical(node.name), node.expressions
    if name in aggregates.RULES:
        _check(node, *aggregates.RULES[name][:2])
        if name in aggregates.COMPOUND and isinstance(node.parent, exp.Filter | exp.Window):
            raise _wrong(f"{node.name.upper()} takes neither FILTER nor OVER here: write max(x) - min(x)")
        return aggregates.RULES[name][2](arguments)
    if aggregates.is_percentile(name):
        found = aggregates.percentile(name, arguments)
        if found is None:
            raise _wrong(f"{node.name.upper()} takes a column and a percentage from 0 to 100")
        return found
    if name in times.RULES:
        _check(node, *times.RULES[name][:2])
        return times.RULES[name][2](arguments, context)
    rule = _scalar_rule(node)
    if rule is not None:
        return rule(arguments)
    if node.name.lower() not in CALLABLE:
        raise _unknown(node.name, name)
    return node


def _check(node: exp.Anonymous, fewest: int, most: int) -> None:
    if not fewest <= len(node.expressions) <= most:
        wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
        raise _wrong(f"{node.name.upper()} takes {wanted} arguments, not {len(node.expressions)}")


def _unknown(written: str, name: str) -> QueryError:
    if name in _ABSENT:
        return QueryError(f"Function '{written}' is not supported: {_ABSENT[name]}.", pinot_code=VALIDATION)
    known = [*CALLABLE, *aggregates.RULES, *times.RULES, *_SCALARS]
    return QueryError(
        f"Function '{written}' does not exist or is not allowed.{suggestion(written.lower(), known)}",
        pinot_code=VALIDATION,
    )


def _wrong(message: str) -> QueryError:
    return QueryError(f"{message}.", pinot_code=VALIDATION)


ScalarRule = Callable[[Sequence[exp.Expr]], exp.Expr]


def _scalar_rule(node: exp.Anonymous) -> ScalarRule | None:
    found = _SCALARS.get(canonical(node.name))
    if found is None or len(node.expressions) not in found[0]:
        return None
    return found[1]


def _json_extract_scalar(arguments: Sequence[exp.Expr]) -> exp.Expr:
    """JSON_EXTRACT_SCALAR(column, path, type [, default])."""
    kind = (literal_text(arguments[2]) or "").upper()
    if kind not in _PINOT_TYPES:
        raise _wrong(f"JSON_EXTRACT_SCALAR: the type must be one of {', '.join(_PINOT_TYPES)}")
    found: exp.Expr = call("json_extract_string", arguments[0], arguments[1])
    if kind not in {"STRING", "JSON"}:
        found = exp.TryCast(this=found, to=exp.DataType.build(_PINOT_TYPES[kind], dialect="duckdb"))
    return call("coalesce", found, arguments[3]) if len(arguments) > 3 else found


def _regexp_like(arguments: Sequence[exp.Expr]) -> exp.Expr:
    return call("regexp_matches", cast(arguments[0], "VARCHAR"), *arguments[1:])


def _substr(arguments: Sequence[exp.Expr]) -> exp.Expr:
    """SUBSTR(text, begin [, end]) counts from 0 and ends before `end`, as in Java; -1 is the end of the text."""
    begin = _plus(arguments[1], 1)
    if len(arguments) == 2 or literal_number(arguments[2]) == -1:
        return call("substring", arguments[0], begin)
    length = exp.Paren(this=exp.Sub(this=exp.Paren(this=arguments[2]), expression=arguments[1].copy()))
    return call("substring", arguments[0], begin, length)


def _split_part(arguments: Sequence[exp.Expr]) -> exp.Expr:
    return call("split_part", arguments[0], arguments[1], _plus(arguments[2], 1))


def _str_pos(arguments: Sequence[exp.Expr]) -> exp.Expr:
    return exp.Paren(this=_plus(call("strpos", *arguments), -1))


def _plus(value: exp.Expr, step: int) -> exp.Expr:
    known = literal_number(value)
    if known is not None:
        return number(int(known) + step)
    return exp.Add(this=exp.Paren(this=value), expression=number(step))


def _concat_with(arguments: Sequence[exp.Expr]) -> exp.Expr:
    return call("concat_ws", arguments[2], arguments[0], arguments[1])


def _binary(node: type[exp.Binary]) -> ScalarRule:
    return lambda arguments: exp.Paren(
        this=node(this=exp.Paren(this=arguments[0]), expression=exp.Paren(this=arguments[1]))
    )


def _renamed(name: str) -> ScalarRule:
    return lambda arguments: call(name, *arguments)


# Canonical name -> (numbers of arguments it takes, rule). With another number of arguments DuckDB's own meaning holds.
_SCALARS: dict[str, tuple[tuple[int, ...], ScalarRule]] = {
    "jsonextractscalar": ((3, 4), _json_extract_scalar),
    "jsonformat": ((1,), lambda arguments: cast(arguments[0], "VARCHAR")),
    "regexplike": ((2, 3), _regexp_like),
    "substr": ((2, 3), _substr),
    "splitpart": ((3,), _split_part),
    "strpos": ((2,), _str_pos),
    "concat": ((3,), _concat_with),
    "add": ((2,), _binary(exp.Add)),
    "plus": ((2,), _binary(exp.Add)),
    "sub": ((2,), _binary(exp.Sub)),
    "minus": ((2,), _binary(exp.Sub)),
    "mult": ((2,), _binary(exp.Mul)),
    "times": ((2,), _binary(exp.Mul)),
    "div": ((2,), _binary(exp.Div)),
    "divide": ((2,), _binary(exp.Div)),
    "rounddecimal": ((1, 2), _renamed("round")),
    "truncate": ((1, 2), _renamed("trunc")),
    "startswith": ((2,), _renamed("starts_with")),
    "endswith": ((2,), _renamed("ends_with")),
    "arraylength": ((1,), _renamed("len")),
    "isnull": ((1,), lambda arguments: exp.Paren(this=exp.Is(this=arguments[0], expression=exp.Null()))),
    "isnotnull": (
        (1,),
        lambda arguments: exp.Not(this=exp.Paren(this=exp.Is(this=arguments[0], expression=exp.Null()))),
    ),
    "codepoint": ((1,), _renamed("unicode")),
    "tojsonmapstr": ((1,), lambda arguments: cast(arguments[0], "VARCHAR")),
    "encodeurl": ((1,), _renamed("url_encode")),
    "decodeurl": ((1,), _renamed("url_decode")),
    "tobase64": ((1,), _renamed("to_base64")),
    "frombase64": ((1,), _renamed("from_base64")),
}
