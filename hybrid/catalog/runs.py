"""The runs of a home in its catalog: queued, claimed, ended, listed. Their states: `hybrid.catalog.run_record`."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa

from hybrid.catalog.run_record import (
    DRY_RUN,
    INCOMPLETE,
    REJECTED,
    RunOutcome,
    RunRecord,
    RunRequest,
    failed_state,
    public_arguments,
)
from hybrid.catalog.schema import RUN_COUNTS, RUNS, put_row
from hybrid.clock import wall_clock_ms
from hybrid.errors import HybridError, MachineError, error_document
from hybrid.jvm.spark_errors import short_words
from hybrid.runtime.json_values import epoch_ms, stamp, without_samples

_LOG = logging.getLogger(__name__)
# A run that kills its process three times would do so forever, and stop ingestion of every table.
ATTEMPTS_MAX = 3
_STARTS_AGAIN = "The server's process ended during this run. It starts again."
_REMOVED_MAX, _IDS_MAX = 10_000, 500  # per call, and per statement

# The queued runs, without their arguments, which may be long. A pipeline asks for them many times a second: building
# the statement would take longer than its answer.
_CLAIM_COLUMNS = ("id", "table_name", "type", "state", "created_at", "started_at", "verb", "source", "attempts")
_WAITING = (
    sa.select(*(RUNS.c[name] for name in _CLAIM_COLUMNS))
    .where(RUNS.c.state == "QUEUED")
    .order_by(RUNS.c.created_at, RUNS.c.id)
)
# Limits of the queue: incomplete runs, and bytes of a run's arguments. The schedule's own runs are exempt.
QUEUED_MAX, ARGUMENT_BYTES_MAX = 200, 4 * 1024 * 1024
KEPT_DAYS, KEPT_PER_TABLE = 30, 1000


class Queue(NamedTuple):
    """The runs that wait: how many, and since when the oldest (epoch ms; None without any)."""

    length: int
    oldest_ms: int | None


class Runs:
    """The runs of a home."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @contextmanager
    def recorded(
        self, run_id: str, table: str, kind: str, arguments: Mapping[str, Any] | None = None
    ) -> Iterator[RunOutcome]:
        """Record work of this process: RUNNING at first, then its final state and sentence."""
        values = {"id": run_id, "table_name": table, "type": kind, "state": "RUNNING", "source": "cli"}
        values["arguments"] = json.dumps(dict(arguments or {}))
        with self._engine.begin() as connection:
            connection.execute(RUNS.insert().values(**values, created_at=_now(), started_at=_now(), pid=os.getpid()))
        outcome = RunOutcome()
        try:
            yield outcome
        except BaseException as error:
            state = failed_state(error, kind) if isinstance(error, Exception) else "INTERRUPTED"
            document = error_document(error) if isinstance(error, HybridError) else None  # with its hint
            self.finish(run_id, state, short_words(error), error=document)
            raise
        self.finish(run_id, outcome.state, outcome.sentence)

    def enqueue(self, request: RunRequest) -> RunRecord | None:
        """Queue a run. None when `only_one` is set and an incomplete run of its type exists."""
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
            "queued_version": request.queued_version,
            "dry_run": request.is_dry,
            "only_one": f"{request.table_name}/{request.type}" if request.only_one else None,
        }
        try:
            with self._engine.begin() as connection:
                connection.execute(RUNS.insert().values(**values))
        except sa.exc.IntegrityError:
            return None
        return self.find(request.id)

    def claim(self, wanted: Callable[[RunRecord], bool] = lambda run: True) -> RunRecord | None:
        """Claim the wanted run that has waited longest, and set it to RUNNING. None when no such run is queued.

        `wanted` sees no arguments.
        """
        with self._engine.connect() as connection:
            rows = [_waiting(dict(row._mapping)) for row in connection.execute(_WAITING)]
        run_to_claim = next((run for run in rows if wanted(run)), None)
        if run_to_claim is None:
            return None
        taking = RUNS.update().where(RUNS.c.id == run_to_claim.id, RUNS.c.state == "QUEUED")
        values = {"state": "RUNNING", "started_at": _now(), "pid": os.getpid(), "attempts": run_to_claim.attempts + 1}
        with self._engine.begin() as connection:
            taken = connection.execute(taking.values(**values))
        return self.find(run_to_claim.id) if taken.rowcount else None

    def take_up_fallen(self, only: Sequence[str] | None = None) -> Sequence[RunRecord]:
        """Queue runs again that a crashed server left RUNNING. Its successor calls this.

        Runs that crashed too often become FAILED. `only`: just these runs, whose end could not be recorded.
        """
        running = self.list(states=["RUNNING"], limit=1000)
        fallen = [run for run in running if run.verb is not None and (only is None or run.id in only)]
        return [run for run in fallen if self._take_up(run)]

    def _take_up(self, run: RunRecord) -> bool:
        """Queue a run again, or end one that crashed too often. False when it has ended meanwhile."""
        if run.attempts >= ATTEMPTS_MAX:
            sentence = f"The server's process died {run.attempts} times while it ran this. It is not tried again."
            error = MachineError(sentence, hint="hybrid logs; a smaller input, or more memory (spark.driver_memory)")
            return self.finish(run.id, "FAILED", sentence, error=error_document(error))
        again = RUNS.update().where(RUNS.c.id == run.id, RUNS.c.state == "RUNNING")
        with self._engine.begin() as connection:
            return bool(connection.execute(again.values(state="QUEUED", progress=_STARTS_AGAIN)).rowcount)

    def tell(self, run_id: str, progress: str) -> None:
        """Record a running run's message."""
        told = RUNS.update().where(RUNS.c.id == run_id, RUNS.c.state == "RUNNING")
        with self._engine.begin() as connection:
            connection.execute(told.values(progress=progress))

    def finish(
        self, run_id: str, state: str, sentence: str, report: Any = None, error: Mapping[str, Any] | None = None
    ) -> bool:
        """Record the end of a run. A dry run ends as DRY_RUN, unless the request was wrong.

        False for a run that has ended before, or that does not exist: the first end holds.
        """
        values = {
            "state": state,
            "result": sentence,
            "finished_at": _now(),
            "only_one": None,
            "report": None if report is None else json.dumps(report),
            "error": None if error is None else json.dumps(dict(error)),
        }
        columns = RUNS.c.table_name, RUNS.c.type, RUNS.c.state, RUNS.c.arguments, RUNS.c.dry_run
        with self._engine.begin() as connection:
            # The update first: it takes SQLite's lock for writing, which a read cannot raise to.
            ended = connection.execute(
                RUNS.update().where(RUNS.c.id == run_id, RUNS.c.state.in_(INCOMPLETE)).values(state=state)
            )
            if not ended.rowcount:
                return False
            run = connection.execute(sa.select(*columns).where(RUNS.c.id == run_id)).one()
            if run.dry_run and state != REJECTED:
                values["state"] = DRY_RUN
            values["arguments"] = json.dumps(public_arguments(json.loads(run.arguments or "{}")))
            connection.execute(RUNS.update().where(RUNS.c.id == run_id).values(**values))
            if values["state"] not in (DRY_RUN, REJECTED):
                _count_end(connection, run.table_name, run.type, state)
        _LOG.info("%s %s: %s", run_id, state, sentence)
        return True

    def queued_by(self, source: str) -> int:
        """The number of queued runs of a source."""
        waiting = sa.select(sa.func.count()).where(RUNS.c.state == "QUEUED", RUNS.c.source == source)
        with self._engine.connect() as connection:
            return int(connection.execute(waiting).scalar_one())

    def remove_old(self, now_ms: int, days: int = KEPT_DAYS, per_table: int = KEPT_PER_TABLE) -> int:
        """Delete ended runs older than `days`, and more than `per_table` of each table and type. Returns their number.

        The newest of each type stays, because schedules depend on it.
        """
        before = stamp(now_ms - days * 86_400_000)
        is_of_table = sa.and_(RUNS.c.dry_run.is_not(True), RUNS.c.state != REJECTED)
        place = sa.func.row_number().over(
            partition_by=(RUNS.c.table_name, RUNS.c.type, is_of_table), order_by=(RUNS.c.created_at.desc(), RUNS.c.id)
        )
        ended = sa.select(RUNS.c.id, RUNS.c.created_at, RUNS.c.state, place.label("place")).subquery()
        gone = sa.select(ended.c.id).where(
            ended.c.state.not_in(INCOMPLETE),
            ended.c.place > 1,
            sa.or_(ended.c.created_at < before, ended.c.place > per_table),
        )
        with self._engine.begin() as connection:
            ids = [row[0] for row in connection.execute(gone.limit(_REMOVED_MAX))]
            for start in range(0, len(ids), _IDS_MAX):
                connection.execute(RUNS.delete().where(RUNS.c.id.in_(ids[start : start + _IDS_MAX])))
        return len(ids)

    def forget_samples(self, table: str) -> int:
        """Remove sample rows from the reports of a table's runs. Returns how many reports had some."""
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
        dry_runs: bool = True,
    ) -> list[RunRecord]:
        """The newest runs, newest first. A run whose process has ended without recording its end is INTERRUPTED.

        Rejected requests are no runs, and without `dry_runs` dry runs are left out too.
        """
        statement = sa.select(RUNS).order_by(RUNS.c.created_at.desc(), RUNS.c.id).limit(limit)
        for column, value in ((RUNS.c.table_name, table), (RUNS.c.type, kind)):
            if value is not None:
                statement = statement.where(column == value)
        statement = statement.where(RUNS.c.state != REJECTED if states is None else RUNS.c.state.in_(states))
        if not dry_runs:
            statement = statement.where(RUNS.c.dry_run.is_not(True))
        with self._engine.connect() as connection:
            return [_record(dict(row._mapping)) for row in connection.execute(statement)]

    def ended_counts(self) -> dict[tuple[str, str, str], int]:
        """The number of runs that have ever ended, by (table, type, state)."""
        with self._engine.connect() as connection:
            return {(row[0], row[1], row[2]): row[3] for row in connection.execute(sa.select(RUN_COUNTS))}

    def queue(self) -> Queue:
        """The runs that wait."""
        found = sa.select(sa.func.count(), sa.func.min(RUNS.c.created_at)).where(RUNS.c.state == "QUEUED")
        with self._engine.connect() as connection:
            length, oldest = connection.execute(found).one()
        return Queue(length, None if oldest is None else epoch_ms(oldest))

    def counts(self) -> dict[tuple[str, str, str], int]:
        """The number of runs by (table, type, state)."""
        by = (RUNS.c.table_name, RUNS.c.type, RUNS.c.state)
        with self._engine.connect() as connection:
            runs = sa.select(*by, sa.func.count()).where(RUNS.c.state != REJECTED).group_by(*by)
            rows = connection.execute(runs)
            return {(row[0], row[1], row[2]): row[3] for row in rows}


def _count_end(connection: sa.Connection, table: str, kind: str, state: str) -> None:
    key = {"table_name": table, "type": kind, "state": state}
    put_row(connection, RUN_COUNTS, key, {"number": 1}, changed={"number": RUN_COUNTS.c.number + 1})


def _record(row: dict[str, Any]) -> RunRecord:
    pid = row.pop("pid")
    del row["only_one"]
    if row["state"] == "RUNNING" and row["verb"] is None and not _is_alive(pid):
        row["state"] = "INTERRUPTED"
        row["result"] = "Its process ended before it could tell; what it committed is in the segments, run it again."
    for name, nothing in (("arguments", {}), ("report", None), ("error", None)):
        row[name] = nothing if row[name] is None else json.loads(row[name])
    row["attempts"], row["dry_run"] = row["attempts"] or 0, bool(row["dry_run"])
    return RunRecord(**row)


def _waiting(row: dict[str, Any]) -> RunRecord:
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
    return stamp(wall_clock_ms())
