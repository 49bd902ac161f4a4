"""Plans the next batch: compares what the REALTIME half has committed with what Kafka holds. Pure."""

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
    """What one batch reads, and where the partitions stand: `behind` offsets are left after it.

    `topic_ids` are those of the topics that there are, `leader_epochs` Kafka's by partition at this look.
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
    """The next batch. `pause_offsets` are offsets by partition that nothing is read beyond; others are not read.

    StreamError when a topic was recreated, was truncated or refilled, or no longer holds the offset to read
    next: ingestion of all topics stops and a person decides, because going on would skip or repeat rows without a word.
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
    wanted = sum(max(0, end - state.offsets.get(key, 0)) for key, end in ends.items())
    behind = wanted - sum(piece.end - piece.start for piece in ranges)
    return BatchPlan(view.topic_ids, tuple(ranges), behind, view.leader_epochs)


def is_recreated(stream: StreamConfig, state: RealtimeState, view: StreamView, topic: str) -> bool:
    """Whether a topic is another one than the table has read so far."""
    return state.known_ids(stream).get(topic, view.topic_ids[topic]) != view.topic_ids[topic]


def check_identity(table: str, stream: StreamConfig, state: RealtimeState, view: StreamView) -> None:
    """StreamError when a topic is not the one the table has read so far."""
    for topic, now in view.topic_ids.items():
        if is_recreated(stream, state, view, topic):
            known = state.known_ids(stream)[topic]
            raise StreamError(
                f"Topic '{topic}' was recreated: table '{table}' has read topic id {known}, now it is {now}. "
                f"Ingestion stopped; nothing was skipped and nothing was lost. {_decide(table, stream, topic)}",
                hint="Decide what the new topic holds. What it has of the old one's messages would come twice.",
            )


def check_same_log(table: str, stream: StreamConfig, state: RealtimeState, view: StreamView) -> None:
    """StreamError when a partition was cut below the committed offset, also where it has grown beyond it since."""
    for place, same in valid_positions(stream, state, view).items():
        position = state.offsets[current_keys(stream, [place], state.offsets)[place]]
        if same < position:
            raise StreamError(
                f"Log truncated: table '{table}' has read partition {place.partition} of topic '{place.topic}' up to "
                f"offset {position}, but from offset {same} on Kafka no longer holds what was read. "
                f"Ingestion stopped; nothing was skipped. {_decide(table, stream, place.topic)}",
                hint="A leader without the newest messages was elected, or a broker lost them. Rows that were "
                f"read stay. To read what Kafka holds in their place: --to {place.partition}:{same}",
            )


def valid_positions(stream: StreamConfig, state: RealtimeState, view: StreamView) -> dict[TopicPartition, int]:
    """Up to which offset each partition still holds what was read of it, of those that a leader epoch is known of."""
    keys = current_keys(stream, view.divergences, state.offsets)
    return {place: min(end, state.offsets.get(keys[place], 0)) for place, end in view.divergences.items()}


def leader_epochs_at(view: StreamView, offsets: Offsets) -> dict[PartitionKey, int]:
    """The leader epochs to keep with offsets. An offset beyond the end that was seen belongs to no known epoch."""
    places = {key: key.place for key in offsets if key.place in view.leader_epochs}
    return {key: view.leader_epochs[place] for key, place in places.items() if offsets[key] <= view.ends[place]}


def check_partitions(table: str, stream: StreamConfig, view: StreamView) -> None:
    """StreamError when a topic has not the partitions that are to be read, or more than names of segments can tell."""
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
    """What lets ingestion go on: nothing but a person's decision does."""
    what = reset_target(table, stream, topic)
    return f"Decide where it goes on: hybrid connector reset {what} --to earliest|latest|TIME, with --dry-run first."


def reset_target(table: str, stream: StreamConfig, topic: str) -> str:
    """What a reset names: the table, and the topic where there are several."""
    return f"{table} {topic}" if len(stream.topics) > 1 else table


def start_offsets(
    stream: StreamConfig, view: StreamView, at_time: Mapping[TopicPartition, int] | None = None
) -> Mapping[PartitionKey, int]:
    """The offsets to start from, resolved at a table's creation. A topic that is not there yet starts at 0.

    `at_time` is where messages of the stream's own time begin; a partition that it does not name has none yet.
    """
    chosen = {**view.ends, **(at_time or {})} if stream.offset_reset != "smallest" else view.starts
    return {partition_key(stream, place): offset for place, offset in chosen.items()}
