"""What the halves' states say of a flow: committed with its rows, so that it is never ahead of them nor behind.

REALTIME  incremental: how far it is. Any flow: `refresh`, the refresh that was asked for (0 at first); of a once-flow
          also which refresh its rejected rows are of.
OFFLINE   once: that it has run, and what it brought. Incremental: up to which refresh its moved rows are cleared.

A refresh has begun when REALTIME has its number and is done when OFFLINE has it too, so a run that is killed between
the two is finished by the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hybrid.table.boundary import PartitionKey
from hybrid.table.state import HalfState, OfflineState, RealtimeState

ONCE, INCREMENTAL = "once", "incremental"
FILES_TOPIC, ONCE_TOPIC = "files", "once"
# Kafka partitions of a table lie below; flows number theirs in steps of this.
PARTITION_STEP = 10_000
# Older than every live row: history loses against it.
ONCE_TIMESTAMP = -2


@dataclass(frozen=True)
class FlowProgress:
    """One flow in one half's state. `rows`, `rejected`, `files` and `batches` are of the newest refresh.

    `partition` is an incremental flow's; `schema` its source's columns as Spark's JSON. `rejected_of` is of REALTIME:
    the refresh that a once-flow's rejected rows are of (-1: none), `rejected_by` the try that brought them. `at` is UTC
    ISO 8601 of the newest commit with rows.
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
        """JSON as it stands in a half's state: what is not said is as at first."""
        first = FlowProgress(self.kind)
        return {name: value for name, value in vars(self).items() if name == "kind" or value != getattr(first, name)}

    def key(self, flow: str) -> PartitionKey:
        """The coordinates' partition of an incremental flow."""
        return PartitionKey(flow, FILES_TOPIC, self.refresh, self.partition or 0)


def progress_of(state: HalfState, flow: str) -> FlowProgress | None:
    """What the state says of a flow; None when it has brought nothing to that half."""
    found = state.progress.get(flow)
    return None if found is None or found.get("kind") not in (ONCE, INCREMENTAL) else FlowProgress(**found)


def all_progress(state: HalfState) -> Mapping[str, FlowProgress]:
    """Every flow that the state speaks of."""
    found = {name: progress_of(state, name) for name in state.progress}
    return {name: one for name, one in found.items() if one is not None}


def with_realtime(state: RealtimeState, flow: str, progress: FlowProgress) -> RealtimeState:
    """The state with that progress of a flow."""
    return replace(state, progress={**state.progress, flow: progress.to_json()})


def with_offline(state: OfflineState, flow: str, progress: FlowProgress) -> OfflineState:
    """The state with that progress of a flow."""
    return replace(state, progress={**state.progress, flow: progress.to_json()})


def realtime_progress(state: RealtimeState, flow: str, kind: str) -> FlowProgress:
    """An incremental flow's progress, with a partition of its own from the first time on."""
    found = progress_of(state, flow) or FlowProgress(kind)
    if kind == INCREMENTAL and found.partition is None:
        taken = [one.partition for one in all_progress(state).values() if one.partition is not None]
        found = replace(found, partition=max(taken, default=-PARTITION_STEP) + PARTITION_STEP)
    return found


@dataclass(frozen=True)
class FlowState:
    """A flow over both halves."""

    kind: str
    realtime: FlowProgress | None
    offline: FlowProgress | None

    @property
    def wanted(self) -> int:
        """The refresh that was asked for last; 0 before any was."""
        return self.realtime.refresh if self.realtime else 0

    @property
    def is_refreshing(self) -> bool:
        """Whether a refresh has begun and is not through: of a once-flow until its rows are there again."""
        return self.wanted > (self.offline.refresh if self.offline else 0)

    @property
    def has_run(self) -> bool:
        """Whether a once-flow has brought its rows, those of the last refresh."""
        return self.offline is not None and self.offline.refresh >= self.wanted

    @property
    def brought(self) -> FlowProgress | None:
        """The side that counts its rows."""
        return self.offline if self.kind == ONCE else self.realtime


def flow_state(kind: str, flow: str, realtime: RealtimeState, offline: OfflineState) -> FlowState:
    """A flow by the states of both halves."""
    return FlowState(kind, progress_of(realtime, flow), progress_of(offline, flow))
