"""Removes superseded rows from the segments of OFFLINE: Pinot's UpsertCompactionTask. Decisions: docs/adr/0018.

A row is superseded when a greater one of its key exists for good: no query shows it again, whatever happens to the
other. A row of a correction supersedes nothing while the correction can be reverted, because the revert must find what
it replaced. Each segment is one commit, as in a merge, with the same sequence and the same states after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.compaction_json import COMPACTION_TASK
from hybrid.config.table_config import BucketConfig, CompactionConfig, Half, TableSpec
from hybrid.errors import SpecError
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.half_frames import newest_rows
from hybrid.lake.layout import quoted
from hybrid.lake.log import HalfSnapshot, lineage_acts, open_half, texts
from hybrid.lake.log_entries import acts_between, foreign_between
from hybrid.lake.spark_upsert_order import beats, best, order_struct
from hybrid.lake.staged_frames import stage_frame
from hybrid.lake.table_context import TableContext
from hybrid.move.expired_markers import expired_markers, have_come
from hybrid.move.merging.merge_exclusions import claims_on, hidden_from, is_awaited, merge_exclusions
from hybrid.move.merging.plan import NO_TIMES, Group
from hybrid.move.merging.report import Merged, MergeFindings, MergeReport
from hybrid.move.merging.rewrite import Rewrite
from hybrid.move.segments import Aged, by_age
from hybrid.progress import counted
from hybrid.runtime.json_values import epoch_ms
from hybrid.table import columns
from hybrid.table.buckets import bucket_of
from hybrid.table.coverage_sql import covered_sql
from hybrid.table.lineage import MERGE
from hybrid.table.state import Act
from hybrid.table.upsert_order import REPLACEMENT_CONNECTOR, winning_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Segments keep their times: none is cut at the end of a bucket.
_UNCUT = BucketConfig(bucket_ms=1 << 62)
_CORRECTED = "corrections that can still be reverted"
# Kinds that may commit to a half between plan and commit, because they remove no winner.
_OFFLINE_ACTS, _REALTIME_ACTS = frozenset({"merge", "move"}), frozenset({"flow", "ingest", "seal"})
_BEST, _ORDER, _HERE = "_hy_best", "_hy_order", "_hy_here"


def run_compaction(
    table: TableContext,
    *,
    dry_run: bool = False,
    keeps_markers: bool = False,
    newest: Callable[[], TableSpec] | None = None,
) -> MergeReport:
    """Rewrite the segments of OFFLINE that hold enough superseded rows, without these rows.

    `newest` returns the current table definition. `keeps_markers`: no delete marker expires now. Raises SpecError when
    the table has no such task, OvertakenError when other operations kept committing first, and DataError when segments
    lacked rows. Commits made before the error stay.
    """
    require_compaction(table.spec)
    run = _Run(table, newest, table.bench.now_ms(), dry_run, keeps_markers)
    table.until_not_overtaken(run.attempt)
    return run.report(table.spec)


def require_compaction(spec: TableSpec) -> CompactionConfig:
    """The compaction settings; SpecError for a table without them."""
    if spec.compaction is None:
        raise SpecError(
            f"Table '{spec.name}' has no {COMPACTION_TASK} in its table configs.",
            hint='Add "task": {"taskTypeConfigsMap": {"UpsertCompactionTask": '
            '{"invalidRecordsThresholdPercent": "30"}}}',
        )
    return spec.compaction


@dataclass
class _Run:
    """One run. It reads the clock once, and reports commits that it made before a conflict."""

    table: TableContext
    newest: Callable[[], TableSpec] | None
    now_ms: int
    dry_run: bool
    keeps_markers: bool
    told: MergeFindings = field(default_factory=MergeFindings)
    nothing: str = ""

    def attempt(self) -> None:
        """Compact every segment that qualifies.

        OvertakenError when another operation affected a segment, or a winner.
        """
        claims, base = claims_on(self.table.layout), self.table.half(Half.OFFLINE)
        table = self.table.renewed(self.newest)
        spec = table.spec
        realtime = self.table.half(Half.REALTIME) if Half.REALTIME in spec.halves else None
        lineage = [act for _, act in lineage_acts(base)]
        if hidden_from(spec, base) is not None:
            self.nothing = (
                "its boundary hides offline rows for now (mode pinot, or set by hand), so which win may change"
            )
            return
        all_exclusions = merge_exclusions(spec, self.table.layout, base, lineage, self.now_ms, leaves_out=True)
        corrected = _corrected(lineage, self.now_ms - spec.revert_window_ms)
        old = self._old_enough(
            spec, base, lambda segment: _CORRECTED if segment.name in corrected else all_exclusions.why(segment)
        )
        if not old:
            self.nothing = "no segment was last written before the buffer"
            return

        takes_markers = _takes_markers(spec) and not (self.keeps_markers or is_awaited(self.table.layout, base))
        markers: DataFrame | None = None

        def holds(current: HalfSnapshot) -> bool:
            is_valid = _only(base, current, _OFFLINE_ACTS) and hidden_from(spec, current) is None
            if realtime is not None:
                newest = open_half(realtime.path)
                is_valid = is_valid and _only(realtime, newest, _REALTIME_ACTS)
                if is_valid and markers is not None:
                    is_valid = not have_come(self.table.bench, spec, realtime, newest, markers)
            return is_valid and claims_on(self.table.layout) == claims

        how = _what(spec)
        rewrite = Rewrite(table, _UNCUT, base, lineage, COMPACTION_TASK, how, holds)
        with self.table.staging(new_act_id("compaction")) as folder:
            self.table.bench.progress.say(f"Looking for {how} in {counted(len(old), 'segment')} of '{spec.name}'.")
            superseded = _staged(self.table.bench, spec, base, realtime, corrected, folder / "superseded")
            if takes_markers:
                markers = _staged_markers(self.table.bench, spec, base, realtime, folder / "markers")
            if markers is not None:
                superseded = superseded.unionByName(markers).distinct()
            counts = {row[0]: int(row[1]) for row in superseded.groupBy(columns.SEGMENT).count().collect()}
            groups = _groups(require_compaction(spec), old, counts)
            if not groups:
                self.nothing = f"no segment holds enough {how} (at most {max(counts.values(), default=0)})"
            elif self.dry_run:
                self.told.merged += [_planned(group) for group in groups]
            else:
                self._commit_each(rewrite, groups, superseded, folder)

    def report(self, spec: TableSpec) -> MergeReport:
        """The report of the run."""
        nothing = f"Nothing to compact in '{spec.name}': {self.nothing}"
        read, written = (
            sum(getattr(merged, key) for merged in self.told.merged) for key in ("rows_read", "rows_written")
        )
        verb = "Would compact" if self.dry_run else "Compacted"
        what = f"{verb} {counted(len(self.told.merged), 'segment')} of '{spec.name}' with {counted(read, 'row')}"
        left_out = f"{counted(read - written, 'superseded row')} left out"
        if _takes_markers(spec):
            left_out = f"{counted(read - written, 'row')} left out ({_what(spec)})"
        summary = f"{what}: {left_out}"
        return self.told.report(summary if self.told.merged else nothing, dry_run=self.dry_run)

    def _old_enough(self, spec: TableSpec, base: HalfSnapshot, why: Callable[[Aged], str | None]) -> list[Aged]:
        before_ms = self.now_ms - require_compaction(spec).buffer_ms
        young = {file.segment for file in base.files if file.modified_ms > before_ms}
        excluded: dict[str, list[str]] = {}
        candidates = []
        for segment in by_age(base.files, young):
            reason = NO_TIMES if segment.high is None else why(segment)
            if reason is None:
                candidates.append(segment)
            else:
                excluded.setdefault(reason, []).append(segment.name)
        self.told.kept["compaction"] = excluded
        return candidates

    def _commit_each(self, rewrite: Rewrite, groups: Sequence[Group], superseded: DataFrame, folder: Path) -> None:
        stored = _rows(self.table.bench, rewrite.base)
        for number, group in enumerate(groups, start=1):
            mine = quoted(columns.SEGMENT) == group.names[0]
            remaining = _without(stored.where(mine), superseded.where(mine), rewrite.table.spec)
            place = folder / str(number)
            merged = rewrite.commit(group, rewrite.stage([group], remaining, place), place)
            self.told.merged.append(merged)
            self.table.bench.progress.step("compacting segments", number, len(groups))


def _staged(
    bench: CommitContext,
    spec: TableSpec,
    base: HalfSnapshot,
    realtime: HalfSnapshot | None,
    corrected: Collection[str],
    path: Path,
) -> DataFrame:
    """The columns of `_deciding` for each superseded row of OFFLINE, staged."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    here, deciding_columns = _rows(bench, base), _deciding(spec)  # first, because Spark columns need a session
    keys = [quoted(name) for name in spec.primary_key]
    if spec.by_flows:  # a refresh of a flow deletes its rows, and then those of other flows must be there
        keys.append(quoted(columns.CONNECTOR))
    rows = here.select(*map(quoted, deciding_columns)).withColumn(_HERE, F.lit(True))
    if realtime is not None:
        beside = _rows(bench, realtime).where(columns.rows_sql(spec.name))
        beside = beside.where(f"NOT {covered_sql(base.offline.boundary)}").select(*map(quoted, deciding_columns))
        rows = rows.unionByName(beside.withColumn(_HERE, F.lit(False)))
    may_go = (quoted(columns.CONNECTOR) == REPLACEMENT_CONNECTOR) | quoted(columns.SEGMENT).isin(list(corrected))
    reliable_order = F.when(~may_go, F.col(_ORDER))
    of_key = rows.withColumn(_ORDER, order_struct(spec)).withColumn(
        _BEST, best(spec, reliable_order).over(Window.partitionBy(*keys))
    )
    superseded = of_key.where(F.col(_HERE) & beats(spec, F.col(_BEST), F.col(_ORDER))).select(
        *map(quoted, deciding_columns)
    )
    return stage_frame(bench, superseded, path)


