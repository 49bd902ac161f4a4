"""Metadata and end offsets of all followed topics of a broker: one connection, and one thread that asks.

kafka-python requests them beside librdkafka, which fetches: a broker answers the requests of one connection in order,
and a fetch waits for rows.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hybrid.config.kafka_security import KafkaSecurity
from hybrid.errors import StreamError
from hybrid.kafka.clients import QUERY_TIMEOUT_MS, consumer
from hybrid.kafka.streams import unreachable
from hybrid.table.boundary import TopicPartition

if TYPE_CHECKING:
    from kafka.cluster import ClusterMetadata

_METADATA_MS = 1000
# Topics that are not there are asked for so often. kafka-python itself would ask ten times a second, for all topics.
_ABSENT_S = 1.0
_TICK_S = 0.1
# How long an answer about end offsets may take: for a statement, and for all streams.
_SILENT_MS_MAX, _ALL_MS_MAX = 1000, 2000
# How long a stream's end offsets may take when they are asked alone, because the common request has failed.
_ALONE_MS_MAX = 200
# When so many streams in a row fail alone, the broker is silent.
_FAILED_ALONE_MAX = 3


class PartitionEnds(NamedTuple):
    """The end offsets of partitions, and an instant (monotonic clock, s) before they were requested."""

    at: float = 0.0
    ends: Mapping[TopicPartition, int] = {}


_NO_ENDS = PartitionEnds()


@dataclass(eq=False)
class WatchedStream:
    """One stream as a watch knows it: its topics, and the partitions whose end offsets are asked each `pause_s`.

    `newest` holds the last complete answer, `failures` counts the failed ones since. Its stream sets `places` and
    `pause_s`; whoever asks may offer an answer.
    """

    topics: Collection[str]
    pause_s: float
    places: Sequence[TopicPartition] = ()
    newest: PartitionEnds = _NO_ENDS
    failures: int = 0
    asked_at: float = 0.0

    def offer(self, answer: PartitionEnds) -> None:
        """Takes an answer. One that lacks a partition is a failure: without a leader it is left out silently."""
        ends = {place: answer.ends[place] for place in self.places if place in answer.ends}
        if len(ends) < len(self.places):
            self.failures += 1
            return
        self.failures = 0
        if answer.at > self.newest.at:
            self.newest = PartitionEnds(answer.at, ends)


class BrokerWatch:
    """Watches the topics of all streams that are registered. Raises StreamError where Kafka does not answer."""

    def __init__(self, brokers: str, security: KafkaSecurity) -> None:
        from kafka.errors import KafkaError

        self._brokers = brokers
        try:
            self._client = consumer(brokers, security, QUERY_TIMEOUT_MS, metadata_max_age_ms=_METADATA_MS)
        except (KafkaError, OSError) as error:
            raise unreachable(brokers, error) from error
        # The cluster metadata hold the topics' ids, which no method of kafka-python's consumer returns.
        self._cluster: ClusterMetadata = self._client._cluster
        self._lock = threading.Lock()
        self._watched: Sequence[WatchedStream] = ()
        # By how many threads each topic's metadata are awaited now.
        self._sought = Counter[str]()
        self._refreshed = threading.Condition()
        # How often metadata have arrived.
        self.refreshes = 0
        self._all_asked_at = 0.0
        self._is_closing = threading.Event()
        self._cluster.add_listener(self._count_refresh)
        self._thread = threading.Thread(target=self._run, name=f"watch-{brokers}", daemon=True)
        self._thread.start()

    def watch(self, topics: Sequence[str], pause_s: float) -> WatchedStream:
        """Registers a stream, and waits until the metadata of its topics are known, or known to be absent."""
        watched = WatchedStream(topics, pause_s)
        with self._lock:
            self._watched = (*self._watched, watched)
        try:
            self.await_metadata(topics)
        except BaseException:
            self.unwatch(watched)
            raise
        return watched

    def unwatch(self, watched: WatchedStream) -> None:
        """Ends the registration of a stream."""
        with self._lock:
            self._watched = tuple(other for other in self._watched if other is not watched)

    def partitions(self, topic: str) -> Collection[int]:
        """The partitions of a topic as of the last metadata; none if it does not exist."""
        return self._cluster.partitions_for_topic(topic) or ()

    def topic_id(self, topic: str) -> str | None:
        """The id of a topic as of the last metadata; None if it does not exist."""
        found = self._cluster.topic_id(topic)
        return None if found is None else str(found)

    def end_offsets(self, places: Iterable[TopicPartition], timeout_ms: int = _SILENT_MS_MAX) -> PartitionEnds:
        """The present last stable offsets. Any thread may ask. StreamError when Kafka does not answer in time.

        A partition without a leader is left out.
        """
        import kafka
        from kafka.errors import KafkaError

        asked_at = time.monotonic()
        try:
            ends = self._client.end_offsets([kafka.TopicPartition(*place) for place in places], timeout_ms=timeout_ms)
        except (KafkaError, ValueError, OSError, RuntimeError) as error:  # the last three: it was closed meanwhile
            raise StreamError(f"Kafka at {self._brokers} does not answer: {error}") from error
        return PartitionEnds(asked_at, {TopicPartition(*place): end for place, end in ends.items()})

    def close(self) -> None:
        """Closes the connection. Requests that wait for an answer fail."""
        self._is_closing.set()
        self._client.close(autocommit=False)
        self._thread.join()

    def await_metadata(self, topics: Sequence[str]) -> None:
        """Waits until metadata of these topics are there, or a response that was requested by now lacks one.

        StreamError when Kafka does not answer. Any thread may ask for topics that are watched.
        """
        with self._lock:
            self._sought.update(topics)
        try:
            self._await_metadata(topics)
        finally:
            with self._lock:
                self._sought.subtract(topics)

    def _await_metadata(self, topics: Sequence[str]) -> None:
        deadline = time.monotonic() + QUERY_TIMEOUT_MS / 1000
        with self._refreshed:
            self._request_all()
            # The next response may be to a request from before that, the one after it is not.
            last = self.refreshes + 2
            while not all(map(self.partitions, topics)) and (seen := self.refreshes) < last:
                self._request_all()
                self._refreshed.wait(max(0.0, deadline - time.monotonic()))
                if self.refreshes == seen and time.monotonic() > deadline:
                    raise StreamError(f"Kafka at {self._brokers} does not answer.", hint="hybrid kafka status")

    def _count_refresh(self, cluster: ClusterMetadata) -> None:
        """Called by kafka-python's thread with each response."""
        with self._refreshed:
            self.refreshes += 1
            self._refreshed.notify_all()

    def _run(self) -> None:
        seen = 0
        while not self._is_closing.wait(_TICK_S):
            now = time.monotonic()
            if self.refreshes != seen:
                seen = self.refreshes
                self._leave_absent(now)
            asked = [watched for watched in self._watched if watched.places]
            if any(now - watched.asked_at >= watched.pause_s for watched in asked):
                # Others that are nearly due join them, so that few requests are made.
                self._ask([watched for watched in asked if now - watched.asked_at >= watched.pause_s / 2])

    def _leave_absent(self, now: float) -> None:
        """Asks for topics that are not there once a second only."""
        with self._lock:
            every = {topic for watched in self._watched for topic in watched.topics}
            present = {topic for topic in every if self._sought[topic] > 0 or self.partitions(topic)}
            self._set_topics(present)
        if present != every and now - self._all_asked_at > _ABSENT_S:
            self._all_asked_at = now
            self._request_all()

    def _request_all(self) -> None:
        with self._lock:
            self._set_topics({topic for watched in self._watched for topic in watched.topics})
        self._cluster.request_update()

    def _set_topics(self, topics: set[str]) -> None:
        # No method makes the set smaller. It is replaced, because another thread iterates over it.
        self._cluster._topics = topics

    def _ask(self, asked: Sequence[WatchedStream]) -> None:
        """One request for the end offsets of some streams; if it fails, one for each, so that a bad topic is alone."""
        # Of a topic that is not there nothing is asked, because that request would end with its timeout.
        places = {place: None for watched in asked for place in watched.places if self.partitions(place.topic)}
        now = time.monotonic()
        for watched in asked:
            watched.asked_at = now
        try:
            answer = self.end_offsets(places, _ALL_MS_MAX) if places else _NO_ENDS
        except StreamError:
            self._ask_alone(asked)
            return
        for watched in asked:
            watched.offer(answer)

    def _ask_alone(self, asked: Sequence[WatchedStream]) -> None:
        failed_in_row = 0
        for watched in asked:
            if self._is_closing.is_set():
                return
            answer = _NO_ENDS
            if failed_in_row < _FAILED_ALONE_MAX:
                try:
                    answer = self.end_offsets(watched.places, _ALONE_MS_MAX)
                    failed_in_row = 0
                except StreamError:
                    failed_in_row += 1
            watched.offer(answer)
