"""A bounded sample of topics: the first and the last messages of each partition. Nothing is committed to Kafka."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hybrid.config.table_config import StreamConfig
from hybrid.kafka.clients import WORK_TIMEOUT_MS, consumer
from hybrid.kafka.streams import StreamView, unreachable
from hybrid.table.boundary import TopicPartition

if TYPE_CHECKING:
    from kafka import KafkaConsumer

Range = tuple[int, int]


@dataclass(frozen=True)
class SampleLimits:
    """What a sample takes at most: messages of all partitions, bytes of their values, and seconds to read them."""

    messages: int
    bytes: int = 16 * 1024 * 1024
    seconds: float = 20.0


class SampledMessage(NamedTuple):
    """A message of a sample, by its coordinates; `value` None is a tombstone."""

    place: TopicPartition
    offset: int
    value: bytes | None


def sample_ranges(view: StreamView, messages: int) -> list[Mapping[TopicPartition, Range]]:
    """Half-open ranges of offsets: the beginnings of the partitions, then their ends where these are not read yet.

    Each partition gets an equal share of `messages`, half of it for its beginning.
    """
    counts = {place: view.ends[place] - start for place, start in view.starts.items() if view.ends[place] > start}
    if sum(counts.values()) <= messages:
        return [{place: (view.starts[place], view.ends[place]) for place in counts}]
    share = max(2, messages // max(1, len(counts)))
    heads, tails = {}, {}
    for place, count in counts.items():
        start, end = view.starts[place], view.ends[place]
        heads[place] = (start, end if count <= share else start + share // 2)
        if count > share:
            tails[place] = (end - (share - share // 2), end)
    return [heads, tails] if tails else [heads]


def sample_messages(stream: StreamConfig, view: StreamView, limits: SampleLimits) -> list[SampledMessage]:
    """Messages of a stream's topics, by partition and offset. StreamError when Kafka does not answer."""
    from kafka.errors import KafkaError

    sampler = _Sampler(limits)
    try:
        client = consumer(
            stream.brokers,
            stream.security,
            WORK_TIMEOUT_MS,
            auto_offset_reset="earliest",  # messages that have expired meanwhile are passed over
            max_partition_fetch_bytes=1024 * 1024,
        )
        try:
            for ranges in sample_ranges(view, limits.messages):
                sampler.read(client, ranges)
        finally:
            client.close()
    except (KafkaError, OSError) as error:
        raise unreachable(stream.brokers, error) from error
    return sorted(sampler.messages, key=lambda message: (message.place, message.offset))


class _Sampler:
    """Reads ranges until the limits are reached. Positions count, not messages: transactions leave holes."""

    def __init__(self, limits: SampleLimits) -> None:
        self.messages: list[SampledMessage] = []
        self._bytes_left = limits.bytes
        self._deadline = time.monotonic() + limits.seconds

    def read(self, client: KafkaConsumer, ranges: Mapping[TopicPartition, Range]) -> None:
        """Adds the messages of `ranges`."""
        import kafka

        parts = {kafka.TopicPartition(*place): place for place in ranges}
        client.assign(list(parts))
        client.resume(*parts)  # partitions of a former range, which an assignment leaves paused
        for part, place in parts.items():
            client.seek(part, ranges[place][0])
        unread = dict(parts)
        while unread and self._bytes_left > 0 and time.monotonic() < self._deadline:
            for part, records in client.poll(timeout_ms=200).items():
                if part in unread:
                    self._take(parts[part], records, ranges[parts[part]][1])
            for part, place in list(unread.items()):
                if client.position(part) >= ranges[place][1]:
                    client.pause(part)
                    del unread[part]

    def _take(self, place: TopicPartition, records: Sequence[object], end: int) -> None:
        for record in records:
            offset, value = record.offset, record.value  # type: ignore[attr-defined]
            if offset < end and self._bytes_left > 0:
                self._bytes_left -= len(value or b"")
                self.messages.append(SampledMessage(place, offset, value))
