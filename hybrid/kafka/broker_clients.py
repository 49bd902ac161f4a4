"""The connections to a broker that all followed streams of a process share."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from hybrid.config.kafka_security import KafkaSecurity
from hybrid.errors import StreamError
from hybrid.kafka.broker_watch import BrokerWatch
from hybrid.kafka.clients import broker_answers
from hybrid.kafka.readers import (
    DEFAULT_READERS,
    DedicatedConsumer,
    IsKnownEnd,
    ReaderTuning,
    SharedConsumer,
    Subscription,
)
from hybrid.table.boundary import TopicPartition


class BrokerClient:
    """One broker's clients: a watch over topics, a shared consumer, and consumers for single streams."""

    def __init__(self, brokers: str, security: KafkaSecurity, tuning: ReaderTuning = DEFAULT_READERS) -> None:
        if not broker_answers(brokers):  # asked first: a consumer that reaches no broker leaks its sockets
            raise StreamError(f"Kafka at {brokers} does not answer.", hint="hybrid kafka status")
        self._brokers, self._security, self._tuning = brokers, security, tuning
        self.watch = BrokerWatch(brokers, security)
        self._lock = threading.Lock()
        self._shared: SharedConsumer | None = None
        self._dedicated = 0
        self.users = 0

    @property
    def is_broken(self) -> bool:
        """Whether new streams need another client."""
        return self._shared is not None and self._shared.is_broken

    def subscribe(self, starts: Mapping[TopicPartition, int]) -> Subscription:
        """Reads partitions from these positions on, by the shared consumer."""
        with self._lock:
            if self._shared is None:
                self._shared = SharedConsumer(self._brokers, self._security, self._tuning)
        return self._shared.subscribe(starts)

    def dedicate(self, starts: Mapping[TopicPartition, int], is_known_end: IsKnownEnd) -> DedicatedConsumer | None:
        """Reads partitions from these positions on, by a consumer of their own; None while there are too many."""
        with self._lock:
            if self._dedicated >= self._tuning.dedicated_max:
                return None
            self._dedicated += 1
        try:
            reader = DedicatedConsumer(self._brokers, self._security, is_known_end, self._count_closed)
        except BaseException:
            self._count_closed()
            raise
        reader.assign(starts)
        return reader

    def _count_closed(self) -> None:
        with self._lock:
            self._dedicated -= 1

    def close(self) -> None:
        """Closes the connections."""
        if self._shared is not None:
            self._shared.close()
        self.watch.close()


@dataclass
class _Entry:
    """The client of one broker, and the last failure to make it: who waited for the attempt shares its result."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    client: BrokerClient | None = None
    failed_at: float = 0.0
    error: StreamError | None = None


class BrokerClients:
    """The clients in use, by bootstrap list and security: streams that differ in one of them share nothing."""

    def __init__(self, tuning: ReaderTuning = DEFAULT_READERS) -> None:
        self.tuning = tuning
        self._lock = threading.Lock()
        self._entries: dict[tuple[str, KafkaSecurity], _Entry] = {}

    def acquire(self, brokers: str, security: KafkaSecurity) -> BrokerClient:
        """The client of a broker, made if there is none. StreamError when no broker answers."""
        asked_at = time.monotonic()
        with self._lock:
            entry = self._entries.setdefault((brokers, security), _Entry())
        with entry.lock:
            if entry.error is not None and entry.failed_at >= asked_at:
                raise StreamError(str(entry.error), hint=entry.error.hint)
            if entry.client is None or entry.client.is_broken:
                try:
                    entry.client = BrokerClient(brokers, security, self.tuning)
                except StreamError as error:
                    entry.failed_at, entry.error = time.monotonic(), error
                    raise
            entry.client.users += 1
            return entry.client

    def release(self, brokers: str, security: KafkaSecurity, client: BrokerClient) -> None:
        """Ends the use of a client; its last user closes it."""
        entry = self._entries[brokers, security]
        with entry.lock:
            client.users -= 1
            if client.users:
                return
            if entry.client is client:
                entry.client = None
        client.close()
