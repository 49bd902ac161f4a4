"""Writes a rewritten row expression as Spark SQL that returns the same value for the same row as DuckDB.

Spark runs in ANSI mode: a value that does not fit is an error, as in DuckDB. A division by zero is no error in DuckDB
and Pinot, so its result is written out. `sql.row_sql` passes only expressions that have a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError
from hybrid.sql.calls import SAME_AS, ColumnTypes, literal_text, number
from hybrid.sql.numeric_types import NumericType, numeric_type
from hybrid.sql.spark_calls import write_call, write_step, write_substring
from hybrid.sql.spark_numbers import needs_difference, write_negation, write_quotient, write_remainder, write_text
from hybrid.sql.spark_regex import like_regex
from hybrid.sql.spark_text import backquoted, quoted
from hybrid.sql.texts import like_pattern

# DuckDB's types by sqlglot's names.
TYPES = {
    "INT": "int", "BIGINT": "bigint", "FLOAT": "float", "DOUBLE": "double", "DECIMAL": "decimal", "BOOLEAN": "boolean",
    "TEXT": "string", "VARCHAR": "string", "TIMESTAMP": "timestamp", "TIMESTAMPNTZ": "timestamp", "JSON": "string",
    "VARBINARY": "binary",
}  # fmt: skip
_BINARY: dict[type[exp.Expr], str] = {
    exp.And: "AND", exp.Or: "OR", exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "<=>", exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Mod: "%", exp.IntDiv: "div", exp.DPipe: "||",
}  # fmt: skip
# The longest Spark SQL: a division writes its operands several times, so a short text can become a long one.
_WRITTEN_MAX = 200_000
_COMPUTED = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv)
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)


def spark_sql(node: exp.Expr, types: ColumnTypes) -> str:
    """The expression as Spark SQL, over columns of these `types` (lower-case names).

    QueryError (700) for an expression without a Spark form. Decimals keep their digits in frames of
    `lake.exact_decimals`.
    """
    return SparkWriter(types).write(node)


@dataclass(frozen=True)
class SparkWriter:
    """Writes the nodes of one row's expression; `sql.spark_statement` adds what statements have besides."""

    types: ColumnTypes

    def write(self, node: exp.Expr) -> str:
        """The Spark SQL of a node and all its children."""
        same = node.meta.get(SAME_AS)
        node = same(node) if same is not None else node
        kind = type(node)
        if kind not in _WRITERS and kind not in _BINARY:
            raise self.refusal(node)
        written = _WRITERS[kind](self, node) if kind in _WRITERS else self.binary(node)
        if len(written) > _WRITTEN_MAX:
            raise QueryError("It divides or rounds in too many places one within another.")
        return written

    def refusal(self, node: exp.Expr) -> QueryError:
        """The error for a node without a rule."""
        return QueryError(f"'{node.sql('duckdb')}' cannot be used in a row expression.", pinot_code=VALIDATION)

    def type_of(self, node: exp.Expr) -> NumericType | None:
        """The numeric type of a node."""
        return numeric_type(node, self.types)

    def call(self, node: exp.Anonymous) -> str:
        """A call of a function."""
        return write_call(node, self.write, self.type_of)

    def column(self, node: exp.Expr) -> str:
        """A column by its name."""
        return backquoted(node.name)

    def binary(self, node: exp.Expr) -> str:
        """An operator with two sides."""
        left, right = node.this, node.expression
        if isinstance(node, exp.Add):
            stepped = write_step(left, right, self.write)
            if stepped is not None:
                return stepped
        if isinstance(node, _COMPARED):
            return self.compared(_BINARY[type(node)], left, right)
        if not isinstance(node, _COMPUTED):
            return f"({self.write(left)} {_BINARY[type(node)]} {self.write(right)})"
        self.type_of(node)  # refuses a product with too many decimal places
        if isinstance(node, exp.Mod):
            return write_remainder(left, right, self.operand, self.type_of)
        return f"({self.operand(left)} {_BINARY[type(node)]} {self.operand(right)})"

    def compared(self, sign: str, left: exp.Expr, right: exp.Expr) -> str:
        """A comparison. Decimals with too many digits together are compared by their difference."""
        if needs_difference(self.type_of(left), self.type_of(right)):
            if sign == "<=>":
                nulls = f"{self.write(left)} IS NULL AND {self.write(right)} IS NULL"
                return f"(({nulls}) OR coalesce({self.compared('=', left, right)}, FALSE))"
            return f"(({self.operand(left)} - {self.operand(right)}) {sign} 0)"
        return f"({self.write(left)} {sign} {self.write(right)})"

    def operand(self, node: exp.Expr) -> str:
        """An operand of arithmetic; whole-number literals are written with 64 bits."""
        is_whole = isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()
        return f"{node.name}L" if is_whole and int(node.name) < 2**63 else self.write(node)

    def cast(self, node: exp.Expr) -> str:
        """A cast."""
        target = node.args["to"]
        name = TYPES.get(target.this.name, "")
        if not name:
            raise QueryError(f"'{target.sql('duckdb')}' is no type of a column.", pinot_code=VALIDATION)
        if name == "decimal" and target.expressions:
            name = target.sql("spark").lower()
        inner = node.this
        if name in {"int", "bigint"} and isinstance(inner, exp.Anonymous) and inner.name == "trunc":
            inner = inner.expressions[0]  # Spark itself cuts fractions off
        if name == "string":
            return write_text(inner, self.write, self.type_of)
        word = "try_cast" if isinstance(node, exp.TryCast) else "CAST"
        return f"{word}({self.write(inner)} AS {name})"

    def case(self, node: exp.Expr) -> str:
        """A CASE."""
        subject, default = node.this, node.args.get("default")
        branches = [
            f" WHEN {self.write(branch.this)} THEN {self.write(branch.args['true'])}" for branch in node.args["ifs"]
        ]
        head = f" {self.write(subject)}" if subject is not None else ""
        tail = f" ELSE {self.write(default)}" if default is not None else ""
        return f"(CASE{head}{''.join(branches)}{tail} END)"

    def between(self, node: exp.Expr) -> str:
        """A BETWEEN."""
        value, low, high = node.this, node.args["low"], node.args["high"]
        if any(needs_difference(self.type_of(value), self.type_of(end)) for end in (low, high)):
            return f"({self.compared('>=', value, low)} AND {self.compared('<=', value, high)})"
        return f"({self.write(value)} BETWEEN {self.write(low)} AND {self.write(high)})"

    def contained(self, node: exp.Expr) -> str:
        """An IN over a list."""
        if any(needs_difference(self.type_of(node.this), self.type_of(item)) for item in node.expressions):
            return f"({' OR '.join(self.compared('=', node.this, item) for item in node.expressions)})"
        return f"({self.write(node.this)} IN ({', '.join(self.write(item) for item in node.expressions)}))"

    def like(self, node: exp.Expr) -> str:
        """LIKE, where a backslash escapes only `_` and `%`; in Spark it escapes every character."""
        written = literal_text(node.expression)
        if written is None:
            raise QueryError("LIKE: the pattern must be a quoted constant.", pinot_code=VALIDATION)
        negated = "NOT " if node.args.get("negate") else ""
        regex = like_regex(written)
        if regex is not None:
            return f"(lower({self.write(node.this)}) {negated}RLIKE lower({quoted(regex)}))"
        return f"({self.write(node.this)} {negated}ILIKE {quoted(like_pattern(written))})"

    def substring(self, node: exp.Expr) -> str:
        """A SUBSTRING in its own grammar."""
        parts = [node.this, node.args.get("start") or number(1), node.args.get("length")]
        return write_substring([part for part in parts if part is not None], self.write)

    def trim(self, node: exp.Expr) -> str:
        """A TRIM in its own grammar."""
        characters = node.args.get("expression")
        which = f" {self.write(characters)}" if characters is not None else ""
        return f"trim({str(node.args.get('position') or 'BOTH').upper()}{which} FROM {self.write(node.this)})"

    def negated(self, node: exp.Expr) -> str:
        """A negation."""
        return write_negation(node.this, self.operand(node.this), self.type_of)

    def unlike(self, node: exp.Expr) -> str:
        """IS DISTINCT FROM."""
        return f"(NOT {self.compared('<=>', node.this, node.expression)})"


