"""Row expressions: users write them over one row in Pinot's SQL; here they become equivalent Spark SQL.

    --where "order_status = 'PENDING'"        row_condition
    --update 'amount = amount * 1.2'          row_assignments

They are parsed and rewritten like queries. Only the last step differs: a query becomes DuckDB's SQL, a row expression
Spark's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from hybrid.config.table_config import TableSpec
from hybrid.errors import QueryError, SpecError, UsageError
from hybrid.schema.schema import FieldSpec
from hybrid.sql.calls import ColumnTypes
from hybrid.sql.coerce import coerce_timestamps
from hybrid.sql.functions import rewrite_functions
from hybrid.sql.nodes import nodes_of
from hybrid.sql.row_literals import fit_compared, fitted
from hybrid.sql.row_tree import RowReader, split_at
from hybrid.sql.row_values import assigned, stored_sql, wrong_constant
from hybrid.sql.spark_sql import spark_sql
from hybrid.sql.times import TimeContext
from hybrid.sql.tokens import error_at, tokens_of

_LENGTH_MAX = 100_000


def row_condition(text: str, spec: TableSpec, what: str, *, now_ms: int | None = None) -> str:
    """The Spark SQL of a condition on one row of the table.

    `what` names its place in errors: UsageError for an option (`--where`), else SpecError, each with the line and
    column of the mistake. `now_ms` (epoch ms) is the clock of now() and ago(); None: they are refused.
    """
    with _errors_of(what):
        reader = RowReader(text, spec, now_ms is not None)
        tree = reader.expression(_words(text, "A condition"))
        reader.require_condition(tree)
        return spark_sql(_rewritten(tree, reader, now_ms), _types(spec)[0])


def condition_words(text: str, spec: TableSpec, what: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that a condition reads, and the constants, as texts, that it compares for equality; each once.

    Errors as for `row_condition`.
    """
    with _errors_of(what):
        tree = RowReader(text, spec, False).expression(_words(text, "A condition"))
    reads = dict.fromkeys(node.name for node in nodes_of(tree, exp.Column))
    equal = (node for node in nodes_of(tree, exp.EQ, exp.In) if node.find_ancestor(exp.Not) is None)
    sides = (side for node in equal if node.find(exp.Column) is not None for side in node.iter_expressions())
    values = dict.fromkeys(str(side.this) for side in sides if isinstance(side, exp.Literal))
    return tuple(reads), tuple(value for value in values if value)


def row_assignments(text: str, spec: TableSpec, what: str, *, now_ms: int | None = None) -> dict[str, str]:
    """The Spark SQL of the new values in `a = expr, b = expr`, by column, each as its column stores it.

    All expressions read the row before the update. A fraction is rounded for a column of whole numbers. A null becomes
    the column's default where the table keeps no nulls. In a column that cannot be null it is an error at run time.
    Errors and `now_ms` as for `row_condition`; multi-value columns cannot be assigned.
    """
    assignments: dict[str, str] = {}
    with _errors_of(what):
        reader = RowReader(text, spec, now_ms is not None)
        for words in split_at(_words(text, "An assignment"), TokenType.COMMA):
            field, place = _target(words, reader)
            if field.name in assignments:
                raise error_at(text, place, f"Column '{field.name}' is assigned twice: again")
            assignments[field.name] = _assigned_sql(words[2:], field, reader, now_ms)
    return assignments


def _words(text: str, expected: str) -> list[Token]:
    if len(text) > _LENGTH_MAX:
        raise QueryError(f"It has {len(text)} characters; at most {_LENGTH_MAX} are read.")
    words = tokens_of(text)
    if not words:
        raise QueryError(f"{expected} is expected; this is empty.")
    for word in words:
        if word.token_type is TokenType.SEMICOLON:
            raise error_at(text, word.start, "One expression is expected; another begins")
    return words


def _target(words: list[Token], reader: RowReader) -> tuple[FieldSpec, int]:
    """The column that an assignment names, and its position in the text."""
    if len(words) < 3 or words[1].token_type is not TokenType.EQ:
        place = words[0].start if words else len(reader.text)
        raise error_at(reader.text, place, "An assignment is written `column = expression`; this is not")
    name = exp.to_identifier(words[0].text)
    name.meta["start"] = words[0].start
    field = reader.spec.schema.find(reader.column(name, words[0].text))
    assert field is not None
    if not field.single_value:
        raise error_at(
            reader.text, words[0].start, f"Column '{field.name}' holds several values; new ones cannot be given to it"
        )
    return field, words[0].start


def _assigned_sql(words: list[Token], field: FieldSpec, reader: RowReader, now_ms: int | None) -> str:
    value = fitted(reader.expression(words), field.data_type, reader.refuse)
    expected = wrong_constant(value, field)
    if expected is not None:
        raise reader.refuse(value, f"{value.sql('duckdb')} is not {expected}")
    types, _ = _types(reader.spec)
    return stored_sql(assigned(_rewritten(value, reader, now_ms), field, types), field, reader.spec, types)


def _rewritten(tree: exp.Expr, reader: RowReader, now_ms: int | None) -> exp.Expr:
    """The expression rewritten into DuckDB's SQL, like a query's."""
    types, lists = _types(reader.spec)
    select = exp.Select(expressions=[exp.Paren(this=tree)])
    fit_compared(select, types, reader.refuse)
    rewrite_functions(select, TimeContext(now_ms or 0, types, lists, rows=True))
    coerce_timestamps(select, types)
    rewritten: exp.Expr = select.expressions[0].this
    return rewritten


def _types(spec: TableSpec) -> tuple[ColumnTypes, frozenset[str]]:
    """The types of the single-value columns, and the names of the multi-value columns."""
    fields = spec.schema.fields
    types = {field.name.lower(): field.data_type for field in fields if field.single_value}
    return types, frozenset(field.name.lower() for field in fields if not field.single_value)


@contextmanager
def _errors_of(what: str) -> Iterator[None]:
    """Turns QueryErrors into UsageErrors or SpecErrors that name the place of the text."""
    kind = UsageError if what.startswith("--") else SpecError
    try:
        yield
    except QueryError as error:
        raise kind(f"{what}: {error}", hint=error.hint) from error
