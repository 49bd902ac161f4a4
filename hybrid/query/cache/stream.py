"""The live tail: what Kafka holds beyond a position, as it arrives.

Assign and seek, no consumer group, read committed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hybrid.errors import StreamError
from hybrid.query.tail import CONNECT_S_MAX, TailMessage, broker_answers
from hybrid.spec.table_config import TableSpec
from hybrid.table.boundary import PartitionKey, partition_key, topic_key
from hybrid.table.state import RealtimeState

# Rows end a poll at once; an idle one costs a thread of the process that answers.
_POLL_MS = 100
_POLL_RECORDS = 20_000
_METADATA_MS = 1000
# How often Kafka is asked where it ends, and how long a broker may take to say so.
_ENDS_S = 0.5
_SILENT_MS_MAX = 1000


@dataclass(frozen=True)
class Polled:
    """Messages in offset order by partition, and the positions after them. `caught_up`: there were no more."""

    messages: Sequence[TailMessage] = ()
    positions: Mapping[PartitionKey, int] = field(default_factory=dict)
    caught_up: bool = True


class Stream(Protocol):
    """A stream that is followed."""

    def poll(self) -> Polled:
        """What has come since the last call; waits a little when nothing has. StreamError when it is not as it was."""

    def ends(self) -> Mapping[PartitionKey, int]:
        """Where it ends now, by partition: the position after what is there. Any thread may ask. StreamError."""

    def close(self) -> None:
        """Lets go of it."""


class KafkaStream:
    """One topic from the committed offsets on."""

    def __init__(self, spec: TableSpec, state: RealtimeState, brokers: str) -> None:
        from kafka import KafkaConsumer

        assert spec.stream is not None
        if not broker_answers(brokers):  # asked first: a consumer that finds none leaves its sockets behind
            raise StreamError(f"Kafka at {brokers} does not answer.", hint="hybrid kafka status")
        logging.getLogger("kafka").setLevel(logging.CRITICAL)  # we say what is wrong ourselves, once
        self._topic = spec.stream.topic
        self._known_id = state.topic_ids.get(topic_key(self._topic))
        self._positions = dict(state.offsets)
        options: dict[str, Any] = {
            "bootstrap_servers": brokers,
            "group_id": None,
            "enable_auto_commit": False,
            "isolation_level": "read_committed",
            "auto_offset_reset": "none",
            "allow_auto_create_topics": False,
            "bootstrap_timeout_ms": int(1000 * CONNECT_S_MAX),
            "metrics_enabled": False,
        }
        self._consumer = KafkaConsumer(
            **options,
            metadata_max_age_ms=_METADATA_MS,
            fetch_max_wait_ms=500,
            max_partition_fetch_bytes=8 * 1024 * 1024,
        )
        # A connection of its own: a broker answers the requests of one in turn, and a fetch waits until rows come.
        self._asking = KafkaConsumer(**options)
        self._one_asks = threading.Lock()
        # It knows the topic's id, which kafka-python shows by no method of its consumer.
        self._cluster = self._consumer._cluster
        self._assigned: dict[object, PartitionKey] = {}
        self._ends: Mapping[PartitionKey, int] = {}
        self._looked, self._asked = 0.0, 0.0
        try:
            self._look()
        except BaseException:
            self.close()
            raise

    def poll(self) -> Polled:
        """See `Stream`."""
        from kafka.errors import KafkaError

        if time.monotonic() - self._looked > _METADATA_MS / 1000:
            self._look()
        try:
            found = self._consumer.poll(timeout_ms=_POLL_MS, max_records=_POLL_RECORDS)
        except KafkaError as error:
            raise StreamError(f"Topic '{self._topic}' cannot be followed: {error}") from error
        if found:
            self._check_identity()
        messages = [
            TailMessage(self._assigned[part], record.offset, record.timestamp, record.value)
            for part, records in found.items()
            for record in records
        ]
        for part, key in self._assigned.items():
            self._positions[key] = self._consumer.position(part)
        return Polled(messages, dict(self._positions), self._is_at_the_end())

    def ends(self) -> Mapping[PartitionKey, int]:
        """See `Stream`: the last stable offsets."""
        from kafka.errors import KafkaError

        assigned = self._assigned
        try:
            with self._one_asks:
                found = self._asking.end_offsets(list(assigned), timeout_ms=_SILENT_MS_MAX)
        except (KafkaError, ValueError, OSError) as error:  # ValueError: it was closed meanwhile
            raise StreamError(f"Kafka does not answer for topic '{self._topic}': {error}") from error
        return {assigned[part]: end for part, end in found.items()}

    def close(self) -> None:
        """See `Stream`."""
        self._consumer.close(autocommit=False)
        with self._one_asks:
            self._asking.close(autocommit=False)

    def _is_at_the_end(self) -> bool:
        """Whether all that Kafka had a moment ago has been polled: its last stable offsets, asked for now and then,
        and what its newest answers told beyond them.
        """
        if time.monotonic() - self._asked > _ENDS_S:
            self._ask()
        # An open transaction holds the position below what is written; then the stable offsets alone count.
        if self._is_past_ends() and any(
            self._positions[key] < (self._consumer.highwater(part) or 0) for part, key in self._assigned.items()
        ):
            self._ask()
        return self._is_past_ends()

    def _is_past_ends(self) -> bool:
        return all(self._positions[key] >= end for key, end in self._ends.items())

    def _ask(self) -> None:
        self._ends = self.ends()
        self._asked = time.monotonic()

    def _check_identity(self) -> None:
        """StreamError when the topic is another one of the same name."""
        now = self._cluster.topic_id(self._topic)
        if now is None:
            raise StreamError(f"Topic '{self._topic}' is not there.")
        if self._known_id is None:
            self._known_id = str(now)
        if str(now) != self._known_id:
            raise StreamError(f"Topic '{self._topic}' was recreated.")

    def _look(self) -> None:
        """Takes up new partitions; StreamError when the topic is another one."""
        from kafka import TopicPartition

        self._looked = time.monotonic()
        numbers = self._consumer.partitions_for_topic(self._topic)
        if not numbers:
            raise StreamError(f"Topic '{self._topic}' is not there.")
        self._check_identity()
        if len(numbers) == len(self._assigned):
            return
        parts = {TopicPartition(self._topic, number): partition_key(self._topic, number) for number in numbers}
        self._consumer.assign(list(parts))
        self._assigned = dict(parts)
        for part, key in parts.items():
            self._consumer.seek(part, self._positions.setdefault(key, 0))
        self._ask()
