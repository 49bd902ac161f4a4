"""Ends an open replacement: the pushed segments replace the old ones in one commit.

After a crash, either the replacement is still open, or its commit, which has its id, exists. Ending it again then does
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.expectations import ExpectationKind
from hybrid.config.table_config import BoundaryMode, Half
from hybrid.errors import ConflictError, UsageError
from hybrid.lake import pushes
from hybrid.lake.file_frames import FrameFile, file_rows
from hybrid.lake.half_frames import rows_in
from hybrid.lake.layout import ddl_of, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.pushes import OpenReplacement, Push, PushedSegment, PushState
from hybrid.lake.table_context import TableContext
from hybrid.replace.check_result import CheckResult, change_result, refuse_failed
from hybrid.replace.diff import Difference, difference
from hybrid.replace.inherited_arrival import in_taken_places
from hybrid.replace.lineage import EntryState, entries_of, lineage_of
from hybrid.replace.net_delete_guard import refuse_reviving, refuse_swallowing
from hybrid.replace.opening import closed
from hybrid.replace.plan import refuse_unmoved, stage_markers, warn_unseen
from hybrid.replace.pushing import user_columns
from hybrid.replace.report import JobReport, report_of, sentence_of_job, shown
from hybrid.replace.swap import NOT_YET, Arrival, Swap, commit_swap
from hybrid.replace.targets import Target
from hybrid.runtime.json_values import capitalized
from hybrid.table import columns
from hybrid.table.lineage import Lineage
from hybrid.table.upsert_order import REPLACEMENT_CONNECTOR, replacement_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_Pushed = tuple[Push, PushedSegment]


def end_replacement(
    table: TableContext,
    entry: OpenReplacement,
    *,
    segments_to: Sequence[str] = (),
    user: str | None = None,
) -> JobReport:
    """Replaces the old segments by the pushed ones; `segments_to` restricts this to some of the awaited segments.

    Does nothing when it has ended already. ConflictError when a segment has not been pushed, when an old segment has
    changed since the start, or when the replacement was reverted. DataError when the table's expectations on the
    number of rows fail, or when pushed rows are missing. In all these cases nothing was changed.
    """
    with pushes.changing(table.layout, entry.id):
        state = pushes.state_of(table.layout, entry.id)
        if state is PushState.REVERTED:
            raise closed(entry, state)
        if state is PushState.COMPLETED:
            report = _nothing(entry, table.half(Half.OFFLINE))
        else:
            waiting = _waiting(table, entry, segments_to)
            with table.staging(entry.id) as folder:
                end = _End(table, entry, waiting, folder, user)
                report = table.until_not_overtaken(end.attempt)
        pushes.close(table.layout, entry.id, PushState.COMPLETED)
    return report


def _waiting(table: TableContext, entry: OpenReplacement, segments_to: Sequence[str]) -> tuple[_Pushed, ...]:
    """The pushed segments, in the order of segmentsTo."""
    unknown = [name for name in segments_to if name not in entry.segments_to]
    if unknown:
        raise UsageError(f"segmentsTo: {shown(unknown)} is not in segmentsTo of '{entry.id}', as it was started.")
    there = pushes.pushed(table.layout, entry.id)
    names = [name for name in entry.segments_to if name in segments_to or not segments_to]
    missing = [name for name in names if name not in there]
    if missing:
        raise ConflictError(
            f"{capitalized(shown(missing))} of segmentsTo has not been pushed to '{entry.id}' of '{table.name}'. "
            "Nothing was changed.",
            hint='Push it (POST /jobs), or end it with the segments that were: {"segmentsTo": [...]}',
        )
    stored = user_columns(table.spec)
    old = [name for name in names if there[name][0].columns != stored]
    if old:
        raise ConflictError(
            f"Table '{table.name}' has other columns than when {shown(old)} was pushed to '{entry.id}'. "
            "Nothing was changed.",
            hint="Push it again: POST /jobs",
        )
    return tuple(there[name] for name in names)


@dataclass(frozen=True)
class _End:
    table: TableContext
    entry: OpenReplacement
    waiting: tuple[_Pushed, ...]
    folder: Path
    user: str | None

    def attempt(self) -> JobReport:
        """Plans the swap on the newest version and commits it. OvertakenError when another commit came first."""
        bench, spec, old = self.table.bench, self.table.spec, tuple(self.entry.segments_from)
        base = self.table.half(Half.OFFLINE)
        if pushes.is_committed(base, self.entry.id):  # by the JVM of a killed process
            return _nothing(self.entry, base)
        self._refuse_changed(base)
        self._refuse_unmoved(base)
        bench.progress.say(f"Comparing what was pushed to '{self.entry.id}' with what '{spec.name}' holds.")
        before = rows_in(bench, base, old)

        def placed(arrival: Arrival) -> DataFrame:
            return in_taken_places(spec, before, self._rows(arrival)) if old else self._rows(arrival)

        fresh = placed(NOT_YET)
        realtime = self.table.half(Half.REALTIME) if Half.REALTIME in spec.halves else None
        warnings = warn_unseen(self.table, base, realtime, old, fresh)
        markers = stage_markers(bench, spec, before, fresh, self.folder) if old else None
        after = fresh if markers is None else fresh.unionByName(markers)
        refuse_reviving(self.table, base, old)
        refuse_swallowing(self.table, base, old, after)
        diff = difference(spec, before, after)
        results = self._checked(diff)
        names = (old, self._written(markers))
        sentence = sentence_of_job(*names, diff, dry_run=False)

        def rows(arrival: Arrival) -> DataFrame:
            return placed(arrival) if markers is None else placed(arrival).unionByName(markers)

        lineage = self._lineage(base, names, diff, sentence, results)
        bench.progress.say(f"Swapping in {shown(names[1] or names[0])} of '{spec.name}'.")
        swap = Swap(self.entry.id, "replace", base, lineage, rows, lambda current: not self._come(current))
        version = commit_swap(self.table, swap)
        details: dict[str, object] = {
            "act": self.entry.id,
            "version": version,
            "expectations": results,
            "warnings": warnings,
        }
        return report_of(spec.name, names, diff, sentence, **details)

    def _refuse_changed(self, base: HalfSnapshot) -> None:
        """ConflictError when segments of `base` have changed since the start.

        The result still holds under the lock: any later commit that conflicts makes the swap fail.
        """
        for name, files in self.entry.segments_from.items():
            now = base.files_of(name)
            if now != files:
                raise self._stale(f"segment '{name}' {'has been rewritten' if now else 'is gone'} since", base)
        come = self._come(base)
        if come:
            raise self._stale(f"{shown(come)} of segmentsTo has come into being otherwise", base)

    def _come(self, half: HalfSnapshot) -> list[str]:
        """Awaited segments that the half already holds."""
        existing = {file.segment for file in half.files}
        return [segment.name for _, segment in self.waiting if segment.name in existing]

    def _stale(self, why: str, base: HalfSnapshot) -> ConflictError:
        act = base.offline.act
        return ConflictError(
            f"Replacement '{self.entry.id}' of '{self.table.name}' was started at {self.entry.created_at}, and {why}; "
            f"the newest commit is '{act.id}' at {act.at}. Nothing was changed.",
            hint=f"Revert it and start again: POST /segments/{self.table.name}/revertReplaceSegments?forceRevert=true",
        )

    def _refuse_unmoved(self, base: HalfSnapshot) -> None:
        """As for jobs: new segments may have any times; replacing segments may not pass the boundary."""
        exact = base.offline.boundary.mode is BoundaryMode.EXACT
        if Half.REALTIME not in self.table.spec.halves or not exact or not self.entry.segments_from:
            return
        targets = [
            Target(segment.name, (), segment.rows + segment.deletes, segment.low, segment.high)
            for _, segment in self.waiting
        ]
        realtime = self.table.half(Half.REALTIME)
        refuse_unmoved(self.table, base, realtime, targets)

    def _rows(self, arrival: Arrival) -> DataFrame:
        """The pushed rows, all with the arrival of this commit. Of equal versions of a key the later push wins.

        On a dedup table the row of the earlier push is visible.
        """
        from pyspark.sql import functions as F

        frames = []
        for push in dict.fromkeys(push.number for push, segment in self.waiting if not segment.is_empty):
            arrived = {
                columns.CONNECTOR: F.lit(REPLACEMENT_CONNECTOR),
                columns.TOPIC: F.lit(replacement_topic(arrival.act_number)),
                columns.EPOCH: F.lit(0),
                columns.PARTITION: F.lit(push),
                columns.TIMESTAMP: F.lit(arrival.timestamp).cast("bigint"),
            }
            frames.append(self._pushed_rows(push).withColumns(arrived))
        stored = physical_columns(self.table.spec, Half.OFFLINE)
        if not frames:
            return self.table.bench.session.createDataFrame([], ddl_of(stored))
        whole = reduce(lambda rows, more: rows.unionByName(more), frames)
        return whole.select(*(quoted(name) for name, _ in stored))

    def _pushed_rows(self, number: int) -> DataFrame:
        own = (columns.SEGMENT, columns.OFFSET, columns.OP, columns.TIME)
        users = self.table.spec.schema.column_names
        kinds = physical_columns(self.table.spec, Half.OFFLINE)
        ddl = ddl_of((name, kind) for name, kind in kinds if name in own or name in users)
        mine = [(push, segment) for push, segment in self.waiting if push.number == number and not segment.is_empty]
        layout, bench = self.table.layout, self.table.bench
        files = []
        for push, segment in mine:
            paths = pushes.segment_files(layout, self.entry.id, push, segment)
            if bench.has_shared_files:  # Spark lists more than a few paths in a job of its own
                paths = [pushes.segment_folder(layout, self.entry.id, push, segment.name)]
            files += [FrameFile(str(path), segment.name) for path in paths]
        return file_rows(bench, ddl, files, pushes.rows_folder(layout, self.entry.id, mine[0][0]))

    def _written(self, markers: DataFrame | None) -> tuple[str, ...]:
        """The segments that hold rows afterwards. A replaced segment remains when it keeps delete markers."""
        come = [segment.name for _, segment in self.waiting if not segment.is_empty]
        marked = {row[0] for row in markers.select(columns.SEGMENT).distinct().collect()} if markers is not None else ()
        return (*come, *sorted(marked))

    def _checked(self, found: Difference) -> tuple[CheckResult, ...]:
        """Results of the expectations: those on rows from each push, those on the row count from now."""
        of_count = [
            expectation
            for expectation in self.table.spec.expectations
            if expectation.kind is ExpectationKind.ROW_COUNT_CHANGE
        ]
        now = [change_result(expectation, found.rows_before, found.rows_after) for expectation in of_count]
        refuse_failed(self.table.name, now)
        return (*(CheckResult.from_json(doc) for push in self._pushes for doc in push.checks), *now)

    @property
    def _pushes(self) -> list[Push]:
        of_number = {push.number: push for push, _ in self.waiting}
        return [of_number[number] for number in sorted(of_number)]

    def _lineage(
        self,
        base: HalfSnapshot,
        names: tuple[tuple[str, ...], tuple[str, ...]],
        found: Difference,
        sentence: str,
        results: Sequence[CheckResult],
    ) -> Lineage:
        return lineage_of(
            base,
            names,
            found,
            sentence,
            reason=self.entry.reason,
            user=self.user or self.entry.user,
            source=", ".join(dict.fromkeys(push.source for push in self._pushes)) or None,
            inputs=tuple(doc for push in self._pushes for doc in push.inputs),
            expectations=tuple(result.to_json() for result in results),
        )


def _nothing(entry: OpenReplacement, half: HalfSnapshot) -> JobReport:
    """The report for a replacement that has ended already, as clients ask again when they lost the response.

    The log may have been cleaned since. ConflictError when the replacement was reverted after its end.
    """
    done = next((other for other in entries_of(half) if other.id == entry.id), None)
    if done is not None and done.state is EntryState.REVERTED:
        raise closed(entry, PushState.REVERTED)
    detail = f" since {done.created_at}. {done.result}" if done is not None else "."
    names = (done.lineage.segments_from, done.lineage.segments_to) if done is not None else ((), ())
    sentence = f"Nothing to do: '{entry.id}' is COMPLETED{detail}"
    return report_of(entry.table, names, Difference(0, 0), sentence)
