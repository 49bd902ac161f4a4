"""Runs SQL on a DuckDB connection within its time, and converts the rows to Pinot's result."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hybrid.errors import EXECUTION, PARSE_ERROR, VALIDATION, QueryError
from hybrid.query.deadline import deadline
from hybrid.query.options import apply_options
from hybrid.query.result import QueryResult, QueryStats
from hybrid.query.result_warning import limit_note
from hybrid.query.revision import Revision
from hybrid.query.rewrite import Rewritten
from hybrid.query.types import convert_rows, converter, wire_type
from hybrid.schema.types import DataType

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, Statement


_MILLISECONDS = re.compile("[0-9]{1,9}")
_ROWS_ALL = 2**31 - 1
# Rows fetched at once, and the bytes of a value in an answer beside its text.
_SLICE_ROWS, _VALUE_BYTES = 2048, 16
_NESTED = frozenset({list, dict, tuple})


class Limits(NamedTuple):
    """The limits of a statement: time (ms), unless it sets its own, and rows and bytes of its result. None: no limit.

    Its time began at `began` (monotonic; None: now). Its own timeout counts up to `timeout_max_ms`.
    """

    timeout_ms: int | None = None
    rows_max: int | None = None
    began: float | None = None
    bytes_max: int | None = None
    timeout_max_ms: int | None = None


class Fetched(NamedTuple):
    """What DuckDB answered: (name, DuckDB type) of each column, and the rows."""

    columns: Sequence[tuple[str, str]]
    rows: list[Any]


def timeout_of(rewritten: Rewritten, limits: Limits) -> int | None:
    """The time a statement may take, ms: its own `timeoutMs`, else the default; at most the server's maximum."""
    return timeout_by(rewritten.statement.options, limits)


def timeout_by(options: Mapping[str, str], limits: Limits) -> int | None:
    """The same as `timeout_of`, from a statement's options, which are known before it is planned."""
    written = options.get("timeoutms")
    timeout_ms = limits.timeout_ms if written is None else parse_timeout(written)
    bounds = [bound for bound in (timeout_ms, limits.timeout_max_ms) if bound is not None]
    return min(bounds, default=None)


def parse_timeout(written: str) -> int:
    """Parses a `timeoutMs`. QueryError 700 unless it is a number of milliseconds."""
    if _MILLISECONDS.fullmatch(written) is None or int(written) == 0:
        raise QueryError(
            f"timeoutMs must be a number of milliseconds from 1 to 999999999, not '{written[:40]}'.",
            pinot_code=VALIDATION,
        )
    return int(written)


