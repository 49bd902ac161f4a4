"""What Kafka says of a topic: its id, its partitions, and from where to where each can be read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.errors import NotFoundError, StreamError
from hybrid.jvm.topics import require_listener
from hybrid.spec.kafka_security import PLAINTEXT, KafkaSecurity
from hybrid.spec.table_config import StreamConfig

if TYPE_CHECKING:
    from kafka import KafkaConsumer

_TIMEOUT_MS = 10_000


@dataclass(frozen=True)
class TopicView:
    """A topic at one moment. `starts` are the first offsets still held, `ends` the last stable offsets (exclusive)."""

    topic: str
    topic_id: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]


def view_topic(
    brokers: str, topic: str, timeout_ms: int = _TIMEOUT_MS, security: KafkaSecurity = PLAINTEXT
) -> TopicView | None:
    """The topic as the cluster shows it now, or None when there is none of that name.

    Raises StreamError when the cluster does not answer within `timeout_ms`. The ends are last stable offsets: what an
    open transaction holds back is not in them.
    """
    from kafka import KafkaAdminClient, TopicPartition
    from kafka.errors import KafkaError

    require_listener(brokers)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # we say what is wrong ourselves, once
    try:
        with ExitStack() as stack:
            admin = KafkaAdminClient(
                bootstrap_servers=brokers, bootstrap_timeout_ms=timeout_ms, **security.for_python()
            )
            stack.callback(admin.close)
            found = admin.describe_topics([topic])[0]
            if found.get("error_code", 0) != 0 or not found.get("partitions"):
                return None
            consumer = _consumer(brokers, security)
            stack.callback(consumer.close)
            partitions = [TopicPartition(topic, p["partition_index"]) for p in found["partitions"]]
            starts = consumer.beginning_offsets(partitions)
            ends = consumer.end_offsets(partitions)
    except (KafkaError, OSError) as error:
        raise unreachable(brokers, error) from error
    return TopicView(
        topic,
        str(found["topic_id"]),
        {part.partition: offset for part, offset in starts.items()},
        {part.partition: offset for part, offset in ends.items()},
    )


def _consumer(brokers: str, security: KafkaSecurity) -> KafkaConsumer:
    from kafka import KafkaConsumer

    return KafkaConsumer(
        bootstrap_servers=brokers, isolation_level="read_committed", group_id=None, **security.for_python()
    )


def offsets_at(brokers: str, view: TopicView, time_ms: int, security: KafkaSecurity = PLAINTEXT) -> dict[int, int]:
    """The first offset of each partition whose message is not older than `time_ms`; not of one that has none.

    StreamError when the cluster does not answer.
    """
    from kafka import TopicPartition
    from kafka.errors import KafkaError

    parts = [TopicPartition(view.topic, number) for number in view.ends]
    try:
        consumer = _consumer(brokers, security)
        try:
            found = consumer.offsets_for_times(dict.fromkeys(parts, time_ms))
        finally:
            consumer.close()
    except (KafkaError, OSError) as error:
        raise unreachable(brokers, error) from error
    return {part.partition: one.offset for part, one in found.items() if one is not None}


def require_topic(stream: StreamConfig, timeout_ms: int = _TIMEOUT_MS) -> TopicView:
    """The topic of a table's stream. NotFoundError when it is not there (yet); else as `view_topic`."""
    view = view_topic(stream.brokers, stream.topic, timeout_ms, stream.security)
    if view is None:
        raise missing_topic(stream)
    return view


def missing_topic(stream: StreamConfig) -> NotFoundError:
    """The error for a topic that is not there (yet)."""
    return NotFoundError(
        f"Topic '{stream.topic}' does not exist at {stream.brokers}.",
        hint=f"hybrid kafka topic create {stream.topic}",
    )


def unreachable(brokers: str, error: Exception) -> StreamError:
    """The error for a cluster that does not answer."""
    return StreamError(
        f"Kafka at {brokers} does not answer ({type(error).__name__}).",
        hint="hybrid kafka start (a local broker), or give your cluster's address: --kafka HOST:PORT on table create. "
        "A broker that asks for a user or speaks TLS does not answer who says nothing of it in the stream's config",
    )
