"""The boundary of a hybrid table: a time T and an offset frontier F (rule R3).

It says which realtime rows the offline half has taken over: those with `time < T` *and* `offset < F[partition]`.
Every committed offline row is visible; a realtime or tail row is visible when the boundary does not cover it. Mode
`pinot` and an override put another limit in the place of T: see `hybrid.table.effective`. Intervals are half-open,
times are epoch milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm
from typing import NamedTuple

from hybrid.config.table_config import BoundaryMode, StreamConfig

# T of a table without a time column: every row lies before it, so the frontier alone decides.
INFINITE = 2**63 - 1


class TopicPartition(NamedTuple):
    """One partition of one topic of Kafka."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TopicPartition:
        """The inverse of `str()`."""
        topic, _, partition = text.rpartition("/")
        return cls(topic, int(partition))


class PartitionKey(NamedTuple):
    """One partition of one topic as one connector reads it. `epoch` counts recreations and resets of offsets."""

    connector: str
    topic: str
    epoch: int
    partition: int

    def __str__(self) -> str:
        return f"{self.connector}/{self.topic}/{self.epoch}/{self.partition}"

    @property
    def place(self) -> TopicPartition:
        """Which partition of which topic it is."""
        return TopicPartition(self.topic, self.partition)

    @classmethod
    def parse(cls, text: str) -> PartitionKey:
        """The inverse of `str()`. No topic name holds a slash; a replay's connector does (`hybrid.table.replays`)."""
        connector, topic, epoch, partition = text.rsplit("/", 3)
        return cls(connector, topic, int(epoch), int(partition))


def partition_key(stream: StreamConfig, place: TopicPartition) -> PartitionKey:
    """The key under which a partition of a table's stream is read first."""
    return PartitionKey(stream.connector, place.topic, 0, place.partition)


def current_keys(
    stream: StreamConfig, places: Iterable[TopicPartition], committed: Offsets
) -> dict[TopicPartition, PartitionKey]:
    """The keys under which partitions of a table's stream are read now: those of their newest epochs."""
    epochs: dict[TopicPartition, int] = {}
    for key in committed:
        if key.connector == stream.connector:
            epochs[key.place] = max(key.epoch, epochs.get(key.place, 0))
    return {place: partition_key(stream, place)._replace(epoch=epochs.get(place, 0)) for place in places}


def read_places(stream: StreamConfig, topic: str, partitions: Iterable[int]) -> list[TopicPartition]:
    """Those of a topic's partitions that a stream reads."""
    wanted = set(stream.partitions)
    return [TopicPartition(topic, number) for number in partitions if not wanted or number in wanted]


def topic_key(stream: StreamConfig, topic: str) -> str:
    """The key under which the REALTIME half's state keeps the id of a topic of a stream."""
    return f"{stream.connector}/{topic}"


def place_text(topics: Sequence[str], place: TopicPartition) -> str:
    """How a partition is told of a table that reads `topics`: by its number alone where they are one."""
    return str(place.partition) if len(topics) == 1 else str(place)


def place_of(topics: Sequence[str], text: str) -> TopicPartition:
    """The inverse of `place_text`."""
    return TopicPartition(topics[0], int(text)) if text.isdigit() else TopicPartition.parse(text)


Offsets = Mapping[PartitionKey, int]


@dataclass(frozen=True)
class Boundary:
    """`time_ms` is T (None: the offline half has taken over nothing by time), `frontier` is F (absent means 0).

    `mode` is fixed when the table is created. `override_ms` is the limit that somebody has set in the place of the
    mode's own, until it is cleared. Neither changes what moves have taken over. Of times before `floor_ms` the REALTIME
    half no longer holds all that was taken over, or holds what has expired: no limit in effect may fall below it.
    Times of OFFLINE may have been rounded down to multiples of `step_ms`: no limit in effect divides such a stretch.
    """

    time_ms: int | None = None
    frontier: Offsets = field(default_factory=dict)
    mode: BoundaryMode = BoundaryMode.EXACT
    override_ms: int | None = None
    floor_ms: int | None = None
    step_ms: int = 1

    def covers(self, time_ms: int | None, key: PartitionKey, offset: int) -> bool:
        """Whether the offline half has taken over the realtime row at these coordinates."""
        return self.covers_time(time_ms) and offset < self.frontier.get(key, 0)

    def covers_time(self, time_ms: int | None) -> bool:
        """Whether a time lies before T. A row of a table without a time column has None, and T is infinite there."""
        if self.time_ms is None:
            return False
        return True if time_ms is None else time_ms < self.time_ms

    def advance(self, time_ms: int | None, offsets: Offsets) -> Boundary:
        """The boundary after a move to (`time_ms`, `offsets`).

        Neither T nor F may fall, whatever the caller asks for: a frontier that is lower somewhere keeps what it had.
        """
        if self.time_ms is not None and (time_ms is None or time_ms < self.time_ms):
            time_ms = self.time_ms
        frontier = dict(self.frontier)
        for key, offset in offsets.items():
            frontier[key] = max(offset, frontier.get(key, 0))
        return replace(self, time_ms=time_ms, frontier=frontier)

    def with_floor(self, floor_ms: int) -> Boundary:
        """The boundary with a floor at least there; it never falls."""
        return replace(self, floor_ms=floor_ms if self.floor_ms is None else max(self.floor_ms, floor_ms))

    def with_step(self, step_ms: int) -> Boundary:
        """The boundary when times have been rounded to that, too; what was rounded stays so."""
        return replace(self, step_ms=lcm(self.step_ms, step_ms))

    def to_json(self) -> dict[str, object]:
        """JSON as it stands in the OFFLINE half's commits."""
        return {
            "mode": self.mode.value,
            "time_ms": self.time_ms,
            "frontier": offsets_to_json(self.frontier),
            "override_ms": self.override_ms,
            **({"floor_ms": self.floor_ms} if self.floor_ms is not None else {}),
            **({"step_ms": self.step_ms} if self.step_ms != 1 else {}),
        }

    @classmethod
    def from_json(cls, doc: Mapping[str, object]) -> Boundary:
        """The inverse of `to_json`."""
        time_ms, override_ms, floor_ms = doc["time_ms"], doc.get("override_ms"), doc.get("floor_ms")
        step_ms = doc.get("step_ms", 1)
        assert time_ms is None or isinstance(time_ms, int)
        assert override_ms is None or isinstance(override_ms, int)
        assert floor_ms is None or isinstance(floor_ms, int)
        assert isinstance(step_ms, int)
        mode = BoundaryMode(str(doc.get("mode", "exact")))  # halves of the first version say none
        return cls(time_ms, offsets_from_json(doc["frontier"]), mode, override_ms, floor_ms, step_ms)


def offsets_to_json(offsets: Offsets) -> dict[str, int]:
    """Offsets by the text of their partition key, in key order so that equal states have equal text."""
    return {str(key): offsets[key] for key in sorted(offsets)}


def offsets_from_json(doc: object) -> dict[PartitionKey, int]:
    """The inverse of `offsets_to_json`."""
    assert isinstance(doc, dict)
    return {PartitionKey.parse(text): int(offset) for text, offset in doc.items()}
