"""Rejected rows that a backfill brings: taken before its first swap, given back when they are not in the table.

A row must come once, whether by replays, by this backfill or by another one. The rejected rows lie in REALTIME and the
swaps go to OFFLINE, so that no commit can do both; the order of acts keeps them apart:

  planned                             nothing is marked: a replay may still bring the rows, and the run is then refused
  a run begins: `claim`               one act marks the rows of what is to be swapped as taken by this plan
  killed after it                     nobody else brings them; the next run finds its own marks and goes on
  swap after swap                     as of any backfill
  cancelled or reverted, `settle`     one act marks what no standing swap holds as rejected again
  killed before it                    taken and not in the table: status and doctor say so; to be cancelled again
  a revert is reverted                its rows are claimed first: refused when something else has brought them

What is in the table is read from OFFLINE's log under its lock, so no swap comes in between.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import ConflictError
from hybrid.lake import plans
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.layout import TableLayout, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.rejected import MESSAGE, rejected_rows
from hybrid.progress import counted
from hybrid.replace.backfill.base import BUCKET, WHOLE, Base
from hybrid.replace.lineage import EntryState, ReplacementEntry, entries_of
from hybrid.table import columns
from hybrid.table.plans import Plan, Unit
from hybrid.table.state import next_act

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_CLAIMED = "_hy_claimed"
# Of a claim beside the coordinates of its message and the bucket of one of its rows: how many rejected rows it has.
ROWS = "rows"


def mark_of(plan_id: str) -> str:
    """The mark on rejected rows that a plan has taken."""
    return columns.OP_TAKEN + plan_id


def stage_claims(base: Base, rows: DataFrame) -> None:
    """Keeps the claims of a plan beside its rows: `rows` are the rejected rows that it brings, with BUCKET."""
    from pyspark.sql import functions as F

    claims = rows.groupBy(*(quoted(name) for name in MESSAGE))
    found = claims.agg(F.min(BUCKET).alias(BUCKET), F.count("*").alias(ROWS))
    found.coalesce(1).write.parquet(str(base.folder / plans.CLAIMS))


def claim(bench: CommitContext, spec: TableSpec, layout: TableLayout, plan: Plan, units: Sequence[Unit]) -> None:
    """Marks the rejected rows that units of a plan bring as taken by it; those that are its already stay so.

    ConflictError when one of them is no longer rejected. Nothing was changed then.
    """
    folder = plans.claims_folder(layout, plan.id)
    wanted = _count(folder, _buckets(plan, units)) if folder is not None else 0
    if folder is None or not wanted:
        return
    with bench.lock(layout, Half.REALTIME):
        current = open_half(layout.half(Half.REALTIME))
        rows = _rows(bench, spec, current, folder, _buckets(plan, units))
        found = {row[0]: row[1] for row in rows.where(_CLAIMED).groupBy(columns.OP).count().collect()}
        free, mine = found.get(columns.OP_ROW, 0), found.get(mark_of(plan.id), 0)
        if free + mine != wanted:
            raise ConflictError(
                f"{wanted - free - mine} of {counted(wanted, 'rejected row')} that backfill '{plan.id}' of "
                f"'{spec.name}' brings have been brought otherwise since. Nothing was changed.",
                hint="Plan it anew: hybrid backfill plan ... --from-rejected",
            )
        if not free:
            return
        state = current.realtime
        act = next_act(state, new_act_id("claim"), "claim", bench.now_iso(), {"backfill": plan.id, "rows": free})
        after = replace(state, act=act, rejected=state.rejected - free)
        frame = _marked(spec, rows, quoted(_CLAIMED), mark_of(plan.id))
        commit_act(frame, current.path, after, planned=current.version, replacing=[columns.rejected_segment(spec.name)])


def settle(bench: CommitContext, spec: TableSpec, layout: TableLayout, plan: Plan, *, ended: bool) -> int:
    """Marks the rows that a plan has taken, and that are not in the table, as rejected again; how many these are.

    Unless it has `ended` it keeps those of units that it has not come to.
    """
    folder = plans.claims_folder(layout, plan.id)
    if folder is None or not _count(folder, _buckets(plan, plan.units)):
        return 0
    # In the order in which a drop takes both, so that none waits for the other.
    with bench.lock(layout, Half.OFFLINE), bench.lock(layout, Half.REALTIME):
        current = open_half(layout.half(Half.REALTIME))
        kept = _kept(plan, entries_of(open_half(layout.half(Half.OFFLINE))), ended)
        rows = _rows(bench, spec, current, folder, _buckets(plan, plan.units) - kept)
        goes = quoted(_CLAIMED) & (quoted(columns.OP) == mark_of(plan.id))
        count = rows.where(goes).count()
        if not count:
            return 0
        state = current.realtime
        act = next_act(state, new_act_id("release"), "release", bench.now_iso(), {"backfill": plan.id, "rows": count})
        after = replace(state, act=act, rejected=state.rejected + count)
        frame = _marked(spec, rows, goes, columns.OP_ROW)
        commit_act(frame, current.path, after, planned=current.version, replacing=[columns.rejected_segment(spec.name)])
    return count


def taken_of(layout: TableLayout, plan: Plan, entries: Sequence[ReplacementEntry]) -> int:
    """How many rejected rows a plan has taken that are not in the table. No JVM."""
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
    """Which plan a revert of `entry` concerns, and those of its entries that come back by it; None: no plan.

    `plan_of` are the plans that there are, `entries` all entries, newest first.
    """
    if entry.lineage.backfill is not None:
        return entry.lineage.backfill, ()
    ids = {one.id: one for one in entries}
    target, brings = entry.lineage.reverts, True
    while target in ids and ids[target].lineage.backfill is None:
        target, brings = ids[target].lineage.reverts, not brings
    plan_id = ids[target].lineage.backfill if target in ids else target
    if plan_id is None or plan_id not in plan_of:
        return None
    went = set(entry.lineage.segments_from)
    mine = [one for one in entries if one.lineage.backfill == plan_id]
    return plan_id, tuple(one for one in mine if set(one.lineage.segments_to) <= went) if brings else ()


def units_of(plan: Plan, entries: Sequence[ReplacementEntry]) -> list[Unit]:
    """The units of a plan that some of its entries are of."""
    spans = {one for entry in entries for one in entry.lineage.buckets}
    return [unit for unit in plan.units if any((one.start, one.end) in spans for one in plan.buckets_of(unit))]


def _kept(plan: Plan, entries: Sequence[ReplacementEntry], ended: bool) -> set[int]:
    """The buckets whose rejected rows stay taken: those of swaps that stand, and until it has ended of what is left."""
    mine = [entry for entry in entries if entry.lineage.backfill == plan.id]
    standing = units_of(plan, [entry for entry in mine if entry.state is EntryState.ACTIVE])
    left = [] if ended else plan.left({one for entry in mine for one in entry.lineage.buckets})
    return _buckets(plan, [*standing, *left])


def _buckets(plan: Plan, units: Sequence[Unit]) -> set[int]:
    """The starts of the units' buckets, as claims name them."""
    return {WHOLE if one.start is None else one.start for unit in units for one in plan.buckets_of(unit)}


