"""Retention: drops the segments that are older than the retention time of their half. Decisions: docs/adr/0015.

The sequence, and what a crash in between leaves (the next run does the rest):
  read the logs: which segments are expired          nothing done; usually none is, and no JVM is started
  count rows that have not moved, stage markers      staged files, swept by the next operation
  take the OFFLINE lock; plan again on a conflict    nothing done
  one commit to OFFLINE: drop its segments, raise    done, or not done
  the floor above all dropped rows of both halves
  one commit to REALTIME, under its lock             done, or not done: the boundary hides the rest
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.retention_json import require_retention
from hybrid.config.table_config import BoundaryMode, Half
from hybrid.errors import ConflictError, OvertakenError
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.half_frames import no_rows, rows_in, stored_rows
from hybrid.lake.layout import in_files, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.log_entries import acts_between, foreign_between
from hybrid.lake.table_context import TableContext
from hybrid.lake.worker_files import WorkerFiles
from hybrid.move.retention.expiry import count_within_share, expiry_ms, segments_by_age
from hybrid.move.retention.markers import Markers, deciding, stage_markers
from hybrid.move.retention.plan import below_all_others, covered_by_itself, floor_of_offline, never_shown
from hybrid.move.retention.report import Dropped, KeptSegments, RetentionFindings, RetentionReport
from hybrid.move.segments import Aged, by_age, last_of
from hybrid.progress import counted
from hybrid.runtime.json_values import utc
from hybrid.table import columns
from hybrid.table.boundary import Boundary
from hybrid.table.coverage_sql import covered_sql, visible_realtime_sql
from hybrid.table.state import Act, HalfState, next_act

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KIND = "retention"
# Kinds that may commit to REALTIME between the plan and the commit: they only add rows.
_ADDING = frozenset({"flow", "ingest", "seal"})
Halves = Mapping[Half, HalfSnapshot]


def run_retention(table: TableContext, *, dry_run: bool = False, share_max: float | None = None) -> RetentionReport:
    """Drop the expired segments of each half that has a retention time.

    With `share_max`, drop only the oldest segments with at most this share of a half's rows, and at least one. The rest
    is left to the next run.

    Raises SpecError when the table has no retention, ConflictError when other operations kept committing first. Commits
    made before the error stay.
    """
    require_retention(table.spec)
    run = _Run(table, table.bench.now_ms(), dry_run, share_max)
    return table.until_not_overtaken(run.attempt)


@dataclass(frozen=True)
class _Plan:
    """What is dropped from a half. `expired` are the segments whose rows all expire, `going` those that are replaced.

    They differ by segments of nothing but delete markers that have to stay. `strict`: the plan depends on other rows
    too.
    """

    half: Half
    base: HalfSnapshot
    before_ms: int
    expired: Sequence[Aged] = ()
    going: Sequence[Aged] = ()
    markers: Markers | None = None
    strict: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The segments that the commit replaces."""
        return tuple(segment.name for segment in self.going)

    def dropped(self, version: int | None) -> Dropped:
        """What the commit dropped, or would drop."""
        marker_counts = self.markers.counts if self.markers is not None else {}
        markers = sum(marker_counts.get(name, 0) for name in self.names)
        rows = sum(segment.rows for segment in self.going) - markers
        size = sum(segment.bytes for segment in self.going)
        return Dropped(self.half, self.names, rows, size, markers, self.before_ms, version)


