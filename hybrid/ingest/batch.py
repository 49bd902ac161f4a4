"""One ingestion batch: rows, rejected rows and offsets in one commit to the REALTIME half (R2, R6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, StreamConfig, TableSpec
from hybrid.errors import SpecError, StreamError
from hybrid.ingest.plan import BatchPlan, check_identity, check_same_log, plan_batch
from hybrid.ingest.read import assigners_for, read_ranges, write_ranges
from hybrid.ingest.seal import commit_seal
from hybrid.ingest.segment_stats import Pieces, SegmentStats
from hybrid.kafka.streams import require_topics
from hybrid.lake.commit import FileAct, Written, commit_files
from hybrid.lake.commit_context import LockedHalf, new_act_id
from hybrid.lake.layout import physical_columns
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.table_context import TableContext
from hybrid.lake.worker_files import WorkerFiles
from hybrid.runtime.sentence_repr import shown_as
from hybrid.table import columns
from hybrid.table.boundary import PartitionKey, TopicPartition, current_keys
from hybrid.table.names import realtime_sequence
from hybrid.table.ranges import advance
from hybrid.table.segments import Thresholds
from hybrid.table.state import Consuming, RealtimeState, next_act

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH_OFFSETS_MAX = 2_000_000
StopAt = Callable[[], Mapping[TopicPartition, int] | None]


def _nowhere() -> None:
    return None


@shown_as("{0.rows} rows, {0.rejected} rejected, {0.behind} behind")
@dataclass(frozen=True)
class BatchReport:
    """The result of a batch: `rows` and `rejected` committed at `version`; `behind` offsets remain for the next batch.

    `filtered` counts messages that the table's filter dropped: their offsets are committed, the messages are not
    stored. `sealed` counts segments sealed only because of their age, by a commit of its own while nothing arrived.
    `offsets` is how many were read, holes included.
    """

    rows: int
    rejected: int
    behind: int
    version: int
    sealed: int = 0
    filtered: int = 0
    offsets: int = 0


def run_batch(
    table: TableContext,
    batch_offsets_max: int = BATCH_OFFSETS_MAX,
    pause_offsets: StopAt = _nowhere,
) -> BatchReport | None:
    """Read what Kafka holds beyond the committed offsets and commit it; None when there is nothing new.

    The whole batch runs under the half's lock: what it reads depends on the offsets, and only ingestion writes here.
    `pause_offsets` returns the offsets, by partition, beyond which nothing is read; None for no limit.

    Raises StreamError when the stream has changed, NotFoundError when no topic exists yet (see `require_topics`).
    """
    stream, path = stream_of(table.spec), table.layout.half(Half.REALTIME)
    # Fails early, before a JVM starts. The half is read before Kafka, so that no committed offset is beyond the ends.
    early = open_half(path)
    if not early.realtime.reads(stream):
        return None  # its connector has not started
    has_messages = bool(_plan(table.spec, early, batch_offsets_max, pause_offsets()).ranges)
    if not has_messages and not _aged(table.spec, early.realtime, table.bench.now_ms()):
        return None
    spark = table.bench.session if has_messages else None  # before the lock: it may take long
    with table.lock(Half.REALTIME, with_spark=has_messages) as half:
        snapshot, pause, asked_ms = open_half(path), pause_offsets(), table.bench.now_ms()
        plan = _plan(table.spec, snapshot, batch_offsets_max, pause)
        if spark is not None and plan.ranges:
            is_complete = plan.behind == 0 and pause is None
            complete_ms = asked_ms if is_complete else snapshot.realtime.complete_ms
            return _commit_batch(spark, table, snapshot, plan, complete_ms)
        return _seal_aged(table, half, snapshot)


def _plan(
    spec: TableSpec, snapshot: HalfSnapshot, batch_offsets_max: int, pause_offsets: Mapping[TopicPartition, int] | None
) -> BatchPlan:
    stream = stream_of(spec)
    state = snapshot.realtime
    view = require_topics(stream, state.known_ids(stream), asked=state.known_leader_epochs(stream))
    return plan_batch(spec.name, stream, state, view, batch_offsets_max, pause_offsets)


def stream_of(spec: TableSpec) -> StreamConfig:
    """The table's stream; SpecError when it has none."""
    if spec.by_flows:
        raise SpecError(f"Table '{spec.name}' is filled by flows, not by a stream.", hint="hybrid flow run FILE")
    if spec.stream is None:
        lacks = "no connector of Kafka" if Half.REALTIME in spec.halves else "no REALTIME half"
        raise SpecError(f"Table '{spec.name}' has {lacks}, so there is no stream to ingest.")
    return spec.stream


