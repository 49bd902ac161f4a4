"""Plans a job's swap on one version of the OFFLINE half: names, checks, markers, and the difference it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import ConflictError
from hybrid.lake.layout import TableLayout, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.workbench import Workbench, new_act_id
from hybrid.replace.cover import covered_names, covered_stretch
from hybrid.replace.diff import Difference, difference
from hybrid.replace.markers import removed_winners
from hybrid.replace.stage import FILE, Staged
from hybrid.replace.swap import newest_rows, unmoved_rows
from hybrid.replace.targets import Target, refuse_overlap, refuse_times_outside_name, replaced_names, targets_of
from hybrid.spec.job_spec import JobSpec
from hybrid.spec.table_config import BoundaryMode, Half, TableSpec
from hybrid.table import columns
from hybrid.table.liveness import REPLACEMENT_CONNECTOR, replacement_topic
from hybrid.table.names import time_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class JobPlan:
    """What a job would do to the half as it is in `base`. `rows` gives the stored rows for an arrival timestamp.

    `covers`: the job answers for a stretch of time, and segments in it that it does not write go.
    """

    base: HalfSnapshot
    segments_from: tuple[str, ...]
    segments_to: tuple[str, ...]
    found: Difference
    rows: Callable[[int], DataFrame]
    covers: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether the segments hold exactly these rows already, and none goes that the job covers."""
        stay = set(self.segments_to) == set(self.segments_from) if self.covers else True
        return self.found.identical and stay and set(self.segments_to) <= set(self.segments_from)


def plan_job(
    bench: Workbench, spec: TableSpec, layout: TableLayout, job: JobSpec, staged: Staged, *, append: bool, folder: Path
) -> JobPlan:
    """Plans the swap of `staged`. ConflictError when its rows would stand beside others of their times.

    On an upsert table markers for removed winners are staged in `folder`.
    """
    base = open_half(layout.half(Half.OFFLINE))
    refuse_outdated(spec, job, base)
    realtime = open_half(layout.half(Half.REALTIME)) if Half.REALTIME in spec.halves else None
    targets = targets_of(spec, job, staged)
    stretch = covered_stretch(spec, job, staged)
    covered = covered_names(spec, stretch, base.files, {target.name for target in targets})
    replaced = (*replaced_names(targets, base.files), *covered)
    if not append:
        refuse_overlap(targets, base.files, going=covered)
    # Mode pinot shows each time from one half, so that rows may be pushed at any time.
    if realtime is not None and base.offline.boundary.mode is BoundaryMode.EXACT:
        kept_apart = [target for target in targets if target.name in replaced or not append]
        refuse_unmoved(bench, spec, base, realtime, kept_apart)
    if job.segment_name_type == "fixed" and not append:
        refuse_times_outside_name(spec, targets[0].name, staged)
    before = newest_rows(bench, base).where(quoted(columns.SEGMENT).isin(list(replaced)))
    number = base.offline.act.number + 1
    fresh = _new_rows(bench, spec, staged, targets, number)
    markers = stage_markers(bench, spec, before, fresh(0), folder) if replaced else None

    def rows(timestamp: int) -> DataFrame:
        return fresh(timestamp) if markers is None else fresh(timestamp).unionByName(markers)

    marked = {row[0] for row in markers.select(columns.SEGMENT).distinct().collect()} if markers is not None else set()
    to = tuple(target.name for target in targets if target.rows or target.name in marked)
    kept = tuple(name for name in covered if name in marked)
    return JobPlan(base, replaced, (*to, *kept), difference(spec, before, rows(0)), rows, stretch is not None)


def refuse_outdated(spec: TableSpec, job: JobSpec, base: HalfSnapshot) -> None:
    """ConflictError when the half has changed since the job's rows were read from it: the change would be undone."""
    read = job.statement.offline_version if job.statement is not None else None
    if read is not None and read != base.version:
        raise ConflictError(
            f"OFFLINE of '{spec.name}' has changed since the statement was answered: version {read} was read, and "
            f"{base.version} is the newest. Nothing was changed.",
            hint="Run the job again.",
        )


