"""Few DuckDB databases for the tests of this process: starting one takes longer than most statements.

All statements over files without a limit of memory share one. Settings are the product's, but for the folders that may
be read: all below the system's temporary folder. In tests that start no process, caches and those that write tables
borrow one until the test ends. Commands and servers that tests start have databases as users do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from hybrid.query import engine
from hybrid.query.cache import database
from hybrid.query.connection import identifier, locked_connection
from hybrid.query.database_pool import DatabasePool, databases

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TEMP = Path(tempfile.gettempdir()).resolve()
_FREE: list[DuckDBPyConnection] = []
_LENT: list[DuckDBPyConnection] = []


def share_duckdb(is_shared: bool = True) -> None:
    """Sets what the engine opens for statements over files and, when shared, caches for their tables."""
    engine.databases = _STATEMENTS
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
    return locked_connection([_TEMP], before_lock=["SET threads = 1"])


class _OneDatabase(DatabasePool):
    @contextmanager
    def connection(
        self, folders: Iterable[Path], bytes_max: int | None = None, spill: Path | None = None
    ) -> Iterator[DuckDBPyConnection]:
        paths = list(folders)
        of_all = bytes_max is None and spill is None and _are_temporary(paths)
        with closing(_database().cursor()) if of_all else databases.connection(paths, bytes_max, spill) as connection:
            yield connection


_STATEMENTS = _OneDatabase()


def _lent(
    folders: Iterable[Path], bytes_max: int | None, spill: Path | None, before_lock: Iterable[str]
) -> DuckDBPyConnection:
    paths = list(folders)
    if bytes_max is not None or spill is not None or not _are_temporary(paths):
        return locked_connection(paths, bytes_max, spill, before_lock)
    connection = _FREE.pop() if _FREE else locked_connection([_TEMP], before_lock=before_lock)
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
