"""Leader epochs of Kafka's partitions: whether the log below a committed offset is still the one that was read.

Each leader of a partition has its own epoch. After an unclean leader election or a loss of data, a leader may lack the
newest messages. It truncates the log and continues under a higher epoch. The same offsets then hold other
messages. Kafka's clients detect it with OffsetsForLeaderEpoch (KIP-320), which returns where an epoch ends in the log
of the leader. A position above that end belongs to a log that is gone. See docs/adr/0025-truncated-logs.md.

kafka-python has no public call for it. The request uses the admin client's own connections; `tests/cases` tests it
against a real broker.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybrid.table.boundary import TopicPartition

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

_UNDEFINED = -1  # Kafka's value for an epoch or end offset that it does not know
_RETRY_S = 0.1


@dataclass(frozen=True, order=True)
class EpochEnd:
    """The leader's answer: its largest epoch that is not above the requested one, and the end offset of that epoch.

    Both are -1 when all the leader's epochs are below the requested one.
    """

    epoch: int
    end: int


def epoch_ends(
    admin: KafkaAdminClient, epochs: Mapping[TopicPartition, int], timeout_ms: int
) -> dict[TopicPartition, EpochEnd] | None:
    """Where the given leader epoch of each partition ends in its leader's log.

    None when the brokers do not support or do not permit the request. Raises KafkaError when the leader of a partition
    does not answer within `timeout_ms`.
    """
    from kafka import errors

    unsupported = (errors.IncompatibleBrokerVersion, errors.UnsupportedVersionError)
    denied = (errors.ClusterAuthorizationFailedError, errors.TopicAuthorizationFailedError)
    if not epochs:
        return {}
    try:
        ends: dict[TopicPartition, EpochEnd] = admin._manager.run(_ask_until_answered, admin, epochs, timeout_ms)
    except (*unsupported, *denied):
        return None
    return ends


async def _ask_until_answered(
    admin: Any, epochs: Mapping[TopicPartition, int], timeout_ms: int
) -> dict[TopicPartition, EpochEnd]:
    """Ask the leaders, and repeat the request for partitions whose leader changes."""
    import kafka
    from kafka import errors

    ends: dict[TopicPartition, EpochEnd] = {}
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        unanswered = {kafka.TopicPartition(*place) for place in epochs.keys() - ends.keys()}
        moved: type[Exception] | None = None
        for node, parts in (await admin._async_get_leader_for_partitions(unanswered)).items():
            if node < 0:
                moved = errors.LeaderNotAvailableError
                continue
            response = await admin._manager.send(_request(epochs, parts), node_id=node)
            for place, code, answer in _answers(response):
                error = errors.for_code(code)
                if error is errors.NoError:
                    ends[place] = answer
                elif issubclass(error, errors.RetriableError):
                    moved = error
                else:
                    raise error(f"OffsetsForLeaderEpoch of partition {place} was refused")
        if len(ends) == len(epochs):
            return ends
        if time.monotonic() >= deadline:
            raise (moved or errors.LeaderNotAvailableError)("the partition's leader does not answer")
        await admin._net.sleep(_RETRY_S)


def _request(epochs: Mapping[TopicPartition, int], parts: Iterable[tuple[str, int]]) -> Any:
    from kafka.protocol.consumer import OffsetForLeaderEpochRequest

    topic_of = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    partition_of = topic_of.OffsetForLeaderPartition
    by_topic = defaultdict(list)
    for topic, number in parts:
        epoch = epochs[TopicPartition(topic, number)]
        by_topic[topic].append(partition_of(partition=number, current_leader_epoch=_UNDEFINED, leader_epoch=epoch))
    topics = [topic_of(topic=topic, partitions=partitions) for topic, partitions in by_topic.items()]
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)  # -1: a consumer, which sees no uncommitted rows


def _answers(response: Any) -> Iterable[tuple[TopicPartition, int, EpochEnd]]:
    for topic in response.topics:
        for partition in topic.partitions:
            yield (
                TopicPartition(topic.topic, partition.partition),
                partition.error_code,
                EpochEnd(partition.leader_epoch, partition.end_offset),
            )
