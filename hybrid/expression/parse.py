"""Compiles expressions of transforms and filters: Pinot's SQL expressions, as Python closures.

After Pinot's InbuiltFunctionEvaluator: a function of a null is null unless it handles nulls; AND and OR have
three-valued logic. A name is a field of the record. Where the record has no field `a.b`, it is the field `b` of the
object `a`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from hybrid.expression import arithmetic, logic, patterns, texts
from hybrid.expression.arguments import FractionLiteral
from hybrid.expression.casts import cast, cast_decimal
from hybrid.expression.constants import data_type
from hybrid.expression.functions import rule_of
from hybrid.expression.groovy import check_no_script
from hybrid.expression.rounding import rounding_notes
from hybrid.expression.rules import Node, Rule, call, constant
from hybrid.schema.dialect import PinotReader
from hybrid.schema.types import DataType

_LENGTH_MAX = 10_000
_FRACTION = re.compile(r"[0-9]*\.[0-9]*", re.ASCII)


@dataclass(frozen=True)
class Expression:
    """A compiled expression. `fields` are the names that it reads, in order of appearance.

    `evaluate` returns its value for a record and the present time (epoch ms).
    """

    text: str
    fields: tuple[str, ...]
    evaluate: Node


@lru_cache(maxsize=256)
def parse_expression(text: str) -> Expression:
    """The expression in `text`. ValueError, without a full stop, says what is wrong."""
    check_no_script(text, parse_expression)
    builder = _Builder()
    try:
        evaluate = builder.node(_tree(text))
    except RecursionError as error:
        raise ValueError("it nests too deep") from error
    return Expression(text, tuple(builder.fields), evaluate)


@lru_cache(maxsize=256)
def notes_of(text: str) -> tuple[str, ...]:
    """What an expression, or assignments `a = expr, b = expr`, may not mean; nothing where it cannot be read."""
    try:
        return rounding_notes(_tree(text))
    except (ValueError, RecursionError):
        return ()


def _tree(text: str) -> exp.Expr:
    if len(text) > _LENGTH_MAX:
        raise ValueError(f"it has {len(text)} characters; at most {_LENGTH_MAX} are read")
    try:
        # In parentheses, so that only a single expression fits; on its own line, so that a comment ends.
        statements = sqlglot.parse(f"SELECT (\n{text}\n)", dialect=PinotReader)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        near = str(first.get("highlight") or "").strip()
        reason = str(first.get("description") or error).split("<Token")[0].rstrip(". ")
        where = f" near '{near}'" if near and near != ")" else " at its end"
        raise ValueError(f"it cannot be read{where}: {reason}") from error
    except TokenError as error:
        raise ValueError("it cannot be read: a quote is not closed") from error
    select = statements[0] if len(statements) == 1 else None
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        raise ValueError("it is not one expression")
    tree: exp.Expr = select.expressions[0]
    return tree


class _Builder:
    """A compiler of syntax trees to closures, which records the fields that they read."""

    def __init__(self) -> None:
        self.fields: dict[str, None] = {}

    def node(self, tree: exp.Expr) -> Node:
        """The closure of a tree."""
        build = _BUILD.get(type(tree))
        if build is not None:
            return build(self, tree)
        rule = _OPERATORS.get(type(tree))
        if rule is not None:
            return call(rule, [self.operand(tree.this), self.operand(tree.expression)])
        if isinstance(tree, exp.Tuple):
            raise ValueError("it is not one expression")
        raise ValueError(f"'{tree.sql('duckdb')}' is not supported in a transform or filter")

    def operand(self, tree: exp.Expr) -> Node:
        """The closure of an operand. A literal with a point is exact, so that it can be compared with decimals."""
        inner = tree.unnest()
        sign, digits = ("-", inner.this) if isinstance(inner, exp.Neg) else ("", inner)
        if isinstance(digits, exp.Literal) and not digits.is_string and _FRACTION.fullmatch(digits.name):
            return constant(FractionLiteral(sign + digits.name))
        return self.node(tree)

    def field(self, tree: exp.Expr) -> Node:
        names = [part.name for part in tree.parts] if isinstance(tree, (exp.Column, exp.Dot)) else [tree.name]
        if any(isinstance(part, exp.Anonymous | exp.Star) for part in getattr(tree, "parts", ())):
            raise ValueError(f"'{tree.sql('duckdb')}' is not a field")
        name = ".".join(names)
        self.fields.setdefault(name)
        return _field(name)

    def called(self, tree: exp.Expr) -> Node:
        rule = rule_of(tree.name, len(tree.expressions))
        return self.applied(tree.name, rule, tree.expressions)

    def applied(self, name: str, rule: Rule, arguments: list[exp.Expr]) -> Node:
        """The closure of a call. Constants are prepared here, once."""
        nodes = []
        for position, argument in enumerate(arguments):
            prepare = rule.constants.get(position)
            if prepare is None:
                nodes.append(self.node(argument))
                continue
            try:
                nodes.append(constant(prepare(_literal(argument))))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return call(rule, nodes)

    def case(self, tree: exp.Expr) -> Node:
        subject = tree.args.get("this")
        branches = []
        for branch in tree.args["ifs"]:
            condition = exp.EQ(this=subject.copy(), expression=branch.this) if subject else branch.this
            branches.append((self.node(condition), self.node(branch.args["true"])))
        default = tree.args.get("default")
        return logic.case(branches, self.node(default) if default is not None else constant(None))

    def converted(self, tree: exp.Expr) -> Node:
        target = tree.args["to"]
        name = target.args["kind"] if target.args.get("kind") else target.this.value
        kind = data_type(_SQL_TYPES.get(str(name), str(name)))
        sizes = [int(size.name) for size in target.expressions if size.name.isdigit()]
        if kind is DataType.BIG_DECIMAL and sizes:
            precision, scale = sizes[0], sizes[1] if len(sizes) > 1 else 0
            return call(Rule(1, 1, lambda value: cast_decimal(value, precision, scale)), [self.node(tree.this)])
        return call(Rule(1, 1, lambda value: cast(value, kind)), [self.node(tree.this)])

    def trimmed(self, tree: exp.Expr) -> Node:
        end, characters = str(tree.args.get("position") or "BOTH").upper(), tree.args.get("expression")
        if characters is None:
            return call(Rule(1, 1, lambda value: texts.trimmed(value, end=end)), [self.node(tree.this)])
        rule = Rule(2, 2, lambda value, which: texts.trimmed(value, which, end))
        return call(rule, [self.node(tree.this), self.node(characters)])

    def between(self, tree: exp.Expr) -> Node:
        arguments = (tree.this, tree.args["low"], tree.args["high"])
        return call(Rule(3, 3, logic.between, nulls=True), [self.operand(argument) for argument in arguments])

    def like(self, tree: exp.Expr) -> Node:
        matches = self.applied("LIKE", patterns.RULES["like"], [tree.this, tree.expression])
        return call(_NOT, [matches]) if tree.args.get("negate") else matches

    def contained(self, tree: exp.Expr) -> Node:
        if not tree.expressions:
            raise ValueError(f"'{tree.sql('duckdb')}' is not supported: IN takes a list of values")
        nodes = [self.operand(argument) for argument in (tree.this, *tree.expressions)]
        return call(Rule(2, None, logic.contained, nulls=True), nodes)

    def tested(self, tree: exp.Expr) -> Node:
        """IS NULL, IS TRUE and IS FALSE."""
        value, expected = self.node(tree.this), _literal(tree.expression)
        return call(Rule(1, 1, lambda operand: operand is expected, nulls=True), [value])

    def extracted(self, tree: exp.Expr) -> Node:
        return self.applied("EXTRACT", rule_of(tree.this.name, 1), [tree.expression])

    def substring(self, tree: exp.Expr) -> Node:
        arguments = [tree.this, tree.args.get("start"), tree.args.get("length")]
        present = [argument for argument in arguments if argument is not None]
        return self.applied("substring", rule_of("substring", len(present)), present)


def _field(name: str) -> Node:
    if "." not in name:
        return lambda record, now_ms: record.get(name)
    steps = name.split(".")

    def nested(record: Mapping[str, object], now_ms: int | None) -> object:
        value = record.get(name)
        return value if value is not None else _walk(record, steps)

    return nested


def _walk(found: object, steps: list[str]) -> object:
    for step in steps:
        if not isinstance(found, Mapping):
            return None
        found = found.get(step)
    return found


def _literal(tree: exp.Expr) -> object:
    """The value of a constant; ValueError for any other expression."""
    tree = tree.unnest()
    if isinstance(tree, exp.Literal):
        return tree.name if tree.is_string else _number(tree.name)
    if isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal) and not tree.this.is_string:
        return -_number(tree.this.name)
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    if isinstance(tree, exp.Null):
        return None
    raise ValueError(f"'{tree.sql('duckdb')}' must be a constant")


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def _constant(builder: _Builder, tree: exp.Expr) -> Node:
    return constant(_literal(tree))


def _logical(join: Callable[[list[Node]], Node]) -> Callable[[_Builder, exp.Expr], Node]:
    return lambda builder, tree: join([builder.node(tree.this), builder.node(tree.expression)])


_NOT = Rule(1, 1, logic.negation)
# sqlglot's names of types, and Pinot's.
_SQL_TYPES = {"BIGINT": "LONG", "TEXT": "STRING", "TIMESTAMPNTZ": "TIMESTAMP"}
_OPERATORS: dict[type[exp.Expr], Rule] = {
    exp.Add: Rule(2, 2, arithmetic.plus),
    exp.Sub: Rule(2, 2, arithmetic.minus),
    exp.Mul: Rule(2, 2, arithmetic.times),
    exp.Div: Rule(2, 2, arithmetic.divide),
    exp.Mod: Rule(2, 2, arithmetic.modulo),
    exp.EQ: logic.RULES["equals"],
    exp.NEQ: logic.RULES["notEquals"],
    exp.LT: logic.RULES["lessThan"],
    exp.LTE: logic.RULES["lessThanOrEqual"],
    exp.GT: logic.RULES["greaterThan"],
    exp.GTE: logic.RULES["greaterThanOrEqual"],
    exp.NullSafeEQ: logic.RULES["isNotDistinctFrom"],
    exp.NullSafeNEQ: logic.RULES["isDistinctFrom"],
}
_BUILD: dict[type[exp.Expr], Callable[[_Builder, exp.Expr], Node]] = {
    exp.Paren: lambda builder, tree: builder.node(tree.this),
    exp.Column: _Builder.field,
    exp.Dot: _Builder.field,
    exp.Anonymous: _Builder.called,
    exp.Literal: _constant,
    exp.Boolean: _constant,
    exp.Null: _constant,
    exp.Neg: lambda builder, tree: call(Rule(1, 1, arithmetic.negate), [builder.node(tree.this)]),
    exp.Not: lambda builder, tree: call(_NOT, [builder.node(tree.this)]),
    exp.And: _logical(logic.all_of),
    exp.Or: _logical(logic.any_of),
    exp.Case: _Builder.case,
    exp.Cast: _Builder.converted,
    exp.Trim: _Builder.trimmed,
    exp.Between: _Builder.between,
    exp.Like: _Builder.like,
    exp.In: _Builder.contained,
    exp.Is: _Builder.tested,
    exp.Extract: _Builder.extracted,
    exp.Substring: _Builder.substring,
}
