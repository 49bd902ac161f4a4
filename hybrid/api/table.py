"""`Table`: the operations and the state of one table. Everything delegates to `hybrid.operations`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hybrid.clock import wall_clock_ms
from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot
from hybrid.operations import ingestion, moves, pauses, rejected_rows
from hybrid.operations.queries import AsOfText, view_table
from hybrid.operations.segments import Segment, find_segment, segment_origins, segments_of
from hybrid.operations.time_boundary import TimeBoundary, clear_boundary, set_boundary, time_boundary
from hybrid.runtime.text_table import html_table
from hybrid.table.boundary import Boundary, TopicPartition
from hybrid.table.effective import EffectiveBoundary

if TYPE_CHECKING:
    from hybrid.config.job_spec import JobSpec
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.ingest.batch import BatchReport
    from hybrid.ingest.loop import IngestReport
    from hybrid.ingest.replay import ReplayReport
    from hybrid.ingest.seal import SealReport
    from hybrid.move.boundary_override import BoundaryReport
    from hybrid.move.move import MoveReport
    from hybrid.operations.connectors.run import TableConnectors
    from hybrid.operations.erasure import Erasure
    from hybrid.operations.maintenance import Upkeep
    from hybrid.operations.pauses import ConsumingInfo, PauseStatus
    from hybrid.operations.rejected_rows import Bounds, RejectedPage
    from hybrid.operations.segment_origins import Origin
    from hybrid.operations.segment_replacement import Replacing
    from hybrid.operations.tables.export import TableExport
    from hybrid.query.views.view import TableView
    from hybrid.replace.lineage import ReplacementEntry
    from hybrid.replace.purge.report import PurgeReport
    from hybrid.replace.report import JobReport


# For the product's own command line and server.
_INTERNAL = frozenset({"catch_up", "has_committed", "ingest_batch", "rejected_page", "stream_ends"})


class Table:
    """A table of a home: its operations and state."""

    def __init__(self, home: Home, table: TableRef) -> None:
        self._home, self._ref = home, table

    def __dir__(self) -> list[str]:
        return [name for name in dir(type(self)) if not name.startswith("_") and name not in _INTERNAL]

    def __repr__(self) -> str:
        return f"<Table {self.name}: {', '.join(self.spec.half_names)}>"

    def _repr_html_(self) -> str:
        """The columns, and for two halves the drawing of the boundary in effect."""
        spec = self.spec
        return self._html(
            [(field.name, field.type_name) for field in spec.schema.fields], spec.time_column, spec.schema.primary_key
        )

    def _html(self, columns: Sequence[tuple[str, str]], time_column: str | None, primary_key: Sequence[str]) -> str:
        """The HTML of `_repr_html_`, of columns with their types."""
        keys = f"; primary key {', '.join(primary_key)}" if primary_key else ""
        note = f"{self!r} time column {time_column or 'none'}{keys}"
        boundary = self.effective_boundary()
        drawing = boundary._repr_html_() if boundary is not None else ""
        return html_table(["column", "type"], columns, note) + drawing

    @property
    def spec(self) -> TableSpec:
        """The table's definition."""
        return self._ref.spec

    @property
    def layout(self) -> TableLayout:
        """The folders of its halves."""
        return self._ref.layout

    @property
    def name(self) -> str:
        """The table's name."""
        return self.spec.name

    def export(self) -> TableExport:
        """The table's current documents: `.documents()` for `hy.apply_table`, `.to_json()`, `.write(folder)`."""
        from hybrid.operations.tables.export import export_table

        return export_table(self._home, self.name)

    @property
    def connectors(self) -> TableConnectors:
        """The table's connectors, or the stream of its config: status, pause, start, reset."""
        from hybrid.operations.connectors.run import TableConnectors

        return TableConnectors(self._home, self._ref)

    @property
    def replacing(self) -> Replacing:
        """Replacements in several requests: start, let jobs push to them, end or revert."""
        from hybrid.operations.segment_replacement import Replacing

        return Replacing(self._home, self._ref)

    @property
    def upkeep(self) -> Upkeep:
        """Upkeep of the halves: retention, merge, compaction, optimize, vacuum."""
        from hybrid.operations.maintenance import Upkeep

        return Upkeep(self._home, self._ref)

    # Operations

    def ingest_batch(self, offsets_max: int | None = None) -> BatchReport | None:
        """Commits one batch of Kafka's messages, at most `offsets_max`; None when there is nothing new.

        No run is recorded.
        """
        return ingestion.ingest_batch(self._home, self._ref, offsets_max)

    def ingest(self, stop: Callable[[], bool] | None = None) -> IngestReport:
        """Runs the connectors that are due, then ingests until caught up; with `stop`, until it returns true.

        The error of a connector that failed is raised at the end.
        """
        return ingestion.ingest(self._home, self._ref, stop)

    def replay_rejected(self, *, dry_run: bool = False) -> ReplayReport:
        """Replays the rejected rows that convert by the current settings; see `hybrid.ingest.replay`."""
        return ingestion.replay_rejected(self._home, self._ref, dry_run=dry_run)

    def seal(self, segment: str | None = None) -> SealReport:
        """Commits what Kafka holds, then seals the consuming segments, or only the named one."""
        return ingestion.seal(self._home, self._ref, segment)

    def move(self, *, max_buckets: int | None = 1, dry_run: bool = False) -> MoveReport:
        """Moves the next closed buckets that hold rows (None: all) and every late row to the offline half."""
        return moves.move(self._home, self._ref, max_buckets=max_buckets, dry_run=dry_run)

    def catch_up(self) -> list[str]:
        """Commits what Kafka holds, so that an operation sees the rows that queries show.

        Returns warnings: what prevented it.
        """
        return ingestion.catch_up(self._home, self._ref)

    def purge(self, erasure: Erasure) -> PurgeReport:
        """Removes the matching rows that no query shows from every place, and verifies it by reading all places again.

        ConflictError while queries show a matching row, or a plan has staged one; see `hybrid.replace.purge`.
        """
        from hybrid.operations.purge import purge_table

        return purge_table(self._home, self._ref, erasure)

    def purges(self) -> list[dict[str, Any]]:
        """The records of all purges, newest first."""
        from hybrid.replace.purge.report import purge_records

        return purge_records(self.layout)

    def set_boundary(self, time_ms: int | None, *, accepted: bool = False) -> BoundaryReport:
        """Overrides the boundary until it is cleared: offline rows before `time_ms` (epoch milliseconds) are visible.

        None means the last offline time, as in Pinot; it changes nothing in mode `exact`. ConflictError beyond what the
        offline half covers, where a purge or retention has removed rows, or when all offline rows would be hidden and
        that is not `accepted`. NotFoundError on a table with one half, SpecError without a time column.
        """
        return set_boundary(self._home, self._ref, time_ms, accepted=accepted)

    def clear_boundary(self) -> BoundaryReport:
        """Clears the override of `set_boundary`."""
        return clear_boundary(self._home, self._ref)

    def replace(
        self,
        job: JobSpec,
        *,
        dry_run: bool = False,
        append: bool = False,
        allow_empty: bool = False,
        reason: str | None = None,
        user: str | None = None,
        expect: Sequence[str] = (),
    ) -> JobReport:
        """Replaces offline segments by a job's rows, or adds the rows, in one commit.

        `append` adds a segment beside others of the same times, `allow_empty` accepts an input without rows,
        `reason` and `user` are recorded in lineage, `expect` adds expectations. DataError for rows that cannot be
        converted or fail expectations; ConflictError for rows that collide with others or reach past the boundary.
        """
        from hybrid.operations.replacement_jobs import run_replacement_job
        from hybrid.replace.job_options import JobOptions

        options = JobOptions(dry_run, append, allow_empty, reason, user, expect)
        return run_replacement_job(self._home, self._ref, job, options)

    def revert(
        self, replacement: str, *, dry_run: bool = False, reason: str | None = None, user: str | None = None
    ) -> JobReport:
        """Brings back what a replacement replaced, as a new commit.

        `reason` and `user` are recorded in lineage. A replacement in several requests that has not ended is discarded
        with the segments that were pushed to it. NotFoundError for an unknown id; ConflictError when it is reverted
        already, when newer commits have changed its segments, or when the old rows are no longer retained.
        """
        from hybrid.operations.revert import revert_replacement

        return revert_replacement(self._home, self._ref, replacement, dry_run=dry_run, reason=reason, user=user)

    # State; no JVM

    def stream_ends(self) -> Mapping[TopicPartition, int] | None:
        """Kafka's end offsets now; None without a stream, while it is paused, or when Kafka does not answer."""
        return ingestion.stream_ends(self._home, self._ref)

    def has_committed(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether the stream is committed up to these offsets."""
        return ingestion.has_committed(self._ref, ends)

    def view(self, for_: str, *, as_of: AsOfText | None = None, timeout_ms: int | None = None) -> TableView:
        """The table at one revision as Python code for `spark`, `duckdb` or `polars`, which runs without this product.

        `as_of` is as in `Hybrid.query`; without it, the newest commits. QueryError when it takes longer than
        `timeout_ms`.
        """
        return view_table(self._ref, for_, wall_clock_ms(), as_of, timeout_ms)

    def half(self, half: Half) -> HalfSnapshot:
        """The newest snapshot of a half; NotFoundError when the table has no such half."""
        return self._ref.half(half)

    def boundary(self) -> Boundary | None:
        """The stored boundary: time, frontier, mode and override; None on a table with one half."""
        return self._ref.boundary()

    def effective_boundary(self) -> EffectiveBoundary | None:
        """The boundary in effect, by mode and override; None on a table with one half."""
        return self._ref.effective_boundary()

    def time_boundary(self) -> TimeBoundary | None:
        """Pinot's time boundary, the last covered offline time.

        None without offline rows, on a table with one half, or where no time divides the halves.
        """
        return time_boundary(self._ref)

    def replacements(self) -> list[ReplacementEntry]:
        """The lineage entries of replacements and reverts, newest first."""
        from hybrid.replace.lineage import entries_of

        return entries_of(self.half(Half.OFFLINE))

    def replacement(self, entry_id: str) -> ReplacementEntry:
        """One lineage entry; NotFoundError, with a suggestion, for an unknown id."""
        from hybrid.replace.lineage import find_entry

        return find_entry(self.replacements(), entry_id)

    def segments(self) -> list[Segment]:
        """All segments, offline ones first, each half by name."""
        return segments_of(self._ref)

    def segment(self, name: str) -> Segment:
        """A segment by its name; NotFoundError, with a suggestion, for an unknown name."""
        return find_segment(self._ref, name)

    def origins(self, name: str) -> list[Origin]:
        """The commits that wrote to a segment, newest first."""
        return segment_origins(self._ref, name)

    def rejected(
        self, limit: int = 1000, offset: int = 0, *, everything: bool = False, bounds: Bounds | None = None
    ) -> list[dict[str, Any]]:
        """Rejected rows by offset: topic, partition, offset, reason, value (text, or hex where it is not UTF-8).

        `everything` adds the rows that were replayed since; each row then has its `state`.
        """
        return self.rejected_page(limit, offset, everything=everything, bounds=bounds).rows

    def rejected_page(
        self, limit: int, offset: int = 0, *, everything: bool = False, bounds: Bounds | None = None
    ) -> RejectedPage:
        """Rejected rows as in `rejected`, and their total number, of one version of the table."""
        return rejected_rows.rejected_page(self._ref, limit, offset, everything=everything, bounds=bounds)

    def pause(self, comment: str | None = None) -> PauseStatus:
        """Pauses ingestion until it is resumed: servers stop reading the stream."""
        return pauses.pause(self._home, self._ref, comment)

    def resume(self) -> PauseStatus:
        """Ends a pause; the sentence says so when there was none."""
        return pauses.resume(self._home, self._ref)

    def pause_status(self) -> PauseStatus:
        """Whether ingestion is paused, and what the server's ingestion last reported."""
        return pauses.pause_status(self._home, self._ref)

    def consuming(self) -> list[ConsumingInfo]:
        """The consuming segments with their next offsets and Kafka's end offsets."""
        return pauses.consuming_info(self._home, self._ref)
