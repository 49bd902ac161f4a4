"""What Kafka shows of a topic, written short."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.kafka.streams import StreamView
from hybrid.table.boundary import TopicPartition


def seen(topic: str, topic_id: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> StreamView:
    """A stream of one topic: first and last offsets by partition."""
    return together(StreamView({topic: topic_id}, by_place(topic, starts), by_place(topic, ends)))


def together(*views: StreamView) -> StreamView:
    """A stream of all these topics."""
    found = StreamView({}, {}, {})
    for one in views:
        found = StreamView(
            {**found.topic_ids, **one.topic_ids}, {**found.starts, **one.starts}, {**found.ends, **one.ends}
        )
    return found


def by_place(topic: str, offsets: Mapping[int, int]) -> dict[TopicPartition, int]:
    """Offsets of one topic as a stream has them."""
    return {TopicPartition(topic, number): offset for number, offset in offsets.items()}
