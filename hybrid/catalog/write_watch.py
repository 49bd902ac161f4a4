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
        self._connection: sa.PoolProxiedConnection | None = None
        self._version: object = None
        self._listener: Any = None  # psycopg's connection

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
        if self._listener is None:
            pooled = self._engine.raw_connection()
            self._listener = pooled.driver_connection
            pooled.detach()  # it listens for good, so nobody else may get it from the pool
            self._listener.autocommit = True
            self._listener.execute(f"LISTEN {CHANNEL}")
            return True
        is_notified = any([True for _ in self._listener.notifies(timeout=0)])  # all of them are taken
        if self._listener.closed:  # the database ended, or started again meanwhile
            self.close()
            return True
        return is_notified

    def close(self) -> None:
        """Give up the connection."""
        for connection in (self._connection, self._listener):
            if connection is not None:
                connection.close()
        self._connection = self._listener = self._version = None
