"""The partitions of a table's stream: how far each is read, where Kafka ends, and how fast rows arrive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import HybridError
from hybrid.kafka.clients import QUERY_TIMEOUT_MS
from hybrid.kafka.streams import require_topics
from hybrid.table import columns
from hybrid.table.boundary import TopicPartition, current_keys
from hybrid.table.names import topic_in_name

if TYPE_CHECKING:
    from hybrid.config.table_config import StreamConfig
    from hybrid.home.table_ref import TableRef
    from hybrid.kafka.streams import StreamView
    from hybrid.lake.log_entries import DataFile

# The rate is taken over fixed intervals, so that it changes with rows and not with every look.
RATE_SPAN_MS, _STEP_MS = 300_000, 10_000
_MINUTE_MS = 60_000


@dataclass(frozen=True)
class StreamEnds:
    """Kafka's end offsets by partition. Where they are not known, `problem` and `hint` say why.

    `starts` are the first offsets that Kafka still holds.
    """

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    problem: str | None = None
    hint: str | None = None
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)

    @classmethod
    def of(cls, view: StreamView) -> StreamEnds:
        """The end offsets of an answer."""
        return cls(view.ends, starts=view.starts)


@dataclass(frozen=True)
class PartitionStatus:
    """A partition that a table reads. `position` is the next offset to commit.

    `start` is Kafka's first offset and `end` its end (None: not known). `committed_until_ms` is the Kafka timestamp of
    its newest committed row. `segment` is its consuming segment, with the number of rows in it.
    """

    topic: str
    partition: int
    position: int
    end: int | None
    committed_until_ms: int | None
    rows_per_minute: float
    segment: str | None
    segment_rows: int
    start: int | None = None

    @property
    def lag(self) -> int | None:
        """The offsets that are not committed; None where Kafka's end is not known."""
        return None if self.end is None else max(0, self.end - self.position)


def stream_ends(table: TableRef) -> StreamEnds:
    """The end offsets of a table's stream now. Asks Kafka, for a short time where it does not answer."""
    stream = table.spec.stream
    if stream is None:
        return StreamEnds()
    try:
        state = table.half(Half.REALTIME).realtime
        return StreamEnds.of(require_topics(stream, state.known_ids(stream), QUERY_TIMEOUT_MS))
    except HybridError as error:
        return StreamEnds({}, str(error), error.hint)


def partitions_of(table: TableRef, ends: StreamEnds, now_ms: int) -> list[PartitionStatus]:
    """The partitions that a table reads, by topic and number; none before its stream has started."""
    stream = table.spec.stream
    if stream is None:
        return []
    half = table.half(Half.REALTIME)
    state = half.realtime
    if not state.reads(stream):
        return []
    committed = {key.place for key in state.offsets if key.connector == stream.connector and key.topic in stream.topics}
    keys = current_keys(stream, committed | set(ends.offsets), state.offsets)
    hidden = columns.bookkeeping(table.name)
    files = _by_place(stream, (file for file in half.files if file.segment not in hidden))
    found = []
    for place, key in sorted(keys.items()):
        segment = state.consuming.get(key)
        found.append(
            PartitionStatus(
                topic=place.topic,
                partition=place.partition,
                position=state.offsets.get(key, 0),
                end=ends.offsets.get(place),
                committed_until_ms=newest_ms(files[place]),
                rows_per_minute=rate_of(((file.modified_ms, file.rows) for file in files[place]), now_ms),
                segment=segment.name if segment is not None else None,
                segment_rows=segment.rows if segment is not None else 0,
                start=ends.starts.get(place),
            )
        )
    return found


def rate_of(arrivals: Iterable[tuple[int, int]], now_ms: int) -> float:
    """Rows in a minute, from arrivals (time in ms, rows) of the last five; with one decimal below 10."""
    end_ms = (now_ms // _STEP_MS + 1) * _STEP_MS
    rows = sum(count for time_ms, count in arrivals if end_ms - RATE_SPAN_MS <= time_ms < end_ms)
    rate = rows * _MINUTE_MS / RATE_SPAN_MS
    return round(rate, 1) if rate < 10 else float(round(rate))


def _by_place(stream: StreamConfig, files: Iterable[DataFile]) -> defaultdict[TopicPartition, list[DataFile]]:
    found: defaultdict[TopicPartition, list[DataFile]] = defaultdict(list)
    for file in files:
        topic, partition = topic_in_name(stream, file.segment), file.low.get(columns.PARTITION)
        if topic is not None and isinstance(partition, int):
            found[TopicPartition(topic, partition)].append(file)
    return found


def newest_ms(files: Iterable[DataFile]) -> int | None:
    """The Kafka timestamp of the newest row of files; None without any."""
    times = (file.high.get(columns.TIMESTAMP) for file in files)
    return max((time for time in times if isinstance(time, int)), default=None)
