"""Expressions of statements in Spark SQL: those of one row, and aggregations and subqueries.

Spark and DuckDB convert operands of different types by different rules. So operands are cast to the type that DuckDB
takes for them, which `TypeSource` knows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from hybrid.errors import QueryError
from hybrid.schema.types import DataType
from hybrid.sql.calls import SAME_AS, literal_number, literal_text
from hybrid.sql.kinds import DECIMAL, DOUBLE, FLOAT, INT, LONG
from hybrid.sql.numeric_types import NumericType, numeric_type
from hybrid.sql.spark_aggregates import Call, write_aggregate
from hybrid.sql.spark_calls import write_step
from hybrid.sql.spark_functions import refusal, start_of
from hybrid.sql.spark_numbers import INFINITY, write_text
from hybrid.sql.spark_scalars import SCALAR_RULES
from hybrid.sql.spark_sql import SparkWriter
from hybrid.sql.spark_text import backquoted, quoted
from hybrid.sql.spark_windows import write_window

# DuckDB's types that results and casts may have, as Spark names them.
SPARK_TYPES = {
    "TINYINT": "int", "SMALLINT": "int", "INTEGER": "int", "BIGINT": "bigint", "FLOAT": "float", "DOUBLE": "double",
    "BOOLEAN": "boolean", "VARCHAR": "string", "BLOB": "binary", "TIMESTAMP": "timestamp", "DATE": "date",
    "HUGEINT": "decimal(38,0)", "JSON": "string",
}  # fmt: skip
_NUMERIC: dict[str, DataType] = {
    "TINYINT": INT, "SMALLINT": INT, "INTEGER": INT, "BIGINT": LONG, "FLOAT": FLOAT, "DOUBLE": DOUBLE,
}  # fmt: skip
# sqlglot's names of types that DuckDB names otherwise.
_TARGETS = {"INT": "INTEGER", "TEXT": "VARCHAR", "REAL": "FLOAT"}
_MOMENTS = ("TIMESTAMP", "DATE")
# From here on a double rounds to no FLOAT.
_FLOAT_END = "3.4028235677973366E38D"
# What DuckDB reads as a double; Java reads `1d` and `0x1p3` as numbers too.
_DOUBLE_TEXT = r"(?i)^\s*[-+]?(inf(inity)?|nan|([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?)\s*$"


class TypeSource(Protocol):
    """DuckDB's types of a statement's parts."""

    def of(self, node: exp.Expr) -> str | None:
        """The type of an expression; None where it cannot be told."""

    def columns(self, query: exp.Expr) -> Sequence[str] | None:
        """The types of a query's columns; None where they cannot be told."""

    def constant(self, node: exp.Expr) -> str:
        """The text of a constant expression's value, as DuckDB computes it. QueryError where it fails."""


