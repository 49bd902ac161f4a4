"""The state of a half and the act that led to it: JSON in the `userMetadata` of hybrid's newest commit.

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

MARK = "hybrid"  # the key that only commits of hybrid have
FORMAT = 1
PURGE = "purge"  # the kind of acts that leave no copy of the removed rows anywhere
RESET = "reset"  # the kind of acts that set other offsets to read a stream from
# In a move's detail: it wrote rows as they were stored, all of them or the latest of each key in a bucket.
AS_STORED = "as_stored"
# Beside it: the version of REALTIME that the move read.
READ_VERSION = "read_version"
Progress = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Act:
    """One commit of hybrid to a half. `number` counts from 0; `at` is UTC ISO 8601; `detail` depends on `kind`."""

    id: str
    number: int
    kind: str
    at: str
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Consuming:
    """The newest segment of a partition, not yet sealed: `rows` good rows at offsets [`start`, committed)."""

    name: str
    sequence: int
    start: int
    rows: int
    bytes: int
    created_ms: int


@dataclass(frozen=True)
class RealtimeState:
    """The state of the REALTIME half: next offset to read and segment bookkeeping of every partition.

    `topic_ids` maps `connector/topic` to Kafka's topic id. `sequences` is the next unused segment sequence.
    `timestamp_max` is the highest committed Kafka timestamp (ms). `rejected` counts rejected rows so far, `filtered`
    messages that the table's filter dropped, `deletes` delete markers, `ingested` good rows of all of these batches and
    replays. `progress`: see `HalfState`.
    `leader_epochs`: Kafka's leader epoch of each partition when its offset was read; absent: the broker gave none.
    `complete_ms` is an instant (epoch ms) up to which all that the stream held is committed; None: not known.
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
    complete_ms: int | None = None
    ingested: int = 0

    def reads(self, stream: StreamConfig) -> bool:
        """Whether a stream is read: the table config's always, a connector's once the connector has started."""
        return stream.connector == CONFIGURED or stream.connector in self.progress

    def known_ids(self, stream: StreamConfig) -> dict[str, str]:
        """The ids of a stream's topics, by topic; a topic that did not exist yet is absent."""
        keys = {topic: topic_key(stream, topic) for topic in stream.topics}
        return {topic: self.topic_ids[key] for topic, key in keys.items() if key in self.topic_ids}

    def with_ids(self, stream: StreamConfig, ids: Mapping[str, str]) -> dict[str, str]:
        """`topic_ids`, updated with the current ids of some topics of a stream."""
        return {**self.topic_ids, **{topic_key(stream, topic): topic_id for topic, topic_id in ids.items()}}

    def known_leader_epochs(self, stream: StreamConfig) -> dict[TopicPartition, int]:
        """The leader epochs of a stream's partitions; partitions without a known one are absent."""
        keys = current_keys(stream, {key.place for key in self.offsets}, self.offsets)
        return {place: self.leader_epochs[key] for place, key in keys.items() if key in self.leader_epochs}

    def consuming_names(self) -> frozenset[str]:
        """The names of the consuming segments; every other realtime segment is sealed."""
        return frozenset(segment.name for segment in self.consuming.values())


@dataclass(frozen=True)
class LineagePointer:
    """The place of a lineage entry: the commit of act `act`, at Delta version `not_before` or a little later.

    A commit does not know its own version, because a foreign commit may land between its plan and itself.
    """

    act: str
    not_before: int


@dataclass(frozen=True)
class OfflineState:
    """The state of the OFFLINE half: the boundary and the newest lineage entry. `progress`: see `HalfState`.

    `rolled` maps each metric to the aggregation that stored rows were rolled up by: configs change, rows stay.
    `deletes` counts the delete markers that connectors of history have delivered.
    Lineage entries form a list through the log: each entry's `previous` points to its predecessor.
    """

    act: Act
    boundary: Boundary = field(default_factory=Boundary)
    last_lineage: LineagePointer | None = None
    progress: Progress = field(default_factory=dict)
    rolled: Mapping[str, Aggregation] = field(default_factory=dict)
    deletes: int = 0

    def with_task(self, config: BucketConfig) -> OfflineState:
        """The state after a task wrote rows. A metric keeps its first aggregation: merges sum up what moves counted."""
        rolled = {**dict(config.aggregations), **self.rolled}
        return replace(self, boundary=self.boundary.with_step(config.step_ms), rolled=rolled)


# Both carry `progress`: what each connector or flow has delivered to the half so far, by its name. It is committed with
# the rows that it describes, so that no row is lost or delivered twice.
HalfState = RealtimeState | OfflineState


def to_user_metadata(state: HalfState) -> str:
    """The `userMetadata` of a commit: act and state, one JSON object."""
    body = _realtime_json(state) if isinstance(state, RealtimeState) else _offline_json(state)
    return json.dumps({MARK: FORMAT, "act": vars(state.act), **body}, separators=(",", ":"), default=dict)


def from_user_metadata(text: str | None) -> HalfState | None:
    """The state in a commit's `userMetadata`; None when the commit is foreign."""
    doc = _own_document(text)
    if doc is None:
        return None
    act = Act(**doc["act"])
    return _offline_state(act, doc) if "boundary" in doc else _realtime_state(act, doc)


def next_act(state: HalfState, act_id: str, kind: str, at: str, detail: Mapping[str, object]) -> Act:
    """The act after `state`. Its number is the next one, so that the fence lets only one writer commit."""
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
        "complete_ms": state.complete_ms,
        "ingested": state.ingested,
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
        filtered=doc.get("filtered", 0),  # halves of earlier versions have none
        deletes=doc.get("deletes", 0),
        progress=doc.get("progress", {}),
        leader_epochs=offsets_from_json(doc.get("leader_epochs", {})),  # halves of earlier versions have none
        complete_ms=doc.get("complete_ms"),  # halves of earlier versions have none
        ingested=doc.get("ingested", 0),  # halves of earlier versions have none
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
