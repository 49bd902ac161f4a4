"""What the server's processes tell each other: who is there, how ingestion stands, which tables are paused."""

from __future__ import annotations

import os
from dataclasses import dataclass

import sqlalchemy as sa

from hybrid.catalog.schema import INGESTION, PAUSES, ROLES, put
from hybrid.clock import wall_clock_ms


@dataclass(frozen=True)
class Role:
    """A process of the server: `state` is `starting`, `ready` or a sentence; `beat_ms` its last sign of life."""

    role: str
    pid: int
    state: str
    beat_ms: int

    @property
    def age_s(self) -> float:
        """Seconds since the last sign of life."""
        return max(0.0, wall_clock_ms() - self.beat_ms) / 1000


@dataclass(frozen=True)
class Ingestion:
    """How a table's ingestion stands: INGESTING, WAITING (no topic), PAUSED or STOPPED, with the reason in `detail`.

    `behind` counts offsets beyond the last commit when it was last looked at (`at_ms`).
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
        """A sign of life of this process."""
        put(self._engine, ROLES, {"role": role}, {"pid": os.getpid(), "state": state, "beat_ms": wall_clock_ms()})

    def role(self, name: str) -> Role | None:
        """The process of that role, as it last said."""
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(ROLES).where(ROLES.c.role == name)).first()
        return Role(**row._mapping) if row is not None else None

    def note_ingestion(self, table: str, state: str, detail: str | None, behind: int | None) -> None:
        """How a table's ingestion stands now."""
        values = {"state": state, "detail": detail, "behind": behind, "at_ms": wall_clock_ms()}
        put(self._engine, INGESTION, {"table_name": table}, values)

    def ingestions(self) -> dict[str, Ingestion]:
        """How the tables' ingestion stands, by table."""
        with self._engine.connect() as connection:
            return {row.table_name: Ingestion(**row._mapping) for row in connection.execute(sa.select(INGESTION))}

    def pause(self, table: str, comment: str | None = None) -> None:
        """Pauses a table's ingestion until it is resumed."""
        put(self._engine, PAUSES, {"table_name": table}, {"at_ms": wall_clock_ms(), "comment": comment})

    def resume(self, table: str) -> bool:
        """Takes a pause back; whether there was one."""
        with self._engine.begin() as connection:
            return bool(connection.execute(PAUSES.delete().where(PAUSES.c.table_name == table)).rowcount)

    def pauses(self) -> dict[str, Pause]:
        """The paused tables."""
        with self._engine.connect() as connection:
            return {row.table_name: Pause(**row._mapping) for row in connection.execute(sa.select(PAUSES))}

    def forget(self, table: str) -> None:
        """Forgets a table that is gone."""
        with self._engine.begin() as connection:
            for known in (INGESTION, PAUSES):
                connection.execute(known.delete().where(known.c.table_name == table))
