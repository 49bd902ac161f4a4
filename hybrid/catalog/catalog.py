"""The catalog: runs of tasks and jobs, and what the server's processes tell each other.

SQLite in WAL mode by default, another database by its SQLAlchemy URL. It holds nothing about data. If it is lost, the
Delta tables still hold every row, offset, boundary and lineage entry, and the definitions are stored with them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from hybrid.catalog import schema
from hybrid.catalog.clock import ClockRecord
from hybrid.catalog.connectors import Connectors
from hybrid.catalog.copies import forget_other_processes
from hybrid.catalog.runs import Runs
from hybrid.catalog.serving import Serving
from hybrid.catalog.write_watch import WriteWatch
from hybrid.runtime import durable
from hybrid.runtime.disk import sqlite_error


class Catalog:
    """The catalog at a SQLAlchemy URL. Creates its tables on first use."""

    def __init__(self, url: str) -> None:
        self._engine = sa.create_engine(url)
        if self._engine.dialect.name == "sqlite":
            is_durable = durable.is_enabled(Path(self._engine.url.database or ""))
            sa.event.listen(self._engine, "connect", partial(_tune_sqlite, is_durable))
            sa.event.listen(self._engine, "handle_error", _raise_machine_error)
        schema.prepare(self._engine)

    @classmethod
    def in_home(cls, home: Path) -> Catalog:
        """The default catalog of a home: `<home>/catalog.db`."""
        durable.make_private(home)
        try:
            catalog = cls(f"sqlite:///{home / 'catalog.db'}")
        except sqlite3.Error as error:  # from the setup of a connection
            raise sqlite_error(error, home / "catalog.db") or error from error
        forget_other_processes(catalog._engine, home)
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
