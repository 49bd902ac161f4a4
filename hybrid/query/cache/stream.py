"""The live tail: messages beyond a position, as Kafka receives them.

Read committed, by assign and seek, without a consumer group.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from hybrid.config.table_config import TableSpec
from hybrid.errors import StreamError
from hybrid.kafka.broker_clients import BrokerClients
from hybrid.kafka.broker_watch import WatchedStream
from hybrid.kafka.readers import DEDICATED_POLL_S, DedicatedConsumer, FetchedMessages, PartitionReader
from hybrid.query.cache.end_samples import EndOffsets, EndSamples, offsets_beyond
from hybrid.query.cache.stream_pace import StreamPace
from hybrid.query.tail import TailMessage
from hybrid.table.boundary import Offsets, PartitionKey, TopicPartition, current_keys, read_places
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    from confluent_kafka import Message

    from hybrid.records.messages import Headers

# How often Kafka is asked for its end offsets: while rows arrive or statements ask and the last ones are reached, and
# otherwise. Rows of a table that nobody asks have to stay fresh too.
_ENDS_S, _IDLE_ENDS_S = 0.3, 1.0
_ACTIVE_S = 3.0
# One answer may be late; after so many in a row Kafka is silent.
_FAILURES_MAX = 3
# While a stream changes its reader, both are polled in turn.
_EXCHANGE_POLL_S = 0.01


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

    def wake(self) -> None:
        """Ends the poll in progress, or the next one, soon. Any thread may call it."""

    def suspend(self) -> None:
        """Fetches nothing until `move_to`. Polls continue: they watch the topics and ask for end offsets."""

    def is_of(self, state: RealtimeState) -> bool:
        """Whether a state's offsets belong to this stream, and not to another of the same name."""

    def close(self) -> None:
        """Closes the connections."""


