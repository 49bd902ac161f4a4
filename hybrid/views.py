"""The plain JSON forms of what the API returns: what `--json` prints and what the server's own paths answer.

Keys are documented in docs/reference/ and do not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hybrid.errors import NotFoundError
from hybrid.plain import json_document, json_value, shown_stamps, utc
from hybrid.run_views import visible_error, visible_run
from hybrid.spec.table_config import Half
from hybrid.table.boundary import INFINITE

if TYPE_CHECKING:
    from hybrid.api import Creation
    from hybrid.backfill_status import BackfillStatus
    from hybrid.catalog.runs import RunRecord
    from hybrid.connector_status import ConnectorStatus
    from hybrid.flow_runs import FlowStatus
    from hybrid.handle import Segment, Table
    from hybrid.move.explicit import BoundaryReport
    from hybrid.move.merging.report import MergeReport
    from hybrid.move.move import MoveReport
    from hybrid.move.optimize import OptimizeReport
    from hybrid.move.retention.report import RetentionReport
    from hybrid.move.vacuum.report import VacuumReport
    from hybrid.query.engine import Explanation, QueryResult
    from hybrid.query.views.view import TableView
    from hybrid.schedules import Schedule
    from hybrid.spec.table_config import BucketConfig, TableSpec
    from hybrid.status import TableStatus
    from hybrid.table.plans import Plan

Json = dict[str, Any]


def table_view(spec: TableSpec) -> Json:
    """A table in a list of tables."""
    return {
        "name": spec.name,
        "halves": [half.value for half in sorted(spec.halves, reverse=True)],
        "time_column": spec.time_column,
        "primary_key": list(spec.primary_key),
        "topic": ",".join(spec.stream.topics) if spec.stream else None,
        "brokers": spec.stream.brokers if spec.stream else None,
    }


def table_details(spec: TableSpec) -> Json:
    """One table: its columns and settings."""
    columns = {field.name: f"{field.data_type}{'' if field.single_value else '[]'}" for field in spec.schema.fields}
    move = spec.move
    task = _bucket_view(move) if move else None
    window = {"revert_window_ms": spec.revert_window_ms if Half.OFFLINE in spec.halves else None}
    retention = {half.value: spec.retention[half] for half in sorted(spec.retention)}
    levels = [{"level": one.name, **_bucket_view(one)} for one in spec.merge_levels]
    more = {**window, "retention_ms": retention, "merge_levels": levels}
    return {**table_view(spec), "columns": columns, "move": task, **more}


def _bucket_view(config: BucketConfig) -> Json:
    return {
        "bucket_ms": config.bucket_ms,
        "buffer_ms": config.buffer_ms,
        "merge": config.merge_type.value,
        "round_ms": config.round_ms,
        "aggregations": {name: how.value for name, how in config.aggregations},
    }


def connector_views(found: Iterable[ConnectorStatus]) -> list[Json]:
    """How a table's connectors stand."""
    return [_plain(vars(one)) for one in found]


def creation_view(made: Creation) -> Json:
    """What creating or applying did."""
    return _plain(vars(made))


def segment_view(found: Segment) -> Json:
    """One segment."""
    return {
        "name": found.name,
        "half": found.half,
        "state": found.state,
        "rows": found.rows,
        "bytes": found.bytes,
        "files": found.files,
        "start": instant(found.start_ms),
        "end": instant(found.end_ms),
        "start_ms": found.start_ms,
        "end_ms": found.end_ms,
        **({"topic": found.topic} if found.topic is not None else {}),
        "partition": found.partition,
        "start_offset": found.start_offset,
        "end_offset": found.end_offset,
        "created_at": instant(found.created_ms),
    }


def move_view(report: MoveReport) -> Json:
    """What a move did."""
    time_ms = None if report.boundary.time_ms == INFINITE else report.boundary.time_ms  # offsets alone divide there
    boundary = {"time": instant(time_ms), **report.boundary.to_json(), "time_ms": time_ms}
    return _plain({**vars(report), "boundary": boundary})


def retention_view(report: RetentionReport) -> Json:
    """What retention did."""
    kept = [vars(one) for one in report.kept]
    return _plain({**vars(report), "kept": kept, "floor": instant(report.floor_ms)})


def merge_view(report: MergeReport) -> Json:
    """What a run of merges did."""
    merged = [{**vars(one), "start": instant(one.start)} for one in report.merged]
    return _plain({**vars(report), "merged": merged})


def vacuum_view(report: VacuumReport) -> Json:
    """What vacuum removed."""
    return _plain(vars(report))


def optimize_view(report: OptimizeReport) -> Json:
    """What was written anew."""
    return _plain(vars(report))


