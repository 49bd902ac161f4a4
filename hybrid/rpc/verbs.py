"""The API's verbs by name, with plain JSON arguments and results: what crosses to a server and back.

The command line runs a verb in its own process or has a server run it; both go through here, so both do the same.
A verb whose `run_type` is set is heavy (Spark): a server queues it as a run, and its pipeline process carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hybrid.config.upsert_json import MOVE_TASK
from hybrid.home.accounts import Right, reads_only
from hybrid.operations.clock_guard import accept_clock
from hybrid.operations.erasure import ERASE, Erasure
from hybrid.operations.query_list import QueryFilter, list_queries
from hybrid.operations.run_views import visible_run
from hybrid.operations.tasks import TASK_TYPES, check_task
from hybrid.replace.job_options import JobOptions
from hybrid.rpc import json_views as views
from hybrid.rpc.backfill_verbs import (
    backfill,
    backfill_cancel,
    backfill_pause,
    backfill_plan,
    backfill_release,
    backfill_revert,
    backfill_run,
    backfills,
)
from hybrid.rpc.backup_verbs import backup_create, backup_delete, backup_list, backup_verify
from hybrid.rpc.connector_verbs import (
    connector_pause,
    connector_reset,
    connector_reset_plan,
    connector_start,
    connectors,
)
from hybrid.rpc.erasure_verbs import erase_begin, erase_discard, erase_run, erasure, erasures
from hybrid.rpc.flat_arguments import flat
from hybrid.rpc.job_request import JobRequest
from hybrid.rpc.table_verbs import (
    changes_table_columns,
    schema_put,
    table_add,
    table_apply,
    table_copies,
    table_create,
    table_drop,
    table_dropped,
    table_export,
    table_infer,
    table_list,
    table_show,
    table_undrop,
    table_validate,
)
from hybrid.rpc.task_reports import run_task
from hybrid.runtime.json_values import json_document, json_value
from hybrid.table.lineage import REPLACE, REVERT
from hybrid.table.state import RESET

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid

Json = Any
JsonParameters = dict[str, Any] | list[Any] | None
READ, OPERATE, ADMIN = Right.READ, Right.OPERATE, Right.ADMIN
INGEST, JOB, SEAL, BOUNDARY, BACKFILL = "ingest", "job", "seal", "boundary", "backfill"
REPLAY, PURGE, EVOLVE, BACKUP = "replay", "purge", "evolve", "backup"


@dataclass(frozen=True)
class Verb:
    """`call(home, **arguments)` gives a JSON value. `run_type` None: answered at once, without a JVM.

    `when` decides for a home and arguments whether a call needs a JVM, if only some calls do.
    """

    call: Callable[..., Json]
    right: Right
    run_type: str | None = None
    only_one: bool = False
    when: Callable[[Hybrid, Mapping[str, Any]], bool] | None = None

    def is_heavy(self, home: Hybrid, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments needs a JVM."""
        return self.run_type is not None and (self.when is None or self.when(home, arguments))

    def type_of(self, arguments: Mapping[str, Any]) -> str | None:
        """The type of a run with these arguments: `task_run` has the type of its task."""
        named = arguments.get("type")
        return named if self.call is task_run and named in TASK_TYPES else self.run_type


# Reads


def query(
    home: Hybrid, *, sql: str, as_of: str | None = None, all_rows: bool = False, params: JsonParameters = None
) -> Json:
    """The answer to a statement, now or as of a revision or time; `source` is `cache` or `files`.

    `all_rows`: without Pinot's default LIMIT. `params`: the values of its parameters, by name or in order.
    """
    from hybrid.operations.queries import record_answer
    from hybrid.query.engine import QueryOptions

    with home.context.query_log.recorded(sql, home.context.client) as record:
        result = home.query(sql, params, options=QueryOptions(whole=all_rows), as_of=as_of)
        record_answer(record, result)
    return views.query_view(result)


@flat(wanted=QueryFilter)
def queries(home: Hybrid, *, wanted: QueryFilter) -> Json:
    """Statements that run or have ended, newest first."""
    return [views.logged_query_view(found) for found in list_queries(home.context, wanted)]


def explain(home: Hybrid, *, sql: str, as_of: str | None = None, params: JsonParameters = None) -> Json:
    """How a statement would be answered; `lines` are the same for people."""
    return views.explanation_view(home.explain(sql, params, as_of=as_of))


def table_view(home: Hybrid, *, table: str, engine: str, as_of: str | None = None) -> Json:
    """A table at one revision as code for an engine."""
    return views.code_view(home.table(table).view(engine, as_of=as_of))


def status(home: Hybrid) -> Json:
    """Every table of the home at a glance, whether all are well, and the tables of other servers by name."""
    from hybrid.operations.disk_usage import disk_usage

    tables = home.status()
    return {
        "home": str(home.home),
        "healthy": all(t.healthy for t in tables),
        "tables": [*map(views.status_view, tables)],
        "remote": sorted(home.context.remote.names()),
        "disk": asdict(disk_usage(home.context)),
    }


def segments(home: Hybrid, *, table: str) -> Json:
    """The segments of a table."""
    return [views.segment_view(found) for found in home.table(table).segments()]


