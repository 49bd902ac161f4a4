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

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import TokenType

from hybrid.errors import QueryError
from hybrid.query.cache.relations import BoundStatement
from hybrid.query.connection import quoted
from hybrid.query.plan import Rewritten
from hybrid.sql.cost import has_constant_cost
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
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
# Rewrites a statement with `now()` at an instant, epoch ms.
Rewriter = Callable[[str, int], Rewritten]


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


class Templates:
    """The templates of a server's statements; beyond a maximum the oldest are dropped."""

    def __init__(self, rewrite: Rewriter) -> None:
        self._rewrite = rewrite
        self._known: OrderedDict[str, Template | None] = OrderedDict()

    def find(self, sql: str, now_ms: int, is_current: Callable[[Rewritten], bool]) -> tuple[Template, Sequence[str]]:
        """The template of a statement and its values. QueryError for a statement that cannot be read.

        `is_current` says whether a template's tables are still what they were.
        """
        if not _may_have(sql):
            return Template(self._rewrite(sql, now_ms), ()), ()
        name, values, kinds = cut(sql)
        template = self._known.get(name)
        if name not in self._known or (template is not None and not is_current(template.rewritten)):
            template = self._known[name] = self._make(name, kinds, now_ms)
            while len(self._known) > _TEMPLATES_MAX:
                self._known.popitem(last=False)
        if template is None:
            return Template(self._rewrite(sql, now_ms), ()), ()
        return template, values

    def known(self, sql: str) -> tuple[Template, Sequence[str]] | None:
        """The template and values of a statement if its template exists already; its tables are not checked."""
        if not _may_have(sql):
            return None
        name, values, _ = cut(sql)
        template = self._known.get(name)
        return None if template is None else (template, values)

    def _make(self, name: str, kinds: Sequence[str], now_ms: int) -> Template | None:
        marks = [[look[kind].format(place) for place, kind in enumerate(kinds)] for look in _LOOKS]
        moments = (now_ms, now_ms // 2, now_ms // 3)
        try:
            made = [self._rewrite(_put(name, marked), moment) for marked, moment in zip(marks, moments, strict=True)]
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
    operands = (list(comparison.iter_expressions()) for comparison in tree.find_all(*_COMPARISONS))
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
