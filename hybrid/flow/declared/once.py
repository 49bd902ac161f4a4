"""The commits of a once-flow: its rejected rows to REALTIME, then its rows and its progress to OFFLINE.

A crash in between leaves rejected rows of a flow that has not run. The next run replaces them by its own.

Two processes may run one flow at once. Rejected rows are marked with the attempt that brought them. A load is
committed only while those in REALTIME are its own, under the OFFLINE lock, which every attempt needs to replace them.
So the remaining rejected rows belong to the committed load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, MoveConfig, TableSpec
from hybrid.errors import OvertakenError
from hybrid.flow.declared.convert import union_all
from hybrid.flow.declared.flow_provenance import FlowProvenance, brought_by
from hybrid.flow.declared.progress import (
    ONCE,
    ONCE_TIMESTAMP,
    ONCE_TOPIC,
    FlowProgress,
    progress_of,
    with_offline,
    with_realtime,
)
from hybrid.flow.declared.stage import StagedStream, laid_out
from hybrid.flow.segment_layout import named_segments, segment_layout_of
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.half_frames import rows_in
from hybrid.lake.layout import in_files, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.table_context import TableContext
from hybrid.lake.worker_files import WorkerFiles
from hybrid.table import columns
from hybrid.table.state import OfflineState, RealtimeState, next_act

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Load:
    """The result of one `attempt` at a once-flow, for the refresh of that number; `files` counts the files read."""

    attempt: str
    flow: str
    refresh: int
    files: int
    staged: StagedStream


def commit_rejected(table: TableContext, load: Load) -> None:
    """Stores the load's rejected rows in REALTIME. They replace rejected rows of another attempt at this refresh.

    OvertakenError when the flow has run elsewhere in the meantime. Nothing was changed then.
    """
    path, staged = table.layout.half(Half.REALTIME), load.staged
    # In the same order as a drop, to prevent a deadlock.
    with table.lock(Half.OFFLINE), table.lock(Half.REALTIME):
        _refuse_done(table.spec, table.half(Half.OFFLINE).offline, load)
        current = open_half(path)
        state = current.realtime
        before = progress_of(state, load.flow) or FlowProgress(ONCE)
        tried = before.rejected_of == load.refresh
        if before.refresh != load.refresh:
            raise OvertakenError(f"A refresh of flow '{load.flow}' began in another process.")
        if not staged.rejected and not tried:
            return
        earlier = before.rejected if tried else 0
        progress = replace(before, rejected=staged.rejected, rejected_of=load.refresh, rejected_by=load.attempt)
        detail = {"flow": load.flow, "rows": 0, "rejected": staged.rejected, "files": 0, "refresh": load.refresh}
        after = replace(
            with_realtime(state, load.flow, progress),
            act=next_act(state, new_act_id("flow"), "flow", table.bench.now_iso(), detail),
            rejected=state.rejected + staged.rejected - earlier,
        )
        name = columns.rejected_segment(table.name)
        hidden = {**_hidden(load), columns.SEGMENT: name, columns.TIME: None}
        frame = laid_out(table.spec, Half.REALTIME, staged.bad, hidden, bare=True)
        if tried:
            others = _stored(table, current, [name]).where(quoted(columns.CONNECTOR) != load.flow)
            frame = union_all([others, frame])
        commit_act(
            frame.coalesce(1),
            WorkerFiles.of(table.bench, path),
            after,
            planned=current.version,
            replacing=[name] if tried else (),
        )


def commit_load(table: TableContext, load: Load) -> list[str]:
    """Commits the load's rows, which replace what the flow brought before; returns the names of its segments.

    OvertakenError when the flow ran, or was attempted, elsewhere in the meantime. Nothing was changed then.
    """
    path = table.layout.half(Half.OFFLINE)
    laying = segment_layout_of(table.spec, load.staged.good, _split(table.spec))
    with table.lock(Half.OFFLINE):
        current = open_half(path)
        state, staged = current.offline, load.staged
        before = progress_of(state, load.flow)
        _refuse_done(table.spec, state, load)
        _refuse_tried(table.spec, table.half(Half.REALTIME).realtime, load)
        old = brought_by(table.bench, current, {load.flow: load.refresh}) if before is not None else FlowProvenance()
        rows, names = named_segments(table, current, laying)
        frame = in_files(table.spec, laid_out(table.spec, Half.OFFLINE, rows, _hidden(load)))
        if old.segments:
            remaining = old.kept(_stored(table, current, old.segments))
            frame = in_files(table.spec, union_all([remaining, frame]))
        now = table.bench.now_iso()
        progress = FlowProgress(
            ONCE, load.refresh, rows=staged.rows, rejected=staged.rejected, files=load.files, batches=1, at=now
        )
        detail = {
            "flow": load.flow,
            "rows": staged.rows,
            "rejected": staged.rejected,
            "files": load.files,
            "refresh": load.refresh,
            "segments": names,
            "segments_from": list(old.segments),
        }
        act = next_act(state, new_act_id("flow"), "flow", now, detail)
        after = replace(with_offline(state, load.flow, progress), act=act)
        places = [*old.segments, *names] if old.segments else []
        commit_act(frame, WorkerFiles.of(table.bench, path), after, planned=current.version, replacing=places)
    return names


def _refuse_done(spec: TableSpec, offline: OfflineState, load: Load) -> None:
    before = progress_of(offline, load.flow)
    if before is not None and before.refresh >= load.refresh:
        raise OvertakenError(f"Flow '{load.flow}' of table '{spec.name}' ran in another process meanwhile.")


def _refuse_tried(spec: TableSpec, realtime: RealtimeState, load: Load) -> None:
    """OvertakenError when the rejected rows in REALTIME are another attempt's."""
    progress = progress_of(realtime, load.flow)
    if progress is not None and progress.rejected_of == load.refresh and progress.rejected_by != load.attempt:
        raise OvertakenError(f"Flow '{load.flow}' of table '{spec.name}' is run in another process too.")


def _split(spec: TableSpec) -> Column:
    """The number of a row's segment in a load, with a fixed number of rows in each."""
    from pyspark.sql import functions as F

    return F.floor(F.col(columns.OFFSET) / (spec.move or MoveConfig()).max_records_per_segment).cast("int")


def _hidden(load: Load) -> dict[str, Column | str | int | None]:
    return {
        columns.CONNECTOR: load.flow,
        columns.TOPIC: ONCE_TOPIC,
        columns.EPOCH: load.refresh,
        columns.PARTITION: 0,
        columns.TIMESTAMP: ONCE_TIMESTAMP,
        columns.OP: columns.OP_ROW,
    }


def _stored(table: TableContext, half: HalfSnapshot, names: Sequence[str]) -> DataFrame:
    """The stored rows of some segments."""
    stored_columns = [quoted(name) for name, _ in physical_columns(table.spec, Half(half.path.name))]
    return rows_in(table.bench, half, names).select(*stored_columns)
