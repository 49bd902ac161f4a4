"""The realtime-to-offline move: appends the rows that the next boundary covers, with that boundary, in one commit.

The sequence, and what a crash in between leaves (ADR 14):
  read both halves' states, count waiting rows, plan      nothing done
  write the files of the segments beside the halves       staged files, swept by the next move
  take the OFFLINE lock; plan again on a conflict         nothing done
  put the files into the half                             files that no reader sees
  one Delta commit: segments and the boundary             done, or not done
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from hybrid.config.table_config import BoundaryMode, Half, MergeType, MoveConfig, TableSpec
from hybrid.errors import DataError, OvertakenError, SpecError
from hybrid.lake.commit import FileAct, Written, commit_files
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.half_frames import stored_rows
from hybrid.lake.log import HalfSnapshot, open_half, segments_in_lineage
from hybrid.lake.log_entries import DataFile, acts_between
from hybrid.lake.table_context import TableContext
from hybrid.move.direct import DirectResult, is_direct, write_directly
from hybrid.move.file_reader import FileRows
from hybrid.move.merge import merge
from hybrid.move.plan import MovePlan, Reach, count_until, plan_move, reason_for_nothing
from hybrid.move.rollup import refuse_inexact_averages, sums_that_fit
from hybrid.move.task_splits import (
    TASK_ROWS,
    borders,
    borders_of_all,
    names_of,
    rows_per_task,
    stretches,
    task_splits_of,
)
from hybrid.move.waiting_rows import count_waiting, part_of_bucket, waiting_rows
from hybrid.move.write import put_files, write_files, written_columns
from hybrid.progress import counted
from hybrid.runtime.json_values import utc
from hybrid.runtime.sentence_repr import shown_as_sentence
from hybrid.table import columns
from hybrid.table.boundary import INFINITE, Boundary
from hybrid.table.coverage_sql import covered_sql
from hybrid.table.rollup_rules import refuse_rolled_otherwise
from hybrid.table.state import AS_STORED, READ_VERSION, next_act

_STEPPED_OVER = frozenset({"backfill", "merge", "replace", "revert"})


@shown_as_sentence
@dataclass(frozen=True)
class MoveReport:
    """The result of a move: rows read and written, segments added, the boundary after it, in one `sentence`."""

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

    @property
    def did_something(self) -> bool:
        """Whether something was committed."""
        return self.moved


@dataclass(frozen=True)
class _CoveredRows:
    """The rows to move, of a version of REALTIME. One task ends at each time in `cuts`."""

    rows: FileRows
    realtime: HalfSnapshot
    cuts: Sequence[int]


def run_move(
    table: TableContext,
    *,
    reach: Reach | None = None,
    dry_run: bool = False,
    act_id: str | None = None,
    newest: Callable[[], TableSpec] | None = None,
) -> MoveReport:
    """Move the next buckets that hold rows, as far as `reach` says (None: one closed bucket), and every late row.

    `act_id` is the operation's id; None generates one. `newest` returns the current table definition: columns may be
    added while a move is planned.

    Raises ConflictError when other operations kept committing first; nothing was changed then.
    """
    move_config(table.spec)
    act = act_id or new_act_id("move")
    return table.until_not_overtaken(lambda: _attempt(table, newest, reach or Reach(), dry_run, act))


def move_config(spec: TableSpec) -> MoveConfig:
    """The table's move settings; SpecError when it cannot move."""
    missing = next((half.value for half in Half if half not in spec.halves), None)
    if missing is not None:
        raise SpecError(
            f"Table '{spec.name}' has no {missing} half, so nothing can move.",
            hint=f"hybrid table apply --schema SCHEMA.json --config {missing}.json (adds the half)",
        )
    if spec.move is None:
        raise SpecError(
            f"Table '{spec.name}' has no RealtimeToOfflineSegmentsTask in its REALTIME table config.",
            hint='Add "task": {"taskTypeConfigsMap": {"RealtimeToOfflineSegmentsTask": {"bucketTimePeriod": "1d"}}}',
        )
    return spec.move


