"""Resolves the tables of a statement, and writes it in DuckDB's SQL over one relation per table reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from hybrid.config.table_config import TableSpec
from hybrid.errors import VALIDATION, QueryError
from hybrid.query.query_table import QueryTable, TableSource
from hybrid.query.references import join_dotted, refuse_missing_halves
from hybrid.schema.schema import FieldSpec
from hybrid.schema.types import DataType
from hybrid.sql.coerce import coerce_timestamps
from hybrid.sql.functions import rewrite_functions
from hybrid.sql.refuse import refuse_hostile
from hybrid.sql.shape import DEFAULT_LIMIT, has_default_limit, hide_virtual, name_columns, set_limit, stored_types
from hybrid.sql.sizes import check_sizes, guard_calls
from hybrid.sql.statement import Statement
from hybrid.sql.tables import TableMention, resolve_tables
from hybrid.sql.times import TimeContext
from hybrid.sql.usage import needed_columns, only_shown


class Relation(NamedTuple):
    """The SELECT that replaces a table reference.

    DuckDB pushes projections and filters into it, unless it is `whole`: then it is materialized first.
    """

    select: str
    whole: bool = False


@dataclass(frozen=True)
class Rewritten:
    """A statement in DuckDB's SQL, before it has a revision: it depends only on its text, its tables and the time.

    `sql` is the statement over relations, one for each of `refs`; `ctes` and `body` are its two parts. `rows_max` is
    the default LIMIT, or None. `stored` gives the types of result columns that are a table's columns. `shown` are the
    columns used only to be shown, grouped, counted and sorted by; `needed_columns` all that it can need (None: any).
    `exact`: the statement spells its tables' names exactly, case included.
    """

    statement: Statement
    tables: Mapping[str, QueryTable]
    refs: Sequence[TableMention]
    sql: str
    rows_max: int | None
    stored: Mapping[str, DataType]
    shown: frozenset[str]
    needed_columns: frozenset[str] | None
    exact: bool
    ctes: str
    body: str
    recursive: str

    def columns(self) -> list[str]:
        """The columns of all tables in the statement."""
        return [name for table in self.tables.values() for name in table.spec.schema.column_names]

    def over(self, relations: Iterable[Relation]) -> str:
        """The SQL for DuckDB: the relations in the order of `refs`, then the statement over them."""
        relation_ctes = ", ".join(
            f"{ref.relation} AS {'' if relation.whole else 'NOT '}MATERIALIZED ({relation.select})"
            for ref, relation in zip(self.refs, relations, strict=True)
        )
        return f"WITH {self.recursive}{relation_ctes}{self.ctes} {self.body}" if relation_ctes else self.sql


class Resolved(NamedTuple):
    """A statement whose table references are resolved. Its tree is still the user's."""

    statement: Statement
    refs: Sequence[TableMention]
    tables: Mapping[str, QueryTable]
    exact: bool


def resolve(statement: Statement, source: TableSource) -> Resolved:
    """Resolves the statement's tables. QueryError for anything that is not allowed in it."""
    refuse_hostile(statement.tree)
    if "." in statement.text:
        join_dotted(statement.tree, source)
    name_columns(statement.tree)
    written = {node.name for node in statement.tree.find_all(exp.Table)}
    refs = resolve_tables(statement.tree, source.names())
    opened = {name: source.open(name) for name in dict.fromkeys(ref.table for ref in refs)}
    refuse_missing_halves(refs, opened)
    return Resolved(statement, refs, opened, all(ref.written in written for ref in refs))


@contextmanager
def values_checked() -> Iterator[None]:
    """Maps errors of Python's own computations with a statement's values to QueryErrors, while it is rewritten."""
    try:
        yield
    except (ValueError, ArithmeticError, RecursionError) as error:
        # For example a number with more digits than Python reads, or one beyond any position or time.
        reason = str(error)[:100] or type(error).__name__
        raise QueryError(f"A value in the statement cannot be used: {reason}.", pinot_code=VALIDATION) from error


@values_checked()
def rewrite(resolved: Resolved, now_ms: int) -> Rewritten:
    """Rewrites a statement into DuckDB's SQL. Changes the statement's tree."""
    statement, refs, tables, exact = resolved
    tree = statement.tree
    fields = fields_by_name(table.spec for table in tables.values())
    types = {name: column.data_type for name, column in fields.items() if column.single_value}
    lists = frozenset(name for name, column in fields.items() if not column.single_value)
    check_sizes(tree)
    rewrite_functions(tree, TimeContext(now_ms, types, lists))
    coerce_timestamps(tree, types)
    guard_calls(tree)
    hide_virtual(refs)
    rows_max = DEFAULT_LIMIT if has_default_limit(tree) else None
    stored = stored_types(tree, fields)
    tree = tree if rows_max is None else set_limit(tree, rows_max + 1)  # one more row shows whether the result is cut
    shown, needed = only_shown(tree), needed_columns(tree)
    text = _sql(tree)
    parts = _StatementParts.of(tree, text)
    return Rewritten(statement, tables, refs, text, rows_max, stored, shown, needed, exact, *parts)


class _StatementParts(NamedTuple):
    """A statement split into its CTEs and the rest, so that the relations can precede its own CTEs."""

    ctes: str
    body: str
    recursive: str

    @classmethod
    def of(cls, tree: exp.Query, text: str) -> _StatementParts:
        """The parts of a tree whose SQL is `text`."""
        if not isinstance(tree.args.get("with_"), exp.With):
            return cls("", text, "")
        rest = tree.copy()
        clause = rest.args["with_"]
        rest.set("with_", None)
        ctes = "".join(f", {_sql(cte)}" for cte in clause.expressions)
        return cls(ctes, _sql(rest), "RECURSIVE " if clause.args.get("recursive") else "")


def _sql(tree: exp.Expr) -> str:
    return tree.sql("duckdb", comments=False)


def fields_by_name(specs: Iterable[TableSpec]) -> dict[str, FieldSpec]:
    """The columns of all tables by lower-case name; a name that two tables give different types is left out."""
    columns: dict[str, FieldSpec] = {}
    clashing: set[str] = set()
    for column in (column for spec in specs for column in spec.schema.fields):
        name = column.name.lower()
        first = columns.setdefault(name, column)
        if (first.data_type, first.single_value) != (column.data_type, column.single_value):
            clashing.add(name)
    return {name: column for name, column in columns.items() if name not in clashing}
