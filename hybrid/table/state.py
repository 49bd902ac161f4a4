"""What the newest own commit of a half says: its act and the half's whole state, as JSON in `userMetadata`.

The Delta log decides (R1): nothing else holds offsets, the boundary or lineage, so nothing can disagree with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hybrid.config.table_config import CONFIGURED, Aggregation, BucketConfig, StreamConfig
from hybrid.table.boundary import (
    Boundary,
    Offsets,
    PartitionKey,
    TopicPartition,
    current_keys,
    offsets_from_json,
    offsets_to_json,
    topic_key,
)

MARK = "hybrid"  # the key whose presence makes a commit one of ours
FORMAT = 1
PURGE = "purge"  # the kind of acts after which nothing that was removed may be left anywhere
RESET = "reset"  # ... after which a stream is read elsewhere
Progress = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Act:
    """One commit to a half. `number` counts its acts from 0; `at` is UTC ISO 8601; `detail` is the kind's own."""

    id: str
    number: int
    kind: str
    at: str
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Consuming:
    """The newest, not yet sealed segment of a partition: `rows` good rows in offsets [`start`, committed)."""

    name: str
    sequence: int
    start: int
    rows: int
    bytes: int
    created_ms: int


@dataclass(frozen=True)
class RealtimeState:
    """The REALTIME half: next offset to read and segment bookkeeping of every partition.

    `topic_ids` maps `connector/topic` to Kafka's topic id; `sequences` is the next unused segment sequence;
    `timestamp_max` the highest Kafka timestamp committed (ms); `rejected` counts rejected rows so far,
    `filtered` messages that the table's filter dropped, `deletes` delete markers. `progress`: see `HalfState`.
    `leader_epochs`: Kafka's leader epoch of each partition when its offset was read; absent: the broker gave none.
    """

    act: Act
    offsets: Offsets = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    consuming: Mapping[PartitionKey, Consuming] = field(default_factory=dict)
    sequences: Mapping[PartitionKey, int] = field(default_factory=dict)
    timestamp_max: int | None = None
    rejected: int = 0
    filtered: int = 0
    deletes: int = 0
    progress: Progress = field(default_factory=dict)
    leader_epochs: Offsets = field(default_factory=dict)

    def reads(self, stream: StreamConfig) -> bool:
        """Whether a stream is read: one of a connector is not, before the connector has started."""
        return stream.connector == CONFIGURED or stream.connector in self.progress

    def known_ids(self, stream: StreamConfig) -> dict[str, str]:
        """The ids of a stream's topics, by topic: of one that was not there yet none is known."""
        keys = {topic: topic_key(stream, topic) for topic in stream.topics}
        return {topic: self.topic_ids[key] for topic, key in keys.items() if key in self.topic_ids}

    def with_ids(self, stream: StreamConfig, ids: Mapping[str, str]) -> dict[str, str]:
        """`topic_ids` with those of some topics of a stream as they are now."""
        return {**self.topic_ids, **{topic_key(stream, topic): found for topic, found in ids.items()}}

    def known_leader_epochs(self, stream: StreamConfig) -> dict[TopicPartition, int]:
        """The leader epochs of the partitions of a stream, of those for which one is known."""
        keys = current_keys(stream, {key.place for key in self.offsets}, self.offsets)
        return {place: self.leader_epochs[key] for place, key in keys.items() if key in self.leader_epochs}

    def consuming_names(self) -> frozenset[str]:
        """Names of the segments that are still consuming; every other one is sealed."""
        return frozenset(segment.name for segment in self.consuming.values())


@dataclass(frozen=True)
class LineagePointer:
    """Where a lineage entry lies: in the own commit of act `act`, at Delta version `not_before` or a little above.

    A commit does not know its own version, because a foreign commit may come between the plan and it.
    """

    act: str
    not_before: int


