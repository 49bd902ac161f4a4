"""State that the server's processes share: their roles, ingestion by table, and paused tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from hybrid.catalog.schema import INGESTION, PAUSES, ROLES, put
from hybrid.clock import wall_clock_ms


@dataclass(frozen=True)
class Role:
    """A process of the server: `state` is `starting`, `ready` or a sentence; `beat_ms` its last heartbeat."""

    role: str
    pid: int
    state: str
    beat_ms: int

    @property
    def age_s(self) -> float:
        """Seconds since the last heartbeat."""
        return max(0.0, wall_clock_ms() - self.beat_ms) / 1000


@dataclass(frozen=True)
class Ingestion:
    """The state of a table's ingestion: INGESTING, WAITING (no topic), PAUSED or STOPPED, with the reason in `detail`.

    `behind` counts offsets beyond the last commit at the time `at_ms`.
    """

    table_name: str
    state: str
    detail: str | None
    behind: int | None
    at_ms: int


@dataclass(frozen=True)
class Pause:
    """A user's pause of a table's ingestion."""

    table_name: str
    at_ms: int
    comment: str | None


class Serving:
    """The server's own tables in the catalog."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def beat(self, role: str, state: str) -> None:
        """Record a heartbeat of this process."""
        put(self._engine, ROLES, {"role": role}, {"pid": os.getpid(), "state": state, "beat_ms": wall_clock_ms()})

    def role(self, name: str) -> Role | None:
        """The last recorded state of the process with that role."""
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(ROLES).where(ROLES.c.role == name)).first()
        return Role(**row._mapping) if row is not None else None

    def note_ingestion(self, table: str, state: str, detail: str | None, behind: int | None) -> None:
        """Record the state of a table's ingestion."""
        values = {"state": state, "detail": detail, "behind": behind, "at_ms": wall_clock_ms()}
        put(self._engine, INGESTION, {"table_name": table}, values)

    def confirm_ingestions(self, at_ms: Mapping[str, int]) -> None:
        """Record that the noted states of some tables still held at these times. Tables without one are left out."""
        statement = INGESTION.update().where(INGESTION.c.table_name == sa.bindparam("name"))
        rows = [{"name": name, "at": at} for name, at in at_ms.items()]
        with self._engine.begin() as connection:
            connection.execute(statement.values(at_ms=sa.bindparam("at")), rows)

    def ingestions(self) -> dict[str, Ingestion]:
        """The state of ingestion by table."""
        with self._engine.connect() as connection:
            return {row.table_name: Ingestion(**row._mapping) for row in connection.execute(sa.select(INGESTION))}

    def pause(self, table: str, comment: str | None = None) -> None:
        """Pause a table's ingestion until it is resumed."""
        put(self._engine, PAUSES, {"table_name": table}, {"at_ms": wall_clock_ms(), "comment": comment})

    def resume(self, table: str) -> bool:
        """Remove a pause. Returns whether there was one."""
        with self._engine.begin() as connection:
            return bool(connection.execute(PAUSES.delete().where(PAUSES.c.table_name == table)).rowcount)

    def pauses(self) -> dict[str, Pause]:
        """The paused tables."""
        with self._engine.connect() as connection:
            return {row.table_name: Pause(**row._mapping) for row in connection.execute(sa.select(PAUSES))}

    def forget(self, table: str) -> None:
        """Delete the records of a dropped table, whose name a new one takes."""
        with self._engine.begin() as connection:
            for recorded_in in (INGESTION, PAUSES):
                connection.execute(recorded_in.delete().where(recorded_in.c.table_name == table))

    def forget_ingestion(self, table: str) -> None:
        """Delete what is known of the ingestion of a dropped table. It stays paused if it comes back."""
        with self._engine.begin() as connection:
            connection.execute(INGESTION.delete().where(INGESTION.c.table_name == table))
