"""Plans the next batch from the REALTIME half's committed offsets and what Kafka holds. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hybrid.config.table_config import GROUPS_PER_TOPIC, StreamConfig
from hybrid.errors import StreamError
from hybrid.kafka.streams import StreamView
from hybrid.table.boundary import Offsets, PartitionKey, TopicPartition, current_keys, partition_key
from hybrid.table.ranges import OffsetRange, plan_ranges
from hybrid.table.state import RealtimeState


@dataclass(frozen=True)
class BatchPlan:
    """What one batch reads; `behind` offsets remain after it.

    `topic_ids` are the ids of the existing topics. `leader_epochs` are Kafka's, by partition, at the time of planning.
    """

    topic_ids: Mapping[str, str]
    ranges: tuple[OffsetRange, ...]
    behind: int
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)


def plan_batch(
    table: str,
    stream: StreamConfig,
    state: RealtimeState,
    view: StreamView,
    batch_offsets_max: int,
    pause_offsets: Mapping[TopicPartition, int] | None = None,
) -> BatchPlan:
    """The next batch. `pause_offsets` are the end offsets by partition; partitions without one are not read.

    Raises StreamError when a topic was recreated, truncated or refilled, or no longer holds the next offset. Ingestion
    of all topics then stops until a person decides, because going on would silently skip or repeat rows.
    """
    check_identity(table, stream, state, view)
    check_partitions(table, stream, view)
    check_same_log(table, stream, state, view)
    keys = current_keys(stream, view.ends, state.offsets)
    ends = {keys[place]: end for place, end in view.ends.items()}
    for key, end in ends.items():
        _check_position(table, stream, key, state.offsets.get(key, 0), view.starts[key.place], end)
    if pause_offsets is not None:
        ends = {key: min(end, pause_offsets.get(key.place, 0)) for key, end in ends.items()}
    ranges = plan_ranges(state.offsets, ends, batch_offsets_max)
    available = sum(max(0, end - state.offsets.get(key, 0)) for key, end in ends.items())
    behind = available - sum(piece.end - piece.start for piece in ranges)
    return BatchPlan(view.topic_ids, tuple(ranges), behind, view.leader_epochs)


def is_recreated(stream: StreamConfig, state: RealtimeState, view: StreamView, topic: str) -> bool:
    """Whether a topic is a different one than the table has read so far."""
    return state.known_ids(stream).get(topic, view.topic_ids[topic]) != view.topic_ids[topic]


def check_identity(table: str, stream: StreamConfig, state: RealtimeState, view: StreamView) -> None:
    """StreamError when a topic is not the one that the table has read so far."""
    for topic, now in view.topic_ids.items():
        if is_recreated(stream, state, view, topic):
            known_id = state.known_ids(stream)[topic]
            raise StreamError(
                f"Topic '{topic}' was recreated: table '{table}' has read topic id {known_id}, now it is {now}. "
                f"Ingestion stopped; nothing was skipped and nothing was lost. {_decide(table, stream, topic)}",
                hint="Decide what the new topic holds. What it has of the old one's messages would be there twice.",
            )


def check_same_log(table: str, stream: StreamConfig, state: RealtimeState, view: StreamView) -> None:
    """StreamError when a partition was truncated below the committed offset, even if it has grown beyond it since."""
    for place, same in valid_positions(stream, state, view).items():
        position = state.offsets[current_keys(stream, [place], state.offsets)[place]]
        if same < position:
            raise StreamError(
                f"Log truncated: table '{table}' has read partition {place.partition} of topic '{place.topic}' up to "
                f"offset {position}, but from offset {same} on Kafka no longer holds what was read. "
                f"Ingestion stopped; nothing was skipped. {_decide(table, stream, place.topic)}",
                hint="A leader without the newest messages was elected, or a broker lost them. Rows that were "
                f"read stay. To read what Kafka holds in their place: hybrid connector reset {table} --to "
                f"{place.partition}:{same}",
            )


def valid_positions(stream: StreamConfig, state: RealtimeState, view: StreamView) -> dict[TopicPartition, int]:
    """The offset up to which each partition still holds what was read of it.

    Only partitions with a known leader epoch.
    """
    keys = current_keys(stream, view.divergences, state.offsets)
    return {place: min(end, state.offsets.get(keys[place], 0)) for place, end in view.divergences.items()}


def leader_epochs_at(view: StreamView, offsets: Offsets) -> dict[PartitionKey, int]:
    """The leader epochs to store with offsets. An offset beyond the end in `view` belongs to no known epoch."""
    places = {key: key.place for key in offsets if key.place in view.leader_epochs}
    return {key: view.leader_epochs[place] for key, place in places.items() if offsets[key] <= view.ends[place]}


def check_partitions(table: str, stream: StreamConfig, view: StreamView) -> None:
    """StreamError when a topic lacks a configured partition, or has too many for the names of segments."""
    for topic in view.topic_ids:
        missing = [number for number in stream.partitions if TopicPartition(topic, number) not in view.ends]
        if missing:
            raise StreamError(
                f"Topic '{topic}' has no partition {missing[0]}, which 'partitions' of connector '{stream.connector}' "
                f"of table '{table}' names. Nothing was read.",
                hint="Create the topic with as many partitions, or a table of another name that reads those there are.",
            )
    highest = max(view.ends, key=lambda place: place.partition, default=None)
    if len(stream.topics) > 1 and highest is not None and highest.partition >= GROUPS_PER_TOPIC:
        raise StreamError(
            f"Topic '{highest.topic}' has a partition {highest.partition}: a table of several topics reads those below "
            f"{GROUPS_PER_TOPIC}, as names of segments tell the topics apart by it. Nothing was read.",
            hint="Read this topic into a table of its own.",
        )


def _check_position(table: str, stream: StreamConfig, key: PartitionKey, position: int, start: int, end: int) -> None:
    where = f"partition {key.partition} of topic '{key.topic}'"
    if position < start:
        raise StreamError(
            f"Offsets expired: table '{table}' has to read {where} from offset {position}, "
            f"but Kafka's first one there is {start}: {start - position} offsets are gone. "
            f"Ingestion stopped; nothing was skipped. {_decide(table, stream, key.topic)}",
            hint="Keep the topic's retention above the longest pause of ingestion; restore the data, or backfill it.",
        )
    if position > end:
        raise StreamError(
            f"Table '{table}' has read {where} up to offset {position}, but it now ends at {end}: the topic was "
            f"truncated or refilled. Ingestion stopped; nothing was skipped. {_decide(table, stream, key.topic)}",
            hint="Check which cluster the table's broker address names.",
        )


def _decide(table: str, stream: StreamConfig, topic: str) -> str:
    """How ingestion can continue: only a person's decision does that."""
    what = reset_target(table, stream, topic)
    return f"Decide where it continues: hybrid connector reset {what} --to earliest|latest|TIME, with --dry-run first."


def reset_target(table: str, stream: StreamConfig, topic: str) -> str:
    """The arguments of a reset: the table, and the topic if the stream has several."""
    return f"{table} {topic}" if len(stream.topics) > 1 else table


def start_offsets(
    stream: StreamConfig, view: StreamView, at_time: Mapping[TopicPartition, int] | None = None
) -> Mapping[PartitionKey, int]:
    """The offsets to start from, resolved when a table is created. A topic that does not exist yet starts at 0.

    `at_time` holds the offsets where the stream's start time begins; a partition without one has no such message yet.
    """
    chosen = {**view.ends, **(at_time or {})} if stream.offset_reset != "smallest" else view.starts
    return {partition_key(stream, place): offset for place, offset in chosen.items()}
