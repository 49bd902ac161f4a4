"""Full refresh: removes everything that flows brought, and runs them from the beginning.

The steps, and what finishes them after a crash:
  one commit to REALTIME removes the flows' rows, rejected rows and files read, and records the refresh's number
  one commit to OFFLINE removes the incremental flows' moved rows                   the next run does this first
  incremental flows read all files again, batch by batch                            the next run continues
  each once-flow replaces its old rows by new ones, in one commit                   the next run loads it

A once-flow's old rows stay visible until the new ones are committed. A move that was planned before the OFFLINE commit
conflicts with it and is planned again, so it cannot bring old rows back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.flow.declared.flow_provenance import brought_by
from hybrid.flow.declared.progress import INCREMENTAL, FlowProgress, all_progress, with_offline, with_realtime
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.half_frames import rows_in, stored_rows
from hybrid.lake.layout import in_files, in_stream_files, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.table_context import TableContext
from hybrid.lake.worker_files import WorkerFiles
from hybrid.table import columns
from hybrid.table.state import OfflineState, RealtimeState, next_act

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def begin_refresh(table: TableContext, kinds: Mapping[str, str]) -> tuple[str, ...]:
    """Begins a refresh of flows (kinds by name) that have brought rows to the table, in one commit to REALTIME.

    Returns their segments with corrections, which are removed too. ConflictError when a correction covers rows of
    others as well; nothing was changed then.
    """
    corrected = brought_by(table.bench, table.half(Half.OFFLINE), dict.fromkeys(kinds, 0)).replaced
    path = table.layout.half(Half.REALTIME)
    with table.lock(Half.REALTIME):
        current = open_half(path)
        state = current.realtime
        places, remaining = _without(table, current, set(kinds))
        removed = sum(progress.rejected for name, progress in all_progress(state).items() if name in kinds)
        act = next_act(state, new_act_id("refresh"), "refresh", table.bench.now_iso(), {"flows": sorted(kinds)})
        after = replace(_renumbered(state, kinds), act=act, rejected=max(0, state.rejected - removed))
        commit_act(remaining, WorkerFiles.of(table.bench, path), after, planned=current.version, replacing=places)
    return corrected


def _renumbered(state: RealtimeState, kinds: Mapping[str, str]) -> RealtimeState:
    progress = all_progress(state)
    for name, kind in kinds.items():
        before = progress.get(name, FlowProgress(kind))
        state = with_realtime(state, name, FlowProgress(kind, before.refresh + 1, before.partition))
    return state


def _without(table: TableContext, realtime: HalfSnapshot, flows: set[str]) -> tuple[list[str], DataFrame]:
    """The partitions of REALTIME that hold rows of the flows, and the rows in them that stay."""
    stored = stored_rows(table.bench, realtime)
    pairs = {(row[0], row[1]) for row in stored.select(columns.SEGMENT, columns.CONNECTOR).distinct().collect()}
    places = sorted({segment for segment, connector in pairs if connector in flows})
    stored_columns = [quoted(name) for name, _ in physical_columns(table.spec, Half.REALTIME)]
    rows = stored.where(quoted(columns.SEGMENT).isin(places)).select(*stored_columns)
    return places, in_stream_files(rows.where(~quoted(columns.CONNECTOR).isin(sorted(flows))))


def uncleared(realtime: RealtimeState, offline: OfflineState) -> list[str]:
    """Incremental flows whose moved rows must still be removed: OFFLINE does not have their refresh yet."""
    done = all_progress(offline)
    return [
        name
        for name, progress in all_progress(realtime).items()
        if progress.kind == INCREMENTAL and progress.refresh > (done[name].refresh if name in done else 0)
    ]


def clear_moved(table: TableContext) -> list[str]:
    """Removes the moved OFFLINE rows of flows whose refresh has begun, in one commit. Returns their names.

    It commits even without such rows, so that a move planned before conflicts with it.
    """
    path = table.layout.half(Half.OFFLINE)
    realtime = table.half(Half.REALTIME).realtime
    if not uncleared(realtime, open_half(path).offline):
        return []
    with table.lock(Half.OFFLINE):
        current = open_half(path)
        state = current.offline
        flows = uncleared(realtime, state)
        if not flows:
            return []
        progress = all_progress(realtime)
        old = brought_by(table.bench, current, {name: progress[name].refresh for name in flows})
        # All stored columns: others' rows may have some that this definition does not have yet.
        remaining = old.kept(rows_in(table.bench, current, old.segments))
        detail = {"flows": flows, "segments_from": list(old.segments), "replaced": list(old.replaced)}
        act = next_act(state, new_act_id("refresh"), "refresh", table.bench.now_iso(), detail)
        after = replace(state, act=act)
        for name in flows:
            after = with_offline(after, name, FlowProgress(INCREMENTAL, progress[name].refresh))
        commit_act(
            in_files(table.spec, remaining),
            WorkerFiles.of(table.bench, path),
            after,
            planned=current.version,
            replacing=old.segments,
        )
    return flows