def boundary_view(table: Table) -> Json:
    """The boundary of a table, and what is in effect. NotFoundError on a table that has one half only."""
    boundary, effective = table.boundary(), table.effective_boundary()
    if boundary is None or effective is None:
        raise NotFoundError(f"Table '{table.name}' has one half only, so it has no boundary.")
    pinots = table.time_boundary()
    return {
        "table": table.name,
        "mode": boundary.mode.value,
        "time_column": table.spec.time_column,
        "time": _limit(boundary.time_ms),
        "time_ms": None if boundary.time_ms == INFINITE else boundary.time_ms,
        "frontier": boundary.to_json()["frontier"],
        "limit": _limit(effective.limit_ms),
        "limit_ms": None if effective.limit_ms == INFINITE else effective.limit_ms,
        "override": instant(boundary.override_ms),
        "override_ms": boundary.override_ms,
        "time_value": pinots.time_value if pinots is not None else None,
    }


def boundary_report_view(report: BoundaryReport) -> Json:
    """What setting or clearing a boundary did."""
    return {"committed": report.committed, "version": report.version, "sentence": report.sentence}


def run_view(run: RunRecord) -> Json:
    """One run of a task or job, as the account that asks may see it."""
    run = visible_run(run)
    shown = {
        "id": run.id,
        "created_at": run.created_at,
        "finished_at": run.finished_at,
        "table": run.table_name,
        "type": run.type,
        "state": run.state,
        "result": run.result if not run.incomplete else run.progress,
    }
    return shown_stamps(shown)


def plan_view(plan: Plan) -> Json:
    """The plan of a backfill: what PLAN.json holds. Times as in a segment; row counts."""
    buckets = [
        {
            "start": instant(bucket.start),
            "end": instant(bucket.end),
            "state": bucket.state.value,
            **vars(bucket.counts),
            "swap": bucket.unit,
            "samples": bucket.samples,
        }
        for bucket in plan.buckets
    ]
    told = ("id", "table", "base_revision", "created_at", "change", "reason", "user", "sentence", "rows", "bytes")
    more = ("seconds", "checks", "failed_checks", "warnings", "inputs")
    shown = {name: getattr(plan, name) for name in (*told, *more)}
    return _plain({**shown, "buckets": buckets})


def backfill_view(status: BackfillStatus) -> Json:
    """How a backfill stands."""
    return _plain({**vars(status), "error": visible_error(status.error)})


def flow_view(found: FlowStatus) -> Json:
    """A flow."""
    return _plain(vars(found))


def schedule_view(found: Schedule) -> Json:
    """A task's schedule."""
    return {
        "table": found.table,
        "type": found.type,
        "schedule": found.cron,
        "next_run": instant(found.next_ms),
        "state": found.state,
        "result": found.result,
    }


def status_view(table: TableStatus) -> Json:
    """A table at a glance."""
    return {
        "table": table.table,
        "state": table.state,
        "offline_rows": table.offline_rows,
        "offline_segments": table.offline_segments,
        "realtime_rows": table.realtime_rows,
        "realtime_segments": table.realtime_segments,
        "consuming_segments": table.consuming_segments,
        "boundary": _limit(table.boundary.limit_ms if table.boundary else None),
        "override": _limit(table.override_ms),
        "behind": table.behind,
        "rejected": table.rejected,
        "last_task": table.last_task,
    }


def code_view(found: TableView) -> Json:
    """A table at a revision as code."""
    return {"table": found.table, "for": found.engine, "revision": found.revision, "code": found.code}


def explanation_view(found: Explanation) -> Json:
    """How a statement would be answered; `lines` are the same for people."""
    from hybrid.query.explain import explanation_rows

    return {"plan": json_value(found.to_json()), "lines": [list(row) for row in explanation_rows(found)[1]]}


def query_view(result: QueryResult) -> Json:
    """An answer: `rows` are lists in the order of `columns`."""
    return {
        "columns": list(result.column_names),
        "types": list(result.column_types),
        "rows": [json_value(row) for row in result.rows],
        "warnings": list(result.warnings),
        "revision": str(result.revision),
        "tables": [one.table for one in result.revision.tables],
        "source": result.source,
    }


def instant(time_ms: int | None) -> str | None:
    """Epoch milliseconds as ISO 8601 in UTC; None stays None."""
    return None if time_ms is None else utc(time_ms)


def _limit(time_ms: int | None) -> str | None:
    return "any time" if time_ms == INFINITE else instant(time_ms)


def _plain(fields: Mapping[str, object]) -> Json:
    return json_document(fields)