class KafkaStream:
    """The topics of a table, from the committed offsets on, over connections that all streams of a broker share.

    A reader delivers of each partition an unbroken run of messages from a start that is not above the position. A
    message counts only at or above the position, which then moves behind it. So readers may overlap, and while one
    takes over from another, both are polled: no message is lost or read twice.
    """

    def __init__(
        self, spec: TableSpec, state: RealtimeState, brokers: str, clients: BrokerClients | None = None
    ) -> None:
        assert spec.stream is not None
        self._stream, self._brokers = spec.stream, brokers
        self._known_ids = state.known_ids(self._stream)
        self._positions = dict(state.offsets)
        self._keys: dict[TopicPartition, PartitionKey] = {}
        # The keys by what a message names: the partition's number suffices for a single topic, and is the quickest.
        self._is_alone = len(self._stream.topics) == 1
        self._by_message: dict[int | tuple[str, int], PartitionKey] = {}
        self._samples = EndSamples()
        self._unread = 0
        self._active_at = 0.0
        self._reader: PartitionReader | None = None
        self._successor: PartitionReader | None = None
        self._is_suspended = self._is_closed = False
        self._woken = threading.Event()
        self._refreshes = 0
        self._watched: WatchedStream | None = None
        self._clients = clients if clients is not None else BrokerClients()
        self._pace = StreamPace(time.monotonic(), self._clients.tuning.busy_s, self._clients.tuning.quiet_s)
        self._client = self._clients.acquire(brokers, self._stream.security)
        try:
            self._watched = self._client.watch.watch(self._stream.topics, _IDLE_ENDS_S)
            self._look()
        except BaseException:
            self.close()
            raise

    def poll(self, wait_s: float) -> Polled:
        """See `Stream`."""
        if self._client.watch.refreshes != self._refreshes:
            self._look()
        starts, messages = dict(self._positions), list[TailMessage]()
        try:
            for reader, fetched in self._fetch(wait_s):
                self._take(reader, fetched, messages)
        except StreamError as error:
            raise StreamError(f"Nothing more is heard of {self._stream.words}: {error}") from error
        now = time.monotonic()
        if messages:
            self._active_at = now
            self._check_identity()
        complete_at = self._complete_at(now)
        self._pace.read(now, len(messages), self._unread)
        self._exchange_readers()
        return Polled(messages, dict(self._positions), complete_at, starts, self._samples.newest)

    def ends(self) -> Mapping[PartitionKey, int]:
        """See `Stream`: the last stable offsets."""
        keys, watched = self._keys, self._watched
        answer = self._client.watch.end_offsets(keys)
        if watched is None or answer.ends.keys() != keys.keys():
            raise StreamError(f"Kafka does not answer for {self._stream.words}: a partition has no leader.")
        watched.offer(answer)
        self._active_at = time.monotonic()
        return {keys[place]: end for place, end in answer.ends.items()}

    def move_to(self, positions: Offsets) -> None:
        """See `Stream`."""
        self._check_identity()
        self._positions.update({key: at for key, at in positions.items() if at > self._positions.get(key, 0)})
        self._is_suspended = False
        self._begin()

    def wake(self) -> None:
        """See `Stream`."""
        self._woken.set()
        reader = self._reader
        if reader is not None:
            reader.wake()

    def suspend(self) -> None:
        """See `Stream`. A consumer of its own is kept, because connecting takes a while."""
        self._is_suspended = True
        self._drop_successor()
        if isinstance(self._reader, DedicatedConsumer):
            self._reader.unassign()
        elif self._reader is not None:
            self._reader.close()
            self._reader = None

    def is_of(self, state: RealtimeState) -> bool:
        """See `Stream`. Compares the topics' ids."""
        return {**self._known_ids, **state.known_ids(self._stream)} == self._known_ids

    def close(self) -> None:
        """See `Stream`."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._drop_successor()
            if self._reader is not None:
                self._reader.close()
                self._reader = None
        finally:
            if self._watched is not None:
                self._client.watch.unwatch(self._watched)
            self._clients.release(self._brokers, self._stream.security, self._client)

    def _fetch(self, wait_s: float) -> Sequence[tuple[PartitionReader, FetchedMessages]]:
        reader, successor = self._reader, self._successor
        if self._woken.is_set():
            wait_s = 0.0
        try:
            if reader is None or self._is_suspended:
                self._woken.wait(min(wait_s, DEDICATED_POLL_S))  # commits are awaited
                return ()
            if successor is None:
                return ((reader, reader.poll(wait_s)),)
            return (reader, reader.poll(min(wait_s, _EXCHANGE_POLL_S))), (successor, successor.poll(0.0))
        finally:
            self._woken.clear()  # whoever has called it before finds what it wants in the rest of the step

    def _take(self, reader: PartitionReader, fetched: FetchedMessages, messages: list[TailMessage]) -> None:
        """Adds those messages that are at or beyond the positions."""
        keys, positions, with_headers = self._by_message, self._positions, self._stream.metadata
        is_alone, heard = self._is_alone, set()
        for message in fetched.messages:
            number, offset = message.partition() or 0, message.offset() or 0
            key = keys[number if is_alone else (message.topic() or "", number)]
            heard.add(key)
            if offset < positions[key]:
                continue  # read before, or fetched before the stream was moved
            positions[key] = offset + 1
            beside = (message.key(), _headers(message)) if with_headers else ()
            messages.append(TailMessage(key, offset, message.timestamp()[1], message.value(), *beside))
        for place, end in fetched.ends.items():
            key = self._keys[place]
            heard.add(key)
            positions[key] = max(positions[key], end)  # beyond transaction markers, which are no rows
        reader.heard.update(key.place for key in heard)

    def _exchange_readers(self) -> None:
        """Gives a busy stream a consumer of its own, and a quiet one back to the shared consumer."""
        reader, successor = self._reader, self._successor
        if reader is None or self._is_suspended:
            return
        if successor is not None:
            if successor.is_cut:
                self._drop_successor()
            elif reader.is_cut or len(successor.heard) == len(self._keys):
                self._reader, self._successor = successor, None
                reader.close()
        elif reader.is_cut:
            reader.close()
            self._pace.is_busy = True
            self._reader = None
            self._begin()
        elif isinstance(reader, DedicatedConsumer) != self._pace.is_busy:
            self._successor = self._dedicated() if self._pace.is_busy else self._client.subscribe(self._starts())

    def _begin(self) -> None:
        """Reads from the present positions on."""
        self._drop_successor()
        if isinstance(self._reader, DedicatedConsumer):
            self._reader.assign(self._starts())
            return
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._reader = (self._dedicated() if self._pace.is_busy else None) or self._client.subscribe(self._starts())

    def _dedicated(self) -> DedicatedConsumer | None:
        return self._client.dedicate(self._starts(), self._is_known_end)

    def _starts(self) -> Mapping[TopicPartition, int]:
        return {place: self._positions[key] for place, key in self._keys.items()}

    def _is_known_end(self, place: TopicPartition, end: int) -> bool:
        return self._positions[self._keys[place]] == end

    def _drop_successor(self) -> None:
        if self._successor is not None:
            self._successor.close()
            self._successor = None

    def _complete_at(self, now: float) -> float | None:
        """The instant of the newest request for end offsets before which all messages have been polled.

        Messages that arrived since do not matter: in a steady stream some message is always unread. None until each
        partition has been heard: connecting takes a while.
        """
        watched, reader = self._watched, self._reader
        assert watched is not None
        if watched.failures >= _FAILURES_MAX:
            raise StreamError(f"Kafka does not answer for {self._stream.words}.")
        self._add_ends(watched)
        reached_at = self._samples.reached_at(self._positions)
        is_active = now - self._active_at < _ACTIVE_S and self._samples.is_reached
        watched.pause_s = _ENDS_S if is_active else _IDLE_ENDS_S
        return reached_at if reader is not None and len(reader.heard) == len(self._keys) else None

    def _add_ends(self, watched: WatchedStream) -> None:
        answer, keys = watched.newest, self._keys
        if answer.at > self._samples.newest.at and answer.ends.keys() == keys.keys():
            ends = {keys[place]: end for place, end in answer.ends.items()}
            self._samples.add(EndOffsets(answer.at, ends))
            self._unread = offsets_beyond(self._positions, ends)

    def _check_identity(self) -> None:
        """StreamError when a topic was recreated or deleted."""
        for topic in {place.topic for place in self._keys}:
            self._check_id(topic)

    def _check_id(self, topic: str) -> None:
        now = self._client.watch.topic_id(topic)
        if now is None:
            raise StreamError(f"Topic '{topic}' is not there.")
        if now != self._known_ids.setdefault(topic, now):
            raise StreamError(f"Topic '{topic}' was recreated.")

    def _look(self) -> None:
        """Reads new partitions and topics too; StreamError when a topic was recreated."""
        watch, watched = self._client.watch, self._watched
        assert watched is not None
        self._refreshes = watch.refreshes
        found_partitions = {topic: watch.partitions(topic) for topic in self._stream.topics}
        if self._needed(found_partitions) is not None:
            # A response to an earlier request, for fewer topics, may have come after the one that had it.
            watch.await_metadata(self._stream.topics)
            found_partitions = {topic: watch.partitions(topic) for topic in self._stream.topics}
        if (needed := self._needed(found_partitions)) is not None:
            raise StreamError(f"Topic '{needed}' is not there.")
        places = [
            place for topic, numbers in found_partitions.items() for place in read_places(self._stream, topic, numbers)
        ]
        for topic, numbers in found_partitions.items():
            if numbers:
                self._check_id(topic)
        if len(places) == len(self._keys):
            return
        is_first = not self._keys
        self._keys = keys = current_keys(self._stream, places, self._positions)
        self._by_message = {place.partition if self._is_alone else place: key for place, key in keys.items()}
        for key in keys.values():
            self._positions.setdefault(key, 0)
        watched.places = places
        self._samples = EndSamples()  # earlier answers cover the previous partitions only
        try:
            self.ends()
        except StreamError:  # a new partition may have no leader yet: until an answer has all, nothing is complete
            if is_first:
                raise
        self._add_ends(watched)
        self._pace.read(time.monotonic(), 0, self._unread)
        if not self._is_suspended:
            self._begin()

    def _needed(self, found_partitions: Mapping[str, Collection[int]]) -> str | None:
        """A topic without which the stream cannot be read: one that was there before, or the last one."""
        gone = [topic for topic, numbers in found_partitions.items() if not numbers]
        return next((topic for topic in gone if topic in self._known_ids or len(gone) == len(found_partitions)), None)


def _headers(message: Message) -> Headers:
    """The headers of a message. StreamError for a name that is not UTF-8, which librdkafka's Python cannot return."""
    try:
        headers: Any = message.headers()
        return headers or ()
    except (SystemError, UnicodeDecodeError) as error:
        raise StreamError(
            f"Message {message.offset()} of partition {message.partition()} of topic '{message.topic()}' has a header "
            "whose name is not UTF-8. What follows it is shown when it is committed."
        ) from error
