"""Parses row expressions, and checks them against a list: the columns of one row, and functions of them.

The list names what is allowed. Syntax that sqlglot or DuckDB add later is refused until `sql.spark_sql` has a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from hybrid.config.table_config import TableSpec
from hybrid.errors import QueryError, suggestion
from hybrid.schema.dialect import PinotReader, canonical
from hybrid.schema.types import DataType
from hybrid.sql import aggregates
from hybrid.sql.allowed import AGGREGATES, WINDOWS
from hybrid.sql.row_functions import CLOCK, FUNCTIONS, PASSING, TESTS
from hybrid.sql.spark_sql import TYPES
from hybrid.sql.statement import refuse_depth, unreadable
from hybrid.sql.text_quotes import quotes_hint
from hybrid.sql.tokens import error_at

_PARTS = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Anonymous, exp.And, exp.Or, exp.Not,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between,
    exp.Like, exp.ILike, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.DPipe, exp.Case, exp.If, exp.Cast,
    exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Substring, exp.Trim,
)  # fmt: skip
_OWN_TYPES = ("BIG_DECIMAL", "BYTES")
_CONDITIONS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between,
    exp.Like, exp.ILike, exp.Boolean, exp.Null, exp.Case,
)  # fmt: skip


@dataclass(frozen=True)
class RowReader:
    """Reads expressions in `text` over the columns of a table; `has_clock`: now() and ago() are allowed."""

    text: str
    spec: TableSpec
    has_clock: bool

    def expression(self, tokens: Sequence[Token]) -> exp.Expr:
        """Parses these tokens as one expression; its columns get the table's own names."""
        try:
            trees = PinotReader().parser().parse_into(exp.Condition, list(tokens), self.text)
        except ParseError as error:
            raise unreadable(self.text, error, has_clauses=False) from None
        except RecursionError:
            raise QueryError("The expression is nested too deeply.") from None
        except Exception as error:  # sqlglot fails on some texts that it should refuse
            raise error_at(self.text, tokens[0].start, "The expression cannot be read: it begins") from error
        tree = trees[0]
        if tree is None or len(trees) != 1:
            raise error_at(self.text, tokens[0].start, "One expression is expected")
        refuse_depth(tree)
        for node in list(tree.walk()):
            self._check(node)
        return tree

    def refuse(self, node: exp.Expr, message: str, hint: str | None = None) -> QueryError:
        """An error at the position of a node, or of the nearest node around it that has one."""
        around: exp.Expr | None = node
        while around is not None:
            starts = [int(part.meta["start"]) for part in around.walk() if "start" in part.meta]
            if starts:
                return error_at(self.text, min(starts), message, hint)
            around = around.parent
        return error_at(self.text, len(self.text) - len(self.text.lstrip()), message, hint)

    def require_condition(self, node: exp.Expr) -> None:
        """QueryError when the expression, or an operand of its AND, OR and NOT, is surely no condition."""
        node = node.unnest()
        if isinstance(node, exp.And | exp.Or | exp.Not):
            for child in node.iter_expressions():
                self.require_condition(child)
        elif not self._may_be_condition(node):
            raise self.refuse(node, f"'{_short(node)}' is neither true nor false, so it is no condition")

    def column(self, node: exp.Expr, name: str) -> str:
        """The table's own name of a column. The QueryError for an unknown column suggests a similar name."""
        if self.spec.schema.find(name) is not None:
            return name
        column_names = self.spec.schema.column_names
        same = [column for column in column_names if self.spec.ignores_case and column.lower() == name.lower()]
        if same:
            return same[0]
        near = suggestion(name, column_names) or _quotes(node, name)
        hint = None if near else quotes_hint(node, self.spec.schema.fields)
        raise self.refuse(node, f"Table '{self.spec.name}' has no column '{name}'.{near} It stands", hint)

    def _may_be_condition(self, node: exp.Expr) -> bool:
        if isinstance(node, exp.Column):
            field = self.spec.schema.find(node.name)
            return field is not None and field.data_type is DataType.BOOLEAN and field.single_value
        if isinstance(node, exp.Anonymous):
            return canonical(node.name) in TESTS | PASSING
        if isinstance(node, exp.Cast):
            return bool(node.to.this.name == "BOOLEAN")
        return isinstance(node, _CONDITIONS)

    def _check(self, node: exp.Expr) -> None:
        if not isinstance(node, _PARTS) or isinstance(node, exp.Query) or _is_other_form(node):
            raise self.refuse(node, f"'{_short(node)}' cannot be used in an expression over one row")
        if isinstance(node, exp.Anonymous):
            self._check_call(node)
        elif isinstance(node, exp.Column):
            self._check_column(node)
        elif isinstance(node, exp.Cast):
            self._check_type(node)

    def _check_call(self, node: exp.Anonymous) -> None:
        name = canonical(node.name)
        if name in CLOCK and not self.has_clock:
            raise self.refuse(
                node,
                f"{node.name.upper()} cannot be used: the same text must mean the same rows whenever it is run. "
                "Write the time itself. It stands",
            )
        if name in FUNCTIONS:
            self._check_count(node, *FUNCTIONS[name])
            return
        if node.name.lower() in AGGREGATES | WINDOWS or aggregates.is_aggregate(name):
            raise self.refuse(node, f"Function '{node.name}' is of many rows; here is one")
        near = suggestion(node.name.lower(), FUNCTIONS)
        raise self.refuse(node, f"Function '{node.name}' cannot be used in a row expression.{near} It stands")

    def _check_count(self, node: exp.Anonymous, fewest: int, most: int) -> None:
        count = len(node.expressions)
        if not fewest <= count <= most:
            accepted = str(fewest) if fewest == most else f"{fewest} to {most}"
            plural = "s" * (accepted != "1")
            raise self.refuse(node, f"{node.name.upper()} takes {accepted} argument{plural}, not {count}")

    def _check_column(self, node: exp.Column) -> None:
        if not isinstance(node.this, exp.Identifier) or node.args.get("db"):
            raise self.refuse(node, f"'{_short(node)}' is no column")
        if node.table and node.table.lower() != self.spec.name.lower():
            raise self.refuse(node, f"'{node.table}' is not the table, which is '{self.spec.name}'")
        name = self.column(node, node.name)
        node.set("table", None)
        node.this.set("this", name)

    def _check_type(self, node: exp.Cast) -> None:
        kind = str(node.to.args.get("kind") or "").upper()
        if kind not in _OWN_TYPES and TYPES.get(getattr(node.to.this, "name", "")) is None:
            raise self.refuse(node, f"'{node.to.sql('duckdb')}' is no type of a column")


def split_at(tokens: Iterable[Token], separator: TokenType) -> list[list[Token]]:
    """Splits tokens at the separators outside of brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if token.token_type is separator and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


def _is_other_form(node: exp.Expr) -> bool:
    """Whether a node is a form without a rule: IN over a query, BETWEEN SYMMETRIC, a CAST with a format."""
    if isinstance(node, exp.In):
        return not node.expressions or any(node.args.get(key) for key in ("query", "unnest", "field"))
    if isinstance(node, exp.Cast):
        return any(node.args.get(key) for key in ("format", "action", "default"))
    return bool(isinstance(node, exp.Between) and node.args.get("symmetric"))


def _quotes(node: exp.Expr, name: str) -> str:
    """A hint for a text in double quotes, which denote a name; empty otherwise."""
    is_quoted = isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier) and node.this.args.get("quoted")
    return f" A text is written in single quotes: '{name}'." if is_quoted else ""


def _short(node: exp.Expr) -> str:
    text = node.sql("duckdb")
    return text if len(text) <= 60 else f"{text[:57]}..."
