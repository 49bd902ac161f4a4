"""The one in-memory DuckDB that holds a server's cached tables.

Each table has one writer and databases of its own, so that no writer waits for another. Each reader uses the cursor of
its thread.
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

# GROUP BY over values that span fewer than 2^16 numbers uses an array: twice as fast as a hash table. A wider array
# costs a statement over few rows more than it saves.
_ARRAY_BITS = 16
# How many parsed statements are kept, and up to which length of text.
_KEPT, _KEPT_CHARS_MAX = 500, 20_000


class Unanswered(Exception):
    """A reader named a relation that no longer exists: the files may answer."""


class NoRoom(Unanswered):
    """A statement does not fit into memory or onto the disk."""


class CacheDatabase:
    """Tables lie below `folder`. `bytes_max` bounds the memory; what exceeds it is spilled to files below `spill`."""

    def __init__(self, folder: Path, bytes_max: int | None = None, spill: Path | None = None) -> None:
        self.bytes_max = bytes_max
        settings = [f"SET GLOBAL perfect_ht_threshold = {_ARRAY_BITS}"]
        self._connection = locked_connection([folder.absolute()], bytes_max, spill, settings)
        # Held while a writer commits, and while a reader is pinned.
        self.commits = threading.Lock()
        self._local = threading.local()
        self._kept = lru_cache(_KEPT)(partial(parsed, self._connection))

    def cursor(self) -> DuckDBPyConnection:
        """A new connection to the same database."""
        return self._connection.cursor()

    def parsed(self, sql: str) -> Statement:
        """One parsed statement, cached: parsing takes as long as a small statement runs. Any thread may run it."""
        return self._kept(sql) if len(sql) <= _KEPT_CHARS_MAX else parsed(self._connection, sql)

    def await_commit(self) -> None:
        """Waits for the commit in progress, if there is one."""
        with self.commits:
            pass

    @contextmanager
    def reader(self) -> Iterator[DuckDBPyConnection]:
        """This thread's cursor. Each statement on it sees all tables at one moment. Raises Unanswered or NoRoom."""
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
            # Only spilled files are read here; a fatal error ends the whole database.
            if isinstance(reason, duckdb.OutOfMemoryException | duckdb.IOException | duckdb.FatalException):
                raise NoRoom from error
            raise

    @contextmanager
    def pinned_reader(
        self, look: Callable[[], Sequence[ReadView | None]]
    ) -> Iterator[tuple[DuckDBPyConnection, Sequence[ReadView | None]]]:
        """This thread's cursor in a read-only transaction: all its statements see all tables at one moment.

        `look` is called at that moment, while no writer commits.
        """
        import duckdb

        with self.reader() as cursor:
            try:
                with self.commits:
                    cursor.execute(self.parsed("BEGIN TRANSACTION READ ONLY"))
                    seen = look()
                    for view in seen:
                        if view is not None:  # a transaction pins a database at its first read from it
                            cursor.execute(self.parsed(f"SELECT 1 FROM {view.relation} LIMIT 0"))
                yield cursor, seen
            finally:
                try:
                    cursor.execute(self.parsed("ROLLBACK"))
                except duckdb.Error:  # an interrupt arrived after the statement's end
                    cursor.close()
                    self._local.cursor = None

    def sizes(self) -> Sequence[tuple[str, int, int]]:
        """Bytes in memory and on disk, by DuckDB's tags (`in_memory_table`, `art_index`, ...).

        Running statements count. Empty where the memory does not suffice for the question.
        """
        import duckdb

        select = "SELECT lower(tag), memory_usage_bytes, temporary_storage_bytes FROM duckdb_memory()"
        try:
            with self.reader() as reader:
                return reader.execute(self.parsed(select)).fetchall()
        except (duckdb.Error, Unanswered):
            return []

    def close(self) -> None:
        """Closes the database and frees its memory."""
        self._kept.cache_clear()
        self._connection.close()


def is_out_of_memory(error: Exception) -> bool:
    """Whether DuckDB ran out of memory, for data that cannot be spilled or has no disk to spill to."""
    import duckdb

    return isinstance(error, duckdb.OutOfMemoryException)
