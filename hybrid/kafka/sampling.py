"""A bounded sample of topics: the first and the last messages of each partition. Nothing is committed to Kafka."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from hybrid.config.table_config import StreamConfig
from hybrid.kafka.clients import WORK_TIMEOUT_MS, consumer
from hybrid.kafka.streams import StreamView, unreachable
from hybrid.runtime.byte_sizes import size_text
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


class UnreadRange(NamedTuple):
    """A half-open range of offsets that a sample has left out."""

    place: TopicPartition
    start: int
    end: int


@dataclass(frozen=True)
class MessageSample:
    """The messages of a sample, by partition and offset.

    `unread` are the parts of its ranges that were not read, because the limits in `limits_reached` ended it: `20 s`.
    """

    messages: Sequence[SampledMessage]
    unread: Sequence[UnreadRange] = ()
    limits_reached: Sequence[str] = ()


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


def sample_messages(stream: StreamConfig, view: StreamView, limits: SampleLimits) -> MessageSample:
    """Messages of a stream's topics. StreamError when Kafka does not answer."""
    from kafka.errors import KafkaError

    sampler = _Sampler(limits)
    rounds = sample_ranges(view, limits.messages)
    try:
        for number, ranges in enumerate(rounds):
            sampler.read(stream, ranges, rounds_left=len(rounds) - number)
    except (KafkaError, OSError) as error:
        raise unreachable(stream.brokers, error) from error
    messages = sorted(sampler.messages, key=lambda message: (message.place, message.offset))
    return MessageSample(messages, sampler.unread, list(dict.fromkeys(sampler.limits_reached)))


class _Sampler:
    """Reads ranges until the limits are reached. Positions count, not messages: transactions leave holes."""

    def __init__(self, limits: SampleLimits) -> None:
        self.messages: list[SampledMessage] = []
        self.unread: list[UnreadRange] = []
        self.limits_reached: list[str] = []
        self._limits = limits
        self._deadline = time.monotonic() + limits.seconds
        self._bytes_left = limits.bytes
        self._bytes_kept = 0  # for later rounds

    def read(self, stream: StreamConfig, ranges: Mapping[TopicPartition, Range], *, rounds_left: int) -> None:
        """Adds the messages of `ranges`. Each of the rounds that are left may read an equal share of the bytes."""
        self._bytes_kept = self._bytes_left - self._bytes_left // rounds_left
        positions = {place: start for place, (start, _) in ranges.items()}
        if self._goes_on():
            # Each round has a consumer of its own, and no partition is resumed: when a paused partition is assigned
            # again, resumed and sought, kafka-python may neither return nor fetch any more of it.
            with closing(_consumer(stream)) as client:
                self._drain(client, ranges, positions)
        unread = [
            UnreadRange(place, positions[place], end) for place, (_, end) in ranges.items() if positions[place] < end
        ]
        if unread:
            self.unread += unread
            self.limits_reached.append(self._limit_reached())

    def _drain(
        self, client: KafkaConsumer, ranges: Mapping[TopicPartition, Range], positions: dict[TopicPartition, int]
    ) -> None:
        """Reads from `positions` to the ends of `ranges`, and keeps `positions` up to date."""
        import kafka

        waiting = {kafka.TopicPartition(*place): place for place in ranges}
        client.assign(list(waiting))
        for part, place in waiting.items():
            client.seek(part, positions[place])
        while waiting and self._goes_on():
            polled = client.poll(timeout_ms=200)
            for part, place in list(waiting.items()):
                end = ranges[place][1]
                left_out = self._take(place, polled.get(part, ()), end)
                positions[place] = client.position(part) if left_out is None else left_out
                if positions[place] >= end:
                    client.pause(part)
                    del waiting[part]

    def _goes_on(self) -> bool:
        """Whether the limits of bytes and time allow another poll."""
        return self._bytes_left > self._bytes_kept and time.monotonic() < self._deadline

    def _limit_reached(self) -> str:
        if self._bytes_left <= self._bytes_kept:
            return size_text(self._limits.bytes)
        return f"{self._limits.seconds:g} s"

    def _take(self, place: TopicPartition, records: Sequence[Any], end: int) -> int | None:
        """Adds records before `end`; the offset of the first one that the limit of bytes leaves out, or None."""
        for record in records:
            if record.offset >= end:
                break
            if self._bytes_left <= self._bytes_kept:
                return int(record.offset)
            self._bytes_left -= len(record.value or b"")
            self.messages.append(SampledMessage(place, record.offset, record.value))
        return None


def _consumer(stream: StreamConfig) -> KafkaConsumer:
    return consumer(
        stream.brokers,
        stream.security,
        WORK_TIMEOUT_MS,
        auto_offset_reset="earliest",  # messages that have expired meanwhile are passed over
        max_partition_fetch_bytes=1024 * 1024,
    )
