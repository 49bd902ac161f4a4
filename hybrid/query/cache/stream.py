"""The live tail: what Kafka holds beyond a position, as it arrives.

Assign and seek, no consumer group, read committed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from hybrid.config.table_config import TableSpec
from hybrid.errors import StreamError
from hybrid.kafka.clients import QUERY_TIMEOUT_MS, broker_answers, consumer
from hybrid.query.tail import TailMessage
from hybrid.table.boundary import PartitionKey, TopicPartition, current_keys, read_places
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    from confluent_kafka import Message

_POLL_RECORDS = 20_000
_METADATA_MS = 1000
# How often Kafka is asked where it ends, and how long a broker may take to say so.
_ENDS_S, _REACHED_S_MAX = 0.3, 5.0
_SILENT_MS_MAX = 1000


_FETCHING = {
    # librdkafka wants a name for a group, though nothing is committed to it and nobody joins it.
    "group.id": "hybrid-tail",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 100,
    "fetch.queue.backoff.ms": 10,
    "max.partition.fetch.bytes": 8 * 1024 * 1024,
    "queued.max.messages.kbytes": 64 * 1024,
}
_SILENT = logging.Logger("librdkafka", logging.CRITICAL + 1)  # we say what is wrong ourselves, once


@dataclass(frozen=True)
class Polled:
    """Messages in offset order by partition, and the positions after them.

    `complete_at` is a moment (monotonic clock, s) whose whole stream has been polled; None: none is known anew.
    """

    messages: Sequence[TailMessage] = ()
    positions: Mapping[PartitionKey, int] = field(default_factory=dict)
    complete_at: float | None = None


class Stream(Protocol):
    """A stream that is followed."""

    def poll(self, wait_s: float) -> Polled:
        """What has come since the last call; waits so long when nothing has. StreamError when it is not as it was."""

    def ends(self) -> Mapping[PartitionKey, int]:
        """Where it ends now, by partition: the position after what is there. Any thread may ask. StreamError."""

    def is_of(self, state: RealtimeState) -> bool:
        """Whether it is the stream that a state's offsets are of, and not another one of the same name."""

    def close(self) -> None:
        """Lets go of it."""


