"""Runs of tasks and jobs: those that wait for a server, those that go on, and those that are done.

QUEUED -> RUNNING -> DONE | NOTHING (there was nothing to do) | FAILED
|-> QUEUED again, when the server's process fell: its successor takes the run up
`-> INTERRUPTED, when a process of the command line fell
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from hybrid.catalog.schema import RUNS
from hybrid.plain import without_samples

_LOG = logging.getLogger(__name__)
_INCOMPLETE = ("QUEUED", "RUNNING")
ATTEMPTS_MAX = 20
# What is kept of a run's arguments once it has ended: documents, specs, statements and conditions may hold secrets.
_KEPT_ARGUMENTS = frozenset({"table", "type", "name", "flow", "kind", "entry", "backfill", "max_buckets", "dry_run"})


@dataclass(frozen=True)
class RunRequest:
    """What a server is to do: `verb` of the API with `arguments` (JSON values).

    `only_one`: the table has at most one incomplete run of this type. `source` says who asked: cli, http, schedule.
    """

    id: str
    table_name: str
    type: str
    verb: str
    arguments: Mapping[str, Any] = field(repr=False)
    source: str
    only_one: bool = False


@dataclass(frozen=True)
class RunRecord:
    """One run. `result` is its sentence, `progress` the last thing it said, `report` what its verb returned.

    `error` is `{"error", "kind", "hint"}` of a failed run. `verb` is None for a run of a command's own process.
    """

    id: str
    table_name: str
    type: str
    state: str
    created_at: str
    started_at: str | None = None
    finished_at: str | None = None
    result: str | None = None
    verb: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    source: str | None = None
    attempts: int = 1
    progress: str | None = None
    report: Any = None
    error: Mapping[str, Any] | None = None

    @property
    def incomplete(self) -> bool:
        """Whether it waits or goes on."""
        return self.state in _INCOMPLETE


@dataclass
class RunOutcome:
    """What a run reports at its end: DONE or NOTHING, and the sentence."""

    state: str = "DONE"
    sentence: str = ""

    def ended(self, sentence: str, *, did_something: bool) -> None:
        """Sets the sentence, and the state by whether something was done."""
        self.sentence = sentence
        self.state = "DONE" if did_something else "NOTHING"


class Runs:
    """The runs of a home."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @contextmanager
    def recorded(
        self, run_id: str, table: str, kind: str, arguments: Mapping[str, Any] | None = None
    ) -> Iterator[RunOutcome]:
        """Records work of this process: RUNNING while it goes on, then how it ended, with its sentence."""
        values = {"id": run_id, "table_name": table, "type": kind, "state": "RUNNING", "source": "cli"}
        values["arguments"] = json.dumps(dict(arguments or {}))
        with self._engine.begin() as connection:
            connection.execute(RUNS.insert().values(**values, created_at=_now(), started_at=_now(), pid=os.getpid()))
        outcome = RunOutcome()
        try:
            yield outcome
        except BaseException as error:
            interrupted = not isinstance(error, Exception)
            self.finish(run_id, "INTERRUPTED" if interrupted else "FAILED", str(error) or type(error).__name__)
            raise
        self.finish(run_id, outcome.state, outcome.sentence)

    def enqueue(self, request: RunRequest) -> RunRecord | None:
        """Puts a run into the queue. None when `only_one` is asked for and an incomplete run of its kind is there."""
        values = {
            "id": request.id,
            "table_name": request.table_name,
            "type": request.type,
            "state": "QUEUED",
            "created_at": _now(),
            "verb": request.verb,
            "arguments": json.dumps(dict(request.arguments)),
            "source": request.source,
            "attempts": 0,
            "only_one": f"{request.table_name}/{request.type}" if request.only_one else None,
        }
        try:
            with self._engine.begin() as connection:
                connection.execute(RUNS.insert().values(**values))
        except sa.exc.IntegrityError:
            return None
        return self.find(request.id)

    def claim(self, wanted: Callable[[RunRecord], bool] = lambda run: True) -> RunRecord | None:
        """Takes the wanted run that has waited longest; it is RUNNING then. None when no such run waits."""
        waiting = sa.select(RUNS).where(RUNS.c.state == "QUEUED").order_by(RUNS.c.created_at, RUNS.c.id)
        with self._engine.connect() as connection:
            rows = [_record(dict(row._mapping)) for row in connection.execute(waiting)]
        found = next(filter(wanted, rows), None)
        if found is None:
            return None
        taking = RUNS.update().where(RUNS.c.id == found.id, RUNS.c.state == "QUEUED")
        values = {"state": "RUNNING", "started_at": _now(), "pid": os.getpid(), "attempts": found.attempts + 1}
        with self._engine.begin() as connection:
            taken = connection.execute(taking.values(**values))
        return self.find(found.id) if taken.rowcount else None

    def take_up_fallen(self) -> Sequence[RunRecord]:
        """Queues again what a fallen server left RUNNING; one that fell too often is FAILED. Its successor calls it."""
        left = self.list(states=["RUNNING"], limit=1000)
        fallen = [run for run in left if run.verb is not None]
        for run in fallen:
            if run.attempts >= ATTEMPTS_MAX:
                self.finish(run.id, "FAILED", f"The server's process fell {run.attempts} times while it ran this.")
                continue
            again = RUNS.update().where(RUNS.c.id == run.id).values(state="QUEUED", progress="Taken up again.")
            with self._engine.begin() as connection:
                connection.execute(again)
        return fallen

    def tell(self, run_id: str, progress: str) -> None:
        """Notes what a run says while it goes on."""
        with self._engine.begin() as connection:
            connection.execute(RUNS.update().where(RUNS.c.id == run_id).values(progress=progress))

    def finish(
        self, run_id: str, state: str, sentence: str, report: Any = None, error: Mapping[str, Any] | None = None
    ) -> None:
        """Notes how a run ended."""
        _LOG.info("%s %s: %s", run_id, state, sentence)
        values = {
            "state": state,
            "result": sentence,
            "finished_at": _now(),
            "only_one": None,
            "report": None if report is None else json.dumps(report),
            "error": None if error is None else json.dumps(dict(error)),
        }
        with self._engine.begin() as connection:
            connection.execute(RUNS.update().where(RUNS.c.id == run_id).values(**values))
            text = connection.execute(sa.select(RUNS.c.arguments).where(RUNS.c.id == run_id)).scalar()
            kept = json.dumps(public_arguments(json.loads(text or "{}")))
            connection.execute(RUNS.update().where(RUNS.c.id == run_id).values(arguments=kept))

    def forget_samples(self, table: str) -> int:
        """Takes the rows out that reports of a table's runs show as samples; how many reports had some."""
        reports = sa.select(RUNS.c.id, RUNS.c.report).where(RUNS.c.table_name == table, RUNS.c.report.is_not(None))
        count = 0
        with self._engine.begin() as connection:
            for run_id, report in connection.execute(reports).all():
                document = json.loads(report)
                bare = without_samples(document)
                if bare != document:
                    changed = RUNS.update().where(RUNS.c.id == run_id).values(report=json.dumps(bare))
                    connection.execute(changed)
                    count += 1
        return count

    def find(self, run_id: str) -> RunRecord | None:
        """The run of that id, or None."""
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(RUNS).where(RUNS.c.id == run_id)).first()
        return _record(dict(row._mapping)) if row is not None else None

    def list(
        self,
        table: str | None = None,
        limit: int = 100,
        *,
        kind: str | None = None,
        states: Sequence[str] | None = None,
    ) -> list[RunRecord]:
        """The newest runs, newest first. A run whose process is gone without a word is INTERRUPTED."""
        wanted = sa.select(RUNS).order_by(RUNS.c.created_at.desc(), RUNS.c.id).limit(limit)
        for column, value in ((RUNS.c.table_name, table), (RUNS.c.type, kind)):
            if value is not None:
                wanted = wanted.where(column == value)
        if states is not None:
            wanted = wanted.where(RUNS.c.state.in_(states))
        with self._engine.connect() as connection:
            return [_record(dict(row._mapping)) for row in connection.execute(wanted)]

    def counts(self) -> dict[tuple[str, str, str], int]:
        """How many runs there are by (table, type, state)."""
        by = (RUNS.c.table_name, RUNS.c.type, RUNS.c.state)
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(*by, sa.func.count()).group_by(*by))
            return {(row[0], row[1], row[2]): row[3] for row in rows}


def public_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What of a run's arguments may be shown to everybody, and is kept: names and numbers, nothing that was sent."""
    shown = {name: value for name, value in arguments.items() if name in _KEPT_ARGUMENTS}
    return {name: value for name, value in shown.items() if not isinstance(value, (dict, list))}


def _record(row: dict[str, Any]) -> RunRecord:
    pid = row.pop("pid")
    del row["only_one"]
    if row["state"] == "RUNNING" and row["verb"] is None and not _is_alive(pid):
        row["state"] = "INTERRUPTED"
        row["result"] = "Its process ended before it could tell; what it committed is in the segments, run it again."
    for name, nothing in (("arguments", {}), ("report", None), ("error", None)):
        row[name] = nothing if row[name] is None else json.loads(row[name])
    row["attempts"] = row["attempts"] or 0
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
