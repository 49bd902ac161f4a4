"""Topics of a Kafka cluster: list, create, describe, produce. Every error of the client becomes a StreamError."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.errors import ConflictError, StreamError, TopicError
from hybrid.kafka.clients import CHECK_TIMEOUT_MS, WORK_TIMEOUT_MS, admin_client, producer
from hybrid.progress import Progress, Silent

if TYPE_CHECKING:
    from kafka import KafkaProducer
    from kafka.admin import KafkaAdminClient

_STEP_RECORDS = 10_000
_CONNECT_S = 5
_POLL_S = 0.1
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True)
class Topic:
    """A topic: name, id (32 hex digits with dashes, new when the topic is recreated), partition numbers."""

    name: str
    id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class TopicRecord:
    """A record to produce.

    Without `partition` the key decides, without both the client. Without a time it is now (ms).
    """

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp_ms: int | None = None


def cluster_answers(brokers: str) -> bool:
    """Whether a broker at `host:port` answers a request. False at once when nothing listens there."""
    from kafka.errors import KafkaError

    try:
        require_listener(brokers)
        with admin_client(brokers, CHECK_TIMEOUT_MS) as admin:
            return bool(admin.describe_cluster()["brokers"])
    except (KafkaError, OSError, StreamError):
        return False


def list_topics(brokers: str) -> list[Topic]:
    """All topics by name, without Kafka's internal ones. Raises StreamError when the brokers cannot be reached."""
    with _admin(brokers) as admin:
        topics = [_topic(described) for described in admin.describe_topics() if not described["is_internal"]]
    return sorted(topics, key=lambda topic: topic.name)


def describe_topic(brokers: str, name: str) -> Topic | None:
    """The topic, or None when it does not exist. Raises StreamError when the brokers cannot be reached."""
    from kafka.errors import UnknownTopicOrPartitionError

    with _admin(brokers) as admin:
        try:
            descriptions = admin.describe_topics([name])
        except UnknownTopicOrPartitionError:
            return None
    return next((_topic(described) for described in descriptions if described["error_code"] == 0), None)


def existing_topics(admin: KafkaAdminClient, names: Iterable[str]) -> list[Topic]:
    """The existing ones of some topics. Uses the caller's client, whose errors propagate.

    Raises TopicError for a topic that Kafka refuses: whether it exists is unknown, so it does not count as missing.
    """
    from kafka import errors

    described = admin.describe_topics(list(names))
    # The second code: the topic is being created.
    absent = (errors.UnknownTopicOrPartitionError.errno, errors.LeaderNotAvailableError.errno)
    for topic in described:
        code = topic.get("error_code", 0)
        if code and code not in absent:
            raise TopicError(
                f"Kafka refuses topic '{topic['name']}': {errors.for_code(code).message} (error {code}).",
                hint="Check its name, and what the user that the stream's config names may do.",
            )
    return [_topic(topic) for topic in described if topic.get("error_code", 0) == 0 and topic.get("partitions")]


def create_topic(brokers: str, name: str, partitions: int = 1) -> tuple[Topic, bool]:
    """Create a topic unless it exists. Returns it, ready for producing, and whether it was created now.

    Raises ConflictError when it exists with another number of partitions, StreamError when Kafka refuses the name.
    """
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise StreamError(f"'{name}' cannot be a topic: letters, digits, '.', '_', '-' of ASCII, at most 249.")
    existing = describe_topic(brokers, name)
    if existing is None:
        with _admin(brokers) as admin:
            admin.create_topics({name: {"num_partitions": partitions}}, wait_for_metadata=True)
        return _required(brokers, name), True
    if len(existing.partitions) != partitions:
        raise ConflictError(f"Topic '{name}' exists already with {_partitions(existing)}, not {partitions}.")
    return existing, False


def deletable_topic(brokers: str, name: str) -> Topic:
    """A topic that may be deleted. Raises StreamError when it is not there or Kafka's own, TopicError as Kafka says."""
    with _admin(brokers) as admin:
        return _deletable(admin, brokers, name)


def _deletable(admin: KafkaAdminClient, brokers: str, name: str) -> Topic:
    if name.startswith("__"):
        raise StreamError(f"Topic '{name}' is Kafka's own. Nothing was deleted.")
    topics = existing_topics(admin, [name])
    if not topics:
        raise StreamError(f"Topic '{name}' does not exist at {brokers}.", hint="hybrid kafka topic list")
    return topics[0]


