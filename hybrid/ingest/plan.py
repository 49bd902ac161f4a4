"""Plans the next batch: compares what the REALTIME half has committed with what Kafka holds. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybrid.errors import StreamError
from hybrid.ingest.stream import TopicView
from hybrid.spec.table_config import StreamConfig
from hybrid.table.boundary import PartitionKey, current_keys, partition_key, topic_key
from hybrid.table.ranges import OffsetRange, plan_ranges
from hybrid.table.state import RealtimeState


@dataclass(frozen=True)
class BatchPlan:
    """What one batch reads, and where the partitions stand: `behind` offsets are left after it."""

    topic_id: str
    ranges: tuple[OffsetRange, ...]
    behind: int


def plan_batch(
    table: str,
    stream: StreamConfig,
    state: RealtimeState,
    view: TopicView,
    batch_offsets_max: int,
    stop_at: Mapping[int, int] | None = None,
) -> BatchPlan:
    """The next batch. `stop_at` are offsets by partition that nothing is read beyond; one it does not name is not read.

    StreamError when the topic was recreated, was refilled past our position, or no longer holds the offset to read
    next: ingestion stops and a person decides, because going on would skip or repeat rows without a word.
    """
    check_identity(table, stream, state, view)
    keys = current_keys(stream, view.ends, state.offsets)
    ends = {keys[partition]: end for partition, end in view.ends.items()}
    for key, end in ends.items():
        _check_position(table, key, state.offsets.get(key, 0), view.starts[key.partition], end)
    if stop_at is not None:
        ends = {key: min(end, stop_at.get(key.partition, 0)) for key, end in ends.items()}
    ranges = plan_ranges(state.offsets, ends, batch_offsets_max)
    wanted = sum(max(0, end - state.offsets.get(key, 0)) for key, end in ends.items())
    return BatchPlan(view.topic_id, tuple(ranges), wanted - sum(piece.end - piece.start for piece in ranges))


def is_recreated(stream: StreamConfig, state: RealtimeState, view: TopicView) -> bool:
    """Whether the topic is another one than the table has read so far."""
    return state.topic_ids.get(topic_key(stream), view.topic_id) != view.topic_id


def check_identity(table: str, stream: StreamConfig, state: RealtimeState, view: TopicView) -> None:
    """StreamError when the topic is not the one the table has read so far."""
    if is_recreated(stream, state, view):
        known = state.topic_ids[topic_key(stream)]
        raise StreamError(
            f"Topic '{view.topic}' was recreated: table '{table}' has read topic id {known}, "
            f"now it is {view.topic_id}. Ingestion stopped; nothing was skipped and nothing was lost. {_decide(table)}",
            hint="Decide what the new topic holds. What it has of the old one's messages would come twice.",
        )


def _check_position(table: str, key: PartitionKey, position: int, start: int, end: int) -> None:
    where = f"partition {key.partition} of topic '{key.topic}'"
    if position < start:
        raise StreamError(
            f"Offsets expired: table '{table}' has to read {where} from offset {position}, "
            f"but Kafka's first one there is {start}: {start - position} offsets are gone. "
            f"Ingestion stopped; nothing was skipped. {_decide(table)}",
            hint="Keep the topic's retention above the longest pause of ingestion; restore the data, or backfill it.",
        )
    if position > end:
        raise StreamError(
            f"Table '{table}' has read {where} up to offset {position}, but it now ends at {end}: "
            f"the topic was truncated or refilled. Ingestion stopped; nothing was skipped. {_decide(table)}",
            hint="Check which cluster the table's broker address names.",
        )


def _decide(table: str) -> str:
    """What lets ingestion go on: nothing but a person's decision does."""
    return f"Decide where it goes on: hybrid connector reset {table} --to earliest|latest|TIME, with --dry-run first."


def start_offsets(
    stream: StreamConfig, view: TopicView | None, at_time: Mapping[int, int] | None = None
) -> Mapping[PartitionKey, int]:
    """The offsets to start from, resolved at a table's creation. A topic that is not there yet starts at 0.

    `at_time` is where messages of the stream's own time begin; a partition that it does not name has none yet.
    """
    if view is None:
        return {}
    chosen = {**view.ends, **(at_time or {})} if stream.offset_reset != "smallest" else view.starts
    return {partition_key(stream, partition): offset for partition, offset in chosen.items()}
