"""The state of a stream's topics in Kafka: ids, partitions, and the readable offsets of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from hybrid.config.table_config import StreamConfig
from hybrid.errors import NotFoundError, StreamError, TopicError
from hybrid.kafka.admin_pool import ask_admin
from hybrid.kafka.clients import WORK_TIMEOUT_MS, consumer
from hybrid.kafka.leader_epochs import EpochEnd, epoch_ends
from hybrid.kafka.topics import existing_topics, require_listener
from hybrid.runtime.json_values import capitalized
from hybrid.table.boundary import TopicPartition, read_places
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient
    from kafka.protocol.consumer import OffsetSpec
    from kafka.structs import OffsetAndTimestamp


@dataclass(frozen=True)
class StreamView:
    """A stream's topics at one moment: their ids, and the offsets of each partition that is read.

    `starts` are the first retained offsets, `ends` the last stable ones (exclusive). A missing topic is in none of
    them. `leader_epochs` are those of the leaders that returned the ends, if they keep epochs. `divergences` holds, for
    each partition whose leader epoch was requested, the offset up to which its log still belongs to that epoch.
    """

    topic_ids: Mapping[str, str]
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    divergences: Mapping[TopicPartition, int] = field(default_factory=dict)


def view_stream(
    stream: StreamConfig, timeout_ms: int = WORK_TIMEOUT_MS, asked: Mapping[TopicPartition, int] | None = None
) -> StreamView:
    """The existing topics of a stream as the cluster reports them now. `asked`: leader epochs to look up.

    `timeout_ms` holds for each request. Raises StreamError when the cluster does not answer one, TopicError for a topic
    that it refuses. The ends are last stable offsets, which exclude messages of open transactions.
    """
    from kafka.errors import KafkaError

    require_listener(stream.brokers)
    look = partial(_view, stream, timeout_ms, asked or {})
    try:
        return ask_admin(stream.brokers, timeout_ms, look, stream.security)
    except (KafkaError, OSError) as error:
        raise unreachable(stream.brokers, error) from error


def _view(
    stream: StreamConfig, timeout_ms: int, asked: Mapping[TopicPartition, int], admin: KafkaAdminClient
) -> StreamView:
    """`view_stream` over a client, whose errors propagate."""
    from kafka.protocol.consumer import OffsetSpec

    topics = existing_topics(admin, stream.topics)
    places = [place for topic in topics for place in read_places(stream, topic.name, topic.partitions)]
    if not places:
        return StreamView({topic.name: topic.id for topic in topics}, {}, {})
    starts = _offsets(admin, places, OffsetSpec.EARLIEST)
    ends = _offsets(admin, places, OffsetSpec.LATEST)
    asked_epochs = {place: epoch for place, epoch in asked.items() if place in ends}
    epochs, divergences = _leader_epochs(admin, ends, asked_epochs, timeout_ms)
    return StreamView(
        {topic.name: topic.id for topic in topics},
        {place: position.offset for place, position in starts.items()},
        {place: position.offset for place, position in ends.items()},
        epochs,
        divergences,
    )


def _offsets(
    admin: KafkaAdminClient, places: Iterable[TopicPartition], of: OffsetSpec
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """The first or the last stable offset of each partition, with the epoch of the leader that returned it."""
    import kafka

    specs = {kafka.TopicPartition(*place): of for place in places}
    offsets = admin.list_partition_offsets(specs, isolation_level="read_committed")
    return {TopicPartition(*part): offset for part, offset in offsets.items()}


def _leader_epochs(
    admin: KafkaAdminClient,
    ends: Mapping[TopicPartition, OffsetAndTimestamp],
    asked: Mapping[TopicPartition, int],
    timeout_ms: int,
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """The current leader epochs, and where the log of each epoch in `asked` ends.

    An epoch counts only if its leader also returns its end. Then a later answer without an end indicates a truncated
    log. Raises KafkaError when a leader changes meanwhile.
    """
    from kafka.errors import NotLeaderForPartitionError

    now = {place: end_offset.leader_epoch for place, end_offset in ends.items() if end_offset.leader_epoch is not None}
    before = epoch_ends(admin, {**now, **asked}, timeout_ms)
    if before is None:
        return {}, {}
    changed = {place: epoch for place, epoch in now.items() if asked.get(place, epoch) != epoch}
    current = {**before, **(epoch_ends(admin, changed, timeout_ms) or {})}
    answering = {place: epoch for place, epoch in now.items() if current[place].end >= 0}
    if any(current[place] < EpochEnd(epoch, ends[place].offset) for place, epoch in answering.items()):
        raise NotLeaderForPartitionError("a partition's leader changes at this moment")
    return answering, {place: max(0, before[place].end) for place in asked}


def offsets_at(stream: StreamConfig, places: Iterable[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
    """The first offset of each partition whose message is not older than `time_ms`, for partitions that have one.

    Raises StreamError when the cluster does not answer.
    """
    import kafka
    from kafka.errors import KafkaError

    parts = [kafka.TopicPartition(*place) for place in places]
    try:
        client = consumer(stream.brokers, stream.security, WORK_TIMEOUT_MS)
        try:
            offsets = client.offsets_for_times(dict.fromkeys(parts, time_ms))
        finally:
            client.close()
    except (KafkaError, OSError) as error:
        raise unreachable(stream.brokers, error) from error
    return {TopicPartition(*part): offset.offset for part, offset in offsets.items() if offset is not None}


def require_topics(
    stream: StreamConfig,
    known: Collection[str] = (),
    timeout_ms: int = WORK_TIMEOUT_MS,
    asked: Mapping[TopicPartition, int] | None = None,
    *,
    needed: Collection[str] = (),
) -> StreamView:
    """The existing topics of a table's stream.

    Raises TopicError when a topic that was read before (`known`) is gone. It may be created again as a different topic,
    which is never read automatically, so a person has to decide. Raises NotFoundError when no topic exists (yet), or
    one of `needed` does not. Other errors as `view_stream`.
    """
    view = view_stream(stream, timeout_ms, asked)
    gone = [topic for topic in stream.topics if topic in known and topic not in view.topic_ids]
    if gone and not needed:
        raise TopicError(
            f"{capitalized(words_of(stream, gone))} of {stream.brokers} {_verb(gone, 'was', 'were')} read before and "
            f"{_verb(gone, 'does', 'do')} not exist any more. Ingestion stopped; nothing was skipped.",
            hint=f"hybrid kafka topic create {gone[0]}, then decide where it continues: hybrid connector reset",
        )
    missing = [topic for topic in needed if topic not in view.topic_ids]
    if missing or not view.topic_ids:
        raise missing_topics(stream, missing or stream.topics)
    return view


class SilentBrokers:
    """Remembers brokers that did not answer for one table, and does not ask them again for others. Thread-safe.

    `views` has what the other brokers answered, by stream.
    """

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._errors: dict[str, StreamError] = {}
        self.views: dict[StreamConfig, StreamView] = {}

    def view(self, stream: StreamConfig, state: RealtimeState) -> StreamView:
        """The stream's topics, see `require_topics`. Repeats the earlier StreamError if its brokers did not answer."""
        if stream.brokers in self._errors:
            raise self._errors[stream.brokers]
        try:
            view = require_topics(stream, state.known_ids(stream), self._timeout_ms, state.known_leader_epochs(stream))
        except TopicError:  # the brokers do answer
            raise
        except StreamError as error:
            self._errors[stream.brokers] = error
            raise
        self.views[stream] = view
        return view


