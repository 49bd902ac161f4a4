"""Rejected rows that a backfill brings: claimed before its first swap, released when they are not in the table.

A row must enter the table once, whether by a replay, this backfill or another one. Rejected rows are in REALTIME and
the swaps go to OFFLINE, so no commit can do both. The order of commits prevents duplicates:

  planned                             nothing is marked: a replay may still bring the rows; the run is then refused
  a run begins: `claim`               one commit marks the rows of the units to swap as claimed by this plan
  a crash after it                    nobody else brings them; the next run finds its own marks and continues
  swap after swap                     as in any backfill
  cancelled or reverted, `settle`     one commit marks the rows that no active swap holds as rejected again
  a crash before it                   claimed and not in the table: status and doctor report it; cancel again
  a revert is reverted                its rows are claimed first; refused when something else has brought them

`settle` reads what is in the table from OFFLINE's log under its lock, so no swap can commit in between.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import ConflictError, DataError
from hybrid.lake import plans
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.file_frames import FrameFile, file_rows
from hybrid.lake.layout import TableLayout, ddl_of, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.plan_store import publish_plans
from hybrid.lake.rejected import MESSAGE, rejected_rows
from hybrid.lake.staged_frames import stage_files
from hybrid.lake.table_context import TableContext
from hybrid.lake.worker_files import WorkerFiles
from hybrid.progress import counted
from hybrid.replace.backfill.base import BUCKET, WHOLE, Base
from hybrid.replace.lineage import EntryState, ReplacementEntry, entries_of
from hybrid.store.plan_files import CLAIMS
from hybrid.table import columns
from hybrid.table.plans import Plan, Unit
from hybrid.table.state import next_act

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_CLAIMED = "_hy_claimed"
# A claim holds the coordinates of its message, the bucket of one of its rows, and ROWS: its number of rejected rows.
ROWS = "rows"


def mark_of(plan_id: str) -> str:
    """The mark on rejected rows that a plan has claimed."""
    return columns.OP_TAKEN + plan_id


def stage_claims(base: Base, rows: DataFrame) -> None:
    """Writes the claims of a plan beside its rows; `rows` are the rejected rows that it brings, with BUCKET."""
    from pyspark.sql import functions as F

    claims = rows.groupBy(*(quoted(name) for name in MESSAGE))
    counts = claims.agg(F.min(BUCKET).alias(BUCKET), F.count("*").alias(ROWS))
    stage_files(base.bench, counts.coalesce(1), base.folder / CLAIMS)


def claim(table: TableContext, plan: Plan, units: Sequence[Unit]) -> None:
    """Marks the rejected rows of some units as claimed by the plan; rows that it has claimed already stay so.

    ConflictError when one of them is no longer rejected, DataError when the plan's claims are missing. Nothing was
    changed then.
    """
    folder = plans.claims_folder(table.layout, plan.id)
    if units and (plan.request.get("from_rejected") if folder is None else not any(folder.glob("*.parquet"))):
        raise DataError(
            f"The claims of backfill '{plan.id}' on rejected rows are missing. Nothing was changed.",
            hint="Plan it again: hybrid backfill plan ... --from-rejected",
        )
    expected = _count(folder, _buckets(plan, units)) if folder is not None else 0
    if folder is None or not expected:
        return
    publish_plans(table.layout)  # rows that are claimed by a plan that is lost would be nobody's
    with table.lock(Half.REALTIME):
        current = table.half(Half.REALTIME)
        rows = _rows(table, current, folder, _buckets(plan, units))
        by_mark = {row[0]: row[1] for row in rows.where(_CLAIMED).groupBy(columns.OP).count().collect()}
        free, mine = by_mark.get(columns.OP_ROW, 0), by_mark.get(mark_of(plan.id), 0)
        if free + mine != expected:
            raise ConflictError(
                f"{expected - free - mine} of {counted(expected, 'rejected row')} that backfill '{plan.id}' of "
                f"'{table.name}' brings have been brought otherwise since. Nothing was changed.",
                hint="Plan it again: hybrid backfill plan ... --from-rejected",
            )
        if not free:
            return
        state = current.realtime
        act = next_act(state, new_act_id("claim"), "claim", table.bench.now_iso(), {"backfill": plan.id, "rows": free})
        after = replace(state, act=act, rejected=state.rejected - free)
        frame = _marked(table.spec, rows, quoted(_CLAIMED), mark_of(plan.id))
        commit_act(
            frame,
            WorkerFiles.of(table.bench, current.path),
            after,
            planned=current.version,
            replacing=[columns.rejected_segment(table.name)],
        )


def settle(table: TableContext, plan: Plan, *, ended: bool) -> int:
    """Marks rows that a plan has claimed but that are not in the table as rejected again; returns their number.

    Unless the plan has `ended`, it keeps the rows of units that it has not swapped in yet.
    """
    folder = plans.claims_folder(table.layout, plan.id)
    if folder is None or not _count(folder, _buckets(plan, plan.units)):
        return 0
    # In the same order as a drop, to prevent a deadlock.
    with table.lock(Half.OFFLINE), table.lock(Half.REALTIME):
        current = table.half(Half.REALTIME)
        claimed = _kept(plan, entries_of(table.half(Half.OFFLINE)), ended)
        rows = _rows(table, current, folder, _buckets(plan, plan.units) - claimed)
        goes = quoted(_CLAIMED) & (quoted(columns.OP) == mark_of(plan.id))
        count = rows.where(goes).count()
        if not count:
            return 0
        state = current.realtime
        act = next_act(
            state, new_act_id("release"), "release", table.bench.now_iso(), {"backfill": plan.id, "rows": count}
        )
        after = replace(state, act=act, rejected=state.rejected + count)
        frame = _marked(table.spec, rows, goes, columns.OP_ROW)
        commit_act(
            frame,
            WorkerFiles.of(table.bench, current.path),
            after,
            planned=current.version,
            replacing=[columns.rejected_segment(table.name)],
        )
    return count


def taken_of(layout: TableLayout, plan: Plan, entries: Sequence[ReplacementEntry]) -> int:
    """The number of rejected rows that a plan has claimed and that are not in the table. Needs no JVM."""
    folder = plans.claims_folder(layout, plan.id)
    if folder is None:
        return 0
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    standing = _kept(plan, entries, ended=True)
    claims = {tuple(place) for *place, bucket in _claims(folder) if bucket not in standing}
    half = open_half(layout.half(Half.REALTIME))
    files = [file.path for file in half.files if file.segment == columns.rejected_segment(plan.table)]
    if not claims or not files:
        return 0
    rows = pa.concat_tables([pq.ParquetFile(path).read(columns=[*MESSAGE, columns.OP]) for path in files])
    mine = rows.filter(pc.field(columns.OP) == mark_of(plan.id)).select(list(MESSAGE))
    return sum(tuple(row.values()) in claims for row in mine.to_pylist())


def brought_back(
    plan_of: Collection[str], entries: Sequence[ReplacementEntry], entry: ReplacementEntry
) -> tuple[str, tuple[ReplacementEntry, ...]] | None:
    """The plan that a revert of `entry` concerns, and the plan's entries that the revert restores; None: no plan.

    `plan_of` are the existing plans, `entries` all entries, newest first.
    """
    if entry.lineage.backfill is not None:
        return entry.lineage.backfill, ()
    ids = {other.id: other for other in entries}
    target, brings = entry.lineage.reverts, True
    while target in ids and ids[target].lineage.backfill is None:
        target, brings = ids[target].lineage.reverts, not brings
    plan_id = ids[target].lineage.backfill if target in ids else target
    if plan_id is None or plan_id not in plan_of:
        return None
    went = set(entry.lineage.segments_from)
    mine = [swap for swap in entries if swap.lineage.backfill == plan_id]
    return plan_id, tuple(swap for swap in mine if set(swap.lineage.segments_to) <= went) if brings else ()


def units_of(plan: Plan, entries: Sequence[ReplacementEntry]) -> list[Unit]:
    """The units of a plan that any of the entries corrected."""
    spans = {bucket for entry in entries for bucket in entry.lineage.buckets}
    return [unit for unit in plan.units if any((bucket.start, bucket.end) in spans for bucket in plan.buckets_of(unit))]


def _kept(plan: Plan, entries: Sequence[ReplacementEntry], ended: bool) -> set[int]:
    """The buckets whose rejected rows stay claimed: of active swaps and, until the plan ends, the remaining ones."""
    mine = [entry for entry in entries if entry.lineage.backfill == plan.id]
    standing = units_of(plan, [entry for entry in mine if entry.state is EntryState.ACTIVE])
    remaining = [] if ended else plan.left({bucket for entry in mine for bucket in entry.lineage.buckets})
    return _buckets(plan, [*standing, *remaining])


def _buckets(plan: Plan, units: Sequence[Unit]) -> set[int]:
    """The starts of the units' buckets, as claims name them."""
    return {WHOLE if bucket.start is None else bucket.start for unit in units for bucket in plan.buckets_of(unit)}


