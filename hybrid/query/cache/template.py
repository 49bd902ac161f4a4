"""Statement templates: statements that differ only in the values they compare with are rewritten once.

Parsing and rewriting a statement takes longer than a small one takes to run. So its text is cut at the values behind
comparison operators, and the text between them names the template. To make a template, the statement is rewritten
several times with marks of different forms in place of the values. The results must be equal but for the marks, and
contain each mark exactly once, as a literal. Then the values reach DuckDB as they were written, and any others may
replace them. Otherwise (a number that becomes a timestamp, a text that becomes a name, `now()`) the statement is
rewritten each time.
"""

from __future__ import annotations

import math
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import TokenType

from hybrid.errors import QueryError
from hybrid.query.cache.relations import BoundStatement
from hybrid.query.connection import quoted
from hybrid.query.rewrite import Rewritten
from hybrid.sql.cost import has_constant_cost
from hybrid.sql.nodes import nodes_of
from hybrid.sql.parameter_values import LiteralKind, Value
from hybrid.sql.parameters import BoundValues, slots_of
from hybrid.sql.predicates import Constant

_TEMPLATES_MAX = 1000
_TEXT_MAX = 20_000
# The kinds of values: text, whole number, decimal number.
_TEXT, _WHOLE, _DECIMAL = "text", "whole", "decimal"
# Comments and quoted names, which are skipped so that nothing inside looks like a value; then a value behind a
# comparison; then other texts.
_PIECES = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"]|"")*"|
    (?P<lead>(?:(?<![-+*/%<>=!~^&|@\#?:$])(?:<>|!=|<=|>=|=|<|>)|\bBETWEEN\b|\bAND\b)\s*)
    (?:(?P<text>'[^'\\]*'(?!'))|(?P<decimal>[0-9]{1,18}\.[0-9]{1,18})(?![\w.])|(?P<whole>[0-9]{1,18})(?![\w.]))|
    '(?:[^']|'')*'""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_OPTIONS = re.compile(r"\b(?:set|option)\b", re.IGNORECASE)
_LOOKS = (
    {_TEXT: "'hybrid mark {}'", _WHOLE: "7710000000000{:03d}", _DECIMAL: "0.771000{:03d}"},
    # Marks that would change if they were rewritten as an identifier, a pattern, a path or a number.
    {_TEXT: "'$.m\"k[{:03d}].x/ %_'", _WHOLE: "8{:03d}77", _DECIMAL: "88{:03d}.625"},
    {_TEXT: "'88{:03d}77123'", _WHOLE: "9007199254{:03d}", _DECIMAL: "0.5{:03d}"},
)
# The texts of a parameter that a literal of a template can have.
_FILLABLE = {
    _TEXT: re.compile(r"[^'\\\0]*"),
    _WHOLE: re.compile("[0-9]{1,18}"),
    _DECIMAL: re.compile(r"[0-9]{1,18}\.[0-9]{1,18}"),
}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
# Rewrites a statement with `now()` at an instant, epoch ms, and values for its parameters.
Rewriter = Callable[[str, int, BoundValues | None], Rewritten]
# Of a statement without parameters its text between the values; else also the values that are no marks.
_Name = str | tuple[str, tuple[str | Value, ...]]


