"""DuckDB's errors in the words of ours: Pinot's code, and a sentence without DuckDB's positions in rewritten SQL."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from hybrid.errors import QueryError, suggestion

EXECUTION, TIMEOUT, NO_SUCH_COLUMN = 200, 250, 710
_KIND = re.compile(r"^([A-Za-z -]+ Error|Error): ")
_COLUMN = (
    re.compile(r'Referenced column "(?P<column>[^"]+)" not found'),
    re.compile(r'(?:Table|Values list|View) "(?P<table>[^"]+)" does not have a column named "(?P<column>[^"]+)"'),
    re.compile(r'column "(?P<column>[^"]+)" does not exist', re.IGNORECASE),
    re.compile(r'Referenced table "(?P<table>[^"]+)" not found'),
)
_MISSING = re.compile("No such file|No files found|does not exist", re.IGNORECASE)
_RELATION = re.compile(r'"?_hy_(rel|tail)_\d+"?')


def query_error(error: Exception, columns: Iterable[str], timeout_ms: int | None) -> QueryError:
    """The error for what DuckDB raised; `columns` are those of the tables in the statement."""
    import duckdb

    if isinstance(error, duckdb.InterruptException):
        return stopped(timeout_ms)
    if isinstance(error, duckdb.OutOfMemoryException):
        return QueryError(
            "The query needs more memory than there is for it.",
            pinot_code=EXECUTION,
            hint="Narrow it, or raise query_memory_bytes of the server that answers it.",
        )
    text = str(error)
    for pattern in _COLUMN:
        match = pattern.search(text)
        if match:
            return _no_column(match.groupdict(), columns)
    return QueryError(_clean(text), pinot_code=EXECUTION)


@contextmanager
def values_checked() -> Iterator[None]:
    """Where a statement is put into DuckDB's words: what Python cannot compute of its values is a QueryError."""
    try:
        yield
    except (ValueError, ArithmeticError, RecursionError) as error:
        # A number of more digits than Python reads, or one that fits no place or time: the statement is wrong.
        reason = str(error)[:100] or type(error).__name__
        raise QueryError(f"A value in the statement cannot be used: {reason}.", pinot_code=700) from error


def stopped(timeout_ms: int | None) -> QueryError:
    """The error of a statement that took longer than it may; None: of one that somebody cancelled."""
    return QueryError(
        f"The query was stopped after {timeout_ms} ms." if timeout_ms else "The query was cancelled.",
        pinot_code=TIMEOUT,
        hint="Give it more time with SET timeoutMs = ...; or narrow it.",
    )


def is_evolution(message: str, columns: Collection[str]) -> bool:
    """Whether a query failed because a file lacks a column that the table has."""
    match = _COLUMN[0].search(message)
    return "schema mismatch in glob" in message or (match is not None and match.group("column") in columns)


def is_missing_file(error: BaseException | None) -> bool:
    """Whether DuckDB did not find a data file that it was told to read."""
    import duckdb

    return isinstance(error, duckdb.IOException) and _MISSING.search(str(error)) is not None


def _no_column(found: dict[str, str | None], columns: Iterable[str]) -> QueryError:
    column, table = found.get("column"), found.get("table")
    if column is None:
        return QueryError(f"Table or alias '{table}' is not in FROM.", pinot_code=NO_SUCH_COLUMN)
    where = f" in '{table}'" if table and not table.startswith("_hy_") else ""
    return QueryError(
        f"Column '{column}' does not exist{where}.{suggestion(column, columns)}", pinot_code=NO_SUCH_COLUMN
    )


def _clean(text: str) -> str:
    text = _KIND.sub("", text.split("\n\nLINE ")[0].split("\nLINE ")[0]).strip()
    return _RELATION.sub("table", " ".join(text.split()))