def _new_rows(
    bench: Workbench, spec: TableSpec, staged: Staged, targets: Sequence[Target], act_number: int
) -> Callable[[int], DataFrame]:
    """The staged rows under their segments' names, as if all had arrived at a given timestamp in one partition."""
    from pyspark.sql import functions as F

    named = under_names(bench, staged, targets)
    constants = {
        columns.CONNECTOR: F.lit(REPLACEMENT_CONNECTOR),
        columns.TOPIC: F.lit(replacement_topic(act_number)),
        columns.EPOCH: F.lit(0),
        columns.PARTITION: F.lit(0),
    }
    wanted = [quoted(name) for name, _ in physical_columns(spec, Half.OFFLINE)]

    def at(timestamp: int) -> DataFrame:
        arrived = F.lit(timestamp).cast("bigint")
        return named.withColumns({**constants, columns.TIMESTAMP: arrived}).select(*wanted)

    return at


def under_names(bench: Workbench, staged: Staged, targets: Sequence[Target]) -> DataFrame:
    """The staged rows with the names of their segments."""
    from pyspark.sql import functions as F

    if len(targets) == 1:
        return staged.frame.withColumn(columns.SEGMENT, F.lit(targets[0].name))
    pairs = [(number, target.name) for target in targets for number in target.files]
    names = bench.spark.createDataFrame(pairs, f"{FILE} int, {columns.SEGMENT} string")
    return staged.frame.join(F.broadcast(names), FILE)


def stage_markers(
    bench: Workbench, spec: TableSpec, before: DataFrame, after: DataFrame, folder: Path
) -> DataFrame | None:
    """Staged delete markers for the winners that `after` in place of `before` removes; None on other tables."""
    if not spec.upsert:
        return None
    wanted = [quoted(name) for name, _ in physical_columns(spec, Half.OFFLINE)]
    path = str(folder / new_act_id("markers"))
    removed_winners(spec, before.select(*wanted), after).write.parquet(path)
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in physical_columns(spec, Half.OFFLINE))
    return bench.spark.read.schema(ddl).parquet(path)


def refuse_unmoved(
    bench: Workbench, spec: TableSpec, base: HalfSnapshot, realtime: HalfSnapshot, targets: Sequence[Target]
) -> None:
    """ConflictError when rows reach T or beyond where REALTIME still shows rows: those would stand beside them."""
    boundary_ms = base.offline.boundary.time_ms
    for target in targets:
        if target.low is None or target.high is None:
            continue
        low = target.low if boundary_ms is None else max(target.low, boundary_ms)
        if low > target.high or not _may_hold(spec, realtime, low, target.high):
            continue
        rows = unmoved_rows(bench, spec, realtime, base)
        count = rows.where(quoted(columns.TIME).between(low, target.high)).count()
        if count:
            first, last = time_value(spec, low), time_value(spec, target.high)
            raise ConflictError(
                f"The rows for segment '{target.name}' reach {last}, past the boundary, and the REALTIME half still "
                f"shows {count} row{'s' * (count != 1)} with times from {first} to {last}, which would stand beside "
                "them. Nothing was changed.",
                hint=f"Move them first: hybrid move {spec.name}",
            )


def _may_hold(spec: TableSpec, realtime: HalfSnapshot, low: int, high: int) -> bool:
    """Whether the files' statistics allow a good row with a time in [low, high]."""
    others = columns.bookkeeping(spec.name)
    for file in realtime.files:
        first, last = file.low.get(columns.TIME), file.high.get(columns.TIME)
        known = isinstance(first, int) and isinstance(last, int)
        if file.segment not in others and (not known or (first <= high and low <= last)):  # type: ignore[operator]
            return True
    return False
