"""What helps with a column that does not exist: its place in the statement, quotes, the columns that there are."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from hybrid.config.table_config import TableSpec
from hybrid.errors import HybridError, QueryError
from hybrid.query.plan import TableSource
from hybrid.schema.types import DataType
from hybrid.sql.parameters import BoundValues
from hybrid.sql.statement import parse_statement
from hybrid.sql.tables import table_and_half
from hybrid.sql.tokens import place_of

_COLUMNS_MAX = 30
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between, exp.Like, exp.ILike)


def with_place(error: QueryError, sql: str, tables: TableSource, values: BoundValues | None = None) -> QueryError:
    """The error of a column that does not exist, with its place in the statement, and a hint."""
    column = error.column
    if column is None:
        return error
    try:
        tree = parse_statement(sql, values).tree
        specs = list(_specs(tree, tables))
    except HybridError:  # of a table that was dropped meanwhile
        return error
    node = next((node for node in tree.find_all(exp.Column) if node.name.lower() == column.lower()), None)
    head, message = f"Column '{column}' does not exist", str(error)
    start = node.this.meta.get("start") if node is not None else None
    if start is not None and message.startswith(head):
        where, _, more = message.removeprefix(head).partition(".")
        message = f"{head}{where} at {place_of(sql, start)}.{more}"
    hint = _quotes_hint(node, specs) or (None if "Did you mean" in message else _columns_hint(specs))
    return QueryError(message, pinot_code=error.pinot_code, hint=hint or error.hint, column=column)


def _specs(tree: exp.Query, tables: TableSource) -> Iterable[TableSpec]:
    """The tables that a statement mentions; names of CTEs are none."""
    names = tables.names()
    for written in dict.fromkeys(node.name for node in tree.find_all(exp.Table)):
        try:
            yield tables.open(table_and_half(written, names)[0]).spec
        except QueryError:
            continue


def _quotes_hint(node: exp.Column | None, specs: Iterable[TableSpec]) -> str | None:
    """The hint for a word that is compared with a column of texts, as `status = OPEN` and `status = "OPEN"`."""
    if node is None or node.table or not isinstance(node.parent, _COMPARISONS):
        return None
    texts = {
        field.name.lower()
        for spec in specs
        for field in spec.schema.fields
        if field.data_type in (DataType.STRING, DataType.JSON)
    }
    beside = (part for part in node.parent.iter_expressions() if isinstance(part, exp.Column))
    if not any(part.name.lower() in texts for part in beside):
        return None
    why = "Double quotes mean a column. " if node.this.quoted else ""
    return f"{why}If a text is meant, write '{node.name}' in single quotes."


def _columns_hint(specs: Iterable[TableSpec]) -> str | None:
    sentences = []
    for spec in specs:
        names = sorted(spec.schema.column_names)
        more = f" and {len(names) - _COLUMNS_MAX} more" if len(names) > _COLUMNS_MAX else ""
        sentences.append(f"Table '{spec.name}' has the columns {', '.join(names[:_COLUMNS_MAX])}{more}.")
    return " ".join(sentences) or None
