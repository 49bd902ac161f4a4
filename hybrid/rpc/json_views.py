"""The JSON forms of the API's results: the output of `--json` and the answers of the server's own paths.

Keys are documented in docs/reference/ and do not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError
from hybrid.home.accounts import reads_only
from hybrid.operations.run_views import visible_error, visible_run
from hybrid.progress import counted
from hybrid.runtime.json_values import instant, json_document, json_value, shown_stamps
from hybrid.table.boundary import INFINITE, offsets_to_json

if TYPE_CHECKING:
    from hybrid.api.table import Table
    from hybrid.catalog.erasures import ErasureCertificate
    from hybrid.catalog.run_record import RunRecord
    from hybrid.config.table_config import BucketConfig, TableSpec
    from hybrid.move.boundary_override import BoundaryReport
    from hybrid.move.merging.report import MergeReport
    from hybrid.move.move import MoveReport
    from hybrid.move.optimize import OptimizeReport
    from hybrid.move.retention.report import RetentionReport
    from hybrid.move.vacuum.report import VacuumReport
    from hybrid.operations.backfill_status import BackfillStatus
    from hybrid.operations.connectors.status import ConnectorStatus
    from hybrid.operations.erasure import ErasurePreview
    from hybrid.operations.erasures import Erasures
    from hybrid.operations.flows import FlowStatus
    from hybrid.operations.query_list import LoggedQuery
    from hybrid.operations.schedules import Schedule
    from hybrid.operations.segments import Segment
    from hybrid.operations.tables.creation import Creation
    from hybrid.operations.tables.export import TableExport
    from hybrid.operations.tables.status import TableStatus
    from hybrid.query.engine import QueryResult
    from hybrid.query.explain import Explanation
    from hybrid.query.revision import TableRevision
    from hybrid.query.views.view import TableView

Json = dict[str, Any]


def table_view(spec: TableSpec) -> Json:
    """A table in a list of tables."""
    return {
        "name": spec.name,
        "halves": spec.half_names,
        "time_column": spec.time_column,
        "primary_key": list(spec.schema.primary_key),
        "topic": ",".join(spec.stream.topics) if spec.stream else None,
        "brokers": spec.stream.brokers if spec.stream else None,
    }


def table_details(spec: TableSpec) -> Json:
    """The columns and settings of one table."""
    columns = {field.name: field.type_name for field in spec.schema.fields}
    move = spec.move
    task = _bucket_view(move) if move else None
    window = {"revert_window_ms": spec.revert_window_ms if Half.OFFLINE in spec.halves else None}
    retention = {half.value: spec.retention[half] for half in sorted(spec.retention)}
    levels = [{"level": level.name, **_bucket_view(level)} for level in spec.merge_levels]
    more = {"upsert": _upsert_mode(spec), **window, "retention_ms": retention, "merge_levels": levels}
    return {**table_view(spec), "columns": columns, "move": task, **more}


def _upsert_mode(spec: TableSpec) -> str | None:
    """The mode of a table's upsertConfig, or `DEDUP`; None: all rows of a key are shown."""
    if spec.upsert is None:
        return None
    return "DEDUP" if spec.upsert.first_wins else "FULL" if spec.upsert.partial is None else "PARTIAL"


def _bucket_view(config: BucketConfig) -> Json:
    return {
        "bucket_ms": config.bucket_ms,
        "buffer_ms": config.buffer_ms,
        "merge": config.merge_type.value,
        "round_ms": config.round_ms,
        "aggregations": {name: how.value for name, how in config.aggregations},
    }


def connector_views(found: Iterable[ConnectorStatus]) -> list[Json]:
    """The status of a table's connectors."""
    return [_plain(vars(status)) for status in found]


def creation_view(made: Creation) -> Json:
    """The report of creating or applying a table."""
    return _plain(vars(made))


def export_view(found: TableExport) -> Json:
    """The documents of a table, and what they do not hold."""
    return {
        "table": found.table,
        "documents": found.to_json(),
        "brokers": found.brokers,
        "hidden": list(found.hidden),
    }


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
    """The report of a move."""
    # Without a time column T is infinite and the frontier alone decides.
    time_ms = None if report.boundary.time_ms == INFINITE else report.boundary.time_ms
    boundary = {"time": instant(time_ms), **report.boundary.to_json(), "time_ms": time_ms}
    return _plain({**vars(report), "boundary": boundary})


def retention_view(report: RetentionReport) -> Json:
    """The report of retention."""
    entries = [vars(entry) for entry in report.kept]
    return _plain({**vars(report), "kept": entries, "floor": instant(report.floor_ms)})


def merge_view(report: MergeReport) -> Json:
    """The report of a run of merges."""
    merged = [{**vars(merge), "start": instant(merge.start)} for merge in report.merged]
    return _plain({**vars(report), "merged": merged})


def vacuum_view(report: VacuumReport) -> Json:
    """The report of a vacuum."""
    return _plain(vars(report))


def optimize_view(report: OptimizeReport) -> Json:
    """The report of an optimize run."""
    return _plain(vars(report))


