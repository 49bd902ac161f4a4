"""The tail: rows that Kafka holds beyond the committed offsets of a pinned REALTIME half (R4, read committed).

A query never fails for Kafka's sake: what cannot be read is a warning, and the answer is of committed rows only.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from hybrid.spec.table_config import StreamConfig, TableSpec
from hybrid.table.boundary import PartitionKey
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    from kafka import KafkaConsumer, TopicPartition

# How ingestion names the one stream of a table config (ingest/plan has the same; a test holds the two together).
CONNECTOR = "kafka"
EPOCH = 0
ROWS_MAX = 2_000_000
CONNECT_S_MAX = 1.5
READ_S_MAX = 30.0
# The least API that has what is used here; naming it spares a round of asking.
_POLL_RECORDS = 20_000


class TailMessage(NamedTuple):
    """One message beyond the committed offsets; `timestamp_ms` is Kafka's."""

    key: PartitionKey
    offset: int
    timestamp_ms: int
    value: bytes | None


@dataclass(frozen=True)
class Tail:
    """Messages in offset order by partition, and the position after them (exclusive) of every partition asked."""

    messages: Sequence[TailMessage] = ()
    positions: Mapping[PartitionKey, int] = field(default_factory=dict)
    warnings: Sequence[str] = ()


class TailSource(Protocol):
    """Where the rows beyond the last commit come from: Kafka, a server's memory, or a list."""

    def read(self, spec: TableSpec, state: RealtimeState, brokers: str | None) -> Tail:
        """Everything beyond `state`'s offsets up to the last stable offsets of this moment."""


class NoTail:
    """Answers from committed rows only."""

    def read(self, spec: TableSpec, state: RealtimeState, brokers: str | None) -> Tail:
        """Nothing."""
        return Tail()


class KafkaTail:
    """Reads the tail from Kafka for one query: assign and seek, no consumer group."""

    def __init__(self, rows_max: int = ROWS_MAX, read_s_max: float = READ_S_MAX) -> None:
        self._rows_max = rows_max
        self._read_s_max = read_s_max

    def read(self, spec: TableSpec, state: RealtimeState, brokers: str | None) -> Tail:
        """Everything beyond `state`'s offsets; a warning and nothing when the topic is another one or Kafka is down."""
        stream = spec.stream
        if stream is None:
            return Tail()
        address = brokers or stream.brokers
        if not _answers(address):
            return Tail(warnings=(_unreachable(address),))
        from kafka.errors import KafkaError

        try:
            return self._read(stream, state, address)
        except (KafkaError, OSError):
            return Tail(warnings=(_unreachable(address),))

    def _read(self, stream: StreamConfig, state: RealtimeState, brokers: str) -> Tail:
        with ExitStack() as stack:
            consumer = _consumer(brokers)
            stack.callback(consumer.close, autocommit=False)
            topic = _describe(consumer, stream.topic)
            if topic is None:
                return _missing(stream, state)
            known = state.topic_ids.get(f"{CONNECTOR}/{stream.topic}")
            if known is not None and known != str(topic["topic_id"]):
                return Tail(warnings=(_recreated(stream.topic, known, str(topic["topic_id"])),))
            partitions = [int(part["partition_index"]) for part in topic["partitions"]]
            return self._read_partitions(consumer, stream.topic, partitions, state)

    def _read_partitions(
        self, consumer: KafkaConsumer, topic: str, partitions: Sequence[int], state: RealtimeState
    ) -> Tail:
        from kafka import TopicPartition

        keys = {TopicPartition(topic, part): PartitionKey(CONNECTOR, topic, EPOCH, part) for part in partitions}
        starts = {part: state.offsets.get(key, 0) for part, key in keys.items()}
        ends: dict[TopicPartition, int] = consumer.end_offsets(list(keys))
        wanted = {part: (starts[part], end) for part, end in ends.items() if end > starts[part]}
        reader = _Reader(consumer, wanted, self._rows_max, time.monotonic() + self._read_s_max)
        messages = [
            TailMessage(keys[part], record.offset, record.timestamp, record.value) for part, record in reader.records()
        ]
        positions = {keys[part]: reader.positions.get(part, starts[part]) for part in keys}
        return Tail(messages, positions, tuple(reader.warnings))