@dataclass
class Template:
    """A rewritten statement with marks in place of its values.

    The marks in `numbers` reach DuckDB as parameters, so that it need not parse the statement again. `checked`: the AST
    passed the allow-list. `over` is the statement bound to the relations of the last run, with the relations it is
    valid for. `took_s` and `rows` are the duration and the number of rows of the last run.
    """

    rewritten: Rewritten
    marks: Sequence[str]
    numbers: frozenset[str] = frozenset()
    checked: bool = False
    over: tuple[object, BoundStatement] | None = None
    took_s: float = math.inf
    rows: int = 0

    @cached_property
    def constant_cost(self) -> bool:
        """Whether a row costs the same whatever its texts are."""
        return has_constant_cost(self.rewritten.statement.tree)

    def fill(self, sql: str, values: Sequence[str], before: int = 0) -> tuple[str, list[int]]:
        """SQL of this template with values in place of its marks, and its parameters, numbered after `before`.

        Equal numbers share a parameter: `GROUP BY a > $1` must match `a > $1`, not `a > $2`.
        """
        if not self.marks:
            return sql, []
        places: dict[int, int] = {}
        by_mark = {
            mark: f"${before + places.setdefault(int(value), len(places) + 1)}" if mark in self.numbers else value
            for mark, value in zip(self.marks, values, strict=True)
        }
        # In one pass: a value may look like another's mark.
        return re.sub("|".join(map(re.escape, self.marks)), lambda match: by_mark[match.group()], sql), list(places)

    def given(self, values: Sequence[str]) -> Callable[[Constant], Constant]:
        """A function from a constant of the template to its value in `values`; other constants map to themselves."""
        by_mark = dict(zip(self.marks, values, strict=True))

        def given(constant: Constant) -> Constant:
            if isinstance(constant, str):
                value = by_mark.get(quoted(constant))
                return constant if value is None else value[1:-1]  # no quote is inside
            value = by_mark.get(str(constant))
            return constant if value is None else int(value)

        return given


class _Cut(NamedTuple):
    """A statement cut at its values.

    `text` has gaps in their place. `values` are as they are written, literals before parameters. `slots` holds for each
    place of a parameter its kind, or the value itself where only this value fits.
    """

    text: str
    values: Sequence[str]
    kinds: Sequence[str]
    slots: tuple[str | Value, ...] | None = None

    @property
    def name(self) -> _Name:
        """The name of the template."""
        return self.text if self.slots is None else (self.text, self.slots)

    def marked(self, marks: Sequence[str]) -> tuple[str, BoundValues | None]:
        """The statement with marks for its values: its text, and values for its parameters."""
        if self.slots is None:
            return _put(self.text, marks), None
        of_parameters = iter(marks[len(marks) - sum(isinstance(slot, str) for slot in self.slots) :])
        bound = tuple(_as_value(slot, next(of_parameters)) if isinstance(slot, str) else slot for slot in self.slots)
        return _put(self.text, marks), bound


