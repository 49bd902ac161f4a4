"""`WriteWatch`: whether anybody has written to the catalog, asked without a query."""

from __future__ import annotations

import sqlalchemy as sa


class WriteWatch:
    """Compares the catalog with the last call. For one thread: SQLite tells each connection what others committed.

    SQLite answers from the header of its journal's index (https://www.sqlite.org/pragma.html#pragma_data_version). A
    catalog that was deleted, or put in place of another, looks unchanged: whoever relies on this must also look from
    time to time.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._connection: sa.PoolProxiedConnection | None = None
        self._version: object = None

    def has_new(self) -> bool:
        """Whether another connection has written since the last call; True in doubt. Raises SQLAlchemyError."""
        if self._engine.dialect.name != "sqlite":
            return True
        if self._connection is None:
            self._connection = self._engine.raw_connection()
        before, cursor = self._version, self._connection.cursor()
        try:
            cursor.execute("PRAGMA data_version")
            self._version = cursor.fetchone()
        except self._engine.dialect.loaded_dbapi.Error:  # the next query says what is the matter
            self.close()
            return True
        finally:
            cursor.close()
        return self._version != before

    def close(self) -> None:
        """Gives the connection back."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._version = None