class _Reader:
    """Reads [start, end) of some partitions. Positions, not counts: transactions leave holes in the offsets."""

    def __init__(
        self,
        consumer: KafkaConsumer,
        wanted: Mapping[TopicPartition, tuple[int, int]],
        rows_max: int,
        deadline: float,
    ) -> None:
        self._consumer, self._wanted, self._rows_max, self._deadline = consumer, wanted, rows_max, deadline
        self.positions = {part: start for part, (start, _) in wanted.items()}
        self.warnings: list[str] = []

    def records(self) -> Iterator[tuple[TopicPartition, Any]]:
        """The records, partitions in turn."""
        if not self._wanted:
            return
        self._consumer.assign(list(self._wanted))
        for part, (start, _) in self._wanted.items():
            self._consumer.seek(part, start)
        rows = 0
        while self._behind() and rows < self._rows_max and time.monotonic() < self._deadline:
            for part, records in self._consumer.poll(timeout_ms=100, max_records=_POLL_RECORDS).items():
                for record in records:
                    if record.offset < self._wanted[part][1]:
                        rows += 1
                        yield part, record
            self._note_positions()
        left = sum(end - self.positions[part] for part, (_, end) in self._wanted.items())
        if left > 0:
            self.warnings.append(
                f"The tail is too long for one query: {rows} rows were read from Kafka, "
                f"up to {left} offsets were left. Run `hybrid ingest` to commit them."
            )

    def _behind(self) -> bool:
        return any(self.positions[part] < end for part, (_, end) in self._wanted.items())

    def _note_positions(self) -> None:
        for part, (_, end) in self._wanted.items():
            reached = min(self._consumer.position(part), end)
            if reached == end and self.positions[part] < end:
                self._consumer.pause(part)
            self.positions[part] = reached


def _consumer(brokers: str) -> KafkaConsumer:
    import logging

    from kafka import KafkaConsumer

    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # we say what is wrong ourselves, once
    return KafkaConsumer(
        bootstrap_servers=brokers,
        group_id=None,
        enable_auto_commit=False,
        isolation_level="read_committed",
        auto_offset_reset="none",
        bootstrap_timeout_ms=int(CONNECT_S_MAX * 1000),
        default_api_timeout_ms=int(CONNECT_S_MAX * 1000),
        fetch_max_wait_ms=20,
        max_partition_fetch_bytes=8 * 1024 * 1024,
        check_crcs=False,
        metrics_enabled=False,
    )


def _describe(consumer: KafkaConsumer, topic: str) -> Mapping[str, Any] | None:
    raise NotImplementedError


def _missing(stream: StreamConfig, state: RealtimeState) -> Tail:
    """A topic that was never there is simply not there yet; one that was is gone."""
    if f"{CONNECTOR}/{stream.topic}" not in state.topic_ids:
        return Tail()
    return Tail(warnings=(f"Topic '{stream.topic}' does not exist any more: answered from committed rows only.",))


def _recreated(topic: str, known: str, now: str) -> str:
    return (
        f"Topic '{topic}' was recreated (topic id {known} was read, now it is {now}): "
        "answered from committed rows only."
    )


def _unreachable(brokers: str) -> str:
    return f"Kafka at {brokers} does not answer: answered from committed rows only."


def _answers(brokers: str) -> bool:
    """Whether any broker of the list accepts a connection: refused ones cost nothing, silent ones CONNECT_S_MAX."""
    deadline = time.monotonic() + CONNECT_S_MAX
    for address in brokers.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            left = max(0.05, deadline - time.monotonic())
            socket.create_connection((host.strip("[]"), int(port)), timeout=left).close()
        except (OSError, ValueError):
            continue
        return True
    return False