def segment(home: Hybrid, *, table: str, name: str) -> Json:
    """One segment, and the acts that wrote to it."""
    found = home.table(table)
    shown = views.segment_view(found.segment(name))
    return {**shown, "origins": [json_value(vars(origin)) for origin in found.origins(name)]}


def boundary(home: Hybrid, *, table: str) -> Json:
    """The boundary of a table, and what is in effect."""
    return views.boundary_view(home.table(table))


def replacements(home: Hybrid, *, table: str) -> Json:
    """Replacements in progress (in several requests), then replacements and reverts of a table, newest first."""
    found = home.table(table)
    waiting = [json_document(entry.to_json()) for entry in found.replacing.in_progress()]
    return waiting + [json_document(entry.to_json()) for entry in found.replacements()]


def replacement(home: Hybrid, *, table: str, entry: str) -> Json:
    """One replacement or revert."""
    found = home.table(table)
    shown = found.replacing.waiting(entry) or found.replacement(entry)
    return json_document(shown.to_json())


def rejected(home: Hybrid, *, table: str, limit: int = 1000, everything: bool = False) -> Json:
    """The rejected rows; `everything` adds the rows that were replayed since."""
    return json_value(home.table(table).rejected(limit, everything=everything))


def pause_status(home: Hybrid, *, table: str) -> Json:
    """Whether a table is paused."""
    return json_value(vars(home.table(table).pause_status()))


def runs(home: Hybrid, *, table: str | None = None, limit: int = 100) -> Json:
    """Runs, newest first."""
    return [views.run_view(run) for run in home.runs(table, limit)]


def run(home: Hybrid, *, run: str) -> Json:
    """One run."""
    return views.run_view(home.run(run))


def run_hints(home: Hybrid, *, table: str | None = None, limit: int = 100) -> Json:
    """What to do about failed runs, by their ids: the hint of each error that has one."""
    errors = {run.id: visible_run(run).error for run in home.runs(table, limit) if run.state == "FAILED"}
    return {run_id: error["hint"] for run_id, error in errors.items() if error and error.get("hint")}


def flows(home: Hybrid) -> Json:
    """Every flow that has run, by target and name."""
    return [views.flow_view(found) for found in home.flows()]


def schedules(home: Hybrid, *, table: str | None = None) -> Json:
    """When scheduled tasks run next, and why one waits."""
    return [views.schedule_view(found) for found in home.schedules(table)]


# Work


def pause(home: Hybrid, *, table: str, comment: str | None = None) -> Json:
    """Pauses a table's ingestion by a server."""
    return json_value(vars(home.table(table).pause(comment)))


def resume(home: Hybrid, *, table: str) -> Json:
    """Resumes a table's ingestion."""
    return json_value(vars(home.table(table).resume()))


def ingest(home: Hybrid, *, table: str) -> Json:
    """Ingests until caught up."""
    return json_value(vars(home.table(table).ingest()))


def move(home: Hybrid, *, table: str, max_buckets: int | None = 1, dry_run: bool = False) -> Json:
    """Moves closed buckets and late rows."""
    return views.move_view(home.table(table).move(max_buckets=max_buckets, dry_run=dry_run))


def rejected_replay(home: Hybrid, *, table: str, dry_run: bool = False) -> Json:
    """Replays the rejected rows that convert with the present settings."""
    return json_value(vars(home.table(table).replay_rejected(dry_run=dry_run)))


def task_run(home: Hybrid, *, table: str, type: str, dry_run: bool = False, yes: bool = False) -> Json:
    """Runs a task of a table as its schedule would; with `yes` even with a clock that is not trusted."""
    if yes and not dry_run:
        accept_clock(home.context)
    return run_task(home.table(table), type, dry_run=dry_run)


def seal(home: Hybrid, *, table: str, name: str | None = None) -> Json:
    """Commits what Kafka holds, and seals the consuming segments or one."""
    return json_value(vars(home.table(table).seal(name)))


def boundary_set(home: Hybrid, *, table: str, at: str | None = None, accepted: bool = False) -> Json:
    """Sets a boundary override: `at` as `hybrid.schema.moment` reads it (None: the latest possible)."""
    from hybrid.schema.moment import parse_moment

    found = home.table(table)
    field = found.spec.time_field
    time_ms = parse_moment(at, field, "--at", home.context.now_ms()) if at is not None and field else None
    return views.boundary_report_view(found.set_boundary(time_ms, accepted=accepted))


def boundary_clear(home: Hybrid, *, table: str) -> Json:
    """Clears a boundary override."""
    return views.boundary_report_view(home.table(table).clear_boundary())


@flat(erasure=Erasure)
def purge(home: Hybrid, *, table: str, erasure: Erasure) -> Json:
    """Removes deleted rows from every place that still has them; see `hybrid.api.table.Table.purge`."""
    return json_document(home.table(table).purge(erasure).to_json())


def purges(home: Hybrid, *, table: str) -> Json:
    """The records of a table's purges, newest first."""
    records = home.table(table).purges()
    if reads_only():  # whoever has a list of all customers could try each
        return [{name: value for name, value in record.items() if name != "condition_sha256"} for record in records]
    return records


