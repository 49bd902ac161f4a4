"""`WriteWatch`: whether anybody has written to the catalog, asked without a query."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from hybrid.catalog.schema import CHANNEL


class WriteWatch:
    """Compares the catalog with the last call. For one thread: databases tell each connection what others committed.

    SQLite answers from the header of its journal's index (https://www.sqlite.org/pragma.html#pragma_data_version),
    PostgreSQL notifies a connection that listens (https://www.postgresql.org/docs/current/sql-notify.html). A catalog
    that was deleted, or put in place of another, looks unchanged, and a lost connection may do so for a while: whoever
    relies on this must also look from time to time.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._connection: Any = None  # of the pool; for PostgreSQL the driver's own
        self._version: object = None
        self._schema: object = None

    def has_new(self) -> bool:
        """Whether another connection has written since the last call; True in doubt.

        Raises SQLAlchemyError, or MachineError.
        """
        try:
            if self._engine.dialect.name == "postgresql":
                return self._is_notified()
            return self._has_other_version()
        except self._engine.dialect.loaded_dbapi.Error:  # the next query says what is the matter
            self.close()
            return True

    def _has_other_version(self) -> bool:
        if self._connection is None:
            self._connection = self._engine.raw_connection()
        before, cursor = self._version, self._connection.cursor()
        try:
            cursor.execute("PRAGMA data_version")
            self._version = cursor.fetchone()
        finally:
            cursor.close()
        return self._version != before

    def _is_notified(self) -> bool:
        if self._connection is None:
            pooled = self._engine.raw_connection()
            self._connection = pooled.driver_connection
            pooled.detach()  # it listens for good, so nobody else may get it from the pool
            self._connection.autocommit = True
            self._connection.execute(f"LISTEN {CHANNEL}")
            (self._schema,) = self._connection.execute("SELECT current_schema()").fetchone()
            return True
        # All of them are taken. The database may hold catalogs in other schemas.
        return self._schema in [notification.payload for notification in self._connection.notifies(timeout=0)]

    def close(self) -> None:
        """Give up the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._version = None
