"""A table in hand: its acts and what can be seen of it. Part of the API's layer."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hybrid.clock import wall_clock_ms
from hybrid.errors import HybridError, NotFoundError, StreamError
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import DataFile, HalfSnapshot, open_half
from hybrid.spec.connectors import live_connector
from hybrid.spec.table_config import Half, TableSpec
from hybrid.spec.upsert_json import MOVE_TASK
from hybrid.table import columns
from hybrid.table.boundary import Boundary, TopicPartition, current_keys
from hybrid.table.effective import EffectiveBoundary
from hybrid.table.names import topic_in_name
from hybrid.time_boundary import TimeBoundary, time_boundary_of

if TYPE_CHECKING:
    from hybrid.api import AsOfText, Hybrid
    from hybrid.connectors import Done, TableConnectors
    from hybrid.consumption import ConsumingInfo, PauseStatus
    from hybrid.ingest.batch import BatchReport
    from hybrid.ingest.loop import IngestReport
    from hybrid.ingest.replay import ReplayReport
    from hybrid.ingest.seal import SealReport
    from hybrid.move.explicit import BoundaryReport, Wish
    from hybrid.move.move import MoveReport
    from hybrid.origins import Origin
    from hybrid.purges import Erasure
    from hybrid.query.views.view import TableView
    from hybrid.rejected import Bounds, RejectedPage
    from hybrid.replace.lineage import ReplacementEntry
    from hybrid.replace.purge.report import PurgeReport
    from hybrid.replace.report import JobReport
    from hybrid.replacing import Replacing
    from hybrid.spec.job_spec import JobSpec
    from hybrid.upkeep import Upkeep

_KAFKA_TIMEOUT_MS = 1500
_WAIT_S = 2.0


@dataclass(frozen=True)
class Segment:
    """One segment. Times are epoch milliseconds of the first and last row, offsets half-open.

    `state` is CONSUMING, SEALED (both realtime) or OFFLINE. `topic` is there where the table reads several.
    """

    name: str
    half: str
    state: str
    rows: int
    bytes: int
    files: int
    start_ms: int | None
    end_ms: int | None
    partition: int | None
    start_offset: int | None
    end_offset: int | None
    created_ms: int
    topic: str | None = None


class Table:
    """A table of a home."""

    def __init__(self, home: Hybrid, spec: TableSpec, layout: TableLayout) -> None:
        self._home = home
        self.spec = spec
        self.layout = layout

    @property
    def name(self) -> str:
        """The table's name."""
        return self.spec.name

    @property
    def connectors(self) -> TableConnectors:
        """What brings its rows, where a DDL or a config names connectors."""
        from hybrid.connectors import TableConnectors

        return TableConnectors(self._home, self)

    @property
    def replacing(self) -> Replacing:
        """Replacements in several requests: started, pushed to by jobs, ended or reverted."""
        from hybrid.replacing import Replacing

        return Replacing(self._home, self)

    @property
    def upkeep(self) -> Upkeep:
        """What keeps its halves small and tidy."""
        from hybrid.upkeep import Upkeep

        return Upkeep(self._home, self)

    # Acts

    def ingest_batch(self) -> BatchReport | None:
        """Commits one batch of what Kafka holds; None when there is nothing new. No run is recorded."""
        from hybrid.ingest.batch import run_batch

        return run_batch(self._home.bench, self.spec, self.layout, self._batch_max(), self.connectors.stop_at)

    def _batch_max(self) -> int:
        """How many records one commit may bring: what the stream's connector says, at most as many as are quick."""
        from hybrid.ingest.batch import BATCH_OFFSETS_MAX

        live = live_connector(self.spec.connectors)
        return min(BATCH_OFFSETS_MAX, (live.max_batch_size if live is not None else None) or BATCH_OFFSETS_MAX)

    def ingest(self, stop: Callable[[], bool] | None = None) -> IngestReport:
        """Loads the history whose turn it is, then ingests until caught up; with `stop`, until it returns true.

        The error of a connector that failed is raised at the end.
        """
        from hybrid.consumption import is_paused
        from hybrid.ingest.loop import IngestReport, ingest_forever, ingest_until_caught_up

        if is_paused(self._home, self.name):
            go = f"`hybrid connector start {self.name}` lets it go on."
            return IngestReport(0, 0, 0, f"Nothing to ingest: table '{self.name}' is paused. {go}")
        bench = self._home.bench
        done = self._run_due(stop)
        options: dict[str, Any] = {
            "batch_offsets_max": self._batch_max(),
            "stop_at": self.connectors.stop_at,
            "newest": lambda: self._home.spec(self.name),
        }
        with self._home.recorded(self.name, "ingest") as run:
            waits = self.connectors.waits()
            if waits is not None or (self.spec.connectors and self.spec.stream is None):
                report = IngestReport(0, 0, 0, f"Nothing to ingest: {waits or 'the table has no stream'}.")
            elif stop is None:
                report = ingest_until_caught_up(bench, self.spec, self.layout, **options)
            else:
                over = lambda: stop() or is_paused(self._home, self.name)  # noqa: E731
                report = ingest_forever(bench, self.spec, self.layout, over, **options)
            run.ended(report.sentence, did_something=report.batches > 0)
        if done.failed is not None:
            raise done.failed
        return report

    def _run_due(self, stop: Callable[[], bool] | None) -> Done:
        """Runs what is due of the connectors; with `stop` again and again, until the stream can be read."""
        while True:
            done = self.connectors.run_due(stop or _never)
            for sentence in (*done.said, *([str(done.failed)] if done.failed is not None and stop is not None else ())):
                self._home.progress.say(sentence)
            if stop is None or stop() or self.connectors.waits() is None:
                return done
            time.sleep(_WAIT_S)

    def replay_rejected(self, *, dry_run: bool = False) -> ReplayReport:
        """Brings the rejected rows that convert by the settings of now; see `hybrid.ingest.replay`."""
        from hybrid.ingest.replay import replay_rejected

        bench = self._home.bench
        if dry_run:
            return replay_rejected(bench, self.spec, self.layout, dry_run=True)
        with self._home.recorded(self.name, "replay") as run:
            report = replay_rejected(bench, self.spec, self.layout, act_id=self._home.act_id("replay"))
            run.ended(report.sentence, did_something=report.version is not None)
        return report

    def seal(self, segment: str | None = None) -> SealReport:
        """Commits what Kafka holds, then seals the consuming segments, or the one of that name."""
        from hybrid.ingest.loop import ingest_until_caught_up
        from hybrid.ingest.seal import seal_consuming

        bench = self._home.bench
        with self._home.recorded(self.name, "seal") as run:
            ingest_until_caught_up(bench, self.spec, self.layout, stop_at=self.connectors.stop_at)
            report = seal_consuming(bench, self.spec, self.layout, segment)
            run.ended(report.sentence, did_something=report.version is not None)
        return report

    def move(self, *, max_buckets: int | None = 1, dry_run: bool = False) -> MoveReport:
        """Moves the next closed buckets that hold rows (None: all) and every late row to the offline half."""
        from hybrid.move.move import run_move
        from hybrid.move.plan import Reach

        if dry_run:
            return run_move(self._home.bench, self.spec, self.layout, reach=Reach(max_buckets), dry_run=True)
        with self._home.recorded(self.name, MOVE_TASK) as run:
            report = run_move(
                self._home.bench,
                self.spec,
                self.layout,
                reach=Reach(max_buckets),
                act_id=self._home.act_id("move"),
                newest=lambda: self._home.spec(self.name),
            )
            run.ended(report.sentence, did_something=report.moved)
        return report

    def catch_up(self) -> list[str]:
        """Commits what Kafka holds, so that an act sees the rows that queries show; what came in the way."""
        from hybrid.ingest.loop import ingest_until_caught_up

        if self.spec.stream is None or self.name in self._home.catalog.serving.pauses():
            return []
        if self.connectors.waits() is not None:
            return []
        try:
            ingest_until_caught_up(self._home.bench, self.spec, self.layout, stop_at=self.connectors.stop_at)
        except (StreamError, NotFoundError) as error:
            return [f"Went on without what Kafka may hold beyond the last commit: {error}"]
        return []

    def purge(self, erasure: Erasure) -> PurgeReport:
        """Removes the rows that match and that no query shows from every place, and reads all of them again.

        ConflictError while queries show a row that matches, or a plan has staged one; see `hybrid.replace.purge`.
        """
        from hybrid.purges import purge_table

        return purge_table(self._home, self, erasure)

    def purges(self) -> list[dict[str, Any]]:
        """The records of all purges, newest first."""
        from hybrid.replace.purge.report import kept

        return kept(self.layout)

    def set_boundary(self, time_ms: int | None, *, accepted: bool = False) -> BoundaryReport:
        """Sets the boundary by hand, until it is cleared: offline rows before `time_ms` (epoch ms) are visible.

        None stands for the last offline time, as in Pinot; mode `exact` has nothing to do then. ConflictError beyond
        what the offline half covers, or where all its rows would be hidden and that is not `accepted`; NotFoundError
        on a table with one half, SpecError without a time column.
        """
        from hybrid.move.explicit import Wish

        return self._change_boundary(Wish(time_ms, accepted=accepted))

    def clear_boundary(self) -> BoundaryReport:
        """Takes back what `set_boundary` has set."""
        from hybrid.move.explicit import Wish

        return self._change_boundary(Wish(clear=True))

    def _change_boundary(self, wish: Wish) -> BoundaryReport:
        from hybrid.move.explicit import change_boundary

        with self._home.recorded(self.name, "boundary") as run:
            report = change_boundary(
                self._home.bench, self.spec, self.layout, wish, act_id=self._home.act_id("boundary")
            )
            run.ended(report.sentence, did_something=report.committed)
        return report

    def replace(self, job: JobSpec, *, dry_run: bool = False, **options: Any) -> JobReport:
        """Puts a job's rows in place of offline segments, or adds them, in one swap."""
        from hybrid.replace.job import run_job

        if dry_run:
            return run_job(self._home.bench, self.spec, self.layout, job, dry_run=True, **options)
        with self._home.recorded(self.name, job.job_type) as run:
            act_id = self._home.act_id("replace")
            report = run_job(self._home.bench, self.spec, self.layout, job, act_id=act_id, **options)
            run.ended(report.sentence, did_something=report.committed or report.staged_for is not None)
        return report

    def revert(self, replacement: str, *, dry_run: bool = False, **options: Any) -> JobReport:
        """Puts back what a replacement replaced, as a new commit.

        One in several requests that has not ended is taken back: what was pushed to it goes.
        """
        from hybrid.replace.revert import revert

        if self.replacing.waiting(replacement) is not None:
            return self.replacing.throw_away(replacement, dry_run=dry_run, reason=options.get("reason"))
        if dry_run:
            return revert(self._home.bench, self.spec, self.layout, replacement, dry_run=True, **options)
        with self._home.recorded(self.name, "revert") as run, self._home.backfills.reverting(self, replacement):
            act_id = self._home.act_id("revert")
            report = revert(self._home.bench, self.spec, self.layout, replacement, act_id=act_id, **options)
            run.ended(report.sentence, did_something=report.committed)
        return report

    # What can be seen; no JVM

    def stream_ends(self) -> Mapping[TopicPartition, int] | None:
        """Where Kafka ends at this moment; None where nobody commits it, or it cannot be asked."""
        from hybrid.ingest.stream import require_topics

        stream = self.spec.stream
        if stream is None or self.name in self._home.catalog.serving.pauses():
            return None
        try:
            known = self.half(Half.REALTIME).realtime.known_ids(stream)
            return require_topics(stream, known, _KAFKA_TIMEOUT_MS).ends
        except HybridError:
            return None

    def has_committed(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether the stream is committed up to these offsets."""
        assert self.spec.stream is not None
        offsets = self.half(Half.REALTIME).realtime.offsets
        keys = current_keys(self.spec.stream, ends, offsets)
        return all(offsets.get(keys[place], 0) >= end for place, end in ends.items())

    def view(self, for_: str, *, as_of: AsOfText | None = None, timeout_ms: int | None = None) -> TableView:
        """The table at one revision as Python code for `spark`, `duckdb` or `polars`, which runs without this product.

        Without `as_of` (see `Hybrid.query`) it is of the newest commits. QueryError when it takes longer than
        `timeout_ms`.
        """
        from hybrid.query.plan import QueryTable
        from hybrid.query.views.view import table_view

        brokers = self.spec.stream.brokers if self.spec.stream else None
        queried = QueryTable(self.spec, self.layout, brokers)
        wanted = None if as_of is None else str(as_of)
        return table_view(queried, for_, wall_clock_ms(), wanted, timeout_ms=timeout_ms)

    def half(self, half: Half) -> HalfSnapshot:
        """A half as it is now; NotFoundError when the table has no such half."""
        if half not in self.spec.halves:
            raise NotFoundError(f"Table '{self.name}' has no {half.value} half.")
        return open_half(self.layout.half(half))

    def boundary(self) -> Boundary | None:
        """What moves have taken over, with mode and override; None on a table that has one half only."""
        return self.half(Half.OFFLINE).offline.boundary if len(self.spec.halves) == 2 else None

    def effective_boundary(self) -> EffectiveBoundary | None:
        """What the boundary makes visible now; None on a table that has one half only."""
        if len(self.spec.halves) < len(Half):
            return None
        return self.half(Half.OFFLINE).effective_boundary(self.spec.boundary_lag_ms)

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
        found: list[Segment] = []
        for half in (Half.OFFLINE, Half.REALTIME):
            if half in self.spec.halves:
                found.extend(self._segments_of(half, self.half(half)))
        return found

    def segment(self, name: str) -> Segment:
        """A segment by its name; NotFoundError, with a suggestion, when there is none."""
        segments = {segment.name: segment for segment in self.segments()}
        if name not in segments:
            raise self._no_segment(name, segments)
        return segments[name]

    def _no_segment(self, name: str, segments: Mapping[str, Segment]) -> NotFoundError:
        from hybrid.replace.merged import merges_since

        merges = merges_since(self.half(Half.OFFLINE), name) if Half.OFFLINE in self.spec.halves else []
        if not merges:
            return NotFoundError.named("Segment", name, segments)
        into = ", ".join(f"'{one}'" for one in merges[0].lineage.segments_to)
        return NotFoundError(
            f"Segment '{name}' was merged into {into} by '{merges[0].id}' at {merges[0].created_at}.",
            hint=f"To have it back: hybrid replacement revert {self.name} {merges[0].id}",
        )

    def origins(self, name: str) -> list[Origin]:
        """The acts that wrote to a segment, newest first: where its rows come from."""
        from hybrid.origins import origins_of

        return origins_of(self.half(Half(self.segment(name).half)), name)

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
        from hybrid.rejected import RejectedPage, read_rejected

        snapshot = self.half(Half.REALTIME)
        files = [file for file in snapshot.files if file.segment == columns.rejected_segment(self.name)]
        rows = read_rejected([file.path for file in files], limit, offset, everything=everything, bounds=bounds)
        total = sum(file.rows for file in files) if everything else snapshot.realtime.rejected
        return RejectedPage(total, rows)

    def pause(self, comment: str | None = None) -> PauseStatus:
        """Pauses ingestion by a server until it is resumed."""
        from hybrid.consumption import pause

        return pause(self._home, self, comment)

    def resume(self) -> PauseStatus:
        """Takes a pause back."""
        from hybrid.consumption import resume

        return resume(self._home, self)

    def pause_status(self) -> PauseStatus:
        """Whether ingestion is paused, and what it last said of itself."""
        from hybrid.consumption import pause_status

        return pause_status(self._home, self)

    def consuming(self) -> list[ConsumingInfo]:
        """How far each consuming segment has come, and where Kafka ends."""
        from hybrid.consumption import consuming_info

        return consuming_info(self._home, self)

    def _segments_of(self, half: Half, snapshot: HalfSnapshot) -> list[Segment]:
        consuming = snapshot.realtime.consuming_names() if half is Half.REALTIME else frozenset[str]()
        by_name: dict[str, list[DataFile]] = defaultdict(list)
        for file in snapshot.files:
            if file.segment not in columns.bookkeeping(self.name):
                by_name[file.segment].append(file)
        found = (_segment(name, half, name in consuming, files) for name, files in sorted(by_name.items()))
        stream = self.spec.stream
        if half is Half.OFFLINE or stream is None or len(stream.topics) == 1:
            return list(found)
        return [replace(one, topic=topic_in_name(stream, one.name)) for one in found]


def _never() -> bool:
    return False


def _segment(name: str, half: Half, consuming: bool, files: list[DataFile]) -> Segment:
    realtime = half is Half.REALTIME
    state = "CONSUMING" if consuming else "SEALED" if realtime else "OFFLINE"
    end = _extreme(max, files, "high", columns.OFFSET) if realtime else None
    return Segment(
        name=name,
        half=half.value,
        state=state,
        rows=sum(file.rows for file in files),
        bytes=sum(file.bytes for file in files),
        files=len(files),
        start_ms=_extreme(min, files, "low", columns.TIME),
        end_ms=_extreme(max, files, "high", columns.TIME),
        partition=_extreme(min, files, "low", columns.PARTITION) if realtime else None,
        start_offset=_extreme(min, files, "low", columns.OFFSET) if realtime else None,
        end_offset=None if end is None else end + 1,
        created_ms=min(file.modified_ms for file in files),
    )


def _extreme(pick: Callable[[list[int]], int], files: list[DataFile], side: str, column: str) -> int | None:
    values = [value for file in files if isinstance(value := getattr(file, side).get(column), int)]
    return pick(values) if values else None
