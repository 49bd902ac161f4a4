"""Connectors in the catalog: the desired state that users set, and the last reported state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from hybrid.catalog.schema import CONNECTORS, put
from hybrid.clock import wall_clock_ms


@dataclass(frozen=True)
class ConnectorRecord:
    """State of a connector. `paused` None: no user has set it, so its definition decides.

    `pause_offsets`: the offsets at which a pause holds it, by partition (see `hybrid.table.boundary.place_text`).
    `state` was reported last, `error` is the latest one until it works again, `errors` counts all.
    """

    paused: bool | None = None
    pause_offsets: Mapping[str, int] | None = None
    state: str | None = None
    error: str | None = None
    errors: int = 0
    at_ms: int | None = None


class Connectors:
    """The connectors of all tables."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def of(self, table: str) -> dict[str, ConnectorRecord]:
        """The records of a table's connectors, by name; connectors without a record are left out."""
        statement = sa.select(CONNECTORS).where(CONNECTORS.c.table_name == table)
        with self._engine.connect() as connection:
            return {row.name: _record(row) for row in connection.execute(statement)}

    def failures(self) -> list[tuple[str, str]]:
        """(table, name) of the connectors whose latest attempt failed and that nobody paused."""
        statement = sa.select(CONNECTORS).where(CONNECTORS.c.error.is_not(None)).order_by(CONNECTORS.c.table_name)
        with self._engine.connect() as connection:
            return [(row.table_name, row.name) for row in connection.execute(statement) if not row.paused]

    def pause(self, table: str, name: str, pause_offsets: Mapping[str, int] | None) -> None:
        """Record a user's pause; until it is resumed, its stream is read up to `pause_offsets` (by partition)."""
        text = json.dumps(pause_offsets) if pause_offsets is not None else None
        self._put(table, name, {"paused": True, "stop_at": text})

    def start(self, table: str, name: str) -> None:
        """Record that a user resumes it, and clear its error."""
        self._put(table, name, {"paused": False, "stop_at": None, "error": None})

    def note(self, table: str, name: str, state: str) -> bool:
        """Record its state. Returns whether the state has changed."""
        if self.of(table).get(name, ConnectorRecord()).state == state:
            return False
        self._put(table, name, {"state": state})
        return True

    def failed(self, table: str, name: str, error: str) -> None:
        """Record another failure."""
        record = self.of(table).get(name, ConnectorRecord())
        self._put(table, name, {"error": error, "errors": record.errors + 1})

    def worked(self, table: str, name: str) -> None:
        """Clear its error, because it works again."""
        self._put(table, name, {"error": None})

    def forget(self, table: str) -> None:
        """Delete the records of a table that was dropped for good, or is created again."""
        with self._engine.begin() as connection:
            connection.execute(CONNECTORS.delete().where(CONNECTORS.c.table_name == table))

    def _put(self, table: str, name: str, values: Mapping[str, object]) -> None:
        changed = {**values, "at_ms": wall_clock_ms()}
        put(self._engine, CONNECTORS, {"table_name": table, "name": name}, changed)


def _record(row: sa.Row[tuple[object, ...]]) -> ConnectorRecord:
    fields = row._mapping
    pause_offsets = json.loads(fields["stop_at"]) if fields["stop_at"] else None
    return ConnectorRecord(
        fields["paused"], pause_offsets, fields["state"], fields["error"], fields["errors"] or 0, fields["at_ms"]
    )
