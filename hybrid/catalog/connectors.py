"""Connectors in the catalog: what their users want of them, and how they stood when somebody last looked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from hybrid.catalog.schema import CONNECTORS, put
from hybrid.clock import wall_clock_ms


@dataclass(frozen=True)
class ConnectorRecord:
    """`paused` None: nobody has said, so that its definition holds. `pause_offsets`: offsets that a pause holds it
    at, by partition (see `hybrid.table.boundary.place_text`).

    `state` is what was last told of it, `error` the latest one until it works again, `errors` how many there were.
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
        """What is known of a table's connectors, by name; one that nobody spoke of is not there."""
        wanted = sa.select(CONNECTORS).where(CONNECTORS.c.table_name == table)
        with self._engine.connect() as connection:
            return {row.name: _record(row) for row in connection.execute(wanted)}

    def failures(self) -> list[tuple[str, str]]:
        """(table, name) of those whose latest try failed, and that nobody paused."""
        wanted = sa.select(CONNECTORS).where(CONNECTORS.c.error.is_not(None)).order_by(CONNECTORS.c.table_name)
        with self._engine.connect() as connection:
            return [(row.table_name, row.name) for row in connection.execute(wanted) if not row.paused]

    def pause(self, table: str, name: str, pause_offsets: Mapping[str, int] | None) -> None:
        """Notes that a user pauses it; its stream is read up to `pause_offsets` (by partition) meanwhile."""
        text = json.dumps(pause_offsets) if pause_offsets is not None else None
        self._put(table, name, {"paused": True, "stop_at": text})

    def start(self, table: str, name: str) -> None:
        """Notes that a user lets it go on, and forgets its error."""
        self._put(table, name, {"paused": False, "stop_at": None, "error": None})

    def note(self, table: str, name: str, state: str) -> bool:
        """Notes how it stands; whether that is news."""
        if self.of(table).get(name, ConnectorRecord()).state == state:
            return False
        self._put(table, name, {"state": state})
        return True

    def failed(self, table: str, name: str, error: str) -> None:
        """Notes that it has failed once more."""
        known = self.of(table).get(name, ConnectorRecord())
        self._put(table, name, {"error": error, "errors": known.errors + 1})

    def worked(self, table: str, name: str) -> None:
        """Forgets its error: it works again."""
        self._put(table, name, {"error": None})

    def forget(self, table: str) -> None:
        """Forgets all of a table that is gone for good, or is made anew."""
        with self._engine.begin() as connection:
            connection.execute(CONNECTORS.delete().where(CONNECTORS.c.table_name == table))

    def _put(self, table: str, name: str, values: Mapping[str, object]) -> None:
        changed = {**values, "at_ms": wall_clock_ms()}
        put(self._engine, CONNECTORS, {"table_name": table, "name": name}, changed)


def _record(row: sa.Row[tuple[object, ...]]) -> ConnectorRecord:
    found = row._mapping
    pause_offsets = json.loads(found["stop_at"]) if found["stop_at"] else None
    return ConnectorRecord(
        found["paused"], pause_offsets, found["state"], found["error"], found["errors"] or 0, found["at_ms"]
    )
