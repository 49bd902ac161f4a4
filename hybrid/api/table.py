"""`Table`: the operations of one table and what can be seen of it. It only delegates to `hybrid.operations`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hybrid.clock import wall_clock_ms
from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot
from hybrid.operations import ingestion, moves, pauses, rejected_rows
from hybrid.operations.queries import AsOfText, view_table
from hybrid.operations.segments import Segment, find_segment, segment_origins, segments_of
from hybrid.operations.time_boundary import TimeBoundary, clear_boundary, set_boundary, time_boundary_of
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
    from hybrid.query.views.view import TableView
    from hybrid.replace.lineage import ReplacementEntry
    from hybrid.replace.purge.report import PurgeReport
    from hybrid.replace.report import JobReport


# For the product's own command line and server.
_INTERNAL = frozenset({"catch_up", "has_committed", "ingest_batch", "rejected_page", "stream_ends"})


class Table:
    """A table of a home."""

    def __init__(self, home: Home, table: TableRef) -> None:
        self._home, self._ref = home, table

    def __dir__(self) -> list[str]:
        return [name for name in dir(type(self)) if not name.startswith("_") and name not in _INTERNAL]

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

    @property
    def connectors(self) -> TableConnectors:
        """Its connectors, where a DDL or a config names some."""
        from hybrid.operations.connectors.run import TableConnectors

        return TableConnectors(self._home, self._ref)

    @property
    def replacing(self) -> Replacing:
        """Replacements in several requests: started, pushed to by jobs, ended or reverted."""
        from hybrid.operations.segment_replacement import Replacing

        return Replacing(self._home, self._ref)

    @property
    def upkeep(self) -> Upkeep:
        """What keeps its halves small and tidy."""
        from hybrid.operations.maintenance import Upkeep

        return Upkeep(self._home, self._ref)

    # Operations

    def ingest_batch(self) -> BatchReport | None:
        """Commits one batch of what Kafka holds; None when there is nothing new. No run is recorded."""
        return ingestion.ingest_batch(self._home, self._ref)

    def ingest(self, stop: Callable[[], bool] | None = None) -> IngestReport:
        """Loads the history whose turn it is, then ingests until caught up; with `stop`, until it returns true.

        The error of a connector that failed is raised at the end.
        """
        return ingestion.ingest(self._home, self._ref, stop)

    def replay_rejected(self, *, dry_run: bool = False) -> ReplayReport:
        """Brings the rejected rows that convert by the settings of now; see `hybrid.ingest.replay`."""
        return ingestion.replay_rejected(self._home, self._ref, dry_run=dry_run)

    def seal(self, segment: str | None = None) -> SealReport:
        """Commits what Kafka holds, then seals the consuming segments, or the one of that name."""
        return ingestion.seal(self._home, self._ref, segment)

    def move(self, *, max_buckets: int | None = 1, dry_run: bool = False) -> MoveReport:
        """Moves the next closed buckets that hold rows (None: all) and every late row to the offline half."""
        return moves.move(self._home, self._ref, max_buckets=max_buckets, dry_run=dry_run)

    def catch_up(self) -> list[str]:
        """Commits what Kafka holds, so that an act sees the rows that queries show; what came in the way."""
        return ingestion.catch_up(self._home, self._ref)

    def purge(self, erasure: Erasure) -> PurgeReport:
        """Removes the rows that match and that no query shows from every place, and reads all of them again.

        ConflictError while queries show a row that matches, or a plan has staged one; see `hybrid.replace.purge`.
        """
        from hybrid.operations.purge import purge_table

        return purge_table(self._home, self._ref, erasure)

    def purges(self) -> list[dict[str, Any]]:
        """The records of all purges, newest first."""
        from hybrid.replace.purge.report import purge_records

        return purge_records(self.layout)

    def set_boundary(self, time_ms: int | None, *, accepted: bool = False) -> BoundaryReport:
        """Sets the boundary by hand, until it is cleared: offline rows before `time_ms` (epoch ms) are visible.

        None stands for the last offline time, as in Pinot; mode `exact` has nothing to do then. ConflictError beyond
        what the offline half covers, or where all its rows would be hidden and that is not `accepted`; NotFoundError
        on a table with one half, SpecError without a time column.
        """
        return set_boundary(self._home, self._ref, time_ms, accepted=accepted)

    def clear_boundary(self) -> BoundaryReport:
        """Takes back what `set_boundary` has set."""
        return clear_boundary(self._home, self._ref)

    def replace(self, job: JobSpec, *, dry_run: bool = False, **options: Any) -> JobReport:
        """Puts a job's rows in place of offline segments, or adds them, in one swap."""
        from hybrid.operations.replacement_jobs import run_replacement_job

        return run_replacement_job(self._home, self._ref, job, dry_run=dry_run, **options)

    def revert(self, replacement: str, *, dry_run: bool = False, **options: Any) -> JobReport:
        """Puts back what a replacement replaced, as a new commit.

        One in several requests that has not ended is taken back: what was pushed to it goes.
        """
        from hybrid.operations.revert import revert_replacement

        return revert_replacement(self._home, self._ref, replacement, dry_run=dry_run, **options)

    # What can be seen; no JVM

    def stream_ends(self) -> Mapping[TopicPartition, int] | None:
        """Where Kafka ends at this moment; None where nobody commits it, or it cannot be asked."""
        return ingestion.stream_ends(self._home, self._ref)

    def has_committed(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether the stream is committed up to these offsets."""
        return ingestion.has_committed(self._ref, ends)

    def view(self, for_: str, *, as_of: AsOfText | None = None, timeout_ms: int | None = None) -> TableView:
        """The table at one revision as Python code for `spark`, `duckdb` or `polars`, which runs without this product.

        Without `as_of` (see `Hybrid.query`) it is of the newest commits. QueryError when it takes longer than
        `timeout_ms`.
        """
        return view_table(self._ref, for_, wall_clock_ms(), as_of, timeout_ms)

    def half(self, half: Half) -> HalfSnapshot:
        """A half as it is now; NotFoundError when the table has no such half."""
        return self._ref.half(half)

    def boundary(self) -> Boundary | None:
        """What moves have taken over, with mode and override; None on a table that has one half only."""
        return self._ref.boundary()

    def effective_boundary(self) -> EffectiveBoundary | None:
        """What the boundary makes visible now; None on a table that has one half only."""
        return self._ref.effective_boundary()

    def time_boundary(self) -> TimeBoundary | None:
        """The last offline time that is covered; None without offline rows, or where no time divides the halves."""
        return time_boundary_of(self.spec, self.half(Half.OFFLINE)) if len(self.spec.halves) == len(Half) else None

    def replacements(self) -> list[ReplacementEntry]:
        """The lineage entries of replacements and reverts, newest first."""
        from hybrid.replace.lineage import entries_of

        return entries_of(self.half(Half.OFFLINE))

    def replacement(self, entry_id: str) -> ReplacementEntry:
        """One of them; NotFoundError, with a suggestion, when there is none of that id."""
        from hybrid.replace.lineage import find_entry

        return find_entry(self.replacements(), entry_id)

    def segments(self) -> list[Segment]:
        """All segments, offline ones first, each half by name."""
        return segments_of(self._ref)

    def segment(self, name: str) -> Segment:
        """A segment by its name; NotFoundError, with a suggestion, when there is none."""
        return find_segment(self._ref, name)

    def origins(self, name: str) -> list[Origin]:
        """The acts that wrote to a segment, newest first: where its rows come from."""
        return segment_origins(self._ref, name)

    def rejected(
        self, limit: int = 1000, offset: int = 0, *, everything: bool = False, bounds: Bounds | None = None
    ) -> list[dict[str, Any]]:
        """Rejected rows by offset: topic, partition, offset, reason, value (text, or hex where it is none).

        With `everything` also those that were brought since, each with its `state`.
        """
        return self.rejected_page(limit, offset, everything=everything, bounds=bounds).rows

    def rejected_page(
        self, limit: int, offset: int = 0, *, everything: bool = False, bounds: Bounds | None = None
    ) -> RejectedPage:
        """The same with how many there are in all, of one version of the table."""
        return rejected_rows.rejected_page(self._ref, limit, offset, everything=everything, bounds=bounds)

    def pause(self, comment: str | None = None) -> PauseStatus:
        """Pauses ingestion by a server until it is resumed."""
        return pauses.pause(self._home, self._ref, comment)

    def resume(self) -> PauseStatus:
        """Takes a pause back."""
        return pauses.resume(self._home, self._ref)

    def pause_status(self) -> PauseStatus:
        """Whether ingestion is paused, and what it last said of itself."""
        return pauses.pause_status(self._home, self._ref)

    def consuming(self) -> list[ConsumingInfo]:
        """How far each consuming segment has come, and where Kafka ends."""
        return pauses.consuming_info(self._home, self._ref)