@dataclass(frozen=True)
class ExpressionWriter(SparkWriter):
    """Writes expressions of a statement. `sql` is the text of its user."""

    sql: str
    source: TypeSource

    @abstractmethod
    def subquery(self, node: exp.Expr) -> str:
        """A query in parentheses."""

    @abstractmethod
    def ordered(self, item: exp.Expr) -> str:
        """An item of ORDER BY."""

    def write(self, node: exp.Expr) -> str:
        """The Spark SQL of a node and all its children."""
        same = node.meta.get(SAME_AS)
        if same is not None:
            plain = same(node)
            plain.parent = node.parent  # so that its types can be told
            node = plain
        rule = _RULES.get(type(node))
        try:
            return rule(self, node) if rule is not None else super().write(node)
        except QueryError as error:
            if error.hint is None and error.place is None:  # of a rule of row expressions, which names no place
                raise self.refusal(node, f"is refused: {str(error).rstrip('.')}") from error
            raise

    def refusal(self, node: exp.Expr, reason: str | None = None) -> QueryError:
        """The error for a node that Spark does not run."""
        shown = node.sql("duckdb")
        return refusal(self.sql, start_of(node), f"'{shown if len(shown) <= 60 else f'{shown[:57]}...'}'", reason)

    def duckdb_type(self, node: exp.Expr) -> str | None:
        """DuckDB's type of an expression."""
        return self.source.of(node)

    def type_of(self, node: exp.Expr) -> NumericType | None:
        """The numeric type of an expression, from DuckDB's."""
        kind = self.duckdb_type(node)
        if kind is None:
            return numeric_type(node, self.types)
        if kind == "HUGEINT":
            return NumericType(DECIMAL, 0)
        if kind.startswith("DECIMAL("):
            digits, scale = (int(part) for part in kind[8:-1].split(","))
            return NumericType(DECIMAL, scale, digits - scale)
        return NumericType(_NUMERIC[kind]) if kind in _NUMERIC else None

    def column(self, node: exp.Expr) -> str:
        """A column, with its table where one is written."""
        if isinstance(node.this, exp.Star) or node.args.get("db"):
            raise self.refusal(node)
        source = node.args.get("table")
        table = f"{backquoted(source.name)}." if source is not None else ""
        return f"{table}{backquoted(node.name)}"

    def call(self, node: exp.Anonymous) -> str:
        """A call of a function."""
        name, arguments = node.name.lower(), node.expressions
        written = write_aggregate(Call(node, self))
        if written is not None:
            return written
        rule = SCALAR_RULES.get(name)
        if rule is not None:
            return rule(self, node)
        if name in {"coalesce", "ifnull", "least", "greatest", "nullif"}:
            return f"{name}({', '.join(self.as_type(value, self.duckdb_type(node)) for value in arguments)})"
        if name == "if" and len(arguments) == 3:
            kind = self.duckdb_type(node)
            test, *values = self.condition(arguments[0]), *(self.as_type(value, kind) for value in arguments[1:])
            return f"if({', '.join([test, *values])})"
        return super().call(node)

    def case(self, node: exp.Expr) -> str:
        """A CASE, whose values get the type of the whole."""
        kind, subject, default = self.duckdb_type(node), node.this, node.args.get("default")
        branches = []
        for branch in node.args["ifs"]:
            test = self.condition(branch.this) if subject is None else self.compared("=", subject, branch.this)
            branches.append(f" WHEN {test} THEN {self.as_type(branch.args['true'], kind)}")
        tail = f" ELSE {self.as_type(default, kind)}" if default is not None else ""
        return f"(CASE{''.join(branches)}{tail} END)"

    def condition(self, node: exp.Expr) -> str:
        """A condition; a bare NULL has no type in Spark, which asks for a truth value."""
        return "CAST(NULL AS boolean)" if isinstance(node.unnest(), exp.Null) else self.write(node)

    def as_type(self, node: exp.Expr, kind: str | None) -> str:
        """A value that DuckDB converts to `kind` where it stands."""
        own = self.duckdb_type(node)
        if kind is None or own in (None, kind, '"NULL"') or kind.endswith("[]"):
            return self.write(node)
        if own in _NUMERIC and kind == "HUGEINT":
            return self.write(node)
        written = literal_text(node.unnest())
        if written is not None and kind in _MOMENTS:
            return self._moment(node, kind)
        if kind == "VARCHAR":
            return self._text(node)
        name = kind.lower() if kind.startswith("DECIMAL(") else SPARK_TYPES.get(kind)
        if name is None:
            raise self.refusal(node, f"is to become a {kind}")
        return f"CAST({self.write(node)} AS {name})"

    def compared(self, sign: str, left: exp.Expr, right: exp.Expr) -> str:
        """A comparison of values of one type, or of types that both engines compare alike."""
        one, other = self.duckdb_type(left), self.duckdb_type(right)
        for value, kind, beside in ((left, one, other), (right, other, one)):
            if literal_text(value.unnest()) is not None and beside not in (None, "VARCHAR", "JSON", kind):
                written = self.as_type(value, beside)
                pair = (written, self.write(right)) if value is left else (self.write(left), written)
                return f"({pair[0]} {sign} {pair[1]})"
        if "BOOLEAN" in (one, other) and one != other and {one, other} & {*_NUMERIC, "HUGEINT"}:
            sides = [
                f"CAST({self.write(side)} AS int)" if kind == "BOOLEAN" else self.write(side)
                for side, kind in ((left, one), (right, other))
            ]
            return f"({sides[0]} {sign} {sides[1]})"
        numbers = [self.type_of(side) for side in (left, right)]
        if all(numbers) and any(number and number.kind is FLOAT for number in numbers):
            kinds = {number.kind for number in numbers if number}
            name = "DOUBLE" if DOUBLE in kinds else "FLOAT"  # DuckDB compares a FLOAT with a decimal as FLOATs
            return f"({self.as_type(left, name)} {sign} {self.as_type(right, name)})"
        return super().compared(sign, left, right)

    def between(self, node: exp.Expr) -> str:
        """A BETWEEN as two comparisons."""
        if node.args.get("symmetric"):
            raise self.refusal(node)
        value, low, high = node.this, node.args["low"], node.args["high"]
        return f"({self.compared('>=', value, low)} AND {self.compared('<=', value, high)})"

    def contained(self, node: exp.Expr) -> str:
        """An IN over a list or a query."""
        if node.args.get("unnest") or node.args.get("field"):
            raise self.refusal(node)
        query = node.args.get("query")
        if query is None:
            if not node.expressions:
                raise self.refusal(node)
            return f"({' OR '.join(self.compared('=', node.this, item) for item in node.expressions)})"
        kinds, own = self.source.columns(query), self.duckdb_type(node.this)
        if kinds is None or len(kinds) != 1 or (own != kinds[0] and not {own, kinds[0]} <= {"INTEGER", "BIGINT"}):
            raise self.refusal(node, f"compares {own or 'a value'} with {', '.join(kinds or ['a query'])}: CAST one")
        return f"({self.write(node.this)} IN {self.subquery(query)})"

    def cast(self, node: exp.Expr) -> str:
        """A cast; DuckDB and Spark read texts as numbers and times by different rules."""
        if any(node.args.get(key) for key in ("format", "action", "default")):
            raise self.refusal(node)
        inner, target = node.this, node.args["to"]
        written = target.sql("duckdb").upper()
        own, kind = self.duckdb_type(inner), self.duckdb_type(node) or _TARGETS.get(written, written)
        if kind in _MOMENTS:
            return self._time(node, own, kind)
        if kind == "VARCHAR":
            return self._text(inner)
        if own == "VARCHAR" and kind == "DOUBLE":
            return self._double_of_text(node)
        if kind == "FLOAT" and own == "DOUBLE":
            return self._float(node)
        if own == "VARCHAR" and kind in {"FLOAT", "BOOLEAN", "BLOB"}:
            raise self.refusal(node, f"reads a text as {kind}")
        if kind in {"INTEGER", "BIGINT"}:
            return self._whole(node, own, kind)
        if kind == "BLOB" or (kind not in SPARK_TYPES and not kind.startswith("DECIMAL(")):
            raise self.refusal(node)
        return super().cast(node)

    def _whole(self, node: exp.Expr, own: str | None, kind: str) -> str:
        """A whole number: fractions are cut, a timestamp is epoch milliseconds."""
        if own == "VARCHAR":
            word = "try_cast" if isinstance(node, exp.TryCast) else "CAST"
            return f"{word}({word}({self.write(node.this)} AS decimal(38, 18)) AS {SPARK_TYPES[kind]})"
        if own == "TIMESTAMP":
            return f"CAST(unix_millis({self.write(node.this)}) AS {SPARK_TYPES[kind]})"
        if own in {"DATE", "BLOB"}:
            raise self.refusal(node)
        return super().cast(node)

    def _time(self, node: exp.Expr, own: str | None, kind: str) -> str:
        """A time of a time, or of a constant text."""
        if literal_text(node.this.unnest()) is not None and not isinstance(node, exp.TryCast):
            return self._moment(node, kind)
        if own not in _MOMENTS and own != '"NULL"':
            raise self.refusal(node, "reads a text as a time: use FROMDATETIME")
        return f"CAST({self.write(node.this)} AS {SPARK_TYPES[kind]})"

    def _double_of_text(self, node: exp.Expr) -> str:
        value = self.write(node.this)
        good = f"{value} RLIKE {quoted(_DOUBLE_TEXT)}"
        if isinstance(node, exp.TryCast):
            return f"try_cast(CASE WHEN {good} THEN {value} END AS double)"
        return f"CAST(if({good}, {value}, concat('no number: ', {value})) AS double)"

    def _float(self, node: exp.Expr) -> str:
        """A double in 32 bits; one that does not fit is no infinity."""
        value = self.write(node.this)
        wrong = (
            "NULL" if isinstance(node, exp.TryCast) else "CAST(raise_error('a DOUBLE does not fit FLOAT') AS double)"
        )
        is_beyond = f"abs({value}) >= {_FLOAT_END} AND abs({value}) < {INFINITY}"
        return f"CAST((CASE WHEN {is_beyond} THEN {wrong} ELSE {value} END) AS float)"

    def _text(self, node: exp.Expr) -> str:
        kind = self.duckdb_type(node)
        if kind is None or kind.endswith("[]") or kind in {"BLOB", "INTERVAL", "TIME"}:
            raise self.refusal(node, "has no text that is known to be the same")
        return self.write(node) if kind in {"VARCHAR", "JSON"} else write_text(node, self.write, self.type_of)

    def _moment(self, node: exp.Expr, kind: str) -> str:
        """A constant time, as DuckDB reads it."""
        value = node if isinstance(node, exp.Cast) else exp.cast(node.copy(), kind, dialect="duckdb")
        return f"CAST({quoted(self.source.constant(value))} AS {SPARK_TYPES[kind]})"

    def filtered(self, node: exp.Expr) -> str:
        """An aggregation with FILTER."""
        if not isinstance(node.this, exp.Anonymous):
            raise self.refusal(node)
        written = write_aggregate(Call(node.this, self, self.write(node.expression.this)))
        if written is None:
            raise self.refusal(node)
        return written