def _staged_markers(
    bench: CommitContext, spec: TableSpec, base: HalfSnapshot, realtime: HalfSnapshot | None, path: Path
) -> DataFrame | None:
    """The columns of `_deciding` for each expired delete marker of OFFLINE, staged; None without any."""
    rows = _rows(bench, base)
    expired = expired_markers(bench, spec, base, realtime, rows)
    if expired is None:
        return None
    staged = stage_frame(bench, expired.select(*map(quoted, _deciding(spec))), path)
    return staged if staged.limit(1).count() else None


def _takes_markers(spec: TableSpec) -> bool:
    """Whether delete markers expire.

    Not in tables with flows: a refresh deletes rows, and older ones may become visible.
    """
    return spec.upsert is not None and spec.upsert.deleted_keys_ttl > 0 and not spec.by_flows


def _what(spec: TableSpec) -> str:
    return "superseded rows and expired delete markers" if _takes_markers(spec) else "superseded rows"


def _corrected(lineage: Sequence[Act], since_ms: int) -> set[str]:
    """Segments of corrections since then, which can still be reverted, and the segments that these were merged into."""
    segments: set[str] = set()
    for act in reversed(lineage):
        is_old = epoch_ms(act.at) < since_ms
        if (act.kind != MERGE and not is_old) or not segments.isdisjoint(texts(act.detail["segments_from"])):
            segments.update(texts(act.detail["segments_to"]))
    return segments


