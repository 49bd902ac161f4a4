"""Full refresh: everything that flows brought goes, and they begin anew.

The sequence, and what a death in between leaves:
  one commit to REALTIME: the flows' rows, rejected rows and files read go; the refresh has its number
  one commit to OFFLINE:  the incremental flows' moved rows go                      the next run does this first
  incremental flows read all files again, batch by batch                            the next run goes on
  each once-flow puts its rows in place of its old ones, in one commit              the next run loads it

A once-flow's old rows stay visible until the new ones are there. A move that planned before the OFFLINE commit is
overtaken by it and plans anew, so it cannot bring old rows back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.flow.declared.flow_provenance import brought_by
from hybrid.flow.declared.progress import INCREMENTAL, FlowProgress, all_progress, with_offline, with_realtime
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.layout import TableLayout, in_files, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.table import columns
from hybrid.table.state import OfflineState, RealtimeState, next_act

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def begin_refresh(
    bench: CommitContext, spec: TableSpec, layout: TableLayout, kinds: Mapping[str, str]
) -> tuple[str, ...]:
    """Begins a refresh of flows (kinds by name) that have brought something to the table, in one commit to REALTIME.

    Returns the segments of theirs that hold corrections, which go too. ConflictError when a correction stands over rows
    of others as well; nothing was changed then.
    """
    corrected = brought_by(bench, open_half(layout.half(Half.OFFLINE)), dict.fromkeys(kinds, 0)).replaced
    path = layout.half(Half.REALTIME)
    with bench.lock(layout, Half.REALTIME):
        current = open_half(path)
        state = current.realtime
        places, kept = _without(bench, spec, current, set(kinds))
        removed = sum(one.rejected for name, one in all_progress(state).items() if name in kinds)
        act = next_act(state, new_act_id("refresh"), "refresh", bench.now_iso(), {"flows": sorted(kinds)})
        after = replace(_renumbered(state, kinds), act=act, rejected=max(0, state.rejected - removed))
        commit_act(kept, path, after, planned=current.version, replacing=places)
    return corrected


def _renumbered(state: RealtimeState, kinds: Mapping[str, str]) -> RealtimeState:
    known = all_progress(state)
    for name, kind in kinds.items():
        before = known.get(name, FlowProgress(kind))
        state = with_realtime(state, name, FlowProgress(kind, before.refresh + 1, before.partition))
    return state


def _without(
    bench: CommitContext, spec: TableSpec, realtime: HalfSnapshot, flows: set[str]
) -> tuple[list[str], DataFrame]:
    """The partitions of REALTIME that hold something of the flows, and what stays of them."""
    stored = bench.spark.read.format("delta").load(str(realtime.path))
    found = {(row[0], row[1]) for row in stored.select(columns.SEGMENT, columns.CONNECTOR).distinct().collect()}
    places = sorted({segment for segment, connector in found if connector in flows})
    wanted = [quoted(name) for name, _ in physical_columns(spec, Half.REALTIME)]
    rows = stored.where(quoted(columns.SEGMENT).isin(places)).select(*wanted)
    return places, rows.where(~quoted(columns.CONNECTOR).isin(sorted(flows))).repartition(columns.SEGMENT)


def uncleared(realtime: RealtimeState, offline: OfflineState) -> list[str]:
    """Incremental flows whose moved rows are still to go: their refresh has begun, and OFFLINE does not know it."""
    done = all_progress(offline)
    return [
        name
        for name, one in all_progress(realtime).items()
        if one.kind == INCREMENTAL and one.refresh > (done[name].refresh if name in done else 0)
    ]


def clear_moved(bench: CommitContext, spec: TableSpec, layout: TableLayout) -> list[str]:
    """Takes away what moves brought to OFFLINE of flows whose refresh has begun, in one commit. Their names.

    It commits also where there is no such row: a move that planned before is overtaken.
    """
    path = layout.half(Half.OFFLINE)
    realtime = open_half(layout.half(Half.REALTIME)).realtime
    if not uncleared(realtime, open_half(path).offline):
        return []
    with bench.lock(layout, Half.OFFLINE):
        current = open_half(path)
        state = current.offline
        flows = uncleared(realtime, state)
        if not flows:
            return []
        known = all_progress(realtime)
        old = brought_by(bench, current, {name: known[name].refresh for name in flows})
        # All columns that are stored: others' rows may hold some that this definition has not yet.
        stored = bench.spark.read.format("delta").load(str(path))
        kept = old.kept(stored.where(quoted(columns.SEGMENT).isin(list(old.segments))))
        detail = {"flows": flows, "segments_from": list(old.segments), "replaced": list(old.replaced)}
        act = next_act(state, new_act_id("refresh"), "refresh", bench.now_iso(), detail)
        after = replace(state, act=act)
        for name in flows:
            after = with_offline(after, name, FlowProgress(INCREMENTAL, known[name].refresh))
        commit_act(in_files(spec, kept), path, after, planned=current.version, replacing=old.segments)
    return flows
