"""Passes the rows of a statement to a sink in batches, so that a large result is never in memory as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hybrid.errors import QueryError
from hybrid.query.engine_words import EXECUTION
from hybrid.query.execution import Fetched, wire_of
from hybrid.query.plan import Rewritten
from hybrid.query.types import convert_rows, converter

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, Statement

_BATCH_ROWS = 2048


class RowSink(Protocol):
    """Receives the rows of a statement. A second call of `begin` discards all rows before it."""

    def begin(self, names: Sequence[str], types: Sequence[str]) -> None:
        """Receives the columns: names and Pinot's types."""

    def take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Receives some rows, as a `QueryResult` holds them."""


def spool(
    connection: DuckDBPyConnection, statement: Statement, rows_max: int | None, rewritten: Rewritten, sink: RowSink
) -> Fetched:
    """Passes all rows of a SELECT to the sink; the returned value holds only the columns.

    duckdb.Error when the statement fails, QueryError when it has more than `rows_max` rows.
    """
    cursor = connection.execute(statement)
    columns = [(str(column[0]), str(column[1])) for column in connection.description or ()]
    types = [wire_of(name, kind, rewritten) for name, kind in columns]
    converters = [converter(kind, wire) for (_, kind), wire in zip(columns, types, strict=True)]
    sink.begin([name for name, _ in columns], types)
    count = 0
    while rows := cursor.fetchmany(_BATCH_ROWS):
        count += len(rows)
        if rows_max is not None and count > rows_max:
            raise QueryError(
                f"The statement gives more than {rows_max} rows, which is as many as a server's job takes.",
                pinot_code=EXECUTION,
                hint="Take a part of them at a time, or raise job_sql_rows_max.",
            )
        sink.take(convert_rows(rows, converters))
    return Fetched(columns, [])
