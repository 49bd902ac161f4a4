"""Constructors of SQL nodes, and simple questions about expressions that need no run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from hybrid.schema.types import DataType
from hybrid.sql.nodes import nodes_of

# The column types of a statement's tables, by lower-case name. A name with two types is left out.
ColumnTypes = Mapping[str, DataType]

# Key of `meta` for a function that returns the plain form of a node, where only DuckDB needs the long form.
SAME_AS = "same_as"

_CALLS_OF_CLOCKS: dict[type[exp.Expr], str] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTime: "get_current_time",
    exp.CurrentTimestamp: "get_current_timestamp",
    exp.Localtime: "current_localtime",
    exp.Localtimestamp: "current_localtimestamp",
}
CLOCKS = tuple(_CALLS_OF_CLOCKS)
_TEMPORAL_CALLS = frozenset(
    (
        "current_date", "current_localtimestamp", "epoch_ms", "get_current_timestamp", "make_date", "make_timestamp",
        "make_timestamp_ms", "strptime", "time_bucket", "to_timestamp", "today",
    )
)  # fmt: skip
_TEMPORAL_TYPES = ("TIMESTAMP", "TIMESTAMPTZ", "DATE", "DATETIME", "TIMESTAMPNTZ")


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """`name(arguments)` as a DuckDB function, to which no rule is applied any more."""
    node = exp.Anonymous(this=name, expressions=list(arguments))
    node.meta["made"] = True
    return node


def is_made(node: exp.Expr) -> bool:
    """Whether `call` made the node."""
    return bool(node.meta.get("made"))


def number(value: float) -> exp.Expr:
    """A number literal; a negative one is in parentheses, so that it fits anywhere."""
    return exp.Literal.number(value) if value >= 0 else exp.Paren(this=exp.Neg(this=exp.Literal.number(-value)))


def text(value: str) -> exp.Literal:
    """A string literal."""
    return exp.Literal.string(value)


def cast(value: exp.Expr, kind: str) -> exp.Cast:
    """`CAST(value AS kind)`, by DuckDB's name of the type."""
    return exp.Cast(this=value, to=exp.DataType.build(kind, dialect="duckdb"))


def literal_text(node: exp.Expr) -> str | None:
    """The text of a string literal, or None."""
    return node.name if isinstance(node, exp.Literal) and node.is_string else None


def literal_number(node: exp.Expr) -> float | None:
    """The value of a number literal (signed, or quoted as Pinot allows), or None."""
    if isinstance(node, exp.Neg):
        inner = literal_number(node.this)
        return None if inner is None else -inner
    if not isinstance(node, exp.Literal):
        return None
    try:
        return float(node.name)
    except ValueError:
        return None


def is_temporal(node: exp.Expr, types: ColumnTypes) -> bool:
    """Whether an expression is surely a date or a timestamp, and not epoch milliseconds."""
    if isinstance(node, exp.Paren):
        return is_temporal(node.this, types)
    if isinstance(node, exp.Column):
        return types.get(node.name.lower()) is DataType.TIMESTAMP
    if isinstance(node, exp.Cast):
        return node.to.sql("duckdb").split("(")[0].split(" ")[0].upper() in _TEMPORAL_TYPES
    return isinstance(node, exp.Anonymous) and node.name.lower() in _TEMPORAL_CALLS and not is_millis(node)


def call_clocks(tree: exp.Expr) -> None:
    """Writes CURRENT_DATE and the like as calls: DuckDB takes the bare word for the output column of that name."""
    for node in nodes_of(tree, *CLOCKS):
        if not node.args.get("this"):
            node.replace(call(_CALLS_OF_CLOCKS[type(node)]))


def to_millis(moment: exp.Expr) -> exp.Anonymous:
    """A timestamp as epoch milliseconds. DuckDB's epoch_ms converts both ways, so `is_millis` needs a mark."""
    node = call("epoch_ms", moment)
    node.meta["millis"] = True
    return node


def is_millis(node: exp.Expr) -> bool:
    """Whether `to_millis` made the expression."""
    return bool(node.unnest().meta.get("millis"))


def as_timestamp(node: exp.Expr, types: ColumnTypes) -> exp.Expr:
    """The expression as a timestamp (UTC); a number is epoch milliseconds."""
    return node if is_temporal(node, types) else call("make_timestamp_ms", cast(node, "BIGINT"))


def as_millis(node: exp.Expr, types: ColumnTypes) -> exp.Expr:
    """The expression as epoch milliseconds."""
    return to_millis(node) if is_temporal(node, types) else cast(node, "BIGINT")


def arguments(node: exp.Anonymous) -> Sequence[exp.Expr]:
    """The arguments of a call."""
    return list(node.expressions)
