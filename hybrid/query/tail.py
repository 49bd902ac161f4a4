"""The tail: rows that Kafka holds beyond the committed offsets of a pinned REALTIME half (R4, read committed).

A query never fails because of Kafka: a tail that cannot be read is a warning, and committed rows are the answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hybrid.config.kafka_security import KafkaSecurity
from hybrid.config.table_config import StreamConfig, TableSpec
from hybrid.errors import StreamError
from hybrid.kafka.admin_pool import ask_admin
from hybrid.kafka.clients import QUERY_TIMEOUT_MS, broker_answers, consumer
from hybrid.kafka.topics import existing_topics
from hybrid.records.messages import Headers
from hybrid.table.boundary import Offsets, PartitionKey, TopicPartition, current_keys, read_places
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    from kafka import KafkaConsumer
    from kafka.admin import KafkaAdminClient

ROWS_MAX = 2_000_000
READ_S_MAX = 30.0
BYTES_MAX = 512 * 1024 * 1024  # Python's overhead per message included
_MESSAGE_BYTES = 200
_POLL_RECORDS = 20_000
# The start (inclusive) and the end (exclusive) of what is read, by partition.
Ranges = Mapping[PartitionKey, tuple[int, int]]


class TailMessage(NamedTuple):
    """One message beyond the committed offsets; `timestamp_ms` is Kafka's.

    `message_key` and `headers` are set if the table uses them.
    """

    key: PartitionKey
    offset: int
    timestamp_ms: int
    value: bytes | None
    message_key: bytes | None = None
    headers: Headers = ()


class Pausable(Protocol):
    """A table whose stream a pause may hold at some offsets."""

    def is_read(self, key: PartitionKey, offset: int) -> bool:
        """Whether a pause lets this offset be read."""

    def shown(self, positions: Mapping[PartitionKey, int]) -> Mapping[PartitionKey, int]:
        """The positions, capped at the offsets of a pause."""


@dataclass(frozen=True)
class TailLimit:
    """How much of a followed table's tail a statement reads: to its end, unless the server is far behind.

    Up to `offsets_max` offsets beyond `shown` are read. If there are more, the tail ends at `shown`, which answers have
    shown already: a server that follows the table gets the rest sooner than the statement. `recent_ends` are end
    offsets that the server has asked for some seconds ago at most.
    """

    offsets_max: float
    shown: Offsets
    table: Pausable
    recent_ends: Offsets | None = None

    def ends(self, ranges: Ranges) -> Offsets | None:
        """The end offsets up to which the ranges are read; None: to their ends."""
        starts = {key: max(start, self.shown.get(key, 0)) for key, (start, _) in ranges.items()}
        readable = self.table.shown({key: end for key, (_, end) in ranges.items()})
        if sum(max(0, end - starts[key]) for key, end in readable.items()) <= self.offsets_max:
            return None
        return {key: min(end, starts[key]) for key, (_, end) in ranges.items()}

    def without_kafka(self, stream: StreamConfig, state: RealtimeState) -> Tail | None:
        """The tail where it is known to be capped at the committed offsets; None where Kafka has to be asked.

        End offsets grow: what was too much for a statement some seconds ago is too much now.
        """
        recent = self.recent_ends
        if recent is None or {*current_keys(stream, (key.place for key in recent), state.offsets).values()} != {
            *recent
        }:
            return None  # a reset was committed since
        starts = {key: state.offsets.get(key, 0) for key in recent}
        capped = self.ends({key: (starts[key], end) for key, end in recent.items()})
        if capped is None or any(end > starts[key] for key, end in capped.items()):
            return None
        return Tail(positions=starts, warnings=(_capped(stream),), is_capped=True)


@dataclass(frozen=True)
class Tail:
    """Messages in offset order by partition, and the position after them (exclusive) of every partition read.

    `is_capped`: a `TailLimit` has left out what the server has yet to read.
    """

    messages: Sequence[TailMessage] = ()
    positions: Mapping[PartitionKey, int] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    is_capped: bool = False

    def held_by(self, table: Pausable) -> Tail:
        """The tail up to the offsets of the table's pause."""
        messages = [message for message in self.messages if table.is_read(message.key, message.offset)]
        return replace(self, messages=messages, positions=table.shown(self.positions))

    def without_messages(self, reason: str) -> Tail:
        """A tail without messages, with the reason as a further warning."""
        return Tail(warnings=(*self.warnings, f"{reason} Answered from committed rows only."))


LimitOf = Callable[[str], TailLimit | None]


class TailSource(Protocol):
    """The source of the rows beyond the last commit: Kafka, a server's memory, or a list."""

    def read(self, spec: TableSpec, state: RealtimeState, brokers: str | None) -> Tail:
        """Everything beyond `state`'s offsets up to the last stable offsets of this moment."""