def _literal(node: exp.Expr) -> str:
    written = literal_text(node)
    return node.name if written is None else quoted(written)


_WRITERS: dict[type[exp.Expr], Callable[..., str]] = {
    exp.Anonymous: lambda writer, node: writer.call(node),
    exp.Column: lambda writer, node: writer.column(node),
    exp.Identifier: lambda writer, node: backquoted(node.name),
    exp.Literal: lambda writer, node: _literal(node),
    exp.Boolean: lambda writer, node: "TRUE" if node.this else "FALSE",
    exp.Null: lambda writer, node: "NULL",
    exp.Paren: lambda writer, node: f"({writer.write(node.this)})",
    exp.Neg: SparkWriter.negated,
    exp.Not: lambda writer, node: f"(NOT {writer.write(node.this)})",
    exp.Is: lambda writer, node: f"({writer.write(node.this)} IS {writer.write(node.expression)})",
    exp.NullSafeNEQ: SparkWriter.unlike,
    exp.Div: lambda writer, node: write_quotient(node, writer.write),
    exp.Cast: lambda writer, node: writer.cast(node),
    exp.TryCast: lambda writer, node: writer.cast(node),
    exp.Case: lambda writer, node: writer.case(node),
    exp.Between: lambda writer, node: writer.between(node),
    exp.In: lambda writer, node: writer.contained(node),
    exp.ILike: lambda writer, node: writer.like(node),
    exp.Substring: SparkWriter.substring,
    exp.Trim: SparkWriter.trim,
    exp.Lambda: lambda writer, node: f"{backquoted(node.expressions[0].name)} -> {writer.write(node.this)}",
}