class Templates:
    """The templates of a server's statements; beyond a maximum the oldest are dropped."""

    def __init__(self, rewrite: Rewriter) -> None:
        self._rewrite = rewrite
        self._known: OrderedDict[_Name, Template | None] = OrderedDict()

    def find(
        self, sql: str, now_ms: int, is_current: Callable[[Rewritten], bool], bound: BoundValues | None = None
    ) -> tuple[Template, Sequence[str]]:
        """The template of a statement and its values. QueryError for a statement that cannot be read.

        `is_current` says whether a template's tables are still what they were.
        """
        pieces = _cut(sql, bound)
        if pieces is None:
            return Template(self._rewrite(sql, now_ms, bound), ()), ()
        name = pieces.name
        template = self._known.get(name)
        if name not in self._known or (template is not None and not is_current(template.rewritten)):
            template = self._known[name] = self._make(pieces, now_ms)
            while len(self._known) > _TEMPLATES_MAX:
                self._known.popitem(last=False)
        if template is None:
            return Template(self._rewrite(sql, now_ms, bound), ()), ()
        return template, pieces.values

    def known(self, sql: str, bound: BoundValues | None = None) -> tuple[Template, Sequence[str]] | None:
        """The template and values of a statement if its template exists already; its tables are not checked."""
        pieces = _cut(sql, bound)
        template = None if pieces is None else self._known.get(pieces.name)
        return None if pieces is None or template is None else (template, pieces.values)

    def _make(self, pieces: _Cut, now_ms: int) -> Template | None:
        marks = [[look[kind].format(place) for place, kind in enumerate(pieces.kinds)] for look in _LOOKS]
        moments = (now_ms, now_ms // 2, now_ms // 3)
        try:
            statements = [pieces.marked(marked) for marked in marks]
            made = [self._rewrite(sql, at, bound) for (sql, bound), at in zip(statements, moments, strict=True)]
        except QueryError:
            return None  # with its own values it may be valid, or its error must name these
        first = made[0]
        plain = [_unmarked(rewritten.sql, marked) for rewritten, marked in zip(made, marks, strict=True)]
        if plain[0] is None or any(sql != plain[0] for sql in plain) or not first.exact:
            return None
        if any(rewritten.rows_max != first.rows_max for rewritten in made):
            return None
        return Template(first, marks[0], _compared(first.statement.tree) & frozenset(marks[0]))


def _may_have(sql: str) -> bool:
    """Whether a statement may have a template. Statements with options have none."""
    if len(sql) > _TEXT_MAX or "\0" in sql:
        return False
    lower = sql.lower()  # nearly always avoids the search, which takes ten times as long
    return ("set" not in lower and "option" not in lower) or _OPTIONS.search(sql) is None


def _cut(sql: str, bound: BoundValues | None) -> _Cut | None:
    """A statement cut at its values; None if it can have no template."""
    if not _may_have(sql):
        return None
    if not bound:
        return _Cut(*cut(sql))
    if sum(len(value.text) for value in bound) > _TEXT_MAX:
        return None
    slots, written = list[str | Value](), list[str]()
    for slot, value in zip(slots_of(sql), bound, strict=True):
        kind = _kind_of(value) if slot.is_compared else None
        if kind is not None:
            slots.append(kind)
            written.append(f"'{value.text}'" if kind is _TEXT else value.text)
        elif value.kind in _OFTEN_EQUAL or (value.kind in _PLAIN and not slot.is_compared):
            slots.append(value)
        else:
            return None  # each value would need a template of its own
    text, values, kinds = cut(sql)
    return _Cut(text, [*values, *written], [*kinds, *(kind for kind in slots if isinstance(kind, str))], tuple(slots))


_PLAIN, _OFTEN_EQUAL = (
    frozenset({LiteralKind.TEXT, LiteralKind.NUMBER}),
    frozenset({LiteralKind.NULL, LiteralKind.BOOLEAN}),
)


def _kind_of(value: Value) -> str | None:
    """The kind of literal that a parameter can be in a template; None for any other value."""
    if value.kind is LiteralKind.TEXT:
        return _TEXT if _FILLABLE[_TEXT].fullmatch(value.text) else None
    if value.kind is not LiteralKind.NUMBER:
        return None
    return next((kind for kind in (_WHOLE, _DECIMAL) if _FILLABLE[kind].fullmatch(value.text)), None)


def _as_value(kind: str, mark: str) -> Value:
    """A mark as the value of a parameter."""
    return Value(LiteralKind.TEXT, mark[1:-1]) if kind == _TEXT else Value(LiteralKind.NUMBER, mark)


def cut(sql: str) -> tuple[str, list[str], list[str]]:
    """The name of a statement's template, its values as they are written, and their kinds."""
    values: list[str] = []
    kinds: list[str] = []

    def take(found: re.Match[str]) -> str:
        kind = found.lastgroup
        if kind is None:
            return found.group()
        values.append(found.group(kind))
        kinds.append(kind)
        return f"{found.group('lead')}\0{kind}\0"

    return _PIECES.sub(take, sql), values, kinds


def _put(name: str, values: Sequence[str]) -> str:
    remaining = iter(values)
    return re.sub("\0[a-z]+\0", lambda _: next(remaining), name)


def _compared(tree: exp.Expr) -> frozenset[str]:
    """The numbers in comparisons of columns and numbers only: there a parameter means the same as a literal."""
    operands = (list(comparison.iter_expressions()) for comparison in nodes_of(tree, *_COMPARISONS))
    return frozenset(
        operand.name
        for group in operands
        if all(isinstance(operand, exp.Column) or _is_number(operand) for operand in group)
        for operand in group
        if _is_number(operand)
    )


def _is_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()


def _unmarked(sql: str, marks: Sequence[str]) -> str | None:
    """The SQL with each mark's number in its place; None when a mark is not one literal, once, and nothing else."""
    literals = Counter(
        f"'{token.text}'" if token.token_type is TokenType.STRING else token.text
        for token in DuckDB().tokenize(sql)
        if token.token_type in {TokenType.STRING, TokenType.NUMBER}
    )
    for place, mark in enumerate(marks):
        if sql.count(mark) != 1 or literals[mark] != 1:
            return None
        sql = sql.replace(mark, f"\0{place}\0")
    return sql
