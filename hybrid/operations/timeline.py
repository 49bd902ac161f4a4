"""What a table's timeline is drawn from: both halves' segments, the boundary, corrections and work on stretches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from hybrid.catalog.run_record import RunRecord
from hybrid.config.table_config import Half
from hybrid.config.upsert_json import MOVE_TASK
from hybrid.lake.log_entries import DataFile
from hybrid.operations.backfill_status import FAILED, INTERRUPTED, RUNNING, BackfillStatus
from hybrid.operations.run_views import visible_error, visible_run
from hybrid.operations.segments import Segment, segments_of_half
from hybrid.replace.lineage import EntryState, ReplacementEntry, entries_of
from hybrid.table.boundary import INFINITE
from hybrid.table.columns import EPOCH, OFFSET, TIME
from hybrid.table.lineage import MERGE, REVERT
from hybrid.table.timeline_marks import BucketCondition, OfflineSegment, RealtimeSegment, SegmentCondition, Work

if TYPE_CHECKING:
    from hybrid.config.table_config import TableSpec
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.table.boundary import Boundary
    from hybrid.table.effective import EffectiveBoundary
    from hybrid.table.plans import Plan

_DAY_MS = 86_400_000
_MOVES = ("move", MOVE_TASK)
_BACKFILL_STATES = {
    RUNNING: BucketCondition.RUNNING,
    FAILED: BucketCondition.FAILED,
    INTERRUPTED: BucketCondition.FAILED,
}


@dataclass(frozen=True)
class OfflineLane:
    """The offline half on a timeline, with the boundary in effect: it stays the same while rows only arrive.

    `watermarks` are the offset watermarks by partition and epoch. `timeless` counts segments without times, which have
    no place.
    """

    effective: EffectiveBoundary | None
    watermarks: Mapping[tuple[str, int], int]
    segments: tuple[OfflineSegment, ...]
    entries: Mapping[str, ReplacementEntry]
    timeless: int

    @property
    def frontier(self) -> dict[str, int]:
        """The watermark of each partition in its newest epoch, which comes last."""
        return {name: offset for (name, _), offset in sorted(self.watermarks.items())}


@dataclass(frozen=True)
class TimelineSource:
    """A table at one moment. `limit_ms` is the boundary in effect (None: no row is covered by time).

    `frontier` is the offset watermark by partition. `timeless` counts segments without times, which have no place.
    """

    bucket_ms: int
    limit_ms: int | None
    frontier: Mapping[str, int]
    offline: tuple[OfflineSegment, ...]
    realtime: tuple[RealtimeSegment, ...]
    entries: Mapping[str, ReplacementEntry]
    timeless: int

    @cached_property
    def reach(self) -> tuple[int, int] | None:
        """The stretch from the first row's time to after the last one's; None without rows."""
        times = [(segment.start_ms, segment.end_ms) for segment in self.offline]
        times += [(segment.start_ms, segment.end_ms) for segment in self.realtime]
        return (min(start for start, _ in times), max(end for _, end in times) + 1) if times else None

    @property
    def taken_over(self) -> tuple[int, int] | None:
        """The stretch in which the offline half should hold every bucket: from its first row to the boundary."""
        if not self.offline:
            return None
        first = min(segment.start_ms for segment in self.offline)
        last = max(segment.end_ms for segment in self.offline) + 1
        return first, last if self.limit_ms is None else max(last, self.limit_ms)


def timeline_source(table: TableRef, offline: OfflineLane | None = None) -> TimelineSource:
    """The segments, the boundary and the corrections of a table.

    `offline` is what an earlier call of `offline_lane` gave at the same version of that half; its log is not read then.
    """
    spec, lane = table.spec, offline or offline_lane(table)
    limit_ms = lane.effective.limit_ms if lane.effective is not None else None
    realtime = segments_of_half(table, Half.REALTIME) if Half.REALTIME in spec.halves else []
    return TimelineSource(
        bucket_ms=spec.move.bucket_ms if spec.move else _DAY_MS,
        limit_ms=None if limit_ms == INFINITE else limit_ms,
        frontier=lane.frontier,
        offline=lane.segments,
        realtime=tuple(_realtime(table, realtime, lane.effective, lane.watermarks)),
        entries=lane.entries,
        timeless=lane.timeless + sum(found.start_ms is None for found in realtime),
    )


def offline_lane(table: TableRef) -> OfflineLane:
    """What the offline half gives to the timeline: nothing on a table without it."""
    if Half.OFFLINE not in table.spec.halves:
        return OfflineLane(None, {}, (), {}, 0)
    segments = segments_of_half(table, Half.OFFLINE)
    entries = entries_of(table.half(Half.OFFLINE))
    written = _written_by(entries)
    return OfflineLane(
        effective=table.effective_boundary(),
        watermarks=_watermarks(table.spec, table.boundary()),
        segments=tuple(
            OfflineSegment(found.name, found.start_ms, found.end_ms, found.rows, found.bytes, written.get(found.name))
            for found in segments
            if found.start_ms is not None and found.end_ms is not None
        ),
        entries={entry.id: entry for entry in entries},
        timeless=sum(found.start_ms is None for found in segments),
    )


def _written_by(entries: Sequence[ReplacementEntry]) -> dict[str, str]:
    """The correction in effect that wrote each segment; merges and reverts are none."""
    return {
        name: entry.id
        for entry in reversed(entries)
        if entry.state is EntryState.ACTIVE and entry.kind not in {MERGE, REVERT}
        for name in entry.lineage.segments_to
    }


def _watermarks(spec: TableSpec, boundary: Boundary | None) -> dict[tuple[str, int], int]:
    """The watermark of each partition in each epoch, by the partition's name on the timeline and the epoch."""
    if boundary is None or spec.stream is None:
        return {}
    several = len(spec.stream.topics) > 1
    return {
        (f"{key.topic}/{key.partition}" if several else str(key.partition), key.epoch): offset
        for key, offset in boundary.frontier.items()
        if key.connector == spec.stream.connector
    }