def boundary_view(table: Table) -> Json:
    """The boundary of a table, and the limit in effect. NotFoundError on a table with only one half."""
    boundary, effective = table.boundary(), table.effective_boundary()
    if boundary is None or effective is None:
        raise NotFoundError(f"Table '{table.name}' has one half only, so it has no boundary.")
    pinot_boundary = table.time_boundary()
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
        "time_value": pinot_boundary.time_value if pinot_boundary is not None else None,
        **{name: value for name, value in boundary.to_json().items() if name in {"floor_ms", "step_ms"}},
    }


def boundary_report_view(report: BoundaryReport) -> Json:
    """The report of setting or clearing a boundary override."""
    return {"committed": report.committed, "version": report.version, "sentence": report.sentence}


def run_view(run: RunRecord) -> Json:
    """A run, without what the requesting account may not see."""
    run = visible_run(run)
    fields = {
        "id": run.id,
        "created_at": run.created_at,
        "finished_at": run.finished_at,
        "table": run.table_name,
        "type": run.type,
        "state": run.state,
        "result": run.result if not run.incomplete else run.progress,
    }
    return shown_stamps(fields)


def backfill_view(status: BackfillStatus) -> Json:
    """The status of a backfill."""
    return _plain({**vars(status), "error": visible_error(status.error)})


def flow_view(found: FlowStatus) -> Json:
    """The status of a flow."""
    return _plain(vars(found))


def schedule_view(found: Schedule) -> Json:
    """The schedule of a task."""
    return {
        "table": found.table,
        "type": found.type,
        "schedule": found.cron,
        "next_run": instant(found.next_ms),
        "state": found.state,
        "result": found.result,
    }


def status_view(table: TableStatus) -> Json:
    """A table's summary: state, counts, boundary and last task."""
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
        "visible_rows": table.visible_rows,
        "visible_rows_reason": table.visible_rows_reason,
        "stored_twice_rows": table.stored_twice_rows,
        "stored_twice_bytes": table.stored_twice_bytes,
        "bytes": table.bytes,
        "hint": table.hint,
    }


def code_view(found: TableView) -> Json:
    """Code that reads a table at a revision."""
    return {"table": found.table, "for": found.engine, "revision": found.revision, "code": found.code}


def explanation_view(found: Explanation) -> Json:
    """How a statement would be answered; `lines` are the same as rows of text."""
    from hybrid.query.explain import explanation_rows

    return {"plan": json_value(found.to_json()), "lines": [list(row) for row in explanation_rows(found)[1]]}


def query_view(result: QueryResult) -> Json:
    """The result of a statement: `rows` are lists in the order of `columns`."""
    return {
        "columns": list(result.column_names),
        "types": list(result.column_types),
        "rows": [json_value(row) for row in result.rows],
        "warnings": list(result.warnings),
        "revision": str(result.revision),
        "tables": [table.table for table in result.revision.tables],
        "source": result.source,
        "revisions": [_revision_view(table) for table in result.revision.tables],
        "stats": vars(result.stats),
    }


def logged_query_view(found: LoggedQuery) -> Json:
    """A statement of the query log."""
    return json_document(vars(found))


def _revision_view(table: TableRevision) -> Json:
    """A revision without loss: its text leaves out what a query need not name."""
    return {**vars(table), "boundary": table.boundary.to_json(), "tail": offsets_to_json(table.tail)}


def _limit(time_ms: int | None) -> str | None:
    return "any time" if time_ms == INFINITE else instant(time_ms)


def _plain(fields: Mapping[str, object]) -> Json:
    return json_document(fields)


def erasure_view(erasures: Erasures, certificate: ErasureCertificate) -> Json:
    """The certificate of an erasure, with its state in words.

    Who may only read gets no digest of a condition: with a list of all customers each can be tried.
    """
    document = json_document(certificate.to_json())
    tables = [
        {
            **{name: value for name, value in table.items() if name not in {"salt", "digest"}},
            **({} if reads_only() else {"condition_digest": f"scrypt:{table['salt']}:{table['digest']}"}),
        }
        for table in document["tables"]
    ]
    error = visible_error(certificate.error)  # it may quote a row
    return {**document, "tables": tables, "state": erasures.state(certificate), "error": error}


def erasure_readings(erasure_id: str, preview: ErasurePreview) -> Json:
    """What an erasure would find, place by place, and why it would be refused."""
    readings = preview.readings
    matching = sum(reading["matching"] or 0 for reading in readings)
    places = sum(bool(reading["matching"]) for reading in readings)
    staged = [name for reading in readings if reading["place"] == "staged" for name in reading["by"]]
    found = [reading for reading in readings if reading["place"] == "dropped copy"]
    copies = [name for reading in found if reading["matching"] for name in reading["by"]]
    unknown = [name for reading in found if reading["matching"] is None for name in reading["by"]]
    sentence = f"{counted(matching, 'stored row')} in {counted(places, 'place')} match."
    if staged:
        sentence += f" It cancels {', '.join(staged)}, which {'has' if len(staged) == 1 else 'have'} staged such rows."
    if copies:
        sentence += f" Dropped copies have such rows: {', '.join(copies)}."
    if unknown:
        sentence += f" Dropped copies cannot be looked at: {', '.join(unknown)}."
    return {
        "id": erasure_id,
        "dry_run": True,
        "readings": [dict(reading) for reading in readings],
        "refusals": [refusal._asdict() for refusal in preview.refusals],
        "sentence": sentence,
    }
