"""What Kafka says of a stream's topics: their ids, their partitions, and from where to where each can be read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hybrid.config.table_config import StreamConfig
from hybrid.errors import NotFoundError, StreamError, TopicError
from hybrid.kafka.clients import WORK_TIMEOUT_MS, admin_client, consumer
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
    """A stream's topics at one moment: their ids, and what each partition that is read holds.

    `starts` are the first offsets still held, `ends` the last stable ones (exclusive). A topic that is not there is in
    none of them. `leader_epochs` are those of the leaders that gave the ends, where they keep epochs. `divergences`
    says, of the partitions whose leader epoch was asked about, up to where the log is still the one of that epoch.
    """

    topic_ids: Mapping[str, str]
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    divergences: Mapping[TopicPartition, int] = field(default_factory=dict)


def view_stream(
    stream: StreamConfig, timeout_ms: int = WORK_TIMEOUT_MS, asked: Mapping[TopicPartition, int] | None = None
) -> StreamView:
    """The topics of a stream as the cluster shows them now, those that there are. `asked`: leader epochs to look up.

    Raises StreamError when the cluster does not answer within `timeout_ms`, TopicError for a topic that it refuses.
    The ends are last stable offsets: what an open transaction holds back is not in them.
    """
    from kafka.errors import KafkaError
    from kafka.protocol.consumer import OffsetSpec

    require_listener(stream.brokers)
    try:
        with admin_client(stream.brokers, timeout_ms, stream.security) as admin:
            found = existing_topics(admin, stream.topics)
            places = [place for one in found for place in read_places(stream, one.name, one.partitions)]
            if not places:
                return StreamView({one.name: one.id for one in found}, {}, {})
            starts = _offsets(admin, places, OffsetSpec.EARLIEST)
            ends = _offsets(admin, places, OffsetSpec.LATEST)
            known = {place: epoch for place, epoch in (asked or {}).items() if place in ends}
            epochs, divergences = _leader_epochs(admin, ends, known, timeout_ms)
    except (KafkaError, OSError) as error:
        raise unreachable(stream.brokers, error) from error
    return StreamView(
        {one.name: one.id for one in found},
        {place: one.offset for place, one in starts.items()},
        {place: one.offset for place, one in ends.items()},
        epochs,
        divergences,
    )


def _offsets(
    admin: KafkaAdminClient, places: Iterable[TopicPartition], of: OffsetSpec
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """The first or the last stable offset of each partition, with the epoch of the leader that gave it."""
    import kafka

    asked = {kafka.TopicPartition(*place): of for place in places}
    found = admin.list_partition_offsets(asked, isolation_level="read_committed")
    return {TopicPartition(*part): one for part, one in found.items()}


def _leader_epochs(
    admin: KafkaAdminClient,
    ends: Mapping[TopicPartition, OffsetAndTimestamp],
    asked: Mapping[TopicPartition, int],
    timeout_ms: int,
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """The leader epochs of the moment, and where the log of each epoch in `asked` ends.

    An epoch counts only where its leader also says where it ends: then a later answer that does not is a log that was
    cut. KafkaError when a leader changes meanwhile.
    """
    from kafka.errors import NotLeaderForPartitionError

    now = {place: one.leader_epoch for place, one in ends.items() if one.leader_epoch is not None}
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
    """The first offset of each partition whose message is not older than `time_ms`; not of one that has none.

    StreamError when the cluster does not answer.
    """
    import kafka
    from kafka.errors import KafkaError

    parts = [kafka.TopicPartition(*place) for place in places]
    try:
        client = consumer(stream.brokers, stream.security, WORK_TIMEOUT_MS)
        try:
            found = client.offsets_for_times(dict.fromkeys(parts, time_ms))
        finally:
            client.close()
    except (KafkaError, OSError) as error:
        raise unreachable(stream.brokers, error) from error
    return {TopicPartition(*part): one.offset for part, one in found.items() if one is not None}


def require_topics(
    stream: StreamConfig,
    known: Collection[str] = (),
    timeout_ms: int = WORK_TIMEOUT_MS,
    asked: Mapping[TopicPartition, int] | None = None,
    *,
    needed: Collection[str] = (),
) -> StreamView:
    """The topics of a table's stream, those that there are.

    TopicError when one of those that were read (`known`) is gone: it may come again as another one, which is never
    read on by itself, so that there is nothing to wait for and a person has to see it. NotFoundError when none is there
    (yet), or one of `needed` is not; else as `view_stream`.
    """
    view = view_stream(stream, timeout_ms, asked)
    gone = [topic for topic in stream.topics if topic in known and topic not in view.topic_ids]
    if gone and not needed:
        raise TopicError(
            f"{capitalized(words_of(stream, gone))} of {stream.brokers} {_verb(gone, 'was', 'were')} read before and "
            f"{_verb(gone, 'does', 'do')} not exist any more. Ingestion stopped; nothing was skipped.",
            hint=f"hybrid kafka topic create {gone[0]}, then decide where it goes on: hybrid connector reset",
        )
    missing = [topic for topic in needed if topic not in view.topic_ids]
    if missing or not view.topic_ids:
        raise missing_topics(stream, missing or stream.topics)
    return view


class SilentBrokers:
    """Brokers that did not answer for one table, and are not asked again for the next ones. For several threads."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._errors: dict[str, StreamError] = {}

    def view(self, stream: StreamConfig, state: RealtimeState) -> StreamView:
        """The stream's topics, see `require_topics`. StreamError as before where its brokers were silent."""
        if stream.brokers in self._errors:
            raise self._errors[stream.brokers]
        try:
            return require_topics(stream, state.known_ids(stream), self._timeout_ms, state.known_leader_epochs(stream))
        except TopicError:  # they do answer
            raise
        except StreamError as error:
            self._errors[stream.brokers] = error
            raise


def missing_topics(stream: StreamConfig, topics: Sequence[str]) -> NotFoundError:
    """The error for topics that are not there (yet)."""
    return NotFoundError(
        f"{capitalized(words_of(stream, topics))} {_verb(topics, 'does', 'do')} not exist at {stream.brokers}.",
        hint=f"hybrid kafka topic create {topics[0]}",
    )


def absent_words(stream: StreamConfig, there: Collection[str]) -> str | None:
    """The topics of a stream that are not among those that are `there`, in words; None when all are."""
    absent = [topic for topic in stream.topics if topic not in there]
    return f"{words_of(stream, absent)} {_verb(absent, 'is', 'are')} not there yet" if absent else None


def words_of(stream: StreamConfig, topics: Collection[str]) -> str:
    """Some topics of a stream in a sentence, in their order."""
    return replace(stream, topics=tuple(topic for topic in stream.topics if topic in topics)).words


def _verb(topics: Collection[str], one: str, several: str) -> str:
    return one if len(topics) == 1 else several


def unreachable(brokers: str, error: Exception) -> StreamError:
    """The error for a cluster that does not answer."""
    return StreamError(
        f"Kafka at {brokers} does not answer ({type(error).__name__}).",
        hint="hybrid kafka start (a local broker), or give your cluster's address: --kafka HOST:PORT on table create. "
        "A broker that asks for a user or speaks TLS does not answer who says nothing of it in the stream's config",
    )