def _realtime(
    table: TableRef,
    segments: Sequence[Segment],
    effective: EffectiveBoundary | None,
    watermarks: Mapping[tuple[str, int], int],
) -> Iterator[RealtimeSegment]:
    files = defaultdict[str, list[DataFile]](list)
    if Half.REALTIME in table.spec.halves:
        for file in table.half(Half.REALTIME).files:
            files[file.segment].append(file)
    for found in segments:
        if found.start_ms is None or found.end_ms is None:
            continue
        partition = str(found.partition if found.partition is not None else "?")
        name = f"{found.topic}/{partition}" if found.topic is not None else partition
        epoch = files[found.name][0].low.get(EPOCH)  # a segment lies in one epoch: a reset seals those before
        watermark = watermarks.get((name, epoch if isinstance(epoch, int) else 0), 0)
        is_old, is_late = _relation(found, files[found.name], effective, watermark)
        state = SegmentCondition.CONSUMING if found.state == "CONSUMING" else SegmentCondition.SEALED
        yield RealtimeSegment(
            found.name, name, found.start_ms, found.end_ms, found.rows, found.bytes, found.start_offset,
            found.end_offset, SegmentCondition.MOVED if is_old and state is SegmentCondition.SEALED else state, is_late,
        )  # fmt: skip


def _relation(
    found: Segment, files: Sequence[DataFile], effective: EffectiveBoundary | None, watermark: int
) -> tuple[bool, bool]:
    """Whether the offline half answers for all rows of a segment; whether the segment holds late rows.

    A file holds them if all its offsets are above the watermark and its first time is below the limit. A segment that
    reaches over both was in part taken by a move, so its own extremes do not tell.
    """
    if effective is None or effective.limit_ms is None or found.start_ms is None or found.end_ms is None:
        return False, False
    before = found.end_ms < effective.limit_ms
    if effective.time_alone:
        return before, False
    end_offset = found.end_offset or 0
    limit_ms = effective.limit_ms
    return before and end_offset <= watermark, any(_is_late(file, limit_ms, watermark) for file in files)


def _is_late(file: DataFile, limit_ms: int, watermark: int) -> bool:
    first, offset = file.low.get(TIME), file.low.get(OFFSET)
    return isinstance(first, int) and isinstance(offset, int) and first < limit_ms and offset >= watermark


def timeline_works(home: Home, table: TableRef, source: TimelineSource) -> list[Work]:
    """The work on stretches of the offline half that runs or has failed: backfills and moves."""
    works: list[Work] = []
    if Half.OFFLINE in table.spec.halves:
        from hybrid.operations.backfills import Backfills

        backfills = Backfills(home)
        for status in backfills.statuses(table.name):
            if status.state in _BACKFILL_STATES:
                works.extend(_backfill_works(backfills.show(status.id), status))
    for run in home.catalog.runs.list(table.name, limit=100):
        if run.type in _MOVES and not run.dry_run:
            move = _move_work(visible_run(run), source)
            if move is not None:
                works.append(move)
            if not run.incomplete:
                break  # only the newest one that ended counts
    return works


def _backfill_works(plan: Plan, status: BackfillStatus) -> Iterator[Work]:
    state = _BACKFILL_STATES[status.state]
    why = visible_error(status.error) or status.result
    for bucket in plan.buckets:
        if bucket.unit is not None and bucket.start is not None and bucket.end is not None:
            yield Work(bucket.start, bucket.end, state, plan.id, why)


def _move_work(run: RunRecord, source: TimelineSource) -> Work | None:
    """The bucket after the boundary, which a move takes next."""
    if source.limit_ms is None or not (run.incomplete or run.state == "FAILED"):
        return None
    state = BucketCondition.RUNNING if run.incomplete else BucketCondition.FAILED
    end_ms = (source.limit_ms // source.bucket_ms + 1) * source.bucket_ms
    return Work(source.limit_ms, end_ms, state, run.id, run.result or run.progress or "A move is queued.")
