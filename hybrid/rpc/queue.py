"""The server's queue of heavy work: any process enqueues a verb, the pipeline process runs it.

What happens when a process dies:
  before the run is in the catalog        nothing was promised; the caller gets an error and asks again
  while the run is queued                 it waits for the pipeline's successor
  while it runs                           the successor resumes it. A commit carries the run's id: if the half's log
                                          has it, the work is not repeated. Otherwise the verb runs again, which is
                                          safe because every operation plans on the present state
  after the commit, before its outcome    as above: the commit is found and reported as done
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.api.hybrid import Hybrid
from hybrid.catalog.catalog import CATALOG_ERRORS
from hybrid.catalog.run_record import RunOutcome, RunRecord, RunRequest, failed_state
from hybrid.catalog.runs import ARGUMENT_BYTES_MAX, QUEUED_MAX, Runs
from hybrid.clock import wall_clock_ms
from hybrid.config.input_rules import InputRules
from hybrid.config.table_config import Half
from hybrid.config.table_documents import TableDocuments
from hybrid.config.upsert_json import MOVE_TASK
from hybrid.errors import BusyError, ConflictError, HybridError, StoreError, UsageError, error_document
from hybrid.home.home import ServerTask, is_act_of
from hybrid.home.input_access import rules_of
from hybrid.jvm.spark_errors import unexpected_words
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import own_states
from hybrid.logs import log_context
from hybrid.operations.backups.backup_catalog import ALL_TABLES
from hybrid.operations.backups.backup_create import check_directory
from hybrid.operations.schedules import SCHEDULE
from hybrid.operations.tables.schemas import users_of
from hybrid.operations.tasks import TASK_TYPES
from hybrid.rpc.flat_arguments import from_flat
from hybrid.rpc.job_request import JobRequest
from hybrid.rpc.verbs import JOB, VERBS, Verb
from hybrid.table.state import RESET, Act

_LOG = logging.getLogger(__name__)
_TELL_S, _QUIET_S = 0.5, 10.0
_STORE_S = 2.0  # between looks at a store that does not answer


class PipelineLost(Exception):
    """The JVM of this process is gone: the process's successor resumes the run."""


def enqueue(
    home: Hybrid, verb: str, arguments: Mapping[str, Any], source: str, queued_max: int = QUEUED_MAX
) -> RunRecord | None:
    """Enqueues a heavy verb; None when the table has an incomplete run of a type that runs alone.

    NotFoundError or SpecError for arguments that name nothing, RightError for an input that `source` may not read.
    Nothing is queued then.
    """
    heavy_verb = VERBS[verb]
    run_type = heavy_verb.type_of(arguments)
    assert run_type is not None, f"{verb} is not queued"
    table = _table_of(home, verb, arguments, rules_of(home.settings, source))
    prefix = f"Task_{run_type}" if run_type in TASK_TYPES else run_type
    number, version = wall_clock_ms(), _version_at_queueing(home, table, run_type)
    alone = heavy_verb.only_one and not arguments.get("dry_run")
    _refuse_flood(home, arguments, source, queued_max)
    while True:
        run_id = f"{prefix}_{number}"
        queued = home.context.catalog.runs.enqueue(
            RunRequest(run_id, table, run_type, verb, arguments, source, only_one=alone, queued_version=version)
        )
        if queued is not None or home.context.catalog.runs.find(run_id) is None:
            return queued
        number += 1  # another run of this millisecond has the id


def _refuse_flood(home: Hybrid, arguments: Mapping[str, Any], source: str, queued_max: int) -> None:
    """UsageError for arguments that are too long, BusyError when too many runs of one source are queued."""
    size = len(json.dumps(dict(arguments)))
    if size > ARGUMENT_BYTES_MAX:
        raise UsageError(f"The arguments of this work have {size} bytes; at most {ARGUMENT_BYTES_MAX} are queued.")
    if source != SCHEDULE and home.context.catalog.runs.queued_by(source) >= queued_max:
        raise BusyError(f"{queued_max} runs of '{source}' wait already. Nothing was queued.", hint="Ask again later.")


def carry_out(home: Hybrid, run: RunRecord, is_alive: Any, verbs: Mapping[str, Verb] = VERBS) -> None:
    """Runs a claimed run and records its outcome. PipelineLost when the JVM (`is_alive()`) is gone."""
    runs, outcome = home.context.catalog.runs, RunOutcome()
    assert run.verb is not None
    with log_context(run_id=run.id, table=run.table_name):
        try:
            rules = rules_of(home.settings, run.source)
            task = ServerTask(run.id, outcome, rules, run.source == SCHEDULE)
            twin = Hybrid.of(home.context.for_task(task, RunProgress(runs, run.id)))
            done = _once_it_answers(lambda: _committed_before(twin, run), is_alive) if run.attempts > 1 else None
            if run.type == MOVE_TASK and done is None:
                _commit_first(twin, run.table_name)
            report = _found(done) if done else verbs[run.verb].call(twin, **run.arguments)
        except Exception as error:  # whatever a verb raises is its run's outcome; the process goes on
            if not is_alive():
                raise PipelineLost from error
            if not isinstance(error, HybridError):
                _LOG.exception("Unexpected error in run %s", run.id)
                error = HybridError(unexpected_words(error), hint="hybrid logs")
            state = failed_state(error, run.type, is_scheduled=run.source == SCHEDULE)
            runs.finish(run.id, state, error.words, error=error_document(error))
            return
        runs.finish(run.id, outcome.state, outcome.sentence or _sentence(report), report)