def _attempt(
    planned: TableContext, newest: Callable[[], TableSpec] | None, reach: Reach, dry_run: bool, act_id: str
) -> MoveReport:
    offline, realtime = planned.half(Half.OFFLINE), planned.half(Half.REALTIME)
    table = planned.renewed(newest)  # after the halves, so that the definition has every column of their rows
    spec = table.spec
    config = move_config(spec)
    refuse_inexact_averages(table.bench, spec, config)
    # A merge with earlier settings may have been committed.
    refuse_rolled_otherwise(spec.name, offline.offline.rolled, [config])
    before, now_ms = offline.offline.boundary, table.bench.now_ms()
    files = [file for file in realtime.files if file.segment not in columns.bookkeeping(spec.name)]
    if not files:
        return _nothing(before, f"Nothing to move: table '{spec.name}' has no realtime rows yet.", dry_run)
    table.bench.progress.say(f"Counting what waits in '{spec.name}'.")
    rows, spark = waiting_rows(spec, realtime, before), table.bench.file_workers
    lows = [file.times[0] for file in files if file.times is not None]
    # The second round counts everything: for the reason why nothing moves, and when statistics promise rows that do not
    # exist.
    for end_ms in dict.fromkeys((count_until(config, before, lows, now_ms, reach), None)):
        waiting = count_waiting(spark, rows if end_ms is None else rows.before(end_ms), config, before)
        plan = plan_move(config, before, realtime.realtime.offsets, waiting, now_ms, reach)
        if plan.buckets:
            break
    if not plan.moves_something:
        reason = reason_for_nothing(config, waiting, now_ms)
        return _nothing(before, f"Nothing to move in '{spec.name}': {reason}.", dry_run)
    if len(plan.buckets) == 1 and plan.rows + plan.late_rows > config.max_records_per_task and reach.until_ms is None:
        plan = part_of_bucket(spark, rows, config, plan, before, realtime)
    if dry_run:
        rolled = ", to be rolled up" if config.merge_type is MergeType.ROLLUP else ""
        what = f"{_what(plan)} of '{spec.name}'{rolled}"
        sentence = f"Would move {what}{_boundary_words(plan.boundary, before)}{_rest(plan)}."
        return MoveReport(plan.rows + plan.late_rows, 0, plan.late_rows, (), plan.boundary, None, sentence, True)
    cuts = _cuts(spec, config, plan, rows.files)
    to_move = _CoveredRows(_covered(rows, plan.boundary), realtime, cuts)
    return _stage_and_commit(table, config, offline, plan, to_move, act_id)


def _covered(rows: FileRows, boundary: Boundary) -> FileRows:
    """The rows that a boundary covers."""
    covered, time_ms = rows.restricted(covered_sql(boundary)), boundary.time_ms
    return covered if time_ms is None or time_ms == INFINITE else covered.before(time_ms)


def _refuse_overtaken(spec: TableSpec, planned: HalfSnapshot, current: HalfSnapshot) -> None:
    """OvertakenError when another operation committed first, except for kinds that do not affect a move.

    Without the exception, a backfill of hundreds of commits would keep every move from committing.
    """
    before, now = planned.offline, current.offline
    same = (before.boundary, before.progress) == (now.boundary, now.progress)
    acts = acts_between(current.path, planned.version, current.version)
    are_harmless = acts is not None and all(act.kind in _STEPPED_OVER for act in acts)
    if not (same and are_harmless and planned.table_id == current.table_id):
        raise OvertakenError(f"Another operation committed to OFFLINE of '{spec.name}' first.")


