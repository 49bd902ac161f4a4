"""The progress of flows in the halves' states. It is committed with the rows, so both always agree.

REALTIME  incremental: its progress. Any flow: `refresh`, the requested refresh (0 at first); for a once-flow also the
          refresh that its rejected rows belong to.
OFFLINE   once: whether it has run, and its counts. Incremental: the refresh up to which its moved rows are cleared.

A refresh has begun when REALTIME has its number, and is done when OFFLINE has it too. So the next run finishes a
refresh that a crash interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hybrid.table.boundary import PartitionKey
from hybrid.table.state import HalfState, OfflineState, RealtimeState

ONCE, INCREMENTAL = "once", "incremental"
FILES_TOPIC, ONCE_TOPIC = "files", "once"
# Kafka partitions of a table are below this; flows number theirs in multiples of it.
PARTITION_STEP = 10_000
# Older than every streamed row, so history loses against these.
ONCE_TIMESTAMP = -2


@dataclass(frozen=True)
class FlowProgress:
    """A flow's progress in one half's state. `rows`, `rejected`, `files` and `batches` are of the newest refresh.

    `partition` is an incremental flow's. `schema` holds its source's columns as Spark's JSON. `rejected_of` is in
    REALTIME only: the refresh of a once-flow's rejected rows (-1: none); `rejected_by` is the attempt that brought
    them. `at` is the time of the newest commit with rows, UTC ISO 8601.
    """

    kind: str
    refresh: int = 0
    partition: int | None = None
    rows: int = 0
    rejected: int = 0
    files: int = 0
    batches: int = 0
    schema: str | None = None
    at: str | None = None
    rejected_of: int = -1
    rejected_by: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON for a half's state, without default values."""
        first = FlowProgress(self.kind)
        return {name: value for name, value in vars(self).items() if name == "kind" or value != getattr(first, name)}

    def key(self, flow: str) -> PartitionKey:
        """The coordinates' partition of an incremental flow."""
        return PartitionKey(flow, FILES_TOPIC, self.refresh, self.partition or 0)


def progress_of(state: HalfState, flow: str) -> FlowProgress | None:
    """A flow's progress in a state; None when it has brought nothing to that half."""
    doc = state.progress.get(flow)
    return None if doc is None or doc.get("kind") not in (ONCE, INCREMENTAL) else FlowProgress(**doc)


def all_progress(state: HalfState) -> Mapping[str, FlowProgress]:
    """The progress of every flow in the state."""
    by_name = {name: progress_of(state, name) for name in state.progress}
    return {name: progress for name, progress in by_name.items() if progress is not None}


def with_realtime(state: RealtimeState, flow: str, progress: FlowProgress) -> RealtimeState:
    """The state with a flow's progress set."""
    return replace(state, progress={**state.progress, flow: progress.to_json()})


def with_offline(state: OfflineState, flow: str, progress: FlowProgress) -> OfflineState:
    """The state with a flow's progress set."""
    return replace(state, progress={**state.progress, flow: progress.to_json()})


def realtime_progress(state: RealtimeState, flow: str, kind: str) -> FlowProgress:
    """An incremental flow's progress, with a partition of its own from the first time on."""
    progress = progress_of(state, flow) or FlowProgress(kind)
    if kind == INCREMENTAL and progress.partition is None:
        taken = [other.partition for other in all_progress(state).values() if other.partition is not None]
        progress = replace(progress, partition=max(taken, default=-PARTITION_STEP) + PARTITION_STEP)
    return progress


@dataclass(frozen=True)
class FlowState:
    """A flow in both halves."""

    kind: str
    realtime: FlowProgress | None
    offline: FlowProgress | None

    @property
    def wanted(self) -> int:
        """The refresh that was requested last; 0 before the first."""
        return self.realtime.refresh if self.realtime else 0

    @property
    def is_refreshing(self) -> bool:
        """Whether a refresh has begun and is not done: for a once-flow, until its rows are loaded again."""
        return self.wanted > (self.offline.refresh if self.offline else 0)

    @property
    def has_run(self) -> bool:
        """Whether a once-flow has brought its rows for the last refresh."""
        return self.offline is not None and self.offline.refresh >= self.wanted

    @property
    def brought(self) -> FlowProgress | None:
        """The progress that counts its rows."""
        return self.offline if self.kind == ONCE else self.realtime


def flow_state(kind: str, flow: str, realtime: RealtimeState, offline: OfflineState) -> FlowState:
    """A flow's state from the states of both halves."""
    return FlowState(kind, progress_of(realtime, flow), progress_of(offline, flow))