def _deciding(spec: TableSpec) -> list[str]:
    """The columns that identify a row as far as the upsert order needs it. A message may yield several rows."""
    return list(dict.fromkeys((columns.SEGMENT, *spec.primary_key, *winning_order(spec))))


def _without(rows: DataFrame, superseded: DataFrame, spec: TableSpec) -> DataFrame:
    from pyspark.sql import functions as F

    names = _deciding(spec)
    places = superseded.toDF(*(f"_hy_place{number}" for number in range(len(names))))
    same = [quoted(name).eqNullSafe(F.col(f"_hy_place{number}")) for number, name in enumerate(names)]
    return rows.join(places, reduce(and_, same), "left_anti")


def _rows(bench: CommitContext, half: HalfSnapshot) -> DataFrame:
    """The rows of the newest version. `holds` checks under the lock that the winners are still there."""
    return newest_rows(bench, half.path)


def _groups(config: CompactionConfig, segments: Sequence[Aged], counts: Mapping[str, int]) -> list[Group]:
    groups = []
    for segment in segments:
        count = counts.get(segment.name, 0)
        if count >= config.rows_min and count * 100 >= config.percent_min * segment.rows and segment.low is not None:
            groups.append(Group(bucket_of(segment.low, _UNCUT.bucket_ms).start, (segment,), segment.rows - count))
    return groups


def _planned(group: Group) -> Merged:
    return Merged(COMPACTION_TASK, group.start, group.names, (), group.rows, group.rows_out or 0)


def _only(base: HalfSnapshot, current: HalfSnapshot, kinds: frozenset[str]) -> bool:
    """Whether only operations of these kinds, and no foreign commit, followed `base`."""
    if current.table_id != base.table_id:
        return False
    acts = acts_between(base.path, base.version, current.version)
    are_allowed = acts is not None and all(act.kind in kinds for act in acts)
    return are_allowed and not foreign_between(base.path, base.version, current.version)
