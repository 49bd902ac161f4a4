"""The catalog: the record of runs.

SQLite in WAL mode by default, another database by its SQLAlchemy URL. It decides nothing about data: lose it, and the
Delta tables still hold every row, offset, boundary and lineage entry, and the definitions lie beside them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

_LOG = logging.getLogger(__name__)
_METADATA = sa.MetaData()
_RUNS = sa.Table(
    "runs",
    _METADATA,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("table_name", sa.String, nullable=False, index=True),
    sa.Column("type", sa.String, nullable=False),
    sa.Column("state", sa.String, nullable=False),
    sa.Column("created_at", sa.String, nullable=False),
    sa.Column("finished_at", sa.String),
    sa.Column("result", sa.String),
    sa.Column("pid", sa.Integer),
)


@dataclass(frozen=True)
class RunRecord:
    """One run of a task or job. `state` is RUNNING, DONE, NOTHING, FAILED or INTERRUPTED (its process is gone)."""

    id: str
    table_name: str
    type: str
    state: str
    created_at: str
    finished_at: str | None
    result: str | None


class Catalog:
    """The catalog at a SQLAlchemy URL, its tables made on first use."""

    def __init__(self, url: str) -> None:
        self._engine = sa.create_engine(url)
        if self._engine.dialect.name == "sqlite":
            sa.event.listen(self._engine, "connect", _tune_sqlite)
        _METADATA.create_all(self._engine)

    @classmethod
    def in_home(cls, home: Path) -> Catalog:
        """The default catalog of a home: `<home>/catalog.db`."""
        home.mkdir(parents=True, exist_ok=True)
        return cls(f"sqlite:///{home / 'catalog.db'}")

    def close(self) -> None:
        """Gives up the connections."""
        self._engine.dispose()

    @contextmanager
    def recorded(self, run_id: str, table: str, kind: str) -> Iterator[RunOutcome]:
        """Records a run around a piece of work: RUNNING while it goes on, then how it ended, with its sentence."""
        self._insert_run(run_id, table, kind)
        outcome = RunOutcome()
        try:
            yield outcome
        except BaseException as error:
            interrupted = not isinstance(error, Exception)
            self._finish(run_id, "INTERRUPTED" if interrupted else "FAILED", str(error) or type(error).__name__)
            raise
        self._finish(run_id, outcome.state, outcome.sentence)

    def runs(self, table: str | None = None, limit: int = 100) -> list[RunRecord]:
        """The newest runs, newest first. A run whose process is gone without a word is INTERRUPTED."""
        wanted = sa.select(_RUNS).order_by(_RUNS.c.created_at.desc(), _RUNS.c.id).limit(limit)
        if table is not None:
            wanted = wanted.where(_RUNS.c.table_name == table)
        with self._engine.connect() as connection:
            return [_run_record(dict(row._mapping)) for row in connection.execute(wanted)]

    def _insert_run(self, run_id: str, table: str, kind: str) -> None:
        values = {"id": run_id, "table_name": table, "type": kind, "state": "RUNNING", "created_at": _now()}
        with self._engine.begin() as connection:
            connection.execute(_RUNS.insert().values(**values, pid=os.getpid()))

    def _finish(self, run_id: str, state: str, sentence: str) -> None:
        _LOG.info("%s %s: %s", run_id, state, sentence)
        values = {"state": state, "result": sentence, "finished_at": _now()}
        with self._engine.begin() as connection:
            connection.execute(_RUNS.update().where(_RUNS.c.id == run_id).values(**values))


@dataclass
class RunOutcome:
    """What a run reports at its end: DONE or NOTHING, and the sentence."""

    state: str = "DONE"
    sentence: str = ""

    def ended(self, sentence: str, *, did_something: bool) -> None:
        """Sets the sentence, and the state by whether something was done."""
        self.sentence = sentence
        self.state = "DONE" if did_something else "NOTHING"


def _tune_sqlite(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA busy_timeout=10000")
    cursor.close()


def _run_record(row: dict[str, Any]) -> RunRecord:
    pid = row.pop("pid")
    if row["state"] == "RUNNING" and not _is_alive(pid):
        row["state"] = "INTERRUPTED"
        row["result"] = "Its process ended before it could tell; what it committed is in the segments, run it again."
    return RunRecord(**row)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