class KafkaStream:
    """The topics of a table from the committed offsets on.

    Messages come by librdkafka, which fetches them beside Python's threads; what the topics are and where they end is
    asked on a connection of its own, for a broker answers the requests of one in turn, and a fetch waits for rows.
    """

    def __init__(self, spec: TableSpec, state: RealtimeState, brokers: str) -> None:
        from confluent_kafka import Consumer

        assert spec.stream is not None
        if not broker_answers(brokers):  # asked first: a consumer that finds none leaves its sockets behind
            raise StreamError(f"Kafka at {brokers} does not answer.", hint="hybrid kafka status")
        self._stream = spec.stream
        self._known_ids = state.known_ids(self._stream)
        self._positions = dict(state.offsets)
        security = self._stream.security
        settings = {**_FETCHING, "bootstrap.servers": brokers, **security.for_librdkafka()}
        self._fetching = Consumer(settings, logger=_SILENT)
        self._asking = consumer(brokers, security, QUERY_TIMEOUT_MS, metadata_max_age_ms=_METADATA_MS)
        self._one_asks = threading.Lock()
        # Rows do not wait for the answer.
        self._asker = ThreadPoolExecutor(1, thread_name_prefix="ends")
        self._answer: Future[tuple[Mapping[PartitionKey, int], float]] | None = None
        # It knows the topics' ids, which kafka-python shows by no method of its consumer.
        self._cluster = self._asking._cluster
        self._keys: dict[TopicPartition, PartitionKey] = {}
        # The same as a message tells where it is from: of one topic its partition's number is enough, and the quickest.
        self._is_alone = len(self._stream.topics) == 1
        self._by_message: dict[int | tuple[str, int], PartitionKey] = {}
        # The partitions that something was heard of: connecting takes a while.
        self._met: set[int | tuple[str, int]] = set()
        self._ends: Mapping[PartitionKey, int] = {}
        self._looked, self._asked = 0.0, 0.0
        try:
            self._look()
        except BaseException:
            self.close()
            raise

    def poll(self, wait_s: float) -> Polled:
        """See `Stream`."""
        if time.monotonic() - self._looked > _METADATA_MS / 1000:
            self._look()
        first = self._fetching.poll(wait_s)
        while first is not None and self._is_known_end(first):  # one follows each row
            first = self._fetching.poll(wait_s)
        found = [first, *self._fetching.consume(_POLL_RECORDS, 0)] if first is not None else []
        keys, positions, messages, with_headers = self._by_message, self._positions, [], self._stream.metadata
        is_alone = self._is_alone
        for message in found:
            error, number, offset = message.error(), message.partition() or 0, message.offset() or 0
            place = number if is_alone else (message.topic() or "", number)
            if error is None:
                key = keys[place]
                positions[key] = offset + 1
                beside = (message.key(), message.headers() or ()) if with_headers else ()
                messages.append(TailMessage(key, offset, message.timestamp()[1], message.value(), *beside))
            elif error.code() == error._PARTITION_EOF:
                positions[keys[place]] = offset  # beyond what transactions leave in a log without being rows
            elif error.retriable():
                continue
            else:
                raise StreamError(f"Nothing more is heard of {self._stream.words}: {error.str()}")
            self._met.add(place)
        if messages:
            self._check_identity()
        return Polled(messages, dict(positions), self._complete_at())

    def _is_known_end(self, message: Message) -> bool:
        """Whether it only tells that a partition ends where the row before it has said."""
        error = message.error()
        if error is None or error.code() != error._PARTITION_EOF:
            return False
        number = message.partition() or 0
        place = number if self._is_alone else (message.topic() or "", number)
        return place in self._met and self._positions[self._by_message[place]] == message.offset()

    def ends(self) -> Mapping[PartitionKey, int]:
        """See `Stream`: the last stable offsets."""
        import kafka
        from kafka.errors import KafkaError

        keys = self._keys
        try:
            with self._one_asks:
                found = self._asking.end_offsets(
                    [kafka.TopicPartition(*place) for place in keys], timeout_ms=_SILENT_MS_MAX
                )
        except (KafkaError, ValueError, OSError) as error:  # ValueError: it was closed meanwhile
            raise StreamError(f"Kafka does not answer for {self._stream.words}: {error}") from error
        return {keys[TopicPartition(*part)]: end for part, end in found.items()}

    def is_of(self, state: RealtimeState) -> bool:
        """See `Stream`, by the topics' ids."""
        return {**self._known_ids, **state.known_ids(self._stream)} == self._known_ids

    def close(self) -> None:
        """See `Stream`."""
        self._fetching.close()
        self._asker.shutdown(wait=False, cancel_futures=True)
        with self._one_asks:
            self._asking.close(autocommit=False)

    def _complete_at(self) -> float | None:
        """The moment at which Kafka was last asked where it ends, once all that was there then has been polled.

        More may have come since: where rows never stop, no moment would find all of them polled.
        """
        if self._answer is not None and self._answer.done():
            (self._ends, self._asked), self._answer = self._answer.result(), None
        pause_s = _ENDS_S if self._is_reached() else _REACHED_S_MAX
        if self._answer is None and time.monotonic() - self._asked > pause_s:
            try:
                self._answer = self._asker.submit(self._ask)
            except RuntimeError as error:  # executors end before this thread does
                raise StreamError("The process ends.") from error
        return self._asked if self._is_reached() else None

    def _is_reached(self) -> bool:
        heard = len(self._met) == len(self._keys)
        return heard and all(self._positions[key] >= end for key, end in self._ends.items())

    def _ask(self) -> tuple[Mapping[PartitionKey, int], float]:
        """Where it ends, and a moment at which it did not end further."""
        asked = time.monotonic()
        return self.ends(), asked

    def _check_identity(self) -> None:
        """StreamError when a topic is another one of the same name, or has gone."""
        for topic in {place.topic for place in self._keys}:
            self._check_id(topic)

    def _check_id(self, topic: str) -> None:
        now = self._cluster.topic_id(topic)
        if now is None:
            raise StreamError(f"Topic '{topic}' is not there.")
        if str(now) != self._known_ids.setdefault(topic, str(now)):
            raise StreamError(f"Topic '{topic}' was recreated.")

    def _look(self) -> None:
        """Takes up new partitions and topics; StreamError when a topic is another one."""
        import confluent_kafka
        import kafka

        self._looked = time.monotonic()
        found = {topic: self._cluster.partitions_for_topic(topic) for topic in self._stream.topics}
        if not all(found.values()):
            with self._one_asks:
                found = {topic: self._asking.partitions_for_topic(topic) for topic in self._stream.topics}
        gone = [topic for topic, numbers in found.items() if not numbers]
        needed = next((topic for topic in gone if topic in self._known_ids or len(gone) == len(found)), None)
        if needed is not None:
            raise StreamError(f"Topic '{needed}' is not there.")
        places = [place for topic, numbers in found.items() for place in read_places(self._stream, topic, numbers)]
        for topic in found.keys() - set(gone):
            self._check_id(topic)
        if len(places) == len(self._keys):
            return
        self._keys = keys = current_keys(self._stream, places, self._positions)
        self._by_message = {place.partition if self._is_alone else place: key for place, key in keys.items()}
        self._met.clear()
        starts = {place: self._positions.setdefault(key, 0) for place, key in keys.items()}
        self._fetching.assign([confluent_kafka.TopicPartition(*place, start) for place, start in starts.items()])
        # So that it keeps asking about the topics; it is never polled.
        self._asking.assign([kafka.TopicPartition(*place) for place in places])
        self._answer = None  # it would be of the partitions before
        self._ends, self._asked = self._ask()
