"""The catalog: runs of tasks and jobs, and what the server's processes tell each other.

SQLite in WAL mode by default, PostgreSQL by its URL. It holds nothing about data. If it is lost, the
Delta tables still hold every row, offset, boundary and lineage entry, and the definitions are stored with them.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from hybrid.catalog import schema
from hybrid.catalog.clock import ClockRecord
from hybrid.catalog.connectors import Connectors
from hybrid.catalog.copies import forget_other_processes
from hybrid.catalog.database import FILE, claim_database, database_engine, database_url, write_copy
from hybrid.catalog.runs import Runs
from hybrid.catalog.serving import Serving
from hybrid.catalog.write_watch import WriteWatch
from hybrid.errors import MachineError
from hybrid.runtime import durable
from hybrid.runtime.disk import sqlite_error

# What every use of the catalog may raise: ingestion and statements go on without it.
CATALOG_ERRORS = (MachineError, sa.exc.SQLAlchemyError)


class Catalog:
    """The catalog at a SQLAlchemy URL. Creates its tables on first use."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        schema.prepare(engine)

    @classmethod
    def of_home(cls, home: Path, url: str | None = None) -> Catalog:
        """The catalog of a home: in a database by its URL, or `<home>/catalog.db`.

        Raises MachineError when it cannot be opened, SpecError for a wrong URL, and UsageError for the catalog of
        another home.
        """
        durable.make_private(home)
        return cls._in_file(home) if url is None else cls._in_database(home, url)

    @classmethod
    def _in_file(cls, home: Path) -> Catalog:
        path = home / FILE
        engine = sa.create_engine(f"sqlite:///{path}")
        sa.event.listen(engine, "connect", partial(_tune_sqlite, durable.is_enabled(path)))
        sa.event.listen(engine, "handle_error", _raise_machine_error)
        try:
            catalog = cls(engine)
        except sqlite3.Error as error:  # from the setup of a connection
            raise sqlite_error(error, path) or error from error
        forget_other_processes(engine, home)
        return catalog

    @classmethod
    def _in_database(cls, home: Path, url: str) -> Catalog:
        engine = database_engine(database_url(url))
        try:
            catalog = cls(engine)
            claim_database(engine, home)
        except BaseException:
            engine.dispose()
            raise
        weakref.finalize(catalog, engine.dispose)  # else commands leave their connections to the database
        return catalog

    @cached_property
    def runs(self) -> Runs:
        """Runs of tasks and jobs: queued, running and ended."""
        return Runs(self._engine)

    @cached_property
    def serving(self) -> Serving:
        """The server's processes, ingestion by table, and paused tables."""
        return Serving(self._engine)

    @cached_property
    def connectors(self) -> Connectors:
        """The desired and the current state of connectors."""
        return Connectors(self._engine)

    @cached_property
    def clock(self) -> ClockRecord:
        """The trusted readings of the machine's clock."""
        return ClockRecord(self._engine)

    def write_watch(self) -> WriteWatch:
        """A new watch of what is written to the catalog."""
        return WriteWatch(self._engine)

    def forget_journal(self) -> bool:
        """Remove deleted values from SQLite's journal as well; False while others read from it.

        Free pages hold no values (`secure_delete`). PostgreSQL's journal is left to its own settings.
        """
        if self._engine.dialect.name != "sqlite":
            return True
        with self._engine.connect() as connection:
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar()
        return not busy

    def write_copy(self, copy: sqlite3.Connection) -> None:
        """Write a catalog that is in a database, as it is at one moment, to an empty SQLite database."""
        write_copy(self._engine, copy)

    def mask(self, masked: Callable[[str, str], str]) -> int:
        """Replace the free texts of all tables by `masked(column, text)`. Returns how many rows changed."""
        return schema.mask(self._engine, masked)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()


def _raise_machine_error(context: sa.engine.ExceptionContext) -> None:
    """Raise an error of the machine as a HybridError that names the disk and the remedy."""
    error, engine = context.original_exception, context.engine
    if isinstance(error, sqlite3.Error) and engine is not None and engine.url.database:
        machine_error = sqlite_error(error, Path(engine.url.database))
        if machine_error is not None:
            raise machine_error from error


def _tune_sqlite(is_durable: bool, connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA busy_timeout=10000")
    # FULL: an acknowledged job survives a power failure.
    cursor.execute(f"PRAGMA synchronous={'FULL' if is_durable else 'NORMAL'}")
    cursor.execute("PRAGMA secure_delete=ON")  # a purge removes values: none may remain in a free page
    cursor.close()