def _joined(writer: ExpressionWriter, node: exp.Expr) -> str:
    """`a || b` of texts."""
    sides = (node.this, node.expression)
    if any((writer.duckdb_type(side) or "").endswith("[]") for side in sides):
        raise writer.refusal(node, "joins lists")
    return f"concat({', '.join(writer._text(side) for side in sides)})"


def _listed(writer: ExpressionWriter, node: exp.Expr) -> str:
    kind = (writer.duckdb_type(node) or "").removesuffix("[]") or None
    return f"array({', '.join(writer.as_type(item, kind) for item in node.expressions)})"


def _extracted(writer: ExpressionWriter, node: exp.Expr) -> str:
    """EXTRACT of a part of a time."""
    part, moment = node.this.name.lower(), node.expression
    if part not in _PARTS or writer.duckdb_type(moment) not in _MOMENTS:
        raise writer.refusal(node)
    return _PARTS[part].format(writer.write(moment))


def _moved(writer: ExpressionWriter, node: exp.Expr) -> str:
    """A time and an interval."""
    moment, step = node.this, node.expression
    if isinstance(node, exp.Add) and isinstance(moment, exp.Interval):
        moment, step = step, moment
    if isinstance(node, exp.Sub) and isinstance(step, exp.Anonymous) and step.name.lower().startswith("to_"):
        back = exp.Anonymous(this=step.name, expressions=[exp.Neg(this=exp.Paren(this=step.expressions[0].copy()))])
        return write_step(moment, back, writer.write) or SparkWriter.binary(writer, node)
    if not isinstance(step, exp.Interval):
        return SparkWriter.binary(writer, node)
    count, unit = step.this, str(step.args.get("unit") or "").upper().removesuffix("S")
    number = literal_number(count.unnest()) if count is not None else None
    if number is None or number != int(number) or unit not in _UNITS or writer.duckdb_type(moment) != "TIMESTAMP":
        raise writer.refusal(node)
    return f"timestampadd({unit}, {int(number) if isinstance(node, exp.Add) else -int(number)}, {writer.write(moment)})"


_UNITS = frozenset(("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"))
_PARTS = {
    **{part: f"{part}({{}})" for part in ("year", "quarter", "month", "day", "hour", "minute", "second")},
    "dow": "(dayofweek({}) - 1)", "isodow": "(weekday({}) + 1)", "doy": "dayofyear({})", "week": "weekofyear({})",
    "dayofweek": "(dayofweek({}) - 1)", "dayofyear": "dayofyear({})",
}  # fmt: skip
_RULES: dict[type[exp.Expr], Callable[..., str]] = {
    exp.DPipe: _joined,
    exp.Array: _listed,
    exp.Subquery: lambda writer, node: writer.subquery(node),
    exp.Exists: lambda writer, node: f"EXISTS {writer.subquery(node.this)}",
    exp.Filter: lambda writer, node: writer.filtered(node),
    exp.Window: write_window,
    exp.Extract: _extracted,
    exp.Add: _moved,
    exp.Sub: _moved,
}
