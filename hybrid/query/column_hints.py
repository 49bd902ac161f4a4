"""What helps with an error about a column or a value: its place, quotes, columns that exist, how times are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC

from sqlglot import exp

from hybrid.config.table_config import TableSpec
from hybrid.errors import HybridError, QueryError
from hybrid.query.query_table import TableSource
from hybrid.schema.moment import parse_instant
from hybrid.schema.timeformat import TimeKind
from hybrid.sql.nodes import nodes_of
from hybrid.sql.parameters import BoundValues
from hybrid.sql.statement import parse_statement
from hybrid.sql.tables import table_and_half
from hybrid.sql.text_quotes import COMPARISONS, quotes_hint
from hybrid.sql.tokens import place_of

_COLUMNS_MAX = 30
_SENTENCE_END = re.compile(r"\.(?=\s|\Z)")


def with_place(error: QueryError, sql: str, tables: TableSource, values: BoundValues | None = None) -> QueryError:
    """The error of a column that does not exist or of a value, with its place in the statement, and a hint."""
    column = error.column
    try:
        tree = parse_statement(sql, values).tree
        specs = list(_specs(tree, tables))
    except HybridError:  # of a table that was dropped meanwhile
        return error
    if column is None:
        return _about_value(error, sql, tree, specs)
    node = next((node for node in nodes_of(tree, exp.Column) if node.name.lower() == column.lower()), None)
    head, message = f"Column '{column}' does not exist", str(error)
    start = node.this.meta.get("start") if node is not None else None
    if start is not None and message.startswith(head):
        where, _, more = message.removeprefix(head).partition(".")
        message = f"{head}{where} at {place_of(sql, start)}.{more}"
    quotes = quotes_hint(node, [field for spec in specs for field in spec.schema.fields])
    hint = quotes or (None if "Did you mean" in message else _columns_hint(specs))
    return QueryError(message, pinot_code=error.pinot_code, hint=hint or error.hint, column=column)


def _about_value(error: QueryError, sql: str, tree: exp.Query, specs: Sequence[TableSpec]) -> QueryError:
    """An error about a column or a text of the statement, with the place and the column it is compared with."""
    name = (error.place or "").lower()
    columns = [node for node in nodes_of(tree, exp.Column) if node.name.lower() == name]
    texts = [node for node in nodes_of(tree, exp.Literal) if node.is_string and node.name == error.place]
    beside = [found for text in texts for found in [_compared_with(text)] if found is not None]
    node = next(iter([*columns, *beside]), None)
    start = node.this.meta.get("start") if node is not None and isinstance(node.this, exp.Identifier) else None
    if node is None or start is None or " at line " in str(error):
        return error
    field = next((field for spec in specs for field in spec.schema.fields if field.name == node.name), None)
    what = ""
    if node in beside and field is not None and f"'{node.name}'" not in str(error):
        what = f": column '{node.name}' is {field.type_name}"
    where = f"{what} at {place_of(sql, start)}."
    message = _SENTENCE_END.sub(lambda _: where, str(error), count=1)
    hint = error.hint or (_time_hint(node.name, str(error.place), specs) if node in beside else None)
    return QueryError(message, pinot_code=error.pinot_code, hint=hint)


def _compared_with(text: exp.Literal) -> exp.Column | None:
    """The column that a literal is compared with, if it is."""
    around = text.parent
    if not isinstance(around, COMPARISONS):
        return None
    return next((part for part in around.iter_expressions() if isinstance(part, exp.Column)), None)


def _time_hint(column: str, text: str, specs: Iterable[TableSpec]) -> str | None:
    """How a date is written for a column of epoch milliseconds."""
    formats = (spec.time_field.time_format for spec in specs if spec.time_field and spec.time_field.name == column)
    time_format = next(formats, None)
    instant = parse_instant(text, UTC)
    if time_format is None or time_format.kind is not TimeKind.EPOCH or isinstance(instant, str):
        return None
    return f"'{column}' holds numbers: {text} (UTC) is {time_format.from_millis(instant)}."


def _specs(tree: exp.Query, tables: TableSource) -> Iterable[TableSpec]:
    """The tables that a statement mentions; names of CTEs are none."""
    names = tables.names()
    for written in dict.fromkeys(node.name for node in nodes_of(tree, exp.Table)):
        try:
            yield tables.open(table_and_half(written, names)[0]).spec
        except QueryError:
            continue


def _columns_hint(specs: Iterable[TableSpec]) -> str | None:
    sentences = []
    for spec in specs:
        names = sorted(spec.schema.column_names)
        more = f" and {len(names) - _COLUMNS_MAX} more" if len(names) > _COLUMNS_MAX else ""
        sentences.append(f"Table '{spec.name}' has the columns {', '.join(names[:_COLUMNS_MAX])}{more}.")
    return " ".join(sentences) or None