class NoTail:
    """A source without a tail: only committed rows are read."""

    def read(self, spec: TableSpec, state: RealtimeState, brokers: str | None) -> Tail:
        """An empty tail."""
        return Tail()


class KafkaTail:
    """Reads the tail from Kafka for one query: assign and seek, no consumer group.

    `limit_of` returns the limit of a table's tail by its name. It is asked again after the end offsets are known:
    answers may have shown more since.
    """

    def __init__(
        self,
        rows_max: int = ROWS_MAX,
        read_s_max: float = READ_S_MAX,
        bytes_max: int = BYTES_MAX,
        until: float | None = None,
        limit_of: LimitOf = lambda table: None,
    ) -> None:
        self._rows_max, self._read_s_max, self._bytes_max, self._until = rows_max, read_s_max, bytes_max, until
        self._limit_of = limit_of

    def ending_by(self, until: float) -> KafkaTail:
        """The same source with a deadline (monotonic clock, s): rows not read by then are left out, with a warning."""
        return KafkaTail(self._rows_max, self._read_s_max, self._bytes_max, until, self._limit_of)

    def limited_by(self, limit_of: LimitOf) -> KafkaTail:
        """The same source with limits."""
        return KafkaTail(self._rows_max, self._read_s_max, self._bytes_max, self._until, limit_of)

    def read(self, spec: TableSpec, state: RealtimeState, brokers: str | None) -> Tail:
        """Everything beyond `state`'s offsets; a warning where a topic was recreated or Kafka is down."""
        stream = spec.stream
        if stream is None or not state.reads(stream):
            return Tail()
        limit = self._limit_of(spec.name)
        if limit is not None and (known := limit.without_kafka(stream, state)) is not None:
            return known
        address = brokers or stream.brokers
        if not broker_answers(address):
            return Tail(warnings=(_unreachable(address),))
        from kafka.errors import KafkaError

        try:
            return self._read(spec.name, stream, state, address)
        except StreamError as error:  # a topic was deleted, or the reference to a password cannot be resolved
            return Tail(warnings=(f"{error} Answered from committed rows only.",))
        except (KafkaError, OSError) as error:
            return Tail(warnings=(_failed(address, error),))

    def _read(self, table: str, stream: StreamConfig, state: RealtimeState, brokers: str) -> Tail:
        ids, ends = _view(brokers, stream)
        known_ids, of_it = state.known_ids(stream), " of it" if len(stream.topics) > 1 else ""
        warnings = [_gone(topic, of_it) for topic in stream.topics if topic in known_ids and topic not in ids]
        others = {topic: now for topic, now in ids.items() if known_ids.get(topic, now) != now}
        warnings += [_recreated(topic, known_ids[topic], now, of_it) for topic, now in others.items()]
        ends = {place: end for place, end in ends.items() if place.topic not in others}
        keys = current_keys(stream, ends, state.offsets)
        ranges = {keys[place]: (state.offsets.get(keys[place], 0), end) for place, end in ends.items()}
        warnings += [_refilled(key, start, end) for key, (start, end) in ranges.items() if start > end]
        limit = self._limit_of(table)
        capped = limit.ends(ranges) if limit is not None else None
        if capped is not None:
            ranges = {key: (start, max(start, capped[key])) for key, (start, _) in ranges.items()}
            warnings.append(_capped(stream))
        deadline = time.monotonic() + self._read_s_max
        if self._until is not None:
            deadline = min(deadline, self._until)
        reader = _Reader(ranges, self._rows_max, self._bytes_max, deadline, with_headers=stream.metadata)
        tail = reader.read(brokers, stream.security)
        return replace(tail, warnings=[*warnings, *tail.warnings], is_capped=capped is not None)


def _view(brokers: str, stream: StreamConfig) -> tuple[Mapping[str, str], Mapping[TopicPartition, int]]:
    """The ids of the existing topics, and the last stable offset of each partition that is read."""
    import kafka
    from kafka.protocol.consumer.offsets import IsolationLevel, OffsetSpec

    def look(admin: KafkaAdminClient) -> tuple[Mapping[str, str], Mapping[TopicPartition, int]]:
        topics = existing_topics(admin, stream.topics)
        ids = {topic.name: topic.id for topic in topics}
        places = [place for topic in topics for place in read_places(stream, topic.name, topic.partitions)]
        latest = {kafka.TopicPartition(*place): OffsetSpec.LATEST for place in places}
        ends = admin.list_partition_offsets(latest, isolation_level=IsolationLevel.READ_COMMITTED) if latest else {}
        return ids, {TopicPartition(*part): end.offset for part, end in ends.items()}

    # An admin client answers both in 12 ms; a consumer waits 100 ms for its first metadata.
    return ask_admin(brokers, QUERY_TIMEOUT_MS, look, stream.security)