def _claims(folder: Path) -> list[tuple[Any, ...]]:
    import pyarrow.parquet as pq

    names = [*MESSAGE, BUCKET]
    files = sorted(folder.glob("*.parquet"))
    return [tuple(row[name] for name in names) for path in files for row in pq.ParquetFile(path).read().to_pylist()]


def _count(folder: Path, buckets: Collection[int]) -> int:
    """How many rejected rows the claims of some buckets are about."""
    import pyarrow.parquet as pq

    rows = (row for path in folder.glob("*.parquet") for row in pq.ParquetFile(path).read([BUCKET, ROWS]).to_pylist())
    return sum(row[ROWS] for row in rows if row[BUCKET] in buckets)


def _rows(
    bench: CommitContext, spec: TableSpec, realtime: HalfSnapshot, folder: Path, buckets: Collection[int]
) -> DataFrame:
    """All rejected rows of a half, with CLAIMED: whether they are among the claims of these buckets."""
    from pyspark.sql import functions as F

    rows = rejected_rows(bench, spec, realtime).all
    wanted = F.broadcast(bench.spark.createDataFrame([(start,) for start in buckets], f"{BUCKET} bigint"))
    claims = bench.spark.read.parquet(str(folder)).join(wanted, BUCKET, "left_semi")
    named = claims.select(*(quoted(name) for name in MESSAGE), F.lit(True).alias(_CLAIMED))
    return rows.join(named, list(MESSAGE), "left").withColumn(_CLAIMED, F.coalesce(F.col(_CLAIMED), F.lit(False)))


def _marked(spec: TableSpec, rows: DataFrame, where: Column, mark: str) -> DataFrame:
    """The rejected rows as they are stored, with another mark on some; one sorted file."""
    from pyspark.sql import functions as F

    op = F.when(where, F.lit(mark)).otherwise(quoted(columns.OP))
    wanted = [quoted(name) for name, _ in physical_columns(spec, Half.REALTIME)]
    frame = rows.withColumn(columns.OP, op).select(*wanted)
    return frame.coalesce(1).sortWithinPartitions(columns.TOPIC, columns.PARTITION, columns.OFFSET)