def _commit_batch(
    spark: SparkSession, table: TableContext, snapshot: HalfSnapshot, plan: BatchPlan, complete_ms: int | None
) -> BatchReport:
    state, stream, now_ms, limits = snapshot.realtime, stream_of(table.spec), table.bench.now_ms(), _limits(table.spec)
    assigners = assigners_for(table.spec, state, plan.ranges, limits, now_ms)
    stored_columns, keys = (
        physical_columns(table.spec, Half.REALTIME),
        {offset_range.key.place: offset_range.key for offset_range in plan.ranges},
    )
    act = FileAct(table.layout.half(Half.REALTIME), "ingest", new_act_id("ingest"), stored_columns, takes_narrower=True)
    counts, place = _Found({}, table.spec), WorkerFiles.of(table.bench, act.half)

    def write() -> Written:
        nonlocal counts
        messages = read_ranges(spark, stream, plan.ranges)
        files, pieces = write_ranges(messages, table.spec, assigners, act, place)
        counts = _Found(pieces, table.spec)
        detail = {"rows": counts.rows, "rejected": counts.rejected, "filtered": counts.filtered}
        after = replace(
            _after(state, keys, counts.good, limits, now_ms),
            act=next_act(state, act.id, "ingest", table.bench.now_iso(), detail),
            offsets=advance(state.offsets, list(plan.ranges)),
            topic_ids=state.with_ids(stream, plan.topic_ids),
            leader_epochs=_leader_epochs(state, stream, plan),
            timestamp_max=_highest(state.timestamp_max, *(piece.timestamp_max for piece in pieces.values())),
            rejected=state.rejected + counts.rejected,
            filtered=state.filtered + counts.filtered,
            deletes=state.deletes + sum(piece.deletes for piece in counts.good.values()),
            complete_ms=complete_ms,
            ingested=state.ingested + counts.rows,
        )
        _check_still_the_log(table.spec, after)
        return Written(files, after)

    committed = commit_files(spark, act, write)
    offsets = sum(piece.end - piece.start for piece in plan.ranges)
    return BatchReport(counts.rows, counts.rejected, plan.behind, committed, filtered=counts.filtered, offsets=offsets)


class _Found:
    """Totals of a batch's segment statistics."""

    def __init__(self, pieces: Pieces, spec: TableSpec) -> None:
        bookkeeping_segments = columns.bookkeeping(spec.name)
        self.good = {
            (place, segment): piece
            for (place, segment), piece in pieces.items()
            if segment is not None and segment not in bookkeeping_segments
        }
        self.rows = sum(piece.rows for piece in self.good.values())
        self.filtered = sum(piece.rows for (_, segment), piece in pieces.items() if segment is None)
        self.rejected = sum(piece.rows for piece in pieces.values()) - self.rows - self.filtered


def _leader_epochs(state: RealtimeState, stream: StreamConfig, plan: BatchPlan) -> dict[PartitionKey, int]:
    """The leader epochs after the batch: the plan's for partitions that it read or that had none so far."""
    read = {piece.key for piece in plan.ranges}
    before = {key: epoch for key, epoch in state.leader_epochs.items() if key not in read}
    keys = current_keys(stream, plan.leader_epochs, state.offsets)
    return {**{keys[place]: epoch for place, epoch in plan.leader_epochs.items()}, **before}


def _check_still_the_log(spec: TableSpec, after: RealtimeState) -> None:
    """StreamError when a topic was recreated or truncated during the read: the rows may be from another log."""
    stream = stream_of(spec)
    view = require_topics(stream, after.known_ids(stream), asked=after.known_leader_epochs(stream))
    check_identity(spec.name, stream, after, view)
    try:
        check_same_log(spec.name, stream, after, view)
    except StreamError as error:
        raise StreamError(
            f"{stream.words.capitalize()} was truncated while a batch of '{spec.name}' was read. Nothing of the batch "
            "was committed; it is planned once more from the committed offsets.",
            hint="A leader without the newest messages was elected, or a broker lost them.",
        ) from error


def _seal_aged(table: TableContext, half: LockedHalf, snapshot: HalfSnapshot) -> BatchReport | None:
    """Seal consuming segments that have reached their time threshold while nothing arrives."""
    state = snapshot.realtime
    aged = _aged(table.spec, state, table.bench.now_ms())
    if not aged:
        return None
    committed = commit_seal(table, half, snapshot, aged)
    return BatchReport(0, 0, 0, committed, len(aged))


def _aged(spec: TableSpec, state: RealtimeState, now_ms: int) -> set[PartitionKey]:
    limits = _limits(spec)
    return {key for key, segment in state.consuming.items() if not limits.leave_open(segment, now_ms)}


def _limits(spec: TableSpec) -> Thresholds:
    stream = stream_of(spec)
    return Thresholds(stream.flush_rows, stream.flush_bytes, stream.flush_ms)


def _after(
    state: RealtimeState,
    keys: Mapping[TopicPartition, PartitionKey],
    good: Mapping[tuple[TopicPartition, str], SegmentStats],
    limits: Thresholds,
    now_ms: int,
) -> RealtimeState:
    """The state with the consuming segments after the batch, and the next free sequence of each partition.

    `keys` maps the partitions that were read to their keys.
    """
    consuming: dict[PartitionKey, Consuming] = dict(state.consuming)
    sequences: dict[PartitionKey, int] = dict(state.sequences)
    for (place, segment), piece in sorted(good.items(), key=lambda item: (item[0][0], item[1].start)):
        key = keys[place]
        before = state.consuming.get(key)
        if before is not None and before.name == segment:
            merged = replace(before, rows=before.rows + piece.rows, bytes=before.bytes + piece.bytes)
        else:
            sequence = realtime_sequence(segment)
            merged = Consuming(segment, sequence, piece.start, piece.rows, piece.bytes, now_ms)
            sequences[key] = max(sequence + 1, sequences.get(key, 0))
        consuming[key] = merged
    open_still = {key: segment for key, segment in consuming.items() if limits.leave_open(segment, now_ms)}
    return replace(state, consuming=open_still, sequences=sequences)


def _highest(*timestamps: int | None) -> int | None:
    """The highest Kafka timestamp so far. It never falls, though producers may send older timestamps."""
    return max((value for value in timestamps if value is not None), default=None)
