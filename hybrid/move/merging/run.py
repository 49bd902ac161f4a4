"""Merges segments of OFFLINE, bucket by bucket, each in one commit with a lineage entry. Decisions: docs/adr/0018.

The sequence, and what a crash in between leaves (the next run does the rest):
  read the log: which closed buckets hold segments that    nothing done; without any, no JVM is started
    would make fewer together
  write the files of several buckets beside the half       staged files, swept by the next operation
  for each bucket, under the OFFLINE lock: if its
    segments have changed, leave it to the next round      nothing done
    put its files into the half                            files that no reader sees
    one commit: old files out, new ones in, the entry      done, or not done
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

from hybrid.config.bucket_json import ROUNDING
from hybrid.config.merge_json import MERGE_TASK
from hybrid.config.rollup_json import AGGREGATION_SUFFIX
from hybrid.config.table_config import Half, MergeLevel, MergeType, MoveConfig, TableSpec
from hybrid.errors import DataError, OvertakenError, SpecError
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.half_frames import rows_in
from hybrid.lake.log import HalfSnapshot, lineage_acts, open_half, texts
from hybrid.lake.table_context import TableContext
from hybrid.move.merge import merge
from hybrid.move.merging.merge_exclusions import claims_on, hidden_from, merge_exclusions
from hybrid.move.merging.plan import LONGER, Group, MergePlan, first_batch, plan_merges
from hybrid.move.merging.report import Merged, MergeFindings, MergeReport, left_out
from hybrid.move.merging.rewrite import Rewrite
from hybrid.move.rollup import refuse_inexact_averages
from hybrid.move.segments import by_age
from hybrid.move.task_splits import TASK_ROWS
from hybrid.progress import counted
from hybrid.table.lineage import MERGE
from hybrid.table.rollup_rules import refuse_rolled_otherwise
from hybrid.table.state import Act


def run_merges(
    table: TableContext,
    *,
    dry_run: bool = False,
    newest: Callable[[], TableSpec] | None = None,
) -> MergeReport:
    """Merge the segments of every level that qualify, shortest buckets first.

    `newest` returns the current table definition: columns may be added meanwhile. Raises SpecError when the table has
    no such task, OvertakenError when other operations kept committing first, and DataError when segments lacked rows.
    Commits made before the error stay.
    """
    require_merges(table.spec)
    for level in table.spec.merge_levels:
        refuse_inexact_averages(table.bench, table.spec, level)
    run = _Run(table, newest)
    for level in table.spec.merge_levels:
        run.merge_level(level, dry_run, is_longest=level is table.spec.merge_levels[-1])
    if run.failed:
        raise run.failed[0]
    return run.told.report(_said(table.spec, run.told.merged, dry_run), dry_run=dry_run)


def require_merges(spec: TableSpec) -> None:
    """SpecError for a table whose segments are not merged."""
    if not spec.merge_levels:
        raise SpecError(
            f"Table '{spec.name}' has no {MERGE_TASK} in its OFFLINE table config.",
            hint='Add "task": {"taskTypeConfigsMap": {"MergeRollupTask": {"1day.bucketTimePeriod": "1d", '
            '"1day.bufferTimePeriod": "1d"}}}',
        )


class _Run:
    """One run. It reads the clock once. `failed` are the errors of segments that lacked rows, which need a person."""

    def __init__(self, table: TableContext, newest: Callable[[], TableSpec] | None) -> None:
        self._table, self._newest = table, newest
        self._half, self._now_ms = table.layout.half(Half.OFFLINE), table.bench.now_ms()
        # Names that this run skips from now on. A merge result is not merged with the rest of its bucket in the same
        # run, because a task has a limit.
        self._done: set[str] = set()
        self.told = MergeFindings()
        self.failed: list[DataError] = []
        self._groups_max: int | None = None

    def merge_level(self, level: MergeLevel, dry_run: bool, *, is_longest: bool) -> None:
        """Merge the segments of one level that qualify, as many rows at a time as a task may take."""
        self._done -= {name for merged in self.told.merged for name in merged.into}
        self._groups_max = None
        if dry_run:
            base = open_half(self._half)
            plan = self._plan(self._table.renewed(self._newest).spec, level, base, _lineage(base))
            self.told.merged += [
                Merged(_source(level), group.start, group.names, (), group.rows, 0) for group in plan.groups
            ]
        else:
            goes_on = True
            while goes_on:
                plan, goes_on = self._table.until_not_overtaken(lambda: self._merge_batch(level))
        # Segments longer than a short bucket belong to longer levels.
        excluded = {why: names for why, names in plan.kept.items() if is_longest or why != LONGER}
        self.told.kept[level.name] = excluded

    def _merge_batch(self, level: MergeLevel) -> tuple[MergePlan, bool]:
        """Merge one batch of groups.

        Returns whether there was one. OvertakenError when nothing of it could be committed.
        """
        claims, base = claims_on(self._table.layout), open_half(self._half)
        table, lineage = self._table.renewed(self._newest), _lineage(base)  # last: it has all columns of the rows
        spec = table.spec
        plan = self._plan(spec, level, base, lineage)
        batch = first_batch(plan.groups, level.max_records_per_task)[: self._groups_max]
        if not batch:
            return plan, False

        def holds(current: HalfSnapshot) -> bool:
            same = level.keeps_rows or hidden_from(spec, current) == hidden_from(spec, base)
            return same and claims_on(self._table.layout) == claims

        how = f"{level.name}, {level.merge_type.value}"
        rewrite = Rewrite(table, level, base, lineage, _source(level), how, holds, _form(level))
        names, read = [name for group in batch for name in group.names], sum(group.rows for group in batch)
        what = f"{counted(len(names), 'segment')} of {counted(len(batch), 'bucket')} with {counted(read, 'row')}"
        self._table.bench.progress.say(f"Merging {what} of '{spec.name}' ({how}).")
        overtaken: list[OvertakenError] = []
        with self._table.staging(new_act_id(MERGE)) as folder:
            segments = rows_in(self._table.bench, open_half(self._half), names)
            rows = merge(segments, spec, level, ceil(read / TASK_ROWS), base.added)
            try:
                parts = rewrite.stage(batch, rows, folder)
            except DataError as error:
                self._cannot_be_staged(batch, error)
                return plan, True
            for number, group in enumerate(batch, start=1):
                mine = [part for part in parts if part.bucket == group.start]
                try:
                    merged = rewrite.commit(group, mine, folder)
                    self.told.merged.append(merged)
                    self._done.update(merged.into)
                except OvertakenError as error:
                    overtaken.append(error)
                except DataError as error:
                    self.failed.append(error)
                    self._done.update(group.names)
                self._table.bench.progress.step("merging buckets", number, len(batch))
        if len(overtaken) == len(batch):
            raise overtaken[0]
        return plan, True

    def _cannot_be_staged(self, batch: Sequence[Group], error: DataError) -> None:
        """From now on merge each bucket by itself, so that one with a sum that is too large delays no other."""
        if len(batch) == 1:
            self.failed.append(error)
            self._done.update(batch[0].names)
        self._groups_max = 1

    def _plan(self, spec: TableSpec, level: MergeLevel, base: HalfSnapshot, lineage: Sequence[Act]) -> MergePlan:
        # Operations with earlier settings may have committed after the change.
        refuse_rolled_otherwise(spec.name, base.offline.rolled, [level])
        leaves_out, step_ms = not level.keeps_rows, level.step_ms
        exclusions = merge_exclusions(
            spec, self._table.layout, base, lineage, self._now_ms, leaves_out=leaves_out, step_ms=step_ms
        )
        mine = [act for act in lineage if act.kind == MERGE and act.detail["source"] == _source(level)]
        made = {
            name
            for act in mine
            if act.detail.get("change") == _form(level)
            for name in texts(act.detail["segments_to"])
        }
        segments = by_age(base.files, self._done)
        segments_to_change = set[str]()
        if _makes_others(level, spec.move):
            segments_to_change = {segment.name for segment in segments}
        elif not level.keeps_rows:  # names of earlier results, made with other settings
            segments_to_change = {name for act in mine for name in texts(act.detail["segments_to"])}
        return plan_merges(level, segments, self._now_ms, made, exclusions.why, anew=segments_to_change - made)


def _makes_others(level: MergeLevel, move: MoveConfig | None) -> bool:
    """Whether the level would change rows as moves write them, even in a single segment."""
    rolls_up = level.merge_type is MergeType.ROLLUP
    rolled = rolls_up and (move is None or move.merge_type is not MergeType.ROLLUP)
    return rolled or level.step_ms > (move.step_ms if move is not None else 1)


def _said(spec: TableSpec, merged: Sequence[Merged], dry_run: bool) -> str:
    if not merged:
        levels = " or ".join(f"'{level.name}'" for level in spec.merge_levels)
        return f"Nothing to merge in '{spec.name}': no closed bucket of {levels} holds segments to merge"
    before, buckets = sum(len(group.segments) for group in merged), len({(group.task, group.start) for group in merged})
    what = f"{counted(before, 'segment')} of {counted(buckets, 'bucket')} with {counted(_read(merged), 'row')}"
    rolling = {_source(level) for level in spec.merge_levels if level.merge_type is MergeType.ROLLUP}
    rolled, others = ([group for group in merged if (group.task in rolling) is rolls] for rolls in (True, False))
    if dry_run:
        to_roll = f", {counted(_read(rolled), 'row')} to be rolled up" if rolled else ""
        return f"Would merge {what} of '{spec.name}'{to_roll}"
    gone = left_out(_read(others), _written(others)) + left_out(_read(rolled), _written(rolled), rolled_up=True)
    return f"Merged {what} of '{spec.name}' into {sum(len(group.into) for group in merged)}{gone}"


def _read(merged: Sequence[Merged]) -> int:
    return sum(group.rows_read for group in merged)


def _written(merged: Sequence[Merged]) -> int:
    return sum(group.rows_written for group in merged)


def _lineage(half: HalfSnapshot) -> list[Act]:
    return [act for _, act in lineage_acts(half)]


def _form(level: MergeLevel) -> str:
    """How a level changes rows, in the words of its config."""
    rounding = () if level.round_ms is None else (f"{ROUNDING}={level.round_ms}ms",)
    metrics = (f"{name}{AGGREGATION_SUFFIX}={how}" for name, how in level.aggregations)
    return " ".join((f"mergeType={level.merge_type}", *rounding, *metrics))


def _source(level: MergeLevel) -> str:
    return f"{MERGE_TASK} {level.name}"