def parsed(connection: DuckDBPyConnection, sql: str) -> Statement:
    """Parses one statement with DuckDB. duckdb.Error when it cannot be parsed, QueryError for several."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:  # the last of several checks
        raise QueryError("One statement at a time.", pinot_code=PARSE_ERROR)
    return statements[0]


def fetch(
    connection: DuckDBPyConnection,
    statement: Statement,
    rows_max: int | None,
    parameters: Sequence[object] = (),
    bytes_max: int | None = None,
    first: int | None = None,
) -> Fetched:
    """All rows of a SELECT, or the `first` of them. duckdb.Error when it fails, QueryError beyond the limits.

    With a limit of bytes the rows are fetched in slices: DuckDB computes further rows only on demand.
    """
    cursor = connection.execute(statement, list(parameters))
    most = _ROWS_ALL if rows_max is None else rows_max + 1
    if first is not None:
        most = min(most, first)
    if bytes_max is None:
        rows = cursor.fetchall() if most == _ROWS_ALL else cursor.fetchmany(most)
    else:
        rows, taken = list[Any](), 0
        while len(rows) < most:
            batch_rows = min(_SLICE_ROWS, most - len(rows))
            part = cursor.fetchmany(batch_rows)
            taken += size_of_rows(part)
            if taken > bytes_max:
                raise too_many_bytes(bytes_max)
            rows.extend(part)
            if len(part) < batch_rows:
                break
    check_rows(rows, rows_max)
    return Fetched([(str(column[0]), str(column[1])) for column in connection.description or ()], rows)


def check_rows(rows: Sequence[Any], rows_max: int | None) -> None:
    """QueryError for more rows than a result may have."""
    if rows_max is not None and len(rows) > rows_max:
        raise QueryError(
            f"The result has more than {rows_max} rows, which is as many as this server gives at once.",
            pinot_code=EXECUTION,
            hint="Add LIMIT to it, or raise query_rows_max.",
        )


def too_many_bytes(bytes_max: int) -> QueryError:
    """The error of a result with more bytes than it may have."""
    return QueryError(
        f"The result is larger than {bytes_max} bytes, which is as much as this server gives at once.",
        pinot_code=EXECUTION,
        hint="Narrow it or add LIMIT to it, or raise query_result_bytes_max.",
    )


def size_of_rows(rows: Sequence[tuple[Any, ...]]) -> int:
    """The approximate bytes of rows: texts and bytes by their length, lists by their elements."""
    if not rows:
        return 0
    total = _VALUE_BYTES * len(rows) * len(rows[0])
    for place in range(len(rows[0])):
        for row in rows:
            value = row[place]
            kind = type(value)
            if kind is str or kind is bytes:
                total += len(value)
            elif kind in _NESTED:
                total += _size_of_nested(value)
            elif value is not None:
                break  # a column has one type: numbers and times are of fixed size
    return total


def _size_of_nested(value: Any) -> int:
    if isinstance(value, dict):
        return sum(_size_of_nested(item) for pair in value.items() for item in pair) + _VALUE_BYTES
    if isinstance(value, list | tuple):
        return sum(map(_size_of_nested, value)) + _VALUE_BYTES
    return _VALUE_BYTES + (len(value) if isinstance(value, str | bytes) else 0)


class Attempt:
    """Runs one statement on a connection within its time, and maps DuckDB's errors to ours.

    Its time began at `started` (monotonic): earlier attempts count too.
    """

    def __init__(
        self, connection: DuckDBPyConnection, rewritten: Rewritten, timeout_ms: int | None, started: float
    ) -> None:
        self._rewritten, self._timeout_ms = rewritten, timeout_ms
        self._until = None if timeout_ms is None else started + timeout_ms / 1000
        self._deadline = deadline(self._until, connection.interrupt)

    def __enter__(self) -> Callable[[], None]:
        """Returns a function that interrupts the statement, from any thread, even before it begins."""
        if self._until is not None and time.monotonic() >= self._until:
            from hybrid.query.error_mapping import stopped

            raise stopped(self._timeout_ms)
        return self._deadline.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        import duckdb

        self._deadline.__exit__(kind, error, trace)
        if isinstance(error, duckdb.Error):
            from hybrid.query.error_mapping import query_error

            raise query_error(error, self._rewritten.columns(), self._timeout_ms) from error


def to_result(
    rewritten: Rewritten,
    fetched: Fetched,
    revision: Revision,
    warnings: Sequence[str],
    stats: QueryStats,
    source: str = "files",
) -> QueryResult:
    """The rows as Pinot would return them: with its types, and at most its default LIMIT."""
    rows, messages = fetched.rows, list(warnings)
    most = rewritten.rows_max
    if most is not None and len(rows) > most:
        rows = rows[:most]
        messages.append(limit_note(most))
    types = [wire_of(name, kind, rewritten) for name, kind in fetched.columns]
    converters = [converter(kind, wire) for (_, kind), wire in zip(fetched.columns, types, strict=True)]
    names = [name for name, _ in fetched.columns]
    result = QueryResult(names, types, convert_rows(rows, converters), revision, messages, stats, source)
    return apply_options(
        result, rewritten.statement.options, lambda: [table.spec for table in rewritten.tables.values()]
    )


def wire_of(name: str, kind: str, rewritten: Rewritten) -> str:
    """Pinot's type of a result column of this name and DuckDB type."""
    wire = wire_type(kind)
    return "JSON" if wire == "STRING" and rewritten.stored.get(name) is DataType.JSON else wire
