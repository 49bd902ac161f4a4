"""The realtime-to-offline move: appends the rows that the next boundary covers, with that boundary, in one commit.

The sequence, and what a death in between leaves:
  read both halves' states, count what waits, plan        nothing done
  stage the merged rows beside the halves                 staged files, swept by the next move
  take the OFFLINE lock; state overtaken? plan anew       nothing done
  one Delta commit: segments and the boundary             done, or not done
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hybrid.errors import OvertakenError, SpecError
from hybrid.lake.commit import commit_act
from hybrid.lake.layout import TableLayout, in_files, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, acts_between, open_half, segments_in_lineage
from hybrid.lake.workbench import Workbench, new_act_id
from hybrid.move.merge import BUCKET, HIGH, LOW, SPLIT, merge, split, with_bucket
from hybrid.move.plan import MovePlan, Reach, Waiting, plan_move, reason_for_nothing
from hybrid.plain import utc
from hybrid.progress import counted
from hybrid.spec.table_config import BoundaryMode, Half, MoveConfig, TableSpec
from hybrid.table import columns
from hybrid.table.boundary import Boundary
from hybrid.table.coverage_sql import covered_sql
from hybrid.table.names import offline_segment, time_value
from hybrid.table.state import next_act

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_CORRECTIONS = frozenset({"backfill", "replace", "revert"})


@dataclass(frozen=True)
class MoveReport:
    """What a move did: rows read and written, segments added, the boundary after it, in one `sentence`."""

    rows_read: int
    rows_written: int
    late_rows: int
    segments: tuple[str, ...]
    boundary: Boundary
    version: int | None
    sentence: str
    dry_run: bool = False

    @property
    def moved(self) -> bool:
        """Whether something was committed."""
        return self.version is not None


def run_move(
    bench: Workbench,
    spec: TableSpec,
    layout: TableLayout,
    *,
    reach: Reach | None = None,
    dry_run: bool = False,
    act_id: str | None = None,
    newest: Callable[[], TableSpec] | None = None,
) -> MoveReport:
    """Moves the next buckets that hold rows, as far as `reach` says (None: one closed bucket), and every late row.

    `act_id` names the act, else it gets a fresh one. `newest` gives the table's definition of the moment: columns
    may be added while a move is planned.

    ConflictError when other acts kept overtaking it; nothing was changed then.
    """
    move_config(spec)
    act, definition = act_id or new_act_id("move"), newest or (lambda: spec)
    return bench.until_not_overtaken(
        spec.name, lambda: _attempt(bench, definition, layout, reach or Reach(), dry_run, act)
    )


def move_config(spec: TableSpec) -> MoveConfig:
    """The table's move settings; SpecError when it cannot move."""
    missing = next((half.value for half in Half if half not in spec.halves), None)
    if missing is not None:
        raise SpecError(
            f"Table '{spec.name}' has no {missing} half, so nothing can move.",
            hint=f"hybrid table create ... --config <its {missing} table config>",
        )
    if spec.move is None:
        raise SpecError(
            f"Table '{spec.name}' has no RealtimeToOfflineSegmentsTask in its REALTIME table config.",
            hint='Add "task": {"taskTypeConfigsMap": {"RealtimeToOfflineSegmentsTask": {"bucketTimePeriod": "1d"}}}',
        )
    return spec.move


def _attempt(
    bench: Workbench,
    definition: Callable[[], TableSpec],
    layout: TableLayout,
    reach: Reach,
    dry_run: bool,
    act_id: str,
) -> MoveReport:
    offline, realtime = open_half(layout.half(Half.OFFLINE)), open_half(layout.half(Half.REALTIME))
    # After the halves: columns of rows that are there are in the definition by then.
    spec = definition()
    config = move_config(spec)
    before, now_ms = offline.offline.boundary, bench.now_ms()
    if all(file.segment in columns.bookkeeping(spec.name) for file in realtime.files):
        return _nothing(before, f"Nothing to move: table '{spec.name}' has no realtime rows yet.", dry_run)
    bench.progress.say(f"Counting what waits in '{spec.name}'.")
    rows = with_bucket(_rows(bench, layout, spec, realtime, f"NOT {covered_sql(before)}"), config)
    waiting = _waiting(rows, before)
    plan = plan_move(config, before, realtime.realtime.offsets, waiting, now_ms, reach)
    if not plan.moves_something:
        reason = reason_for_nothing(config, waiting, now_ms)
        return _nothing(before, f"Nothing to move in '{spec.name}': {reason}.", dry_run)
    if dry_run:
        sentence = f"Would move {_what(plan)} of '{spec.name}'{_boundary_words(plan.boundary, before)}."
        return MoveReport(plan.rows + plan.late_rows, 0, plan.late_rows, (), plan.boundary, None, sentence, True)
    covered = rows.where(covered_sql(plan.boundary))
    return _stage_and_commit(bench, spec, layout, config, offline, plan, covered, act_id)


def _refuse_overtaken(spec: TableSpec, planned: HalfSnapshot, current: HalfSnapshot) -> None:
    """OvertakenError when another act came first, but for corrections: they leave alone all that a move looks at.

    A backfill of hundreds of commits would keep every move from ever committing.
    """
    before, now = planned.offline, current.offline
    same = (before.boundary, before.progress) == (now.boundary, now.progress)
    acts = acts_between(current.path, planned.version, current.version)
    corrections = acts is not None and all(act.kind in _CORRECTIONS for act in acts)
    if not (same and corrections and planned.table_id == current.table_id):
        raise OvertakenError(f"Another act committed to OFFLINE of '{spec.name}' first.")


