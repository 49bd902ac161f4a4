"""DuckDB databases of this process that serve one statement after the other: starting one takes longer than most do.

A statement has a database for itself, so that its limit of memory is its own, and in it a connection that is closed at
its end, with its temporary tables and views. A database serves statements over the same folders with the same limits
alone, for some seconds, and none after one that failed: no statement can read or take more than in a new one.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hybrid.query.connection import locked_connection
from hybrid.query.deadline import deadline

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# How many wait for a statement, at 5 MB each; and how long after its start one is used: how many bytes it may spill was
# set by the disk's free space then.
_IDLE_MAX = 4
_LIFETIME_S = 10.0


class _Terms(NamedTuple):
    """What a database was opened with: see `locked_connection`."""

    folders: tuple[Path, ...]
    bytes_max: int | None
    spill: Path | None


class _Database(NamedTuple):
    """An open database, which serves statements until a time of the pool's clock (s)."""

    connection: DuckDBPyConnection
    terms: _Terms
    until: float


def _spills(folder: Path | None) -> bool:
    """Whether a database of this process has had files in the folder: DuckDB keeps one, empty, until it is closed."""
    return folder is not None and any(folder.glob(f"duckdb_temp_{os.getpid()}_*"))


class DatabasePool:
    """Lends databases to statements, from any thread. At most `idle_max` wait for one, those that did so last.

    `start` starts one, as `locked_connection` does.
    """

    def __init__(
        self,
        idle_max: int = _IDLE_MAX,
        lifetime_s: float = _LIFETIME_S,
        clock: Callable[[], float] = time.monotonic,
        start: Callable[..., DuckDBPyConnection] = locked_connection,
    ) -> None:
        self._idle_max, self._lifetime_s, self._clock, self._start = idle_max, lifetime_s, clock, start
        self._idle = list[_Database]()
        self._changing = threading.Lock()

    @contextmanager
    def connection(
        self, folders: Iterable[Path], bytes_max: int | None = None, spill: Path | None = None
    ) -> Iterator[DuckDBPyConnection]:
        """A connection for one statement: see `locked_connection`."""
        terms = _Terms(tuple(folders), bytes_max, spill)
        database = self._take(terms) or _Database(self._start(*terms), terms, self._clock() + self._lifetime_s)
        try:
            with closing(database.connection.cursor()) as connection:
                yield connection
        except BaseException:
            database.connection.close()
            raise
        self._leave(database)

    def close(self) -> None:
        """Closes the databases that wait for a statement."""
        with self._changing:
            self._close_idle()

    def close_before_fork(self) -> None:
        """Closes them, and lends none until `go_on`: a forked process has not the threads of the databases."""
        self._changing.acquire()
        self._close_idle()

    def go_on(self) -> None:
        """Lends databases again after a fork, in both processes."""
        self._changing.release()

    def _take(self, terms: _Terms) -> _Database | None:
        now = self._clock()
        with self._changing:
            for place in reversed(range(len(self._idle))):
                if self._idle[place].terms == terms and self._idle[place].until > now:
                    return self._idle.pop(place)
        return None

    def _leave(self, database: _Database) -> None:
        if _spills(database.terms.spill):
            database.connection.close()  # also for the memory: this was a large statement
            return
        now = self._clock()
        with self._changing:
            self._idle.append(database)
            waiting = [other for other in self._idle if other.until > now]
            surplus = max(0, len(waiting) - self._idle_max)
            ended = [other for other in self._idle if other.until <= now] + waiting[:surplus]
            self._idle = waiting[surplus:]
        for other in ended:
            other.connection.close()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().connection.close()


def rows_in_time(
    folders: Iterable[Path], sql: str, until: float, bytes_max: int | None = None, spill: Path | None = None
) -> list[tuple[Any, ...]] | None:
    """The rows of our own statement over files, which ends by the monotonic time `until`; None when it fails.

    It does so when it is out of time or memory, and when a file is gone since or of an earlier schema.
    """
    import duckdb

    try:
        with databases.connection(folders, bytes_max, spill) as connection, deadline(until, connection.interrupt):
            return connection.execute(sql).fetchall()
    except duckdb.Error:
        return None


databases = DatabasePool()
atexit.register(databases.close)
os.register_at_fork(before=databases.close_before_fork, after_in_parent=databases.go_on, after_in_child=databases.go_on)
