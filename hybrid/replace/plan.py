"""Plans a job's swap on one version of the OFFLINE half: names, checks, markers and the difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.job_spec import JobSpec
from hybrid.config.table_config import BoundaryMode, Half, TableSpec
from hybrid.errors import ConflictError
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.half_frames import rows_in
from hybrid.lake.layout import physical_columns, physical_ddl, quoted
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.log_entries import acts_between
from hybrid.lake.staged_frames import stage_frame
from hybrid.lake.table_context import TableContext
from hybrid.replace.diff import Difference, difference
from hybrid.replace.inherited_arrival import hidden_by_earlier, in_taken_places
from hybrid.replace.markers import removed_winners
from hybrid.replace.merged import refuse_merged
from hybrid.replace.replaced_range import ReplacedRange, covered_names, replaced_range
from hybrid.replace.stage import FILE, StagedRows
from hybrid.replace.stale_rows import compared, ignored_warnings
from hybrid.replace.swap import NOT_YET, Arrival, rows_that_stay, unmoved_rows
from hybrid.replace.targets import Target, refuse_overlap, refuse_times_outside_name, replaced_names, targets_of
from hybrid.table import columns
from hybrid.table.correction_window import rounded_to
from hybrid.table.names import time_words
from hybrid.table.state import PURGE
from hybrid.table.upsert_order import REPLACEMENT_CONNECTOR, replacement_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class JobPlan:
    """The effect of a job on the half as of `base`. `rows` gives the stored rows for an arrival.

    `holds` checks whether it replaces the same segments on a later version, and raises as `plan_job` does. `covers` is
    set when the job answers for a time range; segments in it that it does not write are removed.
    """

    base: HalfSnapshot
    segments_from: tuple[str, ...]
    segments_to: tuple[str, ...]
    found: Difference
    rows: Callable[[Arrival], DataFrame]
    holds: Callable[[HalfSnapshot], bool]
    covers: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether the segments already hold exactly these rows, and no covered segment is removed."""
        stay = set(self.segments_to) == set(self.segments_from) if self.covers else True
        return self.found.identical and stay and set(self.segments_to) <= set(self.segments_from)


def plan_job(table: TableContext, job: JobSpec, staged: StagedRows, *, append: bool, folder: Path) -> JobPlan:
    """Plans the swap of `staged`. ConflictError when segments of the same times would exist beside its rows.

    On an upsert table markers for removed winners are staged in `folder`.
    """
    base = table.half(Half.OFFLINE)
    refuse_outdated(table.spec, job, base)
    realtime = table.half(Half.REALTIME) if Half.REALTIME in table.spec.halves else None
    targets = targets_of(table.spec, job, staged)
    step_ms = rounded_to(table.spec, base.offline.boundary)
    stretch = replaced_range(table.spec, step_ms, job, staged)

    def going(half: HalfSnapshot) -> _Going:
        return _going(table.spec, targets, stretch, half, append)

    if stretch is None and not append:
        refuse_merged(table.name, base, [target.name for target in targets])
    gone = going(base)
    # Mode pinot shows each time from one half only, so rows of any time may be pushed.
    if realtime is not None and base.offline.boundary.mode is BoundaryMode.EXACT:
        kept_apart = [target for target in targets if target.name in gone.replaced or not append]
        refuse_unmoved(table, base, realtime, kept_apart)
    if job.segment_name_type == "fixed" and not append:
        refuse_times_outside_name(table.spec, step_ms, targets[0].name, staged, base.files)
    before = rows_in(table.bench, base, gone.replaced)
    arriving = _new_rows(table, staged, targets)

    def fresh(arrival: Arrival) -> DataFrame:
        return in_taken_places(table.spec, before, arriving(arrival)) if gone.replaced else arriving(arrival)

    markers = stage_markers(table.bench, table.spec, before, fresh(NOT_YET), folder) if gone.replaced else None

    def rows(arrival: Arrival) -> DataFrame:
        return fresh(arrival) if markers is None else fresh(arrival).unionByName(markers)

    def holds(current: HalfSnapshot) -> bool:
        _refuse_purged(table.spec, job, current)
        return _version_read(job) in (None, current.version) and going(current) == gone

    marked = {row[0] for row in markers.select(columns.SEGMENT).distinct().collect()} if markers is not None else set()
    to = tuple(target.name for target in targets if target.rows or target.name in marked)
    remaining = tuple(name for name in gone.covered if name in marked)
    diff = difference(table.spec, before, rows(NOT_YET))
    warnings = warn_unseen(table, base, realtime, gone.replaced, fresh(NOT_YET))
    return JobPlan(base, gone.replaced, (*to, *remaining), diff, rows, holds, stretch is not None, warnings)


def warn_unseen(
    table: TableContext,
    base: HalfSnapshot,
    realtime: HalfSnapshot | None,
    replaced: Sequence[str],
    fresh: DataFrame,
) -> tuple[str, ...]:
    """Warnings of rows in `fresh` (NOT_YET), which replace segments, that will not be visible.

    On a dedup table these are keys with an earlier row elsewhere; where rows are combined, rows that are ignored.
    """
    if not table.spec.folds:
        return hidden_by_earlier(table, base, realtime, replaced, fresh)
    others = rows_that_stay(table, base, realtime, replaced, compared(table.spec))
    return ignored_warnings(table.spec, fresh, others, replacement_topic(NOT_YET.act_number))


