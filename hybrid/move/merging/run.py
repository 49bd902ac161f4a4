"""Merges segments of OFFLINE, bucket by bucket, each in one commit with a lineage entry. Decisions: docs/adr/0018.

The sequence, and what a death in between leaves (the next run does the rest):
  read the log: which closed buckets hold segments that    nothing done; without any, no JVM is started
    would make fewer together
  write the files of several buckets beside the half       staged files, swept by the next act
  for each bucket, under the OFFLINE lock: its segments
    are not as they were? left to the next round           nothing done
    put its files into the half                            files that no reader sees
    one commit: old files go, new ones come, the entry     done, or not done
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from math import ceil
from pathlib import Path

from hybrid.errors import DataError, OvertakenError, SpecError
from hybrid.lake import plans, pushes
from hybrid.lake.commit import FileAct, Written, commit_files
from hybrid.lake.layout import TableLayout, quoted
from hybrid.lake.log import HalfSnapshot, lineage_acts, open_half, segments_in_lineage, texts
from hybrid.lake.workbench import Workbench, new_act_id
from hybrid.move.merge import merge
from hybrid.move.merging.plan import Group, MergePlan, first_batch, plan_merges
from hybrid.move.merging.report import Merged, MergeReport, Told
from hybrid.move.parts import TASK_ROWS, Part, borders, names_of, parts_of, rows_per_task, stretches
from hybrid.move.segments import by_age
from hybrid.move.write import put_files, write_files, written_columns
from hybrid.progress import counted
from hybrid.spec.merge_json import MERGE_TASK
from hybrid.spec.table_config import BoundaryMode, Half, MergeLevel, MergeType, TableSpec
from hybrid.table import columns
from hybrid.table.lineage import MERGE, Lineage, with_entry
from hybrid.table.state import next_act

# How long a plan of a backfill that nobody has run keeps its segments as they are.
_LOOKED_AT_MS = 86_400_000


def run_merges(
    bench: Workbench,
    spec: TableSpec,
    layout: TableLayout,
    *,
    dry_run: bool = False,
    newest: Callable[[], TableSpec] | None = None,
) -> MergeReport:
    """Merges what is to be merged of every level, shortest buckets first.

    `newest` gives the table's definition of the moment: columns may be added meanwhile. SpecError when the table has
    no such task; OvertakenError when other acts kept coming first: what was committed stands.
    """
    require_merges(spec)
    run = _Run(bench, newest or (lambda: spec), layout)
    for level in spec.merge_levels:
        run.merge_level(level, dry_run)
    return run.told.report(spec.name, [level.name for level in spec.merge_levels], dry_run=dry_run)


def require_merges(spec: TableSpec) -> None:
    """SpecError for a table whose segments are not merged."""
    if not spec.merge_levels:
        raise SpecError(
            f"Table '{spec.name}' has no {MERGE_TASK} in its OFFLINE table config.",
            hint='Add "task": {"taskTypeConfigsMap": {"MergeRollupTask": {"1day.bucketTimePeriod": "1d", '
            '"1day.bufferTimePeriod": "1d"}}}',
        )


class _Run:
    """One run. The clock is read once."""

    def __init__(self, bench: Workbench, definition: Callable[[], TableSpec], layout: TableLayout) -> None:
        self._bench, self._definition, self._layout = bench, definition, layout
        self._half, self._now_ms = layout.half(Half.OFFLINE), bench.now_ms()
        self.told = Told()

    def merge_level(self, level: MergeLevel, dry_run: bool) -> None:
        """Merges all that is to be merged of one level, as many rows at a time as a task may take."""
        if dry_run:
            found = self._plan(self._definition(), level, open_half(self._half)).groups
            self.told.merged += [Merged(level.name, one.start, one.names, (), one.rows, 0) for one in found]
            return
        table = self._layout.root.name
        while self._bench.until_not_overtaken(table, lambda: self._merge_batch(level)):
            pass

    def _merge_batch(self, level: MergeLevel) -> bool:
        """One batch of groups; False when there is none left. OvertakenError when nothing of it could be committed."""
        base = open_half(self._half)
        spec = self._definition()  # after the half: columns of rows that are there are in the definition by then
        groups = self._plan(spec, level, base).groups
        batch = first_batch(groups, level.max_records_per_task)
        if not batch:
            return False
        with self._bench.staging(self._layout, new_act_id(MERGE)) as staging:
            parts = self._stage(spec, level, base, batch, staging)
            overtaken = []
            for group in batch:
                mine = [part for part in parts if part.bucket == group.start]
                try:
                    self.told.merged.append(self._commit(spec, level, base, group, mine, staging))
                except OvertakenError as error:
                    overtaken.append(error)
                self._bench.progress.step("merging buckets", len(self.told.merged), len(self.told.merged) + len(groups))
        if len(overtaken) == len(batch):
            raise overtaken[0]
        return True

    def _plan(self, spec: TableSpec, level: MergeLevel, base: HalfSnapshot) -> MergePlan:
        # What this run has made of a bucket is not merged with the rest of it: a task has a bound.
        mine = {name for one in self.told.merged if one.level == level.name for name in one.into}
        apart = self._apart(spec, level, base)
        found = plan_merges(level, by_age(base.files, mine), self._now_ms, _made(level, base), apart)
        self.told.kept[level.name] = found.kept
        return found

    def _stage(
        self,
        spec: TableSpec,
        level: MergeLevel,
        base: HalfSnapshot,
        batch: Sequence[Group],
        staging: Path,
    ) -> list[Part]:
        """The merged rows in files beside the half."""
        names, read = [name for group in batch for name in group.names], sum(group.rows for group in batch)
        what = f"{counted(len(names), 'segment')} of {counted(len(batch), 'bucket')} with {counted(read, 'row')}"
        self._bench.progress.say(f"Merging {what} of '{spec.name}' ({level.name}, {level.merge_type.value}).")
        stored = self._bench.spark.read.format("delta").load(str(self._half))
        rows = stored.where(quoted(columns.SEGMENT).isin(names))
        lying = stretches([file for file in base.files if file.segment in set(names)], columns.TIME)
        counts, end_ms = {group.start: group.rows for group in batch}, batch[-1].start + level.bucket_ms
        cuts = borders(counts, level.bucket_ms, lying, end_ms, rows_per_task(level.max_records_per_segment))
        merged = merge(rows, spec, level, ceil(read / TASK_ROWS))
        laid = write_files(merged, spec, level, staging, cuts)
        return parts_of(laid, level.bucket_ms, level.max_records_per_segment)

    def _commit(
        self,
        spec: TableSpec,
        level: MergeLevel,
        base: HalfSnapshot,
        group: Group,
        parts: Sequence[Part],
        staging: Path,
    ) -> Merged:
        """One bucket's segments in place of those that it had. OvertakenError when these are not as they were."""
        written = sum(part.rows for part in parts)
        with self._bench.lock(self._layout, Half.OFFLINE):
            current = open_half(self._half)
            self._refuse_changed(spec, level, base, current, group)
            _check_count(spec, level, group, written)
            names = tuple(
                names_of(spec, parts, {group.start: group.times}, _held(current) | segments_in_lineage(current))
            )
            act_id = new_act_id(MERGE)
            entry = Lineage(
                segments_from=group.names,
                segments_to=names,
                version_before=current.version,
                rows_before=group.rows,
                rows_after=written,
                added=0,
                removed=group.rows - written,
                changed=0,
                result=_sentence(level, group, names, written),
                source=_source(level),
                previous=current.offline.last_lineage,
            )
            act = next_act(current.offline, act_id, "merge", self._bench.now_iso(), entry.to_json())
            state = with_entry(current.offline, act, current.version)

            def put() -> Written:
                return Written(put_files(staging, self._half, dict(zip(names, parts, strict=True)), act_id), state)

            going = {name: current.files_of(name) for name in group.names}
            version = commit_files(
                self._bench.spark, FileAct(self._half, "merge", act_id, written_columns(spec), going), put
            )
        return Merged(level.name, group.start, group.names, names, group.rows, written, act_id, version)

    def _refuse_changed(
        self, spec: TableSpec, level: MergeLevel, base: HalfSnapshot, current: HalfSnapshot, group: Group
    ) -> None:
        same = (base.table_id, base.columns) == (current.table_id, current.columns)
        same = same and all(base.files_of(name) == current.files_of(name) for name in group.names)
        if not same or not self._apart(spec, level, current).keys().isdisjoint(group.names):
            raise OvertakenError(f"Another act concerned segments of OFFLINE of '{spec.name}' first.")

    def _apart(self, spec: TableSpec, level: MergeLevel, half: HalfSnapshot) -> Mapping[str, str]:
        """Segments that stay as they are for now, and why."""
        found: dict[str, str] = {}
        if spec.by_flows:
            for _, act in lineage_acts(half):
                if act.kind != MERGE:
                    why = "corrections of what flows have brought, which a refresh has to tell apart"
                    found.update(dict.fromkeys(texts(act.detail["segments_to"]), why))
        if half.offline.boundary.mode is BoundaryMode.PINOT and level.merge_type is not MergeType.CONCAT:
            newest = {file.segment for file in half.files if file.times is not None and file.times[1] == half.last_ms}
            found.update(dict.fromkeys(newest, "they hold the newest rows, by which mode pinot divides the halves"))
        for plan_id in plans.plan_ids(self._layout):
            found.update(dict.fromkeys(self._planned(plan_id, half), f"backfill '{plan_id}' is to replace them"))
        for entry in pushes.in_progress(self._layout):
            found.update(dict.fromkeys(entry.segments_from, f"replacement '{entry.id}' is to replace them"))
        return found

    def _planned(self, plan_id: str, half: HalfSnapshot) -> Collection[str]:
        """The segments that a plan is to replace yet."""
        wanted = plans.wanted_of(self._layout, plan_id).wish
        if wanted in (plans.Wish.CANCEL, plans.Wish.ENDED):
            return ()
        plan = plans.find_plan(self._layout, plan_id)
        if plan is None or (wanted is plans.Wish.LOOK and self._is_old(plan.created_at)):
            return ()
        return {name for unit in plan.left(plans.corrected_spans(half, plan_id)) for name in unit.replaced}

    def _is_old(self, created_at: str) -> bool:
        return self._now_ms - datetime.fromisoformat(created_at).timestamp() * 1000 > _LOOKED_AT_MS


