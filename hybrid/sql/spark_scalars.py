"""Functions of statements in Spark SQL that row expressions do not have, by DuckDB's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from sqlglot import exp

from hybrid.errors import QueryError
from hybrid.sql.calls import literal_number, literal_text
from hybrid.sql.spark_calls import write_call, write_zone
from hybrid.sql.spark_times import write_formatted, write_parsed


class Values(Protocol):
    """Writes operands and knows their types; `refusal` makes the error for a node."""

    def write(self, node: exp.Expr) -> str:
        """The Spark SQL of a node."""

    def duckdb_type(self, node: exp.Expr) -> str | None:
        """DuckDB's type of a node; None where it is not known."""

    def refusal(self, node: exp.Expr, reason: str | None = None) -> QueryError:
        """The error for a node that Spark does not run."""


ScalarRule = Callable[[Values, exp.Anonymous], str]


def _template(text: str) -> ScalarRule:
    return lambda values, node: text.format(*(values.write(argument) for argument in node.expressions))


def _of_doubles(name: str) -> ScalarRule:
    return lambda values, node: (
        f"{name}({', '.join(f'CAST({values.write(part)} AS double)' for part in node.expressions)})"
    )


def _of_millis(values: Values, node: exp.Anonymous) -> str:
    """A time from epoch milliseconds; of a time that was taken for a number, the time itself."""
    value = node.expressions[0]
    inner = value.this if isinstance(value, exp.Cast) else None
    if inner is not None and values.duckdb_type(inner) == "TIMESTAMP":
        return values.write(inner)
    return f"timestamp_millis({values.write(value)})"


def _end(name: str) -> ScalarRule:
    """LEFT and RIGHT; a negative length leaves out as many characters at the other end."""

    def rule(values: Values, node: exp.Anonymous) -> str:
        text, count = (values.write(argument) for argument in node.expressions)
        length = literal_number(node.expressions[1].unnest())
        if length is not None and length >= 0:
            return f"{name}({text}, {count})"
        kept = f"greatest(CAST(length({text}) + {count} AS int), 0)"
        return f"if({count} < 0, {name}({text}, {kept}), {name}({text}, CAST({count} AS int)))"

    return rule


def _list_sum(values: Values, node: exp.Anonymous) -> str:
    """The sum of a list without its nulls; null for a list without a value."""
    present = f"filter({values.write(node.expressions[0])}, v -> v IS NOT NULL)"
    kind = "double" if values.duckdb_type(node) == "DOUBLE" else "decimal(38, 0)"
    total = f"aggregate({present}, CAST(0 AS {kind}), (s, v) -> CAST(s + v AS {kind}))"
    return f"(CASE WHEN size({present}) > 0 THEN {total} END)"


def _list_mean(values: Values, node: exp.Anonymous) -> str:
    present = f"filter({values.write(node.expressions[0])}, v -> v IS NOT NULL)"
    total = f"aggregate({present}, 0D, (s, v) -> s + CAST(v AS double))"
    return f"(CASE WHEN size({present}) > 0 THEN {total} / CAST(size({present}) AS double) END)"


def _formatted(values: Values, node: exp.Anonymous) -> str:
    form = literal_text(node.expressions[1])
    written = write_formatted(values.write(node.expressions[0]), form) if form is not None else None
    if written is None:
        raise values.refusal(node, "writes a part of a time for which Spark has no letter")
    return written


def _parsed(values: Values, node: exp.Anonymous) -> str:
    form = literal_text(node.expressions[1])
    written = write_parsed(values.write(node.expressions[0]), form) if form is not None else None
    if written is None:
        raise values.refusal(node, "reads a part of a time by rules that Spark does not have")
    return written


def _in_zone(values: Values, node: exp.Anonymous) -> str:
    """A local time or an instant of a zone. A text with an offset is read as an instant."""
    zone, inner = (argument.unnest() for argument in node.expressions)
    if isinstance(inner, exp.Anonymous) and inner.name.lower() == "strptime" and literal_text(zone) == "UTC":
        return _parsed(values, inner)
    if not isinstance(inner, exp.Anonymous) or inner.name.lower() != "timezone":
        raise values.refusal(node)
    return write_zone(node.expressions, values.write)


def _list_quantile(values: Values, node: exp.Anonymous) -> str:
    """An exact discrete quantile of a list."""
    if len(node.expressions) != 3 or literal_text(node.expressions[1]) != "quantile_disc":
        raise values.refusal(node)
    present = f"array_sort(filter({values.write(node.expressions[0])}, v -> v IS NOT NULL))"
    share = values.write(node.expressions[2])
    place = f"greatest(1, CAST(ceil(CAST(size({present}) AS double) * CAST({share} AS double)) AS int))"
    return f"(CASE WHEN size({present}) > 0 THEN element_at({present}, least({place}, size({present}))) END)"


def _is_json(values: Values, node: exp.Anonymous) -> str:
    """Whether a text is one JSON value; Spark's own parser ignores what stands behind it."""
    text = values.write(node.expressions[0])
    alone = f"coalesce(json_array_length(concat('[', {text}, ']')) = 1, FALSE)"
    return f"(CASE WHEN {text} IS NOT NULL THEN try_parse_json({text}) IS NOT NULL AND {alone} END)"


def _replaced(values: Values, node: exp.Anonymous) -> str:
    """REGEXPREPLACE. Of empty matches, Java finds one more behind each other match."""
    pattern = literal_text(node.expressions[1].unnest()) or ""
    try:
        finds_nothing = re.search(pattern, "") is not None
    except re.error:  # checked where it is written
        finds_nothing = False
    if finds_nothing:
        raise values.refusal(node, "has a pattern that matches the empty text, which Java finds at other places")
    return write_call(node, values.write, lambda part: None)


def _join(values: Values, node: exp.Anonymous) -> str:
    """CONCAT of DuckDB, which leaves nulls out; only of texts."""
    if any(values.duckdb_type(argument) not in {"VARCHAR", None} for argument in node.expressions):
        raise values.refusal(node, "joins values that are no texts")
    return f"concat_ws('', {', '.join(values.write(argument) for argument in node.expressions)})"


SCALAR_RULES: dict[str, ScalarRule] = {
    **{
        name: _of_doubles(name)
        for name in [
            "sqrt",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "atan2",
            "sinh",
            "cosh",
            "tanh",
            "cbrt",
            "degrees",
            "radians",
        ]
    },
    "pi": _template("pi()"),
    "make_timestamp_ms": _of_millis,
    "left": _end("left"),
    "right": _end("right"),
    "list_sum": _list_sum,
    "list_avg": _list_mean,
    "list_transform": _template("transform({0}, {1})"),
    "repeat": _template("repeat({0}, CAST({1} AS int))"),
    "unicode": _template("if({0} = '', -1, ascii({0}))"),
    "url_encode": _template("url_encode({0})"),
    "url_decode": _template("url_decode({0})"),
    "encode": _template("encode({0}, 'UTF-8')"),
    "decode": _template("decode({0}, 'UTF-8')"),
    "to_base64": _template("base64({0})"),
    "from_base64": _template("to_binary({0}, 'base64')"),
    "unhex": _template("to_binary({0}, 'hex')"),
    "sha1": _template("sha1({0})"),
    "strftime": _formatted,
    "strptime": _parsed,
    "timezone": _in_zone,
    "flatten": _template("flatten({0})"),
    "list_distinct": _template("array_distinct(filter({0}, v -> v IS NOT NULL))"),
    "list_aggregate": _list_quantile,
    "concat": _join,
    "json_valid": _is_json,
    "regexp_replace": _replaced,
}
