"""Few DuckDB databases for tests that start no process: starting one takes longer than most statements.

All statements over files share one. Caches and tests that write tables borrow one until their test ends. Settings are
the product's, but for the folders that may be read: all below the system's temporary folder. Temporary tables belong to
a cursor. Tests with a JVM, a broker or a server start a database each time, as the product does.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from hybrid.query import engine
from hybrid.query.cache import database
from hybrid.query.connection import identifier, locked_connection

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TEMP = Path(tempfile.gettempdir()).resolve()
_FREE: list[DuckDBPyConnection] = []
_LENT: list[DuckDBPyConnection] = []


def share_duckdb(is_shared: bool = True) -> None:
    """Sets what the engine opens for statements over files, and caches for their tables, in this process."""
    engine.locked_connection = _cursor if is_shared else locked_connection
    database.locked_connection = _lent if is_shared else locked_connection


def take_back_databases() -> None:
    """Call it after each test: the databases that it borrowed are emptied for the next one."""
    while _LENT:
        connection = _LENT.pop()
        try:
            _empty(connection)
        except duckdb.Error:  # a thread of the test still uses it
            continue
        _FREE.append(connection)


def leave_databases() -> None:
    """Call it after the set-up of a fixture for several tests: it keeps what it borrowed."""
    _LENT.clear()


@cache
def plain_duckdb() -> DuckDBPyConnection:
    """A database of this process for tests that ask without tables of their own, or with temporary ones on a cursor."""
    connection = duckdb.connect()
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection


@cache
def _database() -> DuckDBPyConnection:
    return locked_connection([_TEMP], before_lock=["SET GLOBAL TimeZone = 'UTC'", "SET threads = 1"])


def _cursor(folders: Iterable[Path], bytes_max: int | None = None, spill: Path | None = None) -> DuckDBPyConnection:
    paths = list(folders)
    if bytes_max is None and spill is None and _are_temporary(paths):
        return _database().cursor()
    return locked_connection(paths, bytes_max, spill)


def _lent(
    folders: Iterable[Path], bytes_max: int | None, spill: Path | None, before_lock: Iterable[str]
) -> DuckDBPyConnection:
    paths = list(folders)
    if bytes_max is not None or spill is not None or not _are_temporary(paths):
        return locked_connection(paths, bytes_max, spill, before_lock)
    always = ["SET GLOBAL TimeZone = 'UTC'"]
    connection = _FREE.pop() if _FREE else locked_connection([_TEMP], before_lock=[*always, *before_lock])
    _LENT.append(connection)
    return connection.cursor()


def _empty(connection: DuckDBPyConnection) -> None:
    attached = "SELECT database_name FROM duckdb_databases() WHERE NOT internal AND database_name <> 'memory'"
    for (name,) in connection.execute(attached).fetchall():
        connection.execute(f"DETACH {identifier(name)}")
    for (name,) in connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall():
        connection.execute(f"DROP TABLE memory.main.{identifier(name)}")


def _are_temporary(paths: Iterable[Path]) -> bool:
    return all(path.resolve().is_relative_to(_TEMP) for path in paths)