def _claims(folder: Path) -> list[tuple[Any, ...]]:
    import pyarrow.parquet as pq

    names = [*MESSAGE, BUCKET]
    files = sorted(folder.glob("*.parquet"))
    return [tuple(row[name] for name in names) for path in files for row in pq.ParquetFile(path).read().to_pylist()]


def _count(folder: Path, buckets: Collection[int]) -> int:
    """The number of rejected rows in the claims of some buckets."""
    import pyarrow.parquet as pq

    rows = (row for path in folder.glob("*.parquet") for row in pq.ParquetFile(path).read([BUCKET, ROWS]).to_pylist())
    return sum(row[ROWS] for row in rows if row[BUCKET] in buckets)


def _rows(table: TableContext, realtime: HalfSnapshot, folder: Path, buckets: Collection[int]) -> DataFrame:
    """All rejected rows of a half, with CLAIMED: whether the claims of these buckets contain them."""
    from pyspark.sql import functions as F

    rows = rejected_rows(table.bench, table.spec, realtime).all
    starts = F.broadcast(table.bench.session.createDataFrame([(start,) for start in buckets], f"{BUCKET} bigint"))
    files = [FrameFile(str(path)) for path in sorted(folder.glob("*.parquet"))]
    kinds = dict(physical_columns(table.spec, Half.REALTIME))
    ddl = ddl_of([*((name, kinds[name]) for name in MESSAGE), (BUCKET, "bigint"), (ROWS, "bigint")])
    claims = file_rows(table.bench, ddl, files).join(starts, BUCKET, "left_semi")
    named = claims.select(*(quoted(name) for name in MESSAGE), F.lit(True).alias(_CLAIMED))
    return rows.join(named, list(MESSAGE), "left").withColumn(_CLAIMED, F.coalesce(F.col(_CLAIMED), F.lit(False)))


def _marked(spec: TableSpec, rows: DataFrame, where: Column, mark: str) -> DataFrame:
    """The rejected rows as stored, with another mark on some of them, in one sorted file."""
    from pyspark.sql import functions as F

    op = F.when(where, F.lit(mark)).otherwise(quoted(columns.OP))
    stored_columns = [quoted(name) for name, _ in physical_columns(spec, Half.REALTIME)]
    frame = rows.withColumn(columns.OP, op).select(*stored_columns)
    return frame.coalesce(1).sortWithinPartitions(columns.TOPIC, columns.PARTITION, columns.OFFSET)
