"""The one DuckDB in memory that holds a server's cached tables.

Its writers are one per table, each with databases of its own, so that none waits for what another one writes down; each
reader works on a cursor of its thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import QueryError
from hybrid.query.cache.read_view import ReadView
from hybrid.query.connection import locked_connection
from hybrid.query.execution import parsed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, Statement

# Groups by a column whose values span fewer than 2^16 numbers stand in an array: twice as fast as a hash table.
# One that is wider costs a statement over few rows more than it saves.
_ARRAY_BITS = 16
# How many statements are kept as they are parsed, and up to which length.
_KEPT, _KEPT_CHARS_MAX = 500, 20_000


class Unanswered(Exception):
    """A reader asked for a relation that is no longer there: the files may answer."""


class NoRoom(Unanswered):
    """There is no room for its work, in memory or on disk."""


class CacheDatabase:
    """`folder` is below which tables lie; `bytes_max` bounds the memory, beyond it rows go to files below `spill`."""

    def __init__(self, folder: Path, bytes_max: int | None = None, spill: Path | None = None) -> None:
        self.bytes_max = bytes_max
        settings = [f"SET GLOBAL perfect_ht_threshold = {_ARRAY_BITS}"]
        self._connection = locked_connection([folder.absolute()], bytes_max, spill, settings)
        # Held by who commits, and by who pins a reader.
        self.commits = threading.Lock()
        self._local = threading.local()
        self._kept = lru_cache(_KEPT)(partial(parsed, self._connection))

    def cursor(self) -> DuckDBPyConnection:
        """A connection of its own to the same database."""
        return self._connection.cursor()

    def parsed(self, sql: str) -> Statement:
        """One statement as the parser leaves it, which takes as long as a small one runs. Any thread may run it."""
        return self._kept(sql) if len(sql) <= _KEPT_CHARS_MAX else parsed(self._connection, sql)

    def await_commit(self) -> None:
        """Waits for the commit that goes on, if there is one."""
        with self.commits:
            pass

    @contextmanager
    def reader(self) -> Iterator[DuckDBPyConnection]:
        """This thread's cursor. Each statement on it sees all tables at one moment of its own."""
        import duckdb

        cursor: DuckDBPyConnection | None = getattr(self._local, "cursor", None)
        if cursor is None:
            cursor = self._local.cursor = self.cursor()
        try:
            yield cursor
        except (duckdb.Error, QueryError) as error:
            reason = error.__cause__ if isinstance(error, QueryError) else error
            if isinstance(reason, duckdb.CatalogException):
                raise Unanswered from error
            # No file is read here but what was spilled; a fatal error is one that the whole database does not survive.
            if isinstance(reason, duckdb.OutOfMemoryException | duckdb.IOException | duckdb.FatalException):
                raise NoRoom from error
            raise

    @contextmanager
    def pinned_reader(
        self, look: Callable[[], Sequence[ReadView | None]]
    ) -> Iterator[tuple[DuckDBPyConnection, Sequence[ReadView | None]]]:
        """The same inside of a read-only transaction: all its statements see all tables at one moment.

        `look` is called at that moment: no writer commits meanwhile.
        """
        import duckdb

        with self.reader() as cursor:
            try:
                with self.commits:
                    cursor.execute(self.parsed("BEGIN TRANSACTION READ ONLY"))
                    seen = look()
                    for one in seen:
                        if one is not None:  # a transaction sees a database as it is when it first reads from it
                            cursor.execute(self.parsed(f"SELECT 1 FROM {one.relation} LIMIT 0"))
                yield cursor, seen
            finally:
                try:
                    cursor.execute(self.parsed("ROLLBACK"))
                except duckdb.Error:  # a cancel came a moment late
                    cursor.close()
                    self._local.cursor = None

    def sizes(self) -> Sequence[tuple[str, int, int]]:
        """Bytes in memory and on disk, by what DuckDB keeps there (`in_memory_table`, `art_index`, ...).

        Running statements count. Nothing where there is no room to tell.
        """
        import duckdb

        select = "SELECT lower(tag), memory_usage_bytes, temporary_storage_bytes FROM duckdb_memory()"
        try:
            with self.reader() as reader:
                return reader.execute(self.parsed(select)).fetchall()
        except (duckdb.Error, Unanswered):
            return []

    def close(self) -> None:
        """Gives the memory back."""
        self._kept.cache_clear()
        self._connection.close()


def is_out_of_memory(error: Exception) -> bool:
    """Whether DuckDB found no room in memory, for what cannot lie on disk or has no disk to lie on."""
    import duckdb

    return isinstance(error, duckdb.OutOfMemoryException)