@flat(request=JobRequest, options=JobOptions)
def job_run(home: Hybrid, *, request: JobRequest, options: JobOptions) -> Json:
    """Runs the job of a request; see `Hybrid.run_job`."""
    from hybrid.operations.job_input import run_given

    job = request.parse(home.context.now_ms())
    return json_document(run_given(home.context, job, request.given, options).to_json())


def revert(
    home: Hybrid, *, table: str, entry: str, dry_run: bool = False, reason: str | None = None, user: str | None = None
) -> Json:
    """Reverts a replacement."""
    report = home.table(table).revert(entry, dry_run=dry_run, reason=reason, user=user)
    return json_document(report.to_json())


def replacement_end(
    home: Hybrid, *, table: str, entry: str, segments_to: Sequence[str] = (), user: str | None = None
) -> Json:
    """Makes the segments pushed to a replacement visible; see `hybrid.operations.segment_replacement.Replacing.end`."""
    return json_document(home.table(table).replacing.end(entry, segments_to, user=user).to_json())


VERBS: Mapping[str, Verb] = {
    "table_create": Verb(table_create, ADMIN),
    "table_apply": Verb(table_apply, ADMIN, EVOLVE, when=changes_table_columns),
    "table_add": Verb(table_add, ADMIN, EVOLVE, when=changes_table_columns),
    "schema_put": Verb(schema_put, ADMIN, EVOLVE, when=changes_table_columns),
    "table_infer": Verb(table_infer, ADMIN),
    "table_validate": Verb(table_validate, READ),
    "table_list": Verb(table_list, READ),
    "table_dropped": Verb(table_dropped, READ),
    "table_show": Verb(table_show, READ),
    "table_export": Verb(table_export, READ),
    "table_view": Verb(table_view, READ),
    "table_drop": Verb(table_drop, ADMIN),
    "table_copies": Verb(table_copies, READ),
    "table_undrop": Verb(table_undrop, ADMIN),
    "query": Verb(query, READ),
    "queries": Verb(queries, READ),
    "explain": Verb(explain, READ),
    "status": Verb(status, READ),
    "segments": Verb(segments, READ),
    "segment": Verb(segment, READ),
    "boundary": Verb(boundary, READ),
    "replacements": Verb(replacements, READ),
    "replacement": Verb(replacement, READ),
    "rejected": Verb(rejected, READ),
    "connectors": Verb(connectors, READ),
    "connector_start": Verb(connector_start, OPERATE),
    "connector_pause": Verb(connector_pause, OPERATE),
    "connector_reset": Verb(connector_reset, ADMIN, RESET),
    "connector_reset_plan": Verb(connector_reset_plan, READ),
    "pause": Verb(pause, OPERATE),
    "resume": Verb(resume, OPERATE),
    "pause_status": Verb(pause_status, READ),
    "runs": Verb(runs, READ),
    "run": Verb(run, READ),
    "run_hints": Verb(run_hints, READ),
    "schedules": Verb(schedules, READ),
    "flows": Verb(flows, READ),
    "ingest": Verb(ingest, OPERATE, INGEST),
    "move": Verb(move, OPERATE, MOVE_TASK),
    "rejected_replay": Verb(rejected_replay, OPERATE, REPLAY),
    "task_run": Verb(
        task_run, OPERATE, MOVE_TASK, only_one=True, when=lambda home, given: check_task(home.context, given)
    ),
    "job_run": Verb(job_run, OPERATE, JOB),
    "revert": Verb(revert, OPERATE, REVERT),
    "replacement_end": Verb(replacement_end, OPERATE, REPLACE),
    "backfill_plan": Verb(backfill_plan, OPERATE, BACKFILL),
    "backfill_run": Verb(backfill_run, OPERATE, BACKFILL),
    "backfill_revert": Verb(backfill_revert, OPERATE, REVERT),
    "backfill_release": Verb(backfill_release, OPERATE, BACKFILL),
    "backfills": Verb(backfills, READ),
    "backfill": Verb(backfill, READ),
    "backfill_pause": Verb(backfill_pause, OPERATE),
    "backfill_cancel": Verb(backfill_cancel, OPERATE),
    "backup_create": Verb(backup_create, ADMIN, BACKUP),
    "backup_list": Verb(backup_list, ADMIN),
    "backup_verify": Verb(backup_verify, ADMIN, BACKUP),
    "backup_delete": Verb(backup_delete, ADMIN, BACKUP),
    "purge": Verb(purge, ADMIN, PURGE),
    "purges": Verb(purges, READ),
    "erase_begin": Verb(erase_begin, ADMIN),
    "erase_run": Verb(erase_run, ADMIN, ERASE),
    "erase_discard": Verb(erase_discard, ADMIN),
    "erasures": Verb(erasures, READ),
    "erasure": Verb(erasure, READ),
    "seal": Verb(seal, OPERATE, SEAL),
    "boundary_set": Verb(boundary_set, OPERATE, BOUNDARY),
    "boundary_clear": Verb(boundary_clear, OPERATE, BOUNDARY),
}
