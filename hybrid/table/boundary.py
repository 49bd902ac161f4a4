"""The boundary of a hybrid table: a time T and an offset frontier F (rule R3).

The offline half has taken over the realtime rows with `time < T` *and* `offset < F[partition]`. Every committed offline
row is visible; a realtime or tail row is visible when the boundary does not cover it. Mode `pinot` and an override
replace T by another limit: see `hybrid.table.effective`. Intervals are half-open, times are epoch milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm
from typing import NamedTuple

from hybrid.config.table_config import BoundaryMode, StreamConfig
from hybrid.runtime.json_values import utc
from hybrid.runtime.sentence_repr import shown_by
from hybrid.table.boundary_drawing import boundary_svg

# T of a table without a time column: every row lies before it, so the frontier alone decides.
INFINITE = 2**63 - 1


class TopicPartition(NamedTuple):
    """A partition of a Kafka topic."""

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
    """A partition of a topic as a connector reads it. `epoch` counts recreations of the topic and resets of offsets."""

    connector: str
    topic: str
    epoch: int
    partition: int

    def __str__(self) -> str:
        return f"{self.connector}/{self.topic}/{self.epoch}/{self.partition}"

    @property
    def place(self) -> TopicPartition:
        """The topic and the partition, without connector and epoch."""
        return TopicPartition(self.topic, self.partition)

    @classmethod
    def parse(cls, text: str) -> PartitionKey:
        """The inverse of `str()`. No topic name holds a slash; a replay's connector does (`hybrid.table.replays`)."""
        connector, topic, epoch, partition = text.rsplit("/", 3)
        return cls(connector, topic, int(epoch), int(partition))


def partition_key(stream: StreamConfig, place: TopicPartition) -> PartitionKey:
    """The key of a partition of a table's stream in its first epoch."""
    return PartitionKey(stream.connector, place.topic, 0, place.partition)


def current_keys(
    stream: StreamConfig, places: Iterable[TopicPartition], committed: Offsets
) -> dict[TopicPartition, PartitionKey]:
    """The keys of partitions of a table's stream in their newest epochs; epoch 0 where nothing is committed."""
    epochs: dict[TopicPartition, int] = {}
    for key in committed:
        if key.connector == stream.connector:
            epochs[key.place] = max(key.epoch, epochs.get(key.place, 0))
    return {place: partition_key(stream, place)._replace(epoch=epochs.get(place, 0)) for place in places}


def read_places(stream: StreamConfig, topic: str, partitions: Iterable[int]) -> list[TopicPartition]:
    """The partitions of a topic that a stream reads."""
    wanted_partitions = set(stream.partitions)
    return [
        TopicPartition(topic, number) for number in partitions if not wanted_partitions or number in wanted_partitions
    ]


def topic_key(stream: StreamConfig, topic: str) -> str:
    """The key of a stream's topic in `RealtimeState.topic_ids`."""
    return f"{stream.connector}/{topic}"


def place_text(topics: Sequence[str], place: TopicPartition) -> str:
    """A partition as text, for a table that reads `topics`: its number alone where there is one topic."""
    return str(place.partition) if len(topics) == 1 else str(place)


def place_of(topics: Sequence[str], text: str) -> TopicPartition:
    """The inverse of `place_text`."""
    return TopicPartition(topics[0], int(text)) if text.isdigit() else TopicPartition.parse(text)


Offsets = Mapping[PartitionKey, int]


@shown_by(lambda boundary: drawn_limit(boundary.time_ms) or "no time")
@dataclass(frozen=True)
class Boundary:
    """T and F of a table, with the settings that change which limit is in effect.

    `time_ms` is T; None: the offline half has taken over nothing by time. `frontier` is F, the offset watermark per
    partition: the first offset that the offline half has not taken over, 0 where absent.

    `mode` is fixed when the table is created. `override_ms` replaces the mode's own limit until somebody clears it.
    Neither changes what moves have taken over. No limit in effect falls below `floor_ms`: of earlier times REALTIME
    may lack rows that were taken over, or hold expired ones. OFFLINE may have rounded times down to multiples of
    `step_ms`, so no limit in effect lies inside such a step.
    """

    time_ms: int | None = None
    frontier: Offsets = field(default_factory=dict)
    mode: BoundaryMode = BoundaryMode.EXACT
    override_ms: int | None = None
    floor_ms: int | None = None
    step_ms: int = 1

    def _repr_html_(self) -> str:
        """A drawing of T, or of the override in its place; the mode may have set another limit in effect."""
        limit_ms = self.time_ms if self.override_ms is None else self.override_ms
        set_by = f"mode {self.mode.value}" if self.override_ms is None else "override"
        frontier = offsets_to_json(self.frontier)
        return boundary_svg(drawn_limit(limit_ms), frontier, set_by, hides_offline=self.override_ms is not None)

    def covers(self, time_ms: int | None, key: PartitionKey, offset: int) -> bool:
        """Whether the offline half has taken over the realtime row at these coordinates."""
        return self.covers_time(time_ms) and offset < self.frontier.get(key, 0)

    def covers_time(self, time_ms: int | None) -> bool:
        """Whether a time lies before T. None is the time on a table without a time column, whose T is infinite."""
        if self.time_ms is None:
            return False
        return True if time_ms is None else time_ms < self.time_ms

    def advance(self, time_ms: int | None, offsets: Offsets) -> Boundary:
        """The boundary after a move to (`time_ms`, `offsets`).

        Neither T nor any offset of F falls: the present value stays where the caller passes a lower one.
        """
        if self.time_ms is not None and (time_ms is None or time_ms < self.time_ms):
            time_ms = self.time_ms
        frontier = dict(self.frontier)
        for key, offset in offsets.items():
            frontier[key] = max(offset, frontier.get(key, 0))
        return replace(self, time_ms=time_ms, frontier=frontier)

    def with_floor(self, floor_ms: int) -> Boundary:
        """The boundary with a floor of at least `floor_ms`; a floor never falls."""
        return replace(self, floor_ms=floor_ms if self.floor_ms is None else max(self.floor_ms, floor_ms))

    def with_step(self, step_ms: int) -> Boundary:
        """The boundary after times were rounded to `step_ms` too: earlier roundings stay, so both steps combine."""
        return replace(self, step_ms=lcm(self.step_ms, step_ms))

    def to_json(self) -> dict[str, object]:
        """The JSON form in the OFFLINE half's commits."""
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
        mode = BoundaryMode(str(doc.get("mode", "exact")))  # halves of the first version have no mode
        return cls(time_ms, offsets_from_json(doc["frontier"]), mode, override_ms, floor_ms, step_ms)


def drawn_limit(limit_ms: int | None) -> str | None:
    """A limit in a drawing; None while no time is covered."""
    if limit_ms is None:
        return None
    return "any time" if limit_ms >= INFINITE else utc(limit_ms)


def offsets_to_json(offsets: Offsets) -> dict[str, int]:
    """Offsets by the text of their partition key, in key order so that equal states have equal text."""
    return {str(key): offsets[key] for key in sorted(offsets)}


def offsets_from_json(doc: object) -> dict[PartitionKey, int]:
    """The inverse of `offsets_to_json`."""
    assert isinstance(doc, dict)
    return {PartitionKey.parse(text): int(offset) for text, offset in doc.items()}