def delete_topic(brokers: str, name: str) -> Topic:
    """Delete a topic with its messages, and wait until the brokers have forgotten it. Returns what was deleted.

    Raises StreamError as `deletable_topic` does, and when the brokers delete no topics or not in time.
    """
    from kafka.errors import TopicDeletionDisabledError

    with _admin(brokers) as admin:
        topic = _deletable(admin, brokers, name)
        try:
            admin.delete_topics([name])
        except TopicDeletionDisabledError as error:
            hint = "Set delete.topic.enable=true there, or take another topic."
            raise StreamError(f"The brokers at {brokers} delete no topics.", hint=hint) from error
        deadline = time.monotonic() + WORK_TIMEOUT_MS / 1000
        while any(left.id == topic.id for left in existing_topics(admin, [name])):
            if time.monotonic() > deadline:
                raise StreamError(f"Topic '{name}' was deleted, but the brokers at {brokers} still list it.")
            time.sleep(_POLL_S)
    return topic


def produce(
    brokers: str,
    topic: str,
    records: Iterable[bytes | TopicRecord],
    progress: Progress | None = None,
    *,
    partition: int | None = None,
) -> int:
    """Produce records in order with acks=all. Returns how many the brokers have acknowledged, which is all of them.

    `bytes` is a record without a key. `partition` is for records without their own. Raises StreamError when the brokers
    cannot be reached, the topic or partition does not exist, or a record is refused.
    """
    _require_partition(brokers, _required(brokers, topic), partition)
    with _errors(brokers), producer(brokers) as client:
        count = _send(client, topic, records, partition, progress or Silent())
    return count


def _send(
    producer: KafkaProducer, topic: str, records: Iterable[bytes | TopicRecord], partition: int | None, said: Progress
) -> int:
    failures: list[BaseException] = []
    count = 0
    for item in records:
        record = TopicRecord(item) if isinstance(item, bytes) else item
        place = record.partition if record.partition is not None else partition
        future = producer.send(topic, record.value, record.key, partition=place, timestamp_ms=record.timestamp_ms)
        future.add_errback(failures.append)
        count += 1
        if failures:
            break
        if count % _STEP_RECORDS == 0:
            said.step(f"Producing to {topic}", count, None)
    producer.flush()
    if failures:
        raise failures[0]
    if count >= _STEP_RECORDS:
        said.step(f"Producing to {topic}", count, count)
    return count


def _required(brokers: str, name: str) -> Topic:
    topic = describe_topic(brokers, name)
    if topic is None:
        raise StreamError(f"Topic '{name}' does not exist at {brokers}. Create it: hybrid kafka topic create {name}")
    return topic


def _require_partition(brokers: str, topic: Topic, partition: int | None) -> None:
    if partition is not None and partition not in topic.partitions:
        raise StreamError(
            f"Topic '{topic.name}' at {brokers} has {_partitions(topic)}, counted from 0; "
            f"there is no partition {partition}."
        )


def require_listener(brokers: str) -> None:
    """Fail at once when nothing listens at any of the addresses: the client would take many seconds."""
    reasons = []
    for address in brokers.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or "//" in host or not port.isdigit():
            raise StreamError(f"'{address}' is no Kafka address: host:port[,host:port].")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
            return
        except (OSError, OverflowError, UnicodeError) as error:  # the last: a host that no DNS name can be
            reasons.append(getattr(error, "strerror", None) or str(error))
    raise _unreachable(brokers, ", ".join(dict.fromkeys(reasons)))


def _unreachable(brokers: str, reason: object) -> StreamError:
    return StreamError(
        f"Kafka at {brokers} cannot be reached: {reason}",
        hint="hybrid kafka start starts the local one. Another: hybrid kafka ... --kafka HOST:PORT, or for a table "
        "hybrid table apply ... --kafka HOST:PORT",
    )


def _partitions(topic: Topic) -> str:
    count = len(topic.partitions)
    return "1 partition" if count == 1 else f"{count} partitions"


def _topic(described: dict[str, object]) -> Topic:
    partitions = described["partitions"]
    assert isinstance(partitions, list)
    numbers = sorted(int(partition["partition_index"]) for partition in partitions)
    return Topic(str(described["name"]), str(described["topic_id"]), tuple(numbers))


@contextmanager
def _admin(brokers: str) -> Iterator[KafkaAdminClient]:
    require_listener(brokers)
    with _errors(brokers), admin_client(brokers, WORK_TIMEOUT_MS) as admin:
        yield admin


@contextmanager
def _errors(brokers: str) -> Iterator[None]:
    """Convert the client's errors into ours."""
    from kafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError

    try:
        yield
    except (KafkaConnectionError, KafkaTimeoutError) as error:
        raise _unreachable(brokers, error) from error
    except KafkaError as error:
        raise StreamError(f"Kafka at {brokers} refused: {error}") from error