def _held(half: HalfSnapshot) -> set[str]:
    return {file.segment for file in half.files}


def _made(level: MergeLevel, half: HalfSnapshot) -> set[str]:
    """Names that merges of a level have given."""
    mine = (act for _, act in lineage_acts(half) if act.kind == MERGE and act.detail["source"] == _source(level))
    return {name for act in mine for name in texts(act.detail["segments_to"])}


def _source(level: MergeLevel) -> str:
    return f"{MERGE_TASK} {level.name}"


def _check_count(spec: TableSpec, level: MergeLevel, group: Group, written: int) -> None:
    """DataError when rows are not there that were: nothing is lost."""
    whole = written == group.rows if level.merge_type is MergeType.CONCAT else 0 < written <= group.rows
    if not whole:
        raise DataError(
            f"Of {group.rows} rows in {counted(len(group.segments), 'segment')} of '{spec.name}' a merge "
            f"({level.merge_type.value}) wrote {written}. These segments stay as they are.",
            hint="hybrid doctor",
        )


def _sentence(level: MergeLevel, group: Group, names: Sequence[str], written: int) -> str:
    what = f"Merged {counted(len(group.segments), 'segment')} with {counted(group.rows, 'row')} into {len(names)}"
    gone = f", {counted(group.rows - written, 'row')} merged away" if written != group.rows else ""
    return f"{what} ({level.name}, {level.merge_type.value}){gone}."
