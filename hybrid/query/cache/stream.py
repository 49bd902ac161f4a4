"""The live tail: messages beyond a position, as Kafka receives them.

Read committed, by assign and seek, without a consumer group.
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
from hybrid.query.cache.end_samples import EndOffsets, EndSamples
from hybrid.query.tail import TailMessage
from hybrid.table.boundary import Offsets, PartitionKey, TopicPartition, current_keys, read_places
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    from confluent_kafka import Message

_POLL_RECORDS = 20_000
_METADATA_MS = 1000
# How often Kafka is asked for its end offsets: once the last ones are reached, and before.
_ENDS_S, _UNREACHED_S = 0.3, 1.0
_SILENT_MS_MAX = 1000


_FETCHING = {
    # librdkafka requires a group id, though nothing is committed and no group is joined.
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
_SILENT = logging.Logger("librdkafka", logging.CRITICAL + 1)  # we report errors ourselves, once


_NO_ENDS = EndOffsets()


@dataclass(frozen=True)
class Polled:
    """Messages in offset order by partition, and the positions before (`starts`) and after them.

    `complete_at` is an instant (monotonic clock, s): all that Kafka held then has been polled. None: not known.
    `newest` are the newest end offsets that are known.
    """

    messages: Sequence[TailMessage] = ()
    positions: Mapping[PartitionKey, int] = field(default_factory=dict)
    complete_at: float | None = None
    starts: Mapping[PartitionKey, int] = field(default_factory=dict)
    newest: EndOffsets = _NO_ENDS

    @property
    def is_complete(self) -> bool:
        """Whether all before the newest end offsets has been polled."""
        return self.complete_at is not None and self.complete_at >= self.newest.at


class Stream(Protocol):
    """A stream as a follower reads it. Its positions never fall."""

    def poll(self, wait_s: float) -> Polled:
        """Messages since the last call; waits up to `wait_s` for the first. StreamError if the stream was replaced."""

    def ends(self) -> Mapping[PartitionKey, int]:
        """The present end offsets (exclusive), by partition. Any thread may ask. StreamError when Kafka is silent."""

    def move_to(self, positions: Offsets) -> None:
        """Goes on at these positions where they are ahead of its own; ends `suspend`. Call it between polls.

        StreamError if the stream was replaced.
        """

    def suspend(self) -> None:
        """Fetches nothing until `move_to`. Polls continue: they watch the topics and ask for end offsets."""

    def is_of(self, state: RealtimeState) -> bool:
        """Whether a state's offsets belong to this stream, and not to another of the same name."""

    def close(self) -> None:
        """Closes the connections."""