@dataclass(frozen=True)
class Committed:
    """The act that a run had committed before its process died."""

    version: int
    act: Act
    half: str


def _committed_before(home: Hybrid, run: RunRecord) -> Committed | None:
    half = _half_of(run)
    if run.table_name not in home.table_names() or half not in home.spec(run.table_name).halves:
        return None
    # A JVM may outlive its killed process and still commit. The lock is granted only after its end.
    try:
        with home.context.bench.lock(home.context.layout(run.table_name), half):
            return committed(home, run)
    except ConflictError:
        done = committed(
            home, run
        )  # another home writes the warehouse now: its fence is behind what was committed here
        if done is None:
            raise
        return done


def _once_it_answers(look: Callable[[], Committed | None], is_alive: Callable[[], bool]) -> Committed | None:
    """What a look finds, once the store of the warehouse answers: until then it is not known what the run has done."""
    while True:
        try:
            return look()
        except StoreError as error:
            if not is_alive() or error.fault != "unreachable":
                raise
            time.sleep(_STORE_S)


def _half_of(run: RunRecord) -> Half:
    """The half whose log may hold a run's act; only acts that must not be repeated matter."""
    return Half.REALTIME if run.type == RESET else Half.OFFLINE


def committed(home: Hybrid, run: RunRecord) -> Committed | None:
    """The act with the run's id, in the half that its kind commits to; None when the run has not committed."""
    path = home.context.layout(run.table_name).half(_half_of(run))
    for version, state in own_states(path, open_half(path).version):
        if run.queued_version is not None and version <= run.queued_version:
            return None
        if is_act_of(state.act.id, run.id):
            return Committed(version, state.act, path.name)
    return None


def _version_at_queueing(home: Hybrid, table: str, run_type: str) -> int | None:
    """The version of the half that a run of this type commits to; its commit must be newer. None: no such half."""
    half = Half.REALTIME if run_type == RESET else Half.OFFLINE
    if table not in home.table_names() or half not in home.spec(table).halves:
        return None
    try:
        return open_half(home.context.layout(table).half(half)).version
    except HybridError:  # a half that cannot be opened now: its whole log is searched later
        return None


def _commit_first(home: Hybrid, table: str) -> None:
    """Commits what Kafka holds, so that a move requested right after rows were sent finds them."""
    if table in home.context.catalog.serving.pauses():
        return
    try:
        home.table(table).ingest_batch()
    except HybridError as error:  # ingestion reports it too; committed rows can still move
        _LOG.warning("Moving without what Kafka may hold: %s", error)


def _found(done: Committed) -> dict[str, Any]:
    what = str(done.act.detail.get("result") or f"The {done.act.kind} was committed.")
    sentence = f"{what} (Version {done.version} of {done.half}; the server's process died before it could report.)"
    return {"sentence": sentence, "act": done.act.id, "version": done.version, "warnings": [], "dry_run": False}


def _sentence(report: Any) -> str:
    return str(report.get("sentence", "")) if isinstance(report, dict) else ""


def _table_of(home: Hybrid, verb: str, arguments: Mapping[str, Any], rules: InputRules) -> str:
    """The table of a run. RightError when its input may not be read."""
    if "directory" in arguments:
        check_directory(home.context, Path(arguments["directory"]), rules)
        for name in arguments.get("tables") or ():
            home.spec(name)
        return ALL_TABLES
    if VERBS[verb].run_type == JOB:
        job = from_flat(JobRequest, arguments).parse(home.context.now_ms())
        if arguments.get("sql") is None:
            job.check_rules(rules)
        return home.spec(job.table_name).name
    if arguments.get("input") is not None:
        rules.check(Path(arguments["input"]))
    if "documents" in arguments:
        return home.validate(TableDocuments.from_json(arguments["documents"])).name
    if "schema" in arguments:
        return users_of(home.context, str(arguments["schema"]["schemaName"]))[0].name
    if "erasure" in arguments:
        return home.erasures.show(arguments["erasure"]).tables[0].table
    if "backfill" in arguments:
        return home.backfills.show(arguments["backfill"]).table
    return home.spec(arguments["table"]).name


class RunProgress:
    """Records the progress of a run in the catalog, at a rate that people can read."""

    def __init__(self, runs: Runs, run_id: str) -> None:
        self._runs, self._run_id = runs, run_id
        self._told_at = self._quiet_until = 0.0

    def say(self, message: str) -> None:
        """Records a milestone, always."""
        _LOG.info("%s", message)
        self._tell(message)

    def step(self, label: str, done: int, total: int | None) -> None:
        """Records how much of a stage is done, at a limited rate, and always its end."""
        if done == total or time.monotonic() - self._told_at >= _TELL_S:
            self._tell(f"{label}: {done}" if total is None else f"{label}: {done} of {total}")

    def _tell(self, progress: str) -> None:
        """Records a message. Without a catalog the work goes on, and it is asked again after a while only."""
        if time.monotonic() < self._quiet_until:
            return
        try:
            self._runs.tell(self._run_id, progress)
        except CATALOG_ERRORS as error:
            _LOG.warning("The progress of run %s cannot be recorded: %s", self._run_id, error)
            self._quiet_until = time.monotonic() + _QUIET_S
        self._told_at = time.monotonic()