@dataclass(frozen=True)
class _Going:
    """The segments that the swap removes: all (`replaced`), and the ones that the job covers but does not write."""

    replaced: tuple[str, ...]
    covered: tuple[str, ...]


def _going(
    spec: TableSpec, targets: Sequence[Target], stretch: ReplacedRange | None, half: HalfSnapshot, append: bool
) -> _Going:
    """ConflictError when segments of the same times would exist beside the job's rows. It reads no rows."""
    covered = covered_names(spec, stretch, half.files, {target.name for target in targets})
    if not append:
        refuse_overlap(spec, targets, half.files, going=covered, step_ms=rounded_to(spec, half.offline.boundary))
    return _Going((*replaced_names(targets, half.files), *covered), covered)


def refuse_outdated(spec: TableSpec, job: JobSpec, base: HalfSnapshot) -> None:
    """ConflictError when the half has changed since the job's rows were read from it: the change would be lost."""
    _refuse_purged(spec, job, base)
    read = _version_read(job)
    if read is not None and read != base.version:
        raise ConflictError(
            f"OFFLINE of '{spec.name}' has changed since the statement was answered: version {read} was read, and "
            f"{base.version} is the newest. Nothing was changed.",
            hint="Run the job again.",
        )


def _refuse_purged(spec: TableSpec, job: JobSpec, base: HalfSnapshot) -> None:
    """ConflictError when rows were, or may have been, purged since the revision that the job's rows were read from."""
    seen = job.statement.seen_version if job.statement is not None else None
    acts = acts_between(base.path, seen, base.version) if seen is not None else []
    if acts is None or any(act.kind == PURGE for act in acts):
        raise ConflictError(
            f"Rows of '{spec.name}' were purged since the statement was answered. Nothing was changed.",
            hint="Run the job again.",
        )


def _version_read(job: JobSpec) -> int | None:
    """The OFFLINE version that the job's rows were read from; None for rows of files."""
    return job.statement.offline_version if job.statement is not None else None


def _new_rows(table: TableContext, staged: StagedRows, targets: Sequence[Target]) -> Callable[[Arrival], DataFrame]:
    """The staged rows under their segments' names, with one common arrival in one partition."""
    from pyspark.sql import functions as F

    named = under_names(table.bench, staged, targets)
    constants = {
        columns.CONNECTOR: F.lit(REPLACEMENT_CONNECTOR),
        columns.EPOCH: F.lit(0),
        columns.PARTITION: F.lit(0),
    }
    stored_columns = [quoted(name) for name, _ in physical_columns(table.spec, Half.OFFLINE)]

    def at(arrival: Arrival) -> DataFrame:
        arrived = {
            columns.TOPIC: F.lit(replacement_topic(arrival.act_number)),
            columns.TIMESTAMP: F.lit(arrival.timestamp).cast("bigint"),
        }
        return named.withColumns({**constants, **arrived}).select(*stored_columns)

    return at


def under_names(bench: CommitContext, staged: StagedRows, targets: Sequence[Target]) -> DataFrame:
    """The staged rows with the names of their segments."""
    from pyspark.sql import functions as F

    if len(targets) == 1:
        return staged.frame.withColumn(columns.SEGMENT, F.lit(targets[0].name))
    pairs = [(number, target.name) for target in targets for number in target.files]
    names = bench.session.createDataFrame(pairs, f"{FILE} int, {columns.SEGMENT} string")
    return staged.frame.join(F.broadcast(names), FILE)


def stage_markers(
    bench: CommitContext, spec: TableSpec, before: DataFrame, after: DataFrame, folder: Path
) -> DataFrame | None:
    """Staged delete markers for the winners that replacing `before` by `after` removes; None without upsert."""
    if not spec.upsert:
        return None
    stored_columns = [quoted(name) for name, _ in physical_columns(spec, Half.OFFLINE)]
    markers = removed_winners(spec, before.select(*stored_columns), after)
    return stage_frame(bench, markers, folder / new_act_id("markers"), physical_ddl(spec, Half.OFFLINE))


def refuse_unmoved(table: TableContext, base: HalfSnapshot, realtime: HalfSnapshot, targets: Sequence[Target]) -> None:
    """ConflictError when rows reach T or beyond where REALTIME still shows rows: both would be visible."""
    boundary_ms = base.offline.boundary.time_ms
    for target in targets:
        if target.low is None or target.high is None:
            continue
        low = target.low if boundary_ms is None else max(target.low, boundary_ms)
        if low > target.high or not _may_hold(table.spec, realtime, low, target.high):
            continue
        rows = unmoved_rows(table, realtime, base)
        count = rows.where(quoted(columns.TIME).between(low, target.high)).count()
        if count:
            first, last = time_words(table.spec, low), time_words(table.spec, target.high)
            raise ConflictError(
                f"The rows for segment '{target.name}' reach {last}, past the boundary, and the REALTIME half still "
                f"shows {count} row{'s' * (count != 1)} with times from {first} to {last}, which would stand beside "
                "them. Nothing was changed.",
                hint=f"Move them first: hybrid move {table.name}",
            )


def _may_hold(spec: TableSpec, realtime: HalfSnapshot, low: int, high: int) -> bool:
    """Whether the files' statistics allow a good row with a time in [low, high]."""
    others = columns.bookkeeping(spec.name)
    return any(file.segment not in others and file.may_reach(low, high + 1) for file in realtime.files)