class KafkaStream:
    """The topics of a table, from the committed offsets on.

    librdkafka fetches the messages beside Python's threads. Metadata and end offsets are requested on a second
    connection: a broker answers the requests of one connection in order, and a fetch waits for rows.
    """

    def __init__(self, spec: TableSpec, state: RealtimeState, brokers: str) -> None:
        from confluent_kafka import Consumer

        assert spec.stream is not None
        if not broker_answers(brokers):  # asked first: a consumer that reaches no broker leaks its sockets
            raise StreamError(f"Kafka at {brokers} does not answer.", hint="hybrid kafka status")
        self._stream = spec.stream
        self._known_ids = state.known_ids(self._stream)
        self._positions = dict(state.offsets)
        security = self._stream.security
        settings = {**_FETCHING, "bootstrap.servers": brokers, **security.for_librdkafka()}
        self._fetching = Consumer(settings, logger=_SILENT)
        self._asking = consumer(brokers, security, QUERY_TIMEOUT_MS, metadata_max_age_ms=_METADATA_MS)
        self._one_asks = threading.Lock()
        # End offsets are requested in a thread, so that rows do not wait for the answer.
        self._asker = ThreadPoolExecutor(1, thread_name_prefix="ends")
        self._answer: Future[EndOffsets] | None = None
        # The cluster metadata hold the topics' ids, which no method of kafka-python's consumer returns.
        self._cluster = self._asking._cluster
        self._keys: dict[TopicPartition, PartitionKey] = {}
        # The keys by what a message names: the partition's number suffices for a single topic, and is the quickest.
        self._is_alone = len(self._stream.topics) == 1
        self._by_message: dict[int | tuple[str, int], PartitionKey] = {}
        # The partitions that have sent a message or an end: connecting takes a while.
        self._met: set[int | tuple[str, int]] = set()
        self._newest, self._samples = _NO_ENDS, EndSamples()
        self._is_suspended = False
        self._looked = 0.0
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
        while first is not None and self._is_known_end(first):  # librdkafka reports an end after each row
            first = self._fetching.poll(wait_s)
        polled = [first, *self._fetching.consume(_POLL_RECORDS, 0)] if first is not None else []
        keys, positions, messages, with_headers = self._by_message, self._positions, [], self._stream.metadata
        is_alone, starts = self._is_alone, dict(positions)
        for message in polled:
            error, number, offset = message.error(), message.partition() or 0, message.offset() or 0
            place = number if is_alone else (message.topic() or "", number)
            if error is None:
                key = keys[place]
                if offset < positions[key]:
                    continue  # fetched before the stream was moved
                positions[key] = offset + 1
                beside = (message.key(), message.headers() or ()) if with_headers else ()
                messages.append(TailMessage(key, offset, message.timestamp()[1], message.value(), *beside))
            elif error.code() == error._PARTITION_EOF:
                key = keys[place]
                positions[key] = max(positions[key], offset)  # beyond transaction markers, which are no rows
            elif error.retriable():
                continue
            else:
                raise StreamError(f"Nothing more is heard of {self._stream.words}: {error.str()}")
            self._met.add(place)
        if messages:
            self._check_identity()
        return Polled(messages, dict(positions), self._complete_at(), starts, self._newest)

    def _is_known_end(self, message: Message) -> bool:
        """Whether the message only reports the end of a partition at the position that is known already."""
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
                end_offsets = self._asking.end_offsets(
                    [kafka.TopicPartition(*place) for place in keys], timeout_ms=_SILENT_MS_MAX
                )
        except (KafkaError, ValueError, OSError) as error:  # ValueError: it was closed meanwhile
            raise StreamError(f"Kafka does not answer for {self._stream.words}: {error}") from error
        return {keys[TopicPartition(*part)]: end for part, end in end_offsets.items()}

    def move_to(self, positions: Offsets) -> None:
        """See `Stream`."""
        self._check_identity()
        ahead = {key: at for key, at in positions.items() if at > self._positions.get(key, 0)}
        self._positions.update(ahead)
        self._is_suspended = False
        self._assign()

    def suspend(self) -> None:
        """See `Stream`. Without an assignment librdkafka drops what it has fetched."""
        self._is_suspended = True
        self._met.clear()
        self._fetching.unassign()

    def is_of(self, state: RealtimeState) -> bool:
        """See `Stream`. Compares the topics' ids."""
        return {**self._known_ids, **state.known_ids(self._stream)} == self._known_ids

    def close(self) -> None:
        """See `Stream`."""
        self._fetching.close()
        self._asker.shutdown(wait=False, cancel_futures=True)
        with self._one_asks:
            self._asking.close(autocommit=False)

    def _complete_at(self) -> float | None:
        """The instant of the newest request for end offsets before which all messages have been polled.

        Messages that arrived since do not matter: in a steady stream some message is always unread. None until each
        partition has been heard.
        """
        if self._answer is not None and self._answer.done():
            self._newest, self._answer = self._answer.result(), None
            self._samples.add(self._newest)
        reached_at = self._samples.reached_at(self._positions)
        pause_s = _ENDS_S if self._samples.is_reached else _UNREACHED_S
        if self._answer is None and time.monotonic() - self._newest.at > pause_s:
            try:
                self._answer = self._asker.submit(self._ask)
            except RuntimeError as error:  # executors end before this thread does
                raise StreamError("The process ends.") from error
        return reached_at if len(self._met) == len(self._keys) else None

    def _ask(self) -> EndOffsets:
        asked_at = time.monotonic()
        return EndOffsets(asked_at, self.ends())

    def _check_identity(self) -> None:
        """StreamError when a topic was recreated or deleted."""
        for topic in {place.topic for place in self._keys}:
            self._check_id(topic)

    def _check_id(self, topic: str) -> None:
        now = self._cluster.topic_id(topic)
        if now is None:
            raise StreamError(f"Topic '{topic}' is not there.")
        if str(now) != self._known_ids.setdefault(topic, str(now)):
            raise StreamError(f"Topic '{topic}' was recreated.")

    def _look(self) -> None:
        """Assigns new partitions and topics; StreamError when a topic was recreated."""
        import kafka

        self._looked = time.monotonic()
        found_partitions = {topic: self._cluster.partitions_for_topic(topic) for topic in self._stream.topics}
        if not all(found_partitions.values()):
            with self._one_asks:
                found_partitions = {topic: self._asking.partitions_for_topic(topic) for topic in self._stream.topics}
        gone = [topic for topic, numbers in found_partitions.items() if not numbers]
        needed = next((topic for topic in gone if topic in self._known_ids or len(gone) == len(found_partitions)), None)
        if needed is not None:
            raise StreamError(f"Topic '{needed}' is not there.")
        places = [
            place for topic, numbers in found_partitions.items() for place in read_places(self._stream, topic, numbers)
        ]
        for topic in found_partitions.keys() - set(gone):
            self._check_id(topic)
        if len(places) == len(self._keys):
            return
        self._keys = keys = current_keys(self._stream, places, self._positions)
        self._by_message = {place.partition if self._is_alone else place: key for place, key in keys.items()}
        for key in keys.values():
            self._positions.setdefault(key, 0)
        if not self._is_suspended:
            self._assign()
        # An assignment keeps the metadata fresh; this consumer is never polled.
        self._asking.assign([kafka.TopicPartition(*place) for place in places])
        self._answer = None  # a pending answer covers the previous partitions only
        self._newest, self._samples = self._ask(), EndSamples()
        self._samples.add(self._newest)

    def _assign(self) -> None:
        """Fetches from the present positions on: the one way to move that librdkafka does without losing messages."""
        import confluent_kafka

        self._met.clear()
        self._fetching.assign(
            [confluent_kafka.TopicPartition(*place, self._positions[key]) for place, key in self._keys.items()]
        )
