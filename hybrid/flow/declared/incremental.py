"""A micro-batch of an incremental flow: rows, rejected rows and files read, in one commit to REALTIME (R2, R6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import OvertakenError
from hybrid.flow.declared.convert import union_all
from hybrid.flow.declared.listing import SourceFile
from hybrid.flow.declared.processed_files import ledger_rows
from hybrid.flow.declared.progress import INCREMENTAL, FlowProgress, realtime_progress, with_realtime
from hybrid.flow.declared.stage import StagedStream, laid_out
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.log import open_half
from hybrid.lake.table_context import TableContext
from hybrid.lake.worker_files import WorkerFiles
from hybrid.table import columns
from hybrid.table.names import realtime_segment
from hybrid.table.state import RealtimeState, next_act

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class MicroBatch:
    """The content of a micro-batch. `planned` is the flow's progress that it was planned on, `schema` its source's."""

    flow: str
    files: Sequence[SourceFile]
    staged: StagedStream
    schema: str | None
    planned: FlowProgress | None


def commit_batch(table: TableContext, batch: MicroBatch) -> FlowProgress:
    """Commits a micro-batch; returns the flow's new progress. OvertakenError when the flow ran elsewhere in between."""
    path = table.layout.half(Half.REALTIME)
    with table.lock(Half.REALTIME):
        current = open_half(path)
        state = current.realtime
        if state.progress.get(batch.flow) != (batch.planned.to_json() if batch.planned else None):
            raise OvertakenError(f"Flow '{batch.flow}' of table '{table.name}' ran in another process meanwhile.")
        after, frame = _planned(table, state, batch)
        commit_act(frame, WorkerFiles.of(table.bench, path), after, planned=current.version)
    return realtime_progress(after, batch.flow, INCREMENTAL)


def _planned(table: TableContext, state: RealtimeState, batch: MicroBatch) -> tuple[RealtimeState, DataFrame]:
    """The state after the batch, and all rows to store."""
    before, staged = realtime_progress(state, batch.flow, INCREMENTAL), batch.staged
    key, newest_ms = before.key(batch.flow), max(file.modified_ms for file in batch.files)
    first, sequence = state.offsets.get(key, 0), state.sequences.get(key._replace(epoch=0), 0)
    segment = realtime_segment(table.name, key.partition, sequence, table.bench.now_ms())
    progress = replace(
        before,
        rows=before.rows + staged.rows,
        rejected=before.rejected + staged.rejected,
        files=before.files + len(batch.files),
        batches=before.batches + 1,
        schema=batch.schema,
        at=table.bench.now_iso(),
    )
    detail = {
        "flow": batch.flow,
        "rows": staged.rows,
        "rejected": staged.rejected,
        "files": len(batch.files),
        "refresh": before.refresh,
    }
    after = replace(
        with_realtime(state, batch.flow, progress),
        act=next_act(state, new_act_id("flow"), "flow", table.bench.now_iso(), detail),
        offsets={**state.offsets, key: first + staged.total},
        sequences={**state.sequences, key._replace(epoch=0): sequence + (staged.rows > 0)},
        timestamp_max=max(newest_ms, state.timestamp_max or newest_ms),
        rejected=state.rejected + staged.rejected,
    )
    read = ledger_rows(table.bench.spark, batch.files, before.files)
    return after, _stored(table.spec, staged, read, _hidden(batch.flow, before, newest_ms), segment, first)


def _hidden(flow: str, progress: FlowProgress, newest_ms: int) -> dict[str, Column | str | int | None]:
    key = progress.key(flow)
    return {
        columns.CONNECTOR: key.connector,
        columns.TOPIC: key.topic,
        columns.EPOCH: key.epoch,
        columns.PARTITION: key.partition,
        columns.TIMESTAMP: newest_ms,
        columns.OP: columns.OP_ROW,
    }


def _stored(
    spec: TableSpec,
    staged: StagedStream,
    read: DataFrame,
    hidden: dict[str, Column | str | int | None],
    segment: str,
    first: int,
) -> DataFrame:
    """Good rows, rejected rows and files, each in its partition, as one sorted file."""
    from pyspark.sql import functions as F

    numbered = {**hidden, columns.OFFSET: F.col(columns.OFFSET) + first}
    parts = []
    if staged.rows:
        parts.append(laid_out(spec, Half.REALTIME, staged.good, {**numbered, columns.SEGMENT: segment}))
    if staged.rejected:
        rejected_hidden = {**numbered, columns.SEGMENT: columns.rejected_segment(spec.name), columns.TIME: None}
        parts.append(laid_out(spec, Half.REALTIME, staged.bad, rejected_hidden, bare=True))
    files = {**hidden, columns.SEGMENT: columns.files_segment(spec.name)}
    del files[columns.TIMESTAMP]  # each file has its own
    parts.append(laid_out(spec, Half.REALTIME, read, files))
    frame = union_all(parts)
    return frame.repartition(columns.SEGMENT).sortWithinPartitions(columns.SEGMENT, columns.OFFSET)