class _Reader:
    """Reads [start, end) of some partitions. Positions, not counts: transactions leave holes in the offsets."""

    def __init__(
        self,
        wanted: Ranges,
        rows_max: int,
        bytes_max: int,
        deadline: float,
        *,
        with_headers: bool,
    ) -> None:
        self._with_headers = with_headers
        self._ends = {key: end for key, (start, end) in wanted.items() if end > start}
        self._positions = {key: start for key, (start, _) in wanted.items()}
        self._rows_max, self._bytes_left, self._deadline = rows_max, bytes_max, deadline
        self._messages: list[TailMessage] = []
        self._warnings: list[str] = []

    def read(self, brokers: str, security: KafkaSecurity) -> Tail:
        """All messages of the ranges; without any, no broker is asked."""
        if self._ends:
            with ExitStack() as stack:
                consumer = _consumer(brokers, security)
                stack.callback(consumer.close, autocommit=False)
                self._drain(consumer)
        unread = sum(end - self._positions[key] for key, end in self._ends.items())
        if unread > 0:
            self._warnings.append(
                f"The tail is too long for one query: {len(self._messages)} rows of it were read, "
                f"up to {unread} are left out. Run `hybrid ingest` to commit them."
            )
        return Tail(self._messages, self._positions, self._warnings)

    def _drain(self, consumer: KafkaConsumer) -> None:
        import kafka
        from kafka.errors import OffsetOutOfRangeError

        parts = {kafka.TopicPartition(*key.place): key for key in self._ends}
        consumer.assign(list(parts))
        for part, key in parts.items():
            consumer.seek(part, self._positions[key])
        waiting = dict(parts)
        while waiting and self._goes_on():
            try:
                polled = consumer.poll(timeout_ms=100, max_records=_POLL_RECORDS)
            except OffsetOutOfRangeError as error:  # raised only when no fetched messages are pending
                for part in error.args[0]:
                    consumer.pause(part)
                    self._leave(waiting.pop(part))  # present, because partitions read to their end are paused
                continue
            for part, records in polled.items():
                self._take(parts[part], records)
            for part, key in list(waiting.items()):
                self._positions[key] = min(consumer.position(part), self._ends[key])
                if self._positions[key] == self._ends[key]:
                    consumer.pause(part)
                    del waiting[part]

    def _goes_on(self) -> bool:
        """Whether the limits of rows, bytes and time allow another poll."""
        return len(self._messages) < self._rows_max and self._bytes_left > 0 and time.monotonic() < self._deadline

    def _leave(self, key: PartitionKey) -> None:
        """Gives up a partition whose offset has expired. The failed fetch names it, so start offsets are not needed."""
        del self._ends[key]
        self._warnings.append(
            f"Kafka no longer holds offset {self._positions[key]} of partition {key.partition} of topic '{key.topic}', "
            "which comes after the last commit: what it has of this partition is not shown."
        )

    def _take(self, key: PartitionKey, records: Sequence[Any]) -> None:
        end = self._ends[key]
        with_headers = self._with_headers
        self._bytes_left -= sum(len(record.value or b"") + _MESSAGE_BYTES for record in records)
        self._messages += [
            TailMessage(
                key,
                record.offset,
                record.timestamp,
                record.value,
                *((record.key, record.headers) if with_headers else ()),
            )
            for record in records
            if record.offset < end
        ]


def _consumer(brokers: str, security: KafkaSecurity) -> KafkaConsumer:
    settings = {"auto_offset_reset": "none", "fetch_max_wait_ms": 20, "max_partition_fetch_bytes": 8 * 1024 * 1024}
    return consumer(brokers, security, QUERY_TIMEOUT_MS, **settings)


def _capped(stream: StreamConfig) -> str:
    return f"{stream.words.capitalize()} holds newer messages, which this server has yet to take in."


def _gone(topic: str, of_it: str) -> str:
    return f"Topic '{topic}' does not exist any more: answered from committed rows{of_it} only."


def _recreated(topic: str, known: str, now: str, of_it: str) -> str:
    return (
        f"Topic '{topic}' was recreated (topic id {known} was read, now it is {now}): "
        f"answered from committed rows{of_it} only."
    )


def _refilled(key: PartitionKey, start: int, end: int) -> str:
    return (
        f"Partition {key.partition} of topic '{key.topic}' was read up to offset {start} and ends at {end}: "
        "answered from committed rows of it only."
    )


def _unreachable(brokers: str) -> str:
    return f"Kafka at {brokers} does not answer: answered from committed rows only."


def _failed(brokers: str, error: Exception) -> str:
    from hybrid.kafka.network import distrust, refusal, unreadable

    if (words := unreadable(error)) is not None:
        return f"A message at {brokers} cannot be read: {words}. Answered from committed rows only."
    if refusal(error) is not None:
        return f"Kafka at {brokers} refuses the stream's user: answered from committed rows only."
    if distrust(error) is not None:
        return f"Kafka at {brokers} has a certificate that is not trusted: answered from committed rows only."
    return _unreachable(brokers)
