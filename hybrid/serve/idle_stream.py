"""`IdleStream`: whether a stream is as it was when its ingester last found nothing new.

To plan a batch, an ingester asks Kafka for ids, partitions, offsets and leader epochs in seven requests, and reads the
half's log. For a hundred tables that nobody writes to, that is half a core. One client watches the topics of
all tables of a broker instead, and an ingester plans only when something has changed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from hybrid.api.table import Table
from hybrid.catalog.catalog import CATALOG_ERRORS
from hybrid.config.table_config import Half, StreamConfig, TableSpec
from hybrid.errors import StreamError
from hybrid.kafka.broker_clients import BrokerClient, BrokerClients
from hybrid.kafka.broker_watch import WatchedStream
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import newest_version
from hybrid.table.boundary import TopicPartition, read_places

# What no watch shows is looked at so often: a log that was truncated and has grown to the same end. The next message
# finds that out, too, so only the error comes later. The age of a segment shortens it.
_LOOK_S = 300.0
# How often the end offsets are asked for.
_ENDS_S_MIN, _ENDS_S_MAX = 0.25, 1.0
# Older answers of the watch say nothing about now: Kafka may be gone.
_ANSWER_S_MAX = 3.0


class StreamSight(NamedTuple):
    """All that has to differ before there is something to ingest, beside the definition: commits, pause and topics."""

    version: int
    pause: Mapping[TopicPartition, int] | None
    topic_ids: Mapping[str, str | None]
    ends: Mapping[TopicPartition, int]


class IdleStream:
    """The stream of one table, looked at every `interval_s`. `clients` are shared by all tables of a process.

    Call `is_unchanged` before a batch is planned, and `planned` after it.
    """

    def __init__(self, clients: BrokerClients, interval_s: float, look_s: float = _LOOK_S) -> None:
        self._clients, self._look_s = clients, look_s
        # Each look then finds an answer that the one before did not know.
        self._ends_s = min(_ENDS_S_MAX, max(_ENDS_S_MIN, interval_s / 2))
        self._registration: _Registration | None = None
        self._spec: TableSpec | None = None
        self._version: int | None = None
        self._sight: StreamSight | None = None
        self._idle: tuple[StreamSight, float] | None = None

    def is_unchanged(self, table: Table) -> bool:
        """Whether nothing has changed since a batch was planned and there was nothing to read."""
        self._sight = self._look(table)
        if self._idle is None or self._sight is None:
            return False
        sight, until = self._idle
        return sight == self._sight and time.monotonic() < until

    def planned(self, table: Table, *, found_nothing: bool) -> None:
        """Takes the result of a batch. The watch begins with the first that found nothing."""
        self._idle = None
        stream = table.spec.stream
        if not found_nothing or stream is None:
            return
        if self._sight is not None:
            look_s = min(self._look_s, stream.flush_ms / 1000)
            self._idle = self._sight, time.monotonic() + look_s
        elif self._registration is None:
            try:
                self._registration = _Registration(self._clients, stream, self._ends_s)
            except StreamError:
                return  # the next batch says what is the matter with Kafka

    def close(self) -> None:
        """Ends the watch."""
        self._idle = self._sight = self._version = None
        if self._registration is not None:
            self._registration.close()
            self._registration = None

    def _look(self, table: Table) -> StreamSight | None:
        """What is to be seen now; None if it is not certain."""
        if self._spec is not table.spec:  # the table may have been dropped and created again, its log begins anew
            self.close()
            self._spec = table.spec
        if self._registration is None:
            return None
        half = table.layout.half(Half.REALTIME)
        self._version = open_half(half).version if self._version is None else newest_version(half, self._version)
        try:
            pause = table.connectors.pause_offsets()
        except CATALOG_ERRORS:
            return None
        ends = self._registration.ends()
        if ends is None:
            return None
        return StreamSight(self._version, pause, self._registration.topic_ids(), ends)


class _Registration:
    """The registration of a stream with its broker's watch."""

    def __init__(self, clients: BrokerClients, stream: StreamConfig, ends_s: float) -> None:
        self._clients, self._stream = clients, stream
        self._client: BrokerClient = clients.acquire(stream.brokers, stream.security)
        try:
            self._watched: WatchedStream = self._client.watch.watch(stream.topics, ends_s)
        except BaseException:
            clients.release(stream.brokers, stream.security, self._client)
            raise

    def topic_ids(self) -> Mapping[str, str | None]:
        return {topic: self._client.watch.topic_id(topic) for topic in self._stream.topics}

    def ends(self) -> Mapping[TopicPartition, int] | None:
        """The newest end offsets of all partitions that are read now; None if they are not known."""
        watch, watched = self._client.watch, self._watched
        partitions = ((topic, watch.partitions(topic)) for topic in self._stream.topics)
        places = [place for topic, numbers in partitions for place in read_places(self._stream, topic, numbers)]
        if len(places) != len(watched.places):
            watched.places = places
            return None
        answer = watched.newest
        if watched.failures or time.monotonic() - answer.at > _ANSWER_S_MAX or len(answer.ends) != len(places):
            return None
        return answer.ends

    def close(self) -> None:
        self._client.watch.unwatch(self._watched)
        self._clients.release(self._stream.brokers, self._stream.security, self._client)