class _Run:
    """One run. It reads the clock once, and reports commits that it made before a conflict."""

    def __init__(self, table: TableContext, now_ms: int, dry_run: bool, share_max: float | None) -> None:
        self._table, self._now_ms, self._dry_run, self._share_max = table, now_ms, dry_run, share_max
        self._told = RetentionFindings()

    def attempt(self) -> RetentionReport:
        findings = self._told
        findings.kept.clear()
        findings.nothing.clear()
        halves = {half: self._table.half(half) for half in Half if half in self._table.spec.halves}
        with self._table.staging(new_act_id(KIND)) as folder:
            plans = self._plans(halves, folder)
            if self._dry_run:
                findings.dropped += [plan.dropped(None) for plan in plans.values() if plan.going]
            else:
                if Half.OFFLINE in halves:
                    self._commit_offline(halves[Half.OFFLINE], plans)
                if Half.REALTIME in plans and plans[Half.REALTIME].going:
                    self._realtime(plans[Half.REALTIME])
        if self._has_boundary:
            findings.floor_ms = self._table.half(Half.OFFLINE).offline.boundary.floor_ms
        return findings.report(self._table.name, dry_run=self._dry_run)

    @property
    def _has_boundary(self) -> bool:
        return len(self._table.spec.halves) == len(Half)

    # Plans

    def _plans(self, halves: Halves, folder: Path) -> dict[Half, _Plan]:
        """The plans by half. REALTIME of two halves first, because rows dropped there need no marker."""
        plans: dict[Half, _Plan] = {}
        retention = self._table.spec.retention
        if Half.REALTIME in retention and self._has_boundary:
            plans[Half.REALTIME] = self._covered_plan(halves)
        shown = Half.OFFLINE if self._has_boundary else next(iter(self._table.spec.halves))
        if shown in retention:
            plans[shown] = self._shown_plan(shown, halves, plans.get(Half.REALTIME), folder / shown)
        return plans

    def _covered_plan(self, halves: Halves) -> _Plan:
        """The plan for REALTIME beside OFFLINE: expired segments that are covered completely."""
        base, offline = halves[Half.REALTIME], halves[Half.OFFLINE]
        plan, _ = self._expired(Half.REALTIME, base)
        if not plan.expired:
            return plan
        boundary, lag_ms = offline.offline.boundary, self._table.spec.boundary_lag_ms
        covered = covered_by_itself(boundary, offline.last_ms, lag_ms, by_pushes=self._table.spec.is_pushed)
        self._say(f"Counting what has not moved of {counted(len(plan.expired), 'expired segment')}")
        rows = self._rows(Half.REALTIME, plan.expired).where(visible_realtime_sql(covered))
        unmoved = {row[0]: int(row[1]) for row in rows.groupBy(columns.SEGMENT).count().collect()}
        unmoved_names = [segment.name for segment in plan.expired if segment.name in unmoved]
        self._keep(
            Half.REALTIME, unmoved_names, f"{counted(sum(unmoved.values()), 'row')} of theirs have not moved yet"
        )
        droppable = [segment for segment in plan.expired if segment.name not in unmoved]
        return replace(plan, expired=droppable, going=droppable, strict=self._is_pinots(offline))

    def _shown_plan(self, half: Half, halves: Halves, covered: _Plan | None, folder: Path) -> _Plan:
        """The plan for a half whose rows are visible: what is expired, and the markers that stay in its place."""
        plan, staying = self._expired(half, halves[half])
        deletes = halves[Half.REALTIME].realtime.deletes if self._table.spec.nets_deletes else 0
        if self._table.spec.nets_deletes and Half.OFFLINE in halves:
            deletes += halves[Half.OFFLINE].offline.deletes
        if plan.expired and deletes:
            plan = self._netted(plan, staying, halves)
        plan = replace(plan, going=plan.expired, strict=plan.strict or self._is_pinots(halves.get(Half.OFFLINE)))
        if not plan.expired or self._table.spec.upsert is None:
            return plan
        self._say(
            f"Looking for older versions of {counted(sum(segment.rows for segment in plan.expired), 'expired row')}"
        )
        others = self._rows(half).where(~_among(plan.expired)).select(*deciding(self._table.spec))
        if half is Half.OFFLINE and self._has_boundary:
            others = self._beside(halves[half], plan, covered, others)
        markers = stage_markers(self._table.bench, self._table.spec, self._rows(half, plan.expired), others, folder)
        whole = [segment.name for segment in plan.expired if segment.name in markers.whole]
        count = sum(markers.counts[name] for name in whole)
        self._keep(half, whole, f"{counted(count, 'delete marker')} that older versions of their keys need")
        going = [segment for segment in plan.expired if segment.name not in markers.whole]
        return replace(plan, going=going, markers=markers, strict=True)

    def _expired(self, half: Half, base: HalfSnapshot) -> tuple[_Plan, list[Aged]]:
        """The segments that are expired by age and may be dropped, and all other segments of the half."""
        before_ms = expiry_ms(half, base, self._now_ms, self._table.spec.retention[half])
        segments = segments_by_age(self._table.name, half, base)
        consuming = base.realtime.consuming_names() if half is Half.REALTIME else frozenset[str]()
        old = [segment for segment in segments if segment.ends_before(before_ms)]
        self._keep(half, [segment.name for segment in old if segment.name in consuming], "not sealed yet")
        expired = self._within_share(half, [segment for segment in old if segment.name not in consuming], segments)
        self._keep(
            half, [segment.name for segment in segments if segment.high is None], "their files do not tell their times"
        )
        if not old:
            first = next((segment.high for segment in segments if segment.high is not None), None)
            oldest = f"the oldest ends at {utc(first)}" if first is not None else "it holds no rows"
            self._told.nothing[half] = f"no segment of {half} ends before {utc(before_ms)}, {oldest}"
        gone = {segment.name for segment in expired}
        return _Plan(half, base, before_ms, expired), [segment for segment in segments if segment.name not in gone]

    def _within_share(self, half: Half, expired: list[Aged], segments: Sequence[Aged]) -> list[Aged]:
        """The oldest of the expired segments, as many as one run may drop."""
        if self._share_max is None:
            return expired
        count = count_within_share(expired, sum(segment.rows for segment in segments), self._share_max)
        why = f"left to the next run, which drops at most {self._share_max:.0%} of a half's rows (retention_share_max)"
        self._keep(half, [segment.name for segment in expired[count:]], why)
        return expired[:count]

    def _netted(self, plan: _Plan, staying: Sequence[Aged], halves: Halves) -> _Plan:
        """The plan without segments whose times reach rows that stay: a delete removes an equal row of any segment."""
        from pyspark.sql import functions as F

        beside: int | None = None
        if plan.half is Half.OFFLINE:
            boundary = halves[Half.OFFLINE].offline.boundary
            unmoved = self._rows(Half.REALTIME).where(f"NOT {covered_sql(boundary)}")
            beside = unmoved.agg(F.min(columns.TIME)).collect()[0][0]
        droppable = below_all_others(plan.expired, staying, beside)
        names = {segment.name for segment in droppable}
        excluded = [segment.name for segment in plan.expired if segment.name not in names]
        self._keep(plan.half, excluded, "rows of their times stay elsewhere, and deletes take equal ones away")
        return replace(plan, expired=droppable, strict=True)

    def _beside(self, offline: HalfSnapshot, plan: _Plan, covered: _Plan | None, others: DataFrame) -> DataFrame:
        """The remaining rows of both halves, without realtime rows that no boundary shows again."""
        after = never_shown(self._floored(offline, plan, covered))
        rows = self._rows(Half.REALTIME).where(visible_realtime_sql(after))
        if covered is not None and covered.going:
            rows = rows.where(~_among(covered.going))
        return others.unionByName(rows.select(*deciding(self._table.spec)))

    def _floored(self, offline: HalfSnapshot, shown: _Plan | None, covered: _Plan | None) -> Boundary:
        """The boundary of an OFFLINE version with the floor that the plans need."""
        boundary = offline.offline.boundary
        dropped_ms = last_of(shown.going) if shown is not None else None
        if dropped_ms is not None:
            floor = floor_of_offline(boundary, offline.last_ms, self._table.spec.boundary_lag_ms, dropped_ms)
            boundary = boundary if floor is None else boundary.with_floor(floor)
        floor_ms = _floor_of(covered) if covered is not None else None
        return boundary if floor_ms is None else boundary.with_floor(floor_ms)

    # Commits

    def _commit_offline(self, base: HalfSnapshot, plans: Mapping[Half, _Plan]) -> None:
        """Commit the dropped segments of OFFLINE and the floor; nothing when neither changes."""
        plan = plans.get(Half.OFFLINE)
        names = plan.names if plan is not None else ()
        strict = any(segment_plan.strict for segment_plan in plans.values())
        if not names and self._is_floored(base, plans):
            return
        with self._table.lock(Half.OFFLINE):
            current = open_half(base.path)
            self._refuse_changed(base, current, plan.going if plan is not None else (), strict=strict)
            floored = not self._is_floored(current, plans)
            if not names and not floored:
                return
            boundary = self._with_floor(current, plans)
            detail = {**_detail(plan if names else None), "floor_ms": boundary.floor_ms}
            state = replace(current.offline, act=self._act(current.state, detail), boundary=boundary)
            frame = self._frame(Half.OFFLINE, plan.markers if plan is not None and names else None, names)
            version = commit_act(
                frame, WorkerFiles.of(self._table.bench, current.path), state, planned=current.version, replacing=names
            )
        if plan is not None and names:
            self._told.dropped.append(plan.dropped(version))
        self._told.floor_version = version

    def _with_floor(self, offline: HalfSnapshot, plans: Mapping[Half, _Plan]) -> Boundary:
        if not self._has_boundary:
            return offline.offline.boundary
        return self._floored(offline, plans.get(Half.OFFLINE), plans.get(Half.REALTIME))

    def _is_floored(self, offline: HalfSnapshot, plans: Mapping[Half, _Plan]) -> bool:
        return self._with_floor(offline, plans) == offline.offline.boundary

    def _realtime(self, plan: _Plan) -> None:
        """Commit to REALTIME. When it stays busy, what OFFLINE dropped stays dropped and is reported."""
        try:
            self._commit_realtime(plan)
        except OvertakenError:
            raise
        except ConflictError as error:
            if not self._told.dropped:
                raise
            self._keep(Half.REALTIME, plan.names, f"left to the next run: {error}")

    def _commit_realtime(self, plan: _Plan) -> None:
        with self._table.lock(Half.REALTIME):
            current = open_half(plan.base.path)
            self._refuse_changed(plan.base, current, plan.going, strict=plan.strict and not self._has_boundary)
            # So that nobody combines this version with an OFFLINE version that does not answer for the dropped rows.
            offline = self._table.layout.half(Half.OFFLINE)
            beside = {"offline_version": open_half(offline).version} if self._has_boundary else {}
            state = replace(current.realtime, act=self._act(current.state, {**_detail(plan), **beside}))
            frame = self._frame(Half.REALTIME, plan.markers, plan.names)
            version = commit_act(
                frame,
                WorkerFiles.of(self._table.bench, current.path),
                state,
                planned=current.version,
                replacing=plan.names,
            )
        self._told.dropped.append(plan.dropped(version))

    def _act(self, state: HalfState, detail: Mapping[str, object]) -> Act:
        return next_act(state, new_act_id(KIND), "retention", self._table.bench.now_iso(), detail)

    def _frame(self, half: Half, markers: Markers | None, names: Iterable[str]) -> DataFrame:
        """The markers in the segments `names`, each segment in one sorted file."""
        if markers is None or not any(markers.counts.get(name) for name in names):
            return no_rows(self._table.bench, self._table.half(half))
        rows = markers.frame.where(quoted(columns.SEGMENT).isin(list(names)))
        return in_files(self._table.spec, rows)

    def _refuse_changed(
        self, base: HalfSnapshot, current: HalfSnapshot, going: Iterable[Aged], *, strict: bool
    ) -> None:
        """OvertakenError when the half has changed since planning in a way that affects the plan."""
        files = {segment.name: segment.files for segment in by_age(current.files)}
        same = current.table_id == base.table_id and all(files.get(segment.name) == segment.files for segment in going)
        if same and strict:
            acts = acts_between(base.path, base.version, current.version)
            foreign = acts is None or foreign_between(base.path, base.version, current.version)
            adding = _ADDING if base.path.name == Half.REALTIME else frozenset[str]()
            same = not foreign and all(act.kind in adding for act in acts or ())
        if not same:
            raise OvertakenError(f"Another operation committed to {base.path.name} of '{self._table.name}' first.")

    # Helpers

    def _is_pinots(self, offline: HalfSnapshot | None) -> bool:
        """Whether the limit depends on rows that other operations may remove."""
        return offline is not None and offline.offline.boundary.mode is BoundaryMode.PINOT

    def _rows(self, half: Half, segments: Iterable[Aged] | None = None) -> DataFrame:
        """The table's rows in the newest version of a half (of some segments).

        The commits check that it holds what the plan saw.
        """
        bench, newest = self._table.bench, self._table.half(half)
        names = None if segments is None else [segment.name for segment in segments]
        rows = stored_rows(bench, newest) if names is None else rows_in(bench, newest, names)
        return rows.where(columns.rows_sql(self._table.name)) if half is Half.REALTIME else rows

    def _keep(self, half: Half, names: Sequence[str], why: str) -> None:
        if names:
            self._told.kept.append(KeptSegments(half, tuple(names), why))

    def _say(self, what: str) -> None:
        self._table.bench.progress.say(f"{what} in '{self._table.name}'.")


def _among(segments: Iterable[Aged]) -> Column:
    return quoted(columns.SEGMENT).isin([segment.name for segment in segments])


def _floor_of(covered: _Plan) -> int | None:
    """The floor that REALTIME's drop needs: right behind the last dropped time."""
    last_ms = last_of(covered.going)
    return None if last_ms is None else last_ms + 1


def _detail(plan: _Plan | None) -> dict[str, object]:
    """The commit's detail about the dropped segments."""
    if plan is None:
        return {"segments": (), "rows": 0, "markers": 0}
    dropped = plan.dropped(None)
    return {
        "segments": dropped.segments,
        "rows": dropped.rows,
        "markers": dropped.markers,
        "before_ms": dropped.before_ms,
    }
