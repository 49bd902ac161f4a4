"""Passes the rows of a statement to a sink as Arrow batches, so that a large result is never in memory as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from hybrid.errors import EXECUTION, QueryError
from hybrid.query.execution import Fetched, parsed, wire_of
from hybrid.query.options import drops_rows, option_warnings
from hybrid.query.plan import QueryPlan
from hybrid.query.result import QueryResult, arrow_type
from hybrid.query.types import convert_rows, converter

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection, DuckDBPyRelation, Error

_BATCH_ROWS = 2048
Batches: TypeAlias = "Generator[pa.RecordBatch, None, None]"
# DuckDB's types whose Arrow values are ours, after a cast. All others go by Python's values, row by row.
_DIRECT = frozenset(
    {
        "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN",
        "VARCHAR", "BLOB", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S",
    }
)  # fmt: skip
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s?(\d+)\)")


class BatchSink(Protocol):
    """Receives the rows of a statement. A second call of `begin` discards all rows before it.

    Without `can_restart` the rows are sent on at once, so `begin` is called again only in rare cases, and may fail.
    """

    @property
    def can_restart(self) -> bool:
        """Whether rows can be discarded."""

    def begin(self, schema: pa.Schema, revision: str, warnings: Sequence[str]) -> None:
        """Receives the columns, the revision that the rows belong to, and what the user should know about them."""

    def take(self, batch: pa.RecordBatch) -> None:
        """Receives some rows."""


class RowSource(Protocol):
    """A cursor over rows."""

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The next rows; none at the end."""


def spool(connection: DuckDBPyConnection, sql: str, plan: QueryPlan, rows_max: int | None, sink: BatchSink) -> Fetched:
    """Passes all rows of a SELECT to the sink; the returned value holds only the columns.

    duckdb.Error when the statement fails, QueryError when it has more than `rows_max` rows.
    """
    statement = parsed(connection, sql)
    connection.complete()  # ends what a check of the statement left open
    relation = connection.sql(statement)
    assert relation is not None  # a SELECT is a relation
    columns = [(name, str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)]
    direct = all(_is_direct(kind) for _, kind in columns)

    def batches(wires: Sequence[str], schema: pa.Schema) -> Batches:
        if direct:
            return _arrow_batches(relation, schema)
        return _row_batches(connection.execute(statement), columns, wires, schema)

    return _spooled(columns, batches, plan, rows_max, sink)


def spool_rows(
    cursor: RowSource, columns: Sequence[tuple[str, str]], plan: QueryPlan, rows_max: int | None, sink: BatchSink
) -> Fetched:
    """Passes the rows of a cursor to the sink, as `spool` does; `columns` are names and DuckDB's types."""
    return _spooled(columns, lambda wires, schema: _row_batches(cursor, columns, wires, schema), plan, rows_max, sink)


def _spooled(
    columns: Sequence[tuple[str, str]],
    batches_of: Callable[[Sequence[str], pa.Schema], Batches],
    plan: QueryPlan,
    rows_max: int | None,
    sink: BatchSink,
) -> Fetched:
    import pyarrow as pa

    rewritten = plan.rewritten
    wires = [wire_of(name, kind, rewritten) for name, kind in columns]
    fields = [(name, _arrow_type(kind, wire)) for (name, kind), wire in zip(columns, wires, strict=True)]
    schema, options = pa.schema(fields), rewritten.statement.options
    specs = [table.spec for table in rewritten.tables.values()]
    warnings = list(dict.fromkeys([*plan.warnings, *option_warnings(options, lambda: specs)]))
    sink.begin(schema, str(plan.revision), warnings)
    if drops_rows(options):
        return Fetched(columns, [])
    batches = batches_of(wires, schema)
    count = 0
    with closing(batches):  # before the connection, also when the sink fails
        for batch in batches:
            count += batch.num_rows
            if rows_max is not None and count > rows_max:
                raise QueryError(
                    f"The statement gives more than {rows_max} rows, which is as many as a server's job takes.",
                    pinot_code=EXECUTION,
                    hint="Take a part of them at a time, or raise job_sql_rows_max.",
                )
            sink.take(batch)
    return Fetched(columns, [])


def pass_rows(result: QueryResult, sink: BatchSink) -> None:
    """Passes the rows of a result that is in memory, such as the lines of EXPLAIN."""
    table = result.arrow()
    sink.begin(table.schema, str(result.revision), list(result.warnings))
    for batch in table.to_batches(_BATCH_ROWS):
        sink.take(batch)


def _arrow_batches(relation: DuckDBPyRelation, schema: pa.Schema) -> Batches:
    import pyarrow as pa

    with _duckdb_errors():
        reader = relation.to_arrow_reader(_BATCH_ROWS)
    try:
        while True:
            with _duckdb_errors():
                batch = next(reader, None)
            if batch is None:
                return
            arrays = [_cast(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    finally:
        reader.close()


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    # Unsafe: nanoseconds are cut, as in other answers.
    return column if column.type == kind else column.cast(kind, safe=False)


def _row_batches(
    cursor: RowSource, columns: Sequence[tuple[str, str]], wires: Sequence[str], schema: pa.Schema
) -> Batches:
    import pyarrow as pa

    converters = [converter(kind, wire) for (_, kind), wire in zip(columns, wires, strict=True)]
    while rows := cursor.fetchmany(_BATCH_ROWS):
        values = zip(*convert_rows(rows, converters), strict=True)
        arrays = [pa.array(list(column), field.type) for column, field in zip(values, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _is_direct(kind: str) -> bool:
    element = kind.removesuffix("[]")
    return element in _DIRECT or element == "TIMESTAMP WITH TIME ZONE" or _DECIMAL.fullmatch(element) is not None


def _arrow_type(kind: str, wire: str) -> pa.DataType:
    """Arrow's type of a result column: that of its Pinot type, but a decimal keeps its own digits."""
    import pyarrow as pa

    digits = _DECIMAL.fullmatch(kind)
    return arrow_type(wire) if digits is None else pa.decimal128(int(digits[1]), int(digits[2]))


@contextmanager
def _duckdb_errors() -> Iterator[None]:
    """Raises DuckDB's error again that Arrow's stream passes on as text."""
    import duckdb
    import pyarrow as pa

    try:
        yield
    except duckdb.Error:
        raise
    except (pa.ArrowException, OSError, RuntimeError) as error:
        raise _kind_of(str(error))(str(error)) from error


def _kind_of(text: str) -> Callable[[str], Error]:
    import duckdb

    kinds: dict[str, Any] = {
        "INTERRUPT Error": duckdb.InterruptException,
        "Interrupted": duckdb.InterruptException,
        "Out of Memory Error": duckdb.OutOfMemoryException,
        "IO Error": duckdb.IOException,
        "Invalid Input Error": duckdb.InvalidInputException,
    }
    kind: Callable[[str], Error] = next((kind for words, kind in kinds.items() if words in text), duckdb.Error)
    return kind
