"""The catalog: runs of tasks and jobs, and what the server's processes tell each other.

SQLite in WAL mode by default, PostgreSQL by its URL. It holds nothing about data. If it is lost, the
Delta tables still hold every row, offset, boundary and lineage entry, and the definitions are stored with them.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import sqlalchemy as sa

from hybrid.catalog import schema
from hybrid.catalog.clock import ClockRecord
from hybrid.catalog.connectors import Connectors
from hybrid.catalog.copies import forget_other_processes
from hybrid.catalog.database import DatabaseLimits, database_engine, database_url, shown_url
from hybrid.catalog.ownership import Owner, claim_database, require_owner
from hybrid.catalog.runs import Runs
from hybrid.catalog.serving import Serving
from hybrid.catalog.sqlite_file import FILE, sqlite_engine, take_in_states, write_copy
from hybrid.catalog.write_watch import WriteWatch
from hybrid.errors import MachineError
from hybrid.runtime import durable

# What every use of the catalog may raise: ingestion and statements go on without it.
CATALOG_ERRORS = (MachineError, sa.exc.SQLAlchemyError)


class Catalog:
    """The catalog that an engine leads to, whose tables are there. `owner` is its home, when it is in a database."""

    def __init__(self, engine: sa.Engine, owner: Owner | None = None) -> None:
        self._engine, self._owner = engine, owner

    @classmethod
    def of_home(cls, home: Path, url: str | None = None, limits: DatabaseLimits | None = None) -> Catalog:
        """The catalog of a home: in a database by its URL, or `<home>/catalog.db`.

        Raises MachineError when it cannot be opened, SpecError for a wrong URL, UsageError for the catalog of another
        home, and ConflictError while the server of a copy uses it.
        """
        durable.make_private(home)
        return cls._in_file(home) if url is None else cls._in_database(home, url, limits)

    @classmethod
    def _in_file(cls, home: Path) -> Catalog:
        with sqlite_engine(home / FILE) as engine:
            forget_other_processes(engine, home)
        return cls(engine)

    @classmethod
    def _in_database(cls, home: Path, url: str, limits: DatabaseLimits | None) -> Catalog:
        parsed, owner = database_url(url), Owner.of(home)
        engine = database_engine(parsed, owner.key, limits)
        catalog = cls(engine, owner)
        try:
            claim_database(engine, home, owner)
        except BaseException:
            engine.dispose()
            raise
        weakref.finalize(catalog, engine.dispose)  # else commands leave their connections to the database
        return catalog

    @property
    def server_url(self) -> str | None:
        """The URL of the database server that holds the catalog, without secrets; None: a file of the home holds it."""
        return None if self._engine.dialect.name == "sqlite" else shown_url(self._engine.url)

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

    def require_owner(self) -> None:
        """MachineError when another copy of the home has taken a catalog in a database over."""
        if self._owner is not None:
            require_owner(self._engine, self._owner)

    def write_watch(self) -> WriteWatch:
        """A new watch of what is written to the catalog."""
        return WriteWatch(self._engine)

    def forget_journal(self) -> bool:
        """Remove deleted values from SQLite's journal as well; False while others read from it.

        Free pages hold no values (`secure_delete`). PostgreSQL's journal is left to its own settings.
        """
        if self.server_url is not None:
            return True
        with self._engine.connect() as connection:
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar()
        return not busy

    def take_in_states(self, damaged: Path) -> bool:
        """Copy the pauses and states of connectors of a damaged catalog. Returns whether all could be read."""
        return take_in_states(damaged, self._engine)

    def write_copy(self, copy: sqlite3.Connection) -> None:
        """Write a catalog that is in a database, as it is at one moment, to an empty SQLite database."""
        write_copy(self._engine, copy)

    def mask(self, masked: Callable[[str, str], str]) -> int:
        """Replace the free texts of all tables by `masked(column, text)`. Returns how many rows changed."""
        return schema.mask(self._engine, masked)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()
