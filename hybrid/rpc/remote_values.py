"""The API's values from the JSON forms in which a server sends them: the inverse of `hybrid.rpc.json_views`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from hybrid.catalog.run_record import RunRecord
from hybrid.config.table_config import Half
from hybrid.errors import MachineError
from hybrid.move.merging.report import Merged, MergeReport
from hybrid.move.move import MoveReport
from hybrid.move.retention.report import KeptSegments, RetentionReport
from hybrid.operations.schedules import Schedule
from hybrid.operations.segments import Segment
from hybrid.operations.tables.export import TableExport
from hybrid.query.explain import Explanation, HalfExplanation, TableExplanation
from hybrid.query.result import QueryResult, QueryStats
from hybrid.query.revision import Revision, TableRevision
from hybrid.replace.check_result import CheckResult
from hybrid.replace.diff import Sample
from hybrid.replace.lineage import EntryState, ReplacementEntry
from hybrid.replace.purge.report import PurgeReading, PurgeReport, RemovedFile, StoreReading
from hybrid.replace.report import JobReport
from hybrid.runtime.json_values import epoch_ms
from hybrid.table.boundary import INFINITE, Boundary, offsets_from_json
from hybrid.table.effective import EffectiveBoundary
from hybrid.table.lineage import Lineage

Document = Mapping[str, Any]
Value = TypeVar("Value")


def value_of(kind: type[Value], document: Document, /, **known: Any) -> Value:
    """A dataclass from the object of its fields; `known` are fields that need more than that.

    Lists become tuples where the class has tuples. MachineError when the server sends no such object.
    """
    values = dict(known)
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name in document and field.name not in known:
            value = document[field.name]
            is_tuple = isinstance(value, list) and str(field.type).startswith(("tuple", "Sequence"))
            values[field.name] = tuple(value) if is_tuple else value
        elif field.name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise MachineError(
                f"The server's answer has no '{field.name}' for a {kind.__name__}: it is of another version.",
                hint="Compare hybrid.__version__ with the server's /version.",
            )
    return kind(**values)


def query_result(document: Document) -> QueryResult:
    """The result of a statement, with the types of values that it has without a server."""
    types = document["types"]
    rows = [tuple(_cell(kind, cell) for kind, cell in zip(types, row, strict=True)) for row in document["rows"]]
    revision = Revision(tuple(map(_table_revision, document["revisions"])))
    stats = QueryStats(**document["stats"])
    return QueryResult(
        document["columns"], types, rows, revision, list(document["warnings"]), stats, document["source"]
    )


def _cell(kind: str, value: Any) -> Any:
    """A value of a column of a Pinot type."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_cell(kind.removesuffix("_ARRAY"), item) for item in value]
    if not isinstance(value, str):
        return value
    match kind:
        case "BIG_DECIMAL":
            return Decimal(value)
        case "TIMESTAMP":
            return datetime.fromisoformat(value).replace(tzinfo=None)
        case "BYTES":
            return bytes.fromhex(value)
        case "FLOAT" | "DOUBLE":  # NaN and the infinities
            return float(value)
    return value


def _table_revision(document: Document) -> TableRevision:
    boundary, tail = Boundary.from_json(document["boundary"]), offsets_from_json(document["tail"])
    return value_of(TableRevision, document, boundary=boundary, tail=tail)


def explanation(document: Document) -> Explanation:
    """The explanation of a statement."""
    tables = [
        value_of(
            TableExplanation,
            table,
            filters=table["filters"],
            halves=[value_of(HalfExplanation, half, segments=half["segments"]) for half in table["halves"]],
        )
        for table in document["tables"]
    ]
    return value_of(Explanation, document, tables=tables, warnings=document["warnings"])


def segment(document: Document) -> Segment:
    """One segment."""
    return value_of(Segment, document, created_ms=epoch_ms(document["created_at"]))


def boundary(document: Document) -> Boundary:
    """The stored boundary of a table."""
    time_ms = INFINITE if document["time"] == "any time" else document["time_ms"]
    return Boundary.from_json({**document, "time_ms": time_ms})


def effective(document: Document) -> EffectiveBoundary:
    """The boundary in effect."""
    limit_ms = INFINITE if document["limit"] == "any time" else document["limit_ms"]
    frontier, is_pinot = offsets_from_json(document["frontier"]), document["mode"] == "pinot"
    if document["time"] == "any time" or (document["override_ms"] is None and not is_pinot):
        return EffectiveBoundary(limit_ms, frontier)
    return EffectiveBoundary(limit_ms, frontier, is_pinot and not frontier, restricts_offline=True)


def move_report(document: Document, *, has_time: bool) -> MoveReport:
    """The report of a move. `has_time`: the table has a time column; without one the boundary's time is infinite."""
    stored = document["boundary"]
    time_ms = stored["time_ms"] if has_time else INFINITE
    return value_of(MoveReport, document, boundary=Boundary.from_json({**stored, "time_ms": time_ms}))


def merge_report(document: Document) -> MergeReport:
    """The report of merges."""
    merged = tuple(value_of(Merged, merge, start=epoch_ms(merge["start"])) for merge in document["merged"])
    return value_of(MergeReport, document, merged=merged)


def retention_report(document: Document) -> RetentionReport:
    """The report of retention."""
    kept = tuple(value_of(KeptSegments, entry, half=Half(entry["half"])) for entry in document["kept"])
    return value_of(RetentionReport, document, kept=kept)


def job_report(document: Document) -> JobReport:
    """The report of a job or a revert."""
    samples = tuple(Sample(**sample) for sample in document["samples"])
    checks = tuple(map(CheckResult.from_json, document["expectations"]))
    return value_of(JobReport, document, samples=samples, expectations=checks)


def purge_report(document: Document) -> PurgeReport:
    """The report of a purge."""
    before, after = (tuple(PurgeReading(**reading) for reading in document[name]) for name in ("before", "after"))
    files = tuple(RemovedFile(**file) for file in document["files"])
    store = StoreReading(**document["store"]) if document["store"] is not None else None
    return value_of(PurgeReport, document, files=files, before=before, after=after, store=store)


def table_export(document: Document) -> TableExport:
    """The documents of a table."""
    documents = document["documents"]
    halves = (documents.get("realtime"), documents.get("offline"))
    return TableExport(document["table"], documents["schema"], *halves, document["brokers"], list(document["hidden"]))


def replacement_entry(document: Document) -> ReplacementEntry:
    """An entry of the lineage; it does not point to the one before it."""
    own = ("id", "kind", "created_at", "state", "version")
    rest = {name: value for name, value in document.items() if name not in own}
    lineage = Lineage.from_json({**rest, "previous": None})
    return value_of(ReplacementEntry, document, state=EntryState(document["state"]), lineage=lineage)


def run_record(document: Document) -> RunRecord:
    """A run, with the details that the document has."""
    return value_of(RunRecord, document, table_name=document["table"])


def schedule(document: Document) -> Schedule:
    """The schedule of a task."""
    next_ms = None if document["next_run"] is None else epoch_ms(document["next_run"])
    return value_of(Schedule, document, cron=document["schedule"], next_ms=next_ms)


def plain_arguments(given: object, kind: type[Any]) -> dict[str, Any]:
    """The fields of a dataclass as arguments of a verb, without those that have their defaults."""
    values = {field.name: getattr(given, field.name) for field in fields(kind)}
    defaults = {field.name: field.default for field in fields(kind)}
    return {name: _sendable(value) for name, value in values.items() if value != defaults[name]}


def _sendable(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