def missing_topics(stream: StreamConfig, topics: Sequence[str]) -> NotFoundError:
    """The error for topics that do not exist (yet)."""
    return NotFoundError(
        f"{capitalized(words_of(stream, topics))} {_verb(topics, 'does', 'do')} not exist at {stream.brokers}.",
        hint=f"hybrid kafka topic create {topics[0]}",
    )


def absent_words(stream: StreamConfig, there: Collection[str]) -> str | None:
    """The topics of a stream that are not in `there`, in words; None when all are."""
    absent = [topic for topic in stream.topics if topic not in there]
    return f"{words_of(stream, absent)} {_verb(absent, 'is', 'are')} not there yet" if absent else None


def words_of(stream: StreamConfig, topics: Collection[str]) -> str:
    """Words for some topics of a stream, in their order."""
    return replace(stream, topics=tuple(topic for topic in stream.topics if topic in topics)).words


def _verb(topics: Collection[str], one: str, several: str) -> str:
    return one if len(topics) == 1 else several


def unreachable(brokers: str, error: Exception) -> StreamError:
    """The error for a cluster that does not answer, refuses the user, is not trusted, or has a damaged message."""
    from hybrid.kafka.network import distrust, refusal, unreadable

    if (words := refusal(error)) is not None:
        return StreamError(
            f"Kafka at {brokers} refuses the stream's user: {words}.",
            hint="Correct the mechanism, user and password in the stream's config, or what its reference names",
        )
    if (words := distrust(error)) is not None:
        return StreamError(
            f"Kafka at {brokers} has a certificate that is not trusted: {words}.",
            hint="Name the certificates that sign the brokers' in the stream's config (ssl.truststore.location, of a "
            "connector ssl.ca.location), and the brokers by a host that their certificates name",
        )
    if (words := unreadable(error)) is not None:
        return StreamError(f"A message at {brokers} cannot be read: {words}.")
    return StreamError(
        f"Kafka at {brokers} does not answer ({type(error).__name__}).",
        hint="hybrid kafka start (a local broker), or give your cluster's address: --kafka HOST:PORT on table create. "
        "A broker that asks for a user or speaks TLS does not answer who says nothing of it in the stream's config",
    )