def _write(
    table: TableContext, config: MoveConfig, plan: MovePlan, to_move: _CoveredRows, staging: Path
) -> DirectResult:
    """Merge the rows of a move and write them to files."""
    spec, rows = table.spec, to_move.rows
    if is_direct(config, spec):
        workers = table.bench.file_workers
        return write_directly(workers, rows, spec, config, staging, to_move.cuts, plan.rows_of_buckets)
    realtime = to_move.realtime
    frame = stored_rows(table.bench, realtime, rows.files)
    covered = frame.where(columns.rows_sql(spec.name)).where(rows.where)
    read = plan.rows + plan.late_rows
    merged = merge(covered, spec, config, ceil(read / TASK_ROWS), realtime.added)
    with sums_that_fit(spec):
        files = write_files(table.bench, merged, spec, config, staging, to_move.cuts)
    return DirectResult(files, read - sum(file.rows for file in files))


def _stage_and_commit(
    table: TableContext,
    config: MoveConfig,
    offline: HalfSnapshot,
    plan: MovePlan,
    to_move: _CoveredRows,
    act_id: str,
) -> MoveReport:
    # Not the operation's id: files of an earlier attempt with that id may be in the half's log.
    half, token = table.layout.half(Half.OFFLINE), new_act_id("move")
    read = plan.rows + plan.late_rows
    with table.staging(act_id) as staging:
        table.bench.progress.say(f"Merging {counted(read, 'row')} of '{table.name}' ({config.merge_type.value}).")
        result = _write(table, config, plan, to_move, staging)
        parts = task_splits_of(result.files, config.bucket_ms, config.max_records_per_segment)
        written = sum(part.rows for part in parts)
        _check_count(table.spec, config, read, written, result.left_out)
        with table.lock(Half.OFFLINE):
            current = open_half(half)
            _refuse_overtaken(table.spec, offline, current)
            # Also avoid names that a replacement removed: its revert would collide with our rows.
            taken = {file.segment for file in current.files} | segments_in_lineage(current)
            names = names_of(table.spec, config, parts, plan.times_of_buckets, taken)
            detail = {
                "rows_read": read,
                "rows_written": written,
                "late_rows": plan.late_rows,
                "segments": names,
                AS_STORED: is_direct(config, table.spec),
                READ_VERSION: to_move.realtime.version,
            }
            act = next_act(current.offline, act_id, "move", table.bench.now_iso(), detail)
            state = replace(current.offline, act=act, boundary=plan.boundary).with_task(config)

            def put() -> Written:
                return Written(put_files(staging, half, dict(zip(names, parts, strict=True)), token), state)

            files = FileAct(half, "move", token, written_columns(table.spec))
            version = commit_files(table.bench.file_workers, files, put)
    sentence = _sentence(table.spec, config, plan, offline.offline.boundary, names, written)
    return MoveReport(read, written, plan.late_rows, tuple(names), plan.boundary, version, sentence)


def _check_count(spec: TableSpec, config: MoveConfig, read: int, written: int, left_out: int) -> None:
    """DataError when rows that were counted are missing: the boundary would cover them."""
    may_leave_out = config.merge_type is not MergeType.CONCAT
    whole = 0 < written == read - left_out and (left_out == 0 or (may_leave_out and left_out > 0))
    if not whole:
        raise DataError(
            f"Of {read} rows of '{spec.name}' a move ({config.merge_type.value}) wrote {written}. Nothing was changed.",
            hint="hybrid doctor",
        )


def _cuts(spec: TableSpec, config: MoveConfig, plan: MovePlan, files: Sequence[DataFile]) -> list[int]:
    """The times at which one task ends and the next begins."""
    if spec.time_column is None:
        return borders_of_all(plan.rows, stretches(files, columns.TIMESTAMP))
    assert plan.boundary.time_ms is not None
    lying, per_task = stretches(files, columns.TIME), rows_per_task(config.max_records_per_segment)
    return borders(plan.rows_of_buckets, config.bucket_ms, lying, plan.boundary.time_ms, per_task)


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
    """The name of T: in mode pinot, and under an override, another limit is in effect."""
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
    return f"Moved {_what(plan)} of '{spec.name}'{merged} into {shown}{then}{_rest(plan)}."


def _rest(plan: MovePlan) -> str:
    return "; more is closed, and left to the next run by maxNumRecordsPerTask" if plan.is_bounded else ""
