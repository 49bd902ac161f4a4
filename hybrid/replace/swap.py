"""The swap: replaces segments by rows, with a lineage entry, in one commit under the OFFLINE lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import OvertakenError, SpecError
from hybrid.lake.commit import commit_act
from hybrid.lake.half_frames import newest_rows
from hybrid.lake.layout import in_files, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.table_context import TableContext
from hybrid.lake.worker_files import WorkerFiles
from hybrid.replace.conflict_check import is_overtaken
from hybrid.table import columns
from hybrid.table.coverage_sql import covered_sql, visible_offline_sql, visible_realtime_sql
from hybrid.table.lineage import Lineage, with_entry
from hybrid.table.state import next_act

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Arrival:
    """The arrival of swapped rows (ADR 3), after all committed offsets.

    `timestamp` is the highest committed Kafka timestamp (ms), `act_number` the number of the commit.
    """

    timestamp: int
    act_number: int


# For rows that are only compared: after all stored rows.
NOT_YET = Arrival(1 << 62, 0)


@dataclass(frozen=True)
class Swap:
    """A planned swap: `kind` is replace or revert, `base` the OFFLINE version that it was planned on.

    `rows` gives the stored rows that replace `lineage.segments_from`, for an arrival. `holds` tells whether the plan
    is valid on a later version too, for all that it depends on beyond its own segments, boundary and columns.
    """

    act_id: str
    kind: str
    base: HalfSnapshot
    lineage: Lineage
    rows: Callable[[Arrival], DataFrame]
    holds: Callable[[HalfSnapshot], bool]


@dataclass(frozen=True)
class Ready:
    """What will be committed: the lineage entry, and the stored rows in the layout of their files."""

    lineage: Lineage
    frame: DataFrame


def commit_swap(table: TableContext, swap: Swap) -> int:
    """The version of the commit. OvertakenError, without a change, on a conflict since the swap's base."""

    def ready(current: HalfSnapshot) -> Ready:
        names = (swap.lineage.segments_from, swap.lineage.segments_to)
        if is_overtaken(table.spec, swap.base, current, names, swap.act_id) or not swap.holds(current):
            raise OvertakenError(f"Another operation committed to OFFLINE of '{table.name}' first.")
        lineage = replace(swap.lineage, version_before=current.version, previous=current.offline.last_lineage)
        arrival = Arrival(arrival_timestamp(table), current.offline.act.number + 1)
        stored_columns = [quoted(name) for name, _ in physical_columns(table.spec, Half.OFFLINE)]
        return Ready(lineage, in_files(table.spec, swap.rows(arrival).select(*stored_columns)))

    return commit_under_lock(table, swap.act_id, swap.kind, ready)


def commit_under_lock(table: TableContext, act_id: str, kind: str, ready: Callable[[HalfSnapshot], Ready]) -> int:
    """Replaces segments by rows, with a lineage entry, in one commit; returns its version.

    `ready` gets the newest state under the OFFLINE lock and checks the plan against it. It must be quick.
    """
    path = table.layout.half(Half.OFFLINE)
    with table.lock(Half.OFFLINE):
        current = open_half(path)
        made = ready(current)
        lineage = made.lineage
        act = next_act(current.offline, act_id, kind, table.bench.now_iso(), lineage.to_json())
        state = with_entry(current.offline, act, current.version)
        places = tuple(dict.fromkeys([*lineage.segments_from, *lineage.segments_to])) if lineage.segments_from else ()
        return commit_act(
            made.frame, WorkerFiles.of(table.bench, path), state, planned=current.version, replacing=places
        )


def require_offline(spec: TableSpec) -> None:
    """SpecError when the table has no OFFLINE half."""
    if Half.OFFLINE not in spec.halves:
        raise SpecError(
            f"Table '{spec.name}' has no OFFLINE half, so there is nothing to replace.",
            hint="hybrid table apply --schema SCHEMA.json --config OFFLINE.json (adds the half)",
        )


def good_realtime_rows(table: TableContext, realtime: HalfSnapshot) -> DataFrame:
    """The rows of REALTIME that are not rejected."""
    return newest_rows(table.bench, realtime.path).where(columns.rows_sql(table.name))


def unmoved_rows(table: TableContext, realtime: HalfSnapshot, offline: HalfSnapshot) -> DataFrame:
    """The good rows of REALTIME that no move has taken over."""
    return good_realtime_rows(table, realtime).where(f"NOT {covered_sql(offline.offline.boundary)}")


def rows_that_stay(
    table: TableContext,
    offline: HalfSnapshot,
    realtime: HalfSnapshot | None,
    replaced: Sequence[str],
    wanted: Sequence[Column],
) -> DataFrame:
    """The columns `wanted` of visible rows of both halves, without the segments `replaced`.

    The effective boundary decides what is visible. Where rows are combined (`spec.folds`), the delete markers of the
    replaced segments are included.
    """
    goes = quoted(columns.SEGMENT).isin(list(replaced))
    if table.spec.folds:
        goes &= quoted(columns.OP) == columns.OP_ROW
    stay = newest_rows(table.bench, offline.path).where(~goes)
    if realtime is None:
        return stay.select(*wanted)
    shown = offline.effective_boundary(table.spec.boundary_lag_ms)
    late = good_realtime_rows(table, realtime).where(visible_realtime_sql(shown))
    return stay.where(visible_offline_sql(shown)).select(*wanted).unionByName(late.select(*wanted))


def arrival_timestamp(table: TableContext) -> int:
    """The highest committed Kafka timestamp, so that swapped rows arrive after every committed offset."""
    if Half.REALTIME not in table.spec.halves:
        return 0
    return table.half(Half.REALTIME).realtime.timestamp_max or 0
