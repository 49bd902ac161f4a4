"""`RemoteTable`: a table of a server, with the methods and results of `hybrid.api.table.Table`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hybrid.api.table import Table
from hybrid.ingest.loop import IngestReport
from hybrid.ingest.replay import ReplayReport
from hybrid.ingest.seal import SealReport
from hybrid.move.boundary_override import BoundaryReport
from hybrid.move.move import MoveReport
from hybrid.operations.erasure import Erasure
from hybrid.operations.pauses import PauseStatus
from hybrid.operations.rejected_rows import check_page
from hybrid.operations.segment_origins import Origin
from hybrid.operations.segments import Segment
from hybrid.operations.time_boundary import TimeBoundary
from hybrid.query.views.view import TableView
from hybrid.replace.lineage import ReplacementEntry, find_entry
from hybrid.replace.purge.report import PurgeReport
from hybrid.replace.report import JobReport
from hybrid.rpc import remote_values as values
from hybrid.rpc.local_only import LocalOnly, RemoteObject, refuse_remote
from hybrid.rpc.remote_operations import RemoteConnectors, RemoteReplacing, RemoteUpkeep
from hybrid.runtime.json_values import utc
from hybrid.table.boundary import Boundary
from hybrid.table.effective import EffectiveBoundary

if TYPE_CHECKING:
    from hybrid.operations.queries import AsOfText
    from hybrid.operations.rejected_rows import Bounds
    from hybrid.operations.tables.export import TableExport
    from hybrid.rpc.client import Client

_SPEC = "GET /tables/TABLE and GET /schemas/TABLE give its documents, `hybrid table show` its columns."
_IN_PROGRESS = "IN_PROGRESS"


class RemoteTable(RemoteObject, Table):
    """A table of a server: its operations and state."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._shown = client, client.call("table_show", {"table": name})

    spec: Any = LocalOnly(_SPEC)
    layout: Any = LocalOnly("The folders are on the server's machine; table.view('duckdb') gives code that reads them.")
    half: Any = LocalOnly("table.segments() and table.boundary() say what the halves hold.")
    replace: Any = LocalOnly("hy.run_job(path, variables) sends the job spec.")
    consuming: Any = LocalOnly(
        "table.segments() has the consuming segments, GET /tables/TABLE/consumingSegmentsInfo lags."
    )
    ingest_batch: Any = LocalOnly("table.ingest()")
    catch_up: Any = LocalOnly("table.ingest()")
    stream_ends: Any = LocalOnly("table.connectors.statuses() have the lag.")
    has_committed: Any = LocalOnly("table.connectors.statuses() have the lag.")
    rejected_page: Any = LocalOnly("table.rejected(limit, offset), GET /tables/TABLE/rejected has the total.")

    def __repr__(self) -> str:
        return f"<Table {self.name}: {', '.join(self._shown['halves'])}>"

    def _repr_html_(self) -> str:
        shown = self._shown
        return self._html(list(shown["columns"].items()), shown["time_column"], shown["primary_key"])

    @property
    def name(self) -> str:
        """The table's name."""
        return str(self._shown["name"])

    def export(self) -> TableExport:
        """The table's current documents; `.write(folder)` writes to this machine."""
        return values.table_export(self._call("table_export"))

    @property
    def connectors(self) -> RemoteConnectors:
        """The table's connectors, or the stream of its config."""
        return RemoteConnectors(self._client, self.name)

    @property
    def replacing(self) -> RemoteReplacing:
        """Replacements in several requests."""
        return RemoteReplacing(self._client, self.name)

    @property
    def upkeep(self) -> RemoteUpkeep:
        """Upkeep of the halves: retention, merge, compaction, optimize, vacuum."""
        return RemoteUpkeep(self._client, self.name)

    # Operations

    def ingest(self, stop: Callable[[], bool] | None = None) -> IngestReport:
        """Ingests until caught up."""
        if stop is not None:
            refuse_remote("`stop`", "table.pause() pauses the server's ingestion.")
        return values.value_of(IngestReport, self._call("ingest"))

    def replay_rejected(self, *, dry_run: bool = False) -> ReplayReport:
        """Replays the rejected rows that convert by the current settings."""
        return values.value_of(ReplayReport, self._call("rejected_replay", dry_run=dry_run))

    def seal(self, segment: str | None = None) -> SealReport:
        """Commits what Kafka holds, then seals the consuming segments, or only the named one."""
        return values.value_of(SealReport, self._call("seal", name=segment))

    def move(self, *, max_buckets: int | None = 1, dry_run: bool = False) -> MoveReport:
        """Moves the next closed buckets that hold rows (None: all) and every late row to the offline half."""
        report = self._call("move", max_buckets=max_buckets, dry_run=dry_run)
        return values.move_report(report, has_time=self._shown["time_column"] is not None)

    def purge(self, erasure: Erasure) -> PurgeReport:
        """Removes the matching rows that no query shows from every place."""
        return values.purge_report(self._call("purge", where=erasure.where, **_flags(erasure)))

    def purges(self) -> list[dict[str, Any]]:
        """The records of all purges, newest first."""
        return list(self._call("purges"))

    def set_boundary(self, time_ms: int | None, *, accepted: bool = False) -> BoundaryReport:
        """Overrides the boundary until it is cleared."""
        at = None if time_ms is None else utc(time_ms)
        return values.value_of(BoundaryReport, self._call("boundary_set", at=at, accepted=accepted))

    def clear_boundary(self) -> BoundaryReport:
        """Clears the override of `set_boundary`."""
        return values.value_of(BoundaryReport, self._call("boundary_clear"))

    def revert(
        self, replacement: str, *, dry_run: bool = False, reason: str | None = None, user: str | None = None
    ) -> JobReport:
        """Brings back what a replacement replaced, as a new commit."""
        options = {"dry_run": dry_run, "reason": reason, "user": user}
        return values.job_report(self._call("revert", entry=replacement, **options))

    # State

    def view(self, for_: str, *, as_of: AsOfText | None = None, timeout_ms: int | None = None) -> TableView:
        """The table at one revision as Python code; its paths are those of the server's machine."""
        if timeout_ms is not None:
            refuse_remote("`timeout_ms`", "The server's own limit applies.")
        code = self._call("table_view", engine=for_, as_of=None if as_of is None else str(as_of))
        return values.value_of(TableView, code, engine=code["for"])

    def boundary(self) -> Boundary | None:
        """The stored boundary; None on a table with one half."""
        return values.boundary(self._call("boundary")) if self._has_boundary() else None

    def effective_boundary(self) -> EffectiveBoundary | None:
        """The boundary in effect, by mode and override; None on a table with one half."""
        return values.effective(self._call("boundary")) if self._has_boundary() else None

    def time_boundary(self) -> TimeBoundary | None:
        """Pinot's time boundary, the last covered offline time."""
        found = self._call("boundary") if self._has_boundary() else {}
        return None if found.get("time_value") is None else values.value_of(TimeBoundary, found)

    def replacements(self) -> list[ReplacementEntry]:
        """The lineage entries of replacements and reverts, newest first."""
        found = self._call("replacements")
        return [values.replacement_entry(entry) for entry in found if entry["state"] != _IN_PROGRESS]

    def replacement(self, entry_id: str) -> ReplacementEntry:
        """One lineage entry; NotFoundError, with a suggestion, for an unknown id."""
        document = self._call("replacement", entry=entry_id)
        if document["version"] is None:  # one in several requests, without a commit: it is in `replacing` only
            return find_entry(self.replacements(), entry_id)
        return values.replacement_entry(document)

    def segments(self) -> list[Segment]:
        """All segments, offline ones first, each half by name."""
        return [values.segment(found) for found in self._call("segments")]

    def segment(self, name: str) -> Segment:
        """A segment by its name; NotFoundError, with a suggestion, for an unknown name."""
        return values.segment(self._call("segment", name=name))

    def origins(self, name: str) -> list[Origin]:
        """The commits that wrote to a segment, newest first."""
        found = self._call("segment", name=name)["origins"]
        return [_origin(origin) for origin in found]

    def rejected(
        self, limit: int = 1000, offset: int = 0, *, everything: bool = False, bounds: Bounds | None = None
    ) -> list[dict[str, Any]]:
        """Rejected rows by offset; a server gives at most 10,000 from the first on."""
        if bounds is not None:
            refuse_remote("`bounds`", "The server's own limits apply.")
        check_page(limit, offset)
        rows = self._call("rejected", limit=limit + offset, everything=everything)
        return list(rows[offset:])

    def pause(self, comment: str | None = None) -> PauseStatus:
        """Pauses ingestion until it is resumed: servers stop reading the stream."""
        return values.value_of(PauseStatus, self._call("pause", comment=comment))

    def resume(self) -> PauseStatus:
        """Ends a pause; the sentence says so when there was none."""
        return values.value_of(PauseStatus, self._call("resume"))

    def pause_status(self) -> PauseStatus:
        """Whether ingestion is paused, and what the server's ingestion last reported."""
        return values.value_of(PauseStatus, self._call("pause_status"))

    def _has_boundary(self) -> bool:
        self._shown = self._call("table_show")  # a half may have been added
        return len(self._shown["halves"]) > 1

    def _call(self, verb: str, **arguments: Any) -> Any:
        return self._client.call(verb, {"table": self.name, **arguments})


def _flags(erasure: Erasure) -> dict[str, Any]:
    found = values.plain_arguments(erasure, Erasure)
    del found["where"]
    return found


def _origin(document: values.Document) -> Origin:
    offsets = document["offsets"]
    return values.value_of(Origin, document, offsets=None if offsets is None else tuple(offsets))