@dataclass(frozen=True)
class OfflineState:
    """The OFFLINE half: the boundary, and where the newest lineage entry lies. `progress`: see `HalfState`.

    `rolled` are the metrics that rows were rolled up by, each with its aggregation: configs change, rows stay.
    `deletes` counts the delete markers that history has brought.
    Lineage entries form a list through the log: each entry's `previous` points to the one before it.
    """

    act: Act
    boundary: Boundary = field(default_factory=Boundary)
    last_lineage: LineagePointer | None = None
    progress: Progress = field(default_factory=dict)
    rolled: Mapping[str, Aggregation] = field(default_factory=dict)
    deletes: int = 0

    def with_task(self, config: BucketConfig) -> OfflineState:
        """The state when rows that a task wrote are in the half. What moves have counted, merges only add up."""
        rolled = {**dict(config.aggregations), **self.rolled}
        return replace(self, boundary=self.boundary.with_step(config.step_ms), rolled=rolled)


# Both carry `progress`: what each connector or flow has brought to the half so far, by its name. It is committed with
# the rows that it speaks of, so that what was brought is neither forgotten nor brought again.
HalfState = RealtimeState | OfflineState


def to_user_metadata(state: HalfState) -> str:
    """The text that a commit carries: act and state, one JSON object."""
    body = _realtime_json(state) if isinstance(state, RealtimeState) else _offline_json(state)
    return json.dumps({MARK: FORMAT, "act": vars(state.act), **body}, separators=(",", ":"), default=dict)


def from_user_metadata(text: str | None) -> HalfState | None:
    """The state in a commit's `userMetadata`, or None when the commit is not one of ours."""
    doc = _own_document(text)
    if doc is None:
        return None
    act = Act(**doc["act"])
    return _offline_state(act, doc) if "boundary" in doc else _realtime_state(act, doc)


def next_act(state: HalfState, act_id: str, kind: str, at: str, detail: Mapping[str, object]) -> Act:
    """The act that follows `state`: the next number, so that the fence lets only one writer through."""
    return Act(act_id, state.act.number + 1, kind, at, detail)


def _own_document(text: str | None) -> dict[str, Any] | None:
    if not text or MARK not in text:
        return None
    try:
        doc = json.loads(text)
    except ValueError:
        return None
    return doc if isinstance(doc, dict) and MARK in doc and "act" in doc else None


def _realtime_json(state: RealtimeState) -> dict[str, object]:
    return {
        "offsets": offsets_to_json(state.offsets),
        "topic_ids": dict(state.topic_ids),
        "consuming": {str(key): vars(segment) for key, segment in state.consuming.items()},
        "sequences": offsets_to_json(state.sequences),
        "timestamp_max": state.timestamp_max,
        "rejected": state.rejected,
        "filtered": state.filtered,
        "deletes": state.deletes,
        "progress": _plain(state.progress),
        "leader_epochs": offsets_to_json(state.leader_epochs),
    }


def _realtime_state(act: Act, doc: dict[str, Any]) -> RealtimeState:
    return RealtimeState(
        act=act,
        offsets=offsets_from_json(doc["offsets"]),
        topic_ids=doc["topic_ids"],
        consuming={PartitionKey.parse(key): Consuming(**value) for key, value in doc["consuming"].items()},
        sequences=offsets_from_json(doc["sequences"]),
        timestamp_max=doc["timestamp_max"],
        rejected=doc["rejected"],
        filtered=doc.get("filtered", 0),  # halves that were written before filters have none
        deletes=doc.get("deletes", 0),
        progress=doc.get("progress", {}),
        leader_epochs=offsets_from_json(doc.get("leader_epochs", {})),  # later than the halves of earlier versions
    )


def _offline_json(state: OfflineState) -> dict[str, object]:
    last = vars(state.last_lineage) if state.last_lineage else None
    return {
        "boundary": state.boundary.to_json(),
        "last_lineage": last,
        "progress": _plain(state.progress),
        "rolled": {name: state.rolled[name].value for name in sorted(state.rolled)},
        "deletes": state.deletes,
    }


def _plain(progress: Progress) -> dict[str, object]:
    return {name: dict(progress[name]) for name in sorted(progress)}


def _offline_state(act: Act, doc: dict[str, Any]) -> OfflineState:
    last = LineagePointer(**doc["last_lineage"]) if doc["last_lineage"] else None
    boundary = Boundary.from_json(doc["boundary"])
    return OfflineState(
        act=act,
        boundary=boundary,
        last_lineage=last,
        progress=doc.get("progress", {}),
        rolled={name: Aggregation(how) for name, how in doc.get("rolled", {}).items()},
        deletes=doc.get("deletes", 0),
    )