def _rows(bench: Workbench, layout: TableLayout, spec: TableSpec, realtime: HalfSnapshot, where: str) -> DataFrame:
    """Good rows of the pinned REALTIME version."""
    frame = (
        bench.spark.read.format("delta").option("versionAsOf", realtime.version).load(str(layout.half(Half.REALTIME)))
    )
    return frame.where(columns.rows_sql(spec.name)).where(where)


def _waiting(rows: DataFrame, before: Boundary) -> list[Waiting]:
    from pyspark.sql import functions as F

    late = F.lit(False) if before.time_ms is None else F.coalesce(F.col(columns.TIME) < before.time_ms, F.lit(False))
    found = rows.groupBy(BUCKET, late.alias("late")).count().collect()
    return [Waiting(row[BUCKET], row["late"], row["count"]) for row in found]


def _stage_and_commit(
    bench: Workbench,
    spec: TableSpec,
    layout: TableLayout,
    config: MoveConfig,
    offline: HalfSnapshot,
    plan: MovePlan,
    covered: DataFrame,
    act_id: str,
) -> MoveReport:
    read = plan.rows + plan.late_rows
    with bench.staging(layout, act_id) as staging:
        bench.progress.say(f"Merging {read} rows of '{spec.name}' ({config.merge_type.value}).")
        split(merge(covered, spec, config), config, read).write.parquet(str(staging))
        staged = bench.spark.read.parquet(str(staging))
        with bench.lock(layout, Half.OFFLINE):
            current = open_half(layout.half(Half.OFFLINE))
            _refuse_overtaken(spec, offline, current)
            # Not a name that a replacement took away either: its revert would meet our rows there.
            taken = {file.segment for file in current.files} | segments_in_lineage(current)
            named = _names(spec, staged, taken)
            written = sum(segment.rows for segment in named)
            detail = {
                "rows_read": read,
                "rows_written": written,
                "late_rows": plan.late_rows,
                "segments": [segment.name for segment in named],
            }
            act = next_act(current.offline, act_id, "move", bench.now_iso(), detail)
            state = replace(current.offline, act=act, boundary=plan.boundary)
            frame = _frame(bench, spec, staged, named)
            version = commit_act(frame, layout.half(Half.OFFLINE), state, planned=current.version)
    names = tuple(segment.name for segment in named)
    sentence = _sentence(spec, config, plan, offline.offline.boundary, names, written)
    return MoveReport(read, written, plan.late_rows, names, plan.boundary, version, sentence)


@dataclass(frozen=True)
class _Named:
    bucket: int | None
    split: int
    rows: int
    name: str


def _names(spec: TableSpec, staged: DataFrame, taken: set[str]) -> list[_Named]:
    """A name for every staged segment: the first and last time of the rows read into it."""
    from pyspark.sql import functions as F

    found = staged.groupBy(BUCKET, SPLIT).agg(F.count("*"), F.min(LOW), F.max(HIGH)).collect()
    names: list[_Named] = []
    for bucket, part, count, low, high in sorted(tuple(row) for row in found):
        name = offline_segment(spec.name, time_value(spec, low), time_value(spec, high), taken)
        taken = taken | {name}
        names.append(_Named(bucket, part, count, name))
    return names


def _frame(bench: Workbench, spec: TableSpec, staged: DataFrame, named: Sequence[_Named]) -> DataFrame:
    """The staged rows under their segment's name, each segment in one sorted file."""
    from pyspark.sql import functions as F

    pairs = [(segment.bucket, segment.split, segment.name) for segment in named]
    bucket, part = "_hy_named_bucket", "_hy_named_split"  # a user's columns may have any name without our prefix
    names = bench.spark.createDataFrame(pairs, f"{bucket} bigint, {part} int, {columns.SEGMENT} string")
    joined = staged.drop(columns.SEGMENT).join(
        F.broadcast(names), F.col(BUCKET).eqNullSafe(F.col(bucket)) & (F.col(SPLIT) == F.col(part))
    )
    return in_files(spec, joined.select(*(quoted(name) for name, _ in physical_columns(spec, Half.OFFLINE))))


def _nothing(boundary: Boundary, sentence: str, dry_run: bool) -> MoveReport:
    return MoveReport(0, 0, 0, (), boundary, None, sentence, dry_run)


def _what(plan: MovePlan) -> str:
    parts = []
    if plan.rows:
        where = f" in {counted(len(plan.buckets), 'bucket')}" if plan.buckets else ""
        parts.append(f"{counted(plan.rows, 'row')}{where}")
    if plan.late_rows:
        parts.append(counted(plan.late_rows, "late row"))
    return " and ".join(parts)


def _boundary_words(after: Boundary, before: Boundary) -> str:
    if after.time_ms is None or after.time_ms == before.time_ms:
        return "; the boundary's time stays"
    return f"; {_limit_noun(after)} is then {utc(after.time_ms)}"


def _limit_noun(boundary: Boundary) -> str:
    """What T is called: in mode pinot, and under an override, another limit is in effect."""
    plain = boundary.mode is BoundaryMode.EXACT and boundary.override_ms is None
    return "the boundary" if plain else "the end of what has moved"


def _sentence(
    spec: TableSpec, config: MoveConfig, plan: MovePlan, before: Boundary, names: Sequence[str], written: int
) -> str:
    merged = "" if written == plan.rows + plan.late_rows else f", merged to {written} ({config.merge_type.value})"
    shown = names[0] if len(names) == 1 else f"{len(names)} segments, {names[0]} to {names[-1]}"
    moved_on = plan.boundary.time_ms is not None and plan.boundary.time_ms != before.time_ms
    noun = _limit_noun(plan.boundary)
    then = f"; {noun} is now {utc(plan.boundary.time_ms)}" if moved_on and plan.boundary.time_ms else ""
    return f"Moved {_what(plan)} of '{spec.name}'{merged} into {shown}{then}."
