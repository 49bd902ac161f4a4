"""Runs a plan: one commit for each of its units, or one for all, each with its lineage entry.

What is done is read from the OFFLINE half's log alone, so the next run continues after a crash:
  before a commit                 the unit is not done; the next run does it. Rejected rows that it brings are claimed
  in a commit                     it is done, or not done
  after it, before the report     its entry names plan and buckets: it is not done again
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import OvertakenError
from hybrid.lake import plans
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.file_frames import FrameFile, file_rows
from hybrid.lake.layout import physical_columns, physical_ddl, quoted, segment_order
from hybrid.lake.log import HalfSnapshot, segments_in_lineage
from hybrid.lake.plans import DesiredState
from hybrid.lake.table_context import TableContext
from hybrid.progress import counted
from hybrid.replace.backfill.claims import claim
from hybrid.replace.backfill.conflict_monitor import KIND, ConflictMonitor
from hybrid.replace.backfill.options import BackfillOptions
from hybrid.replace.lineage import lineage_of
from hybrid.replace.report import numbers
from hybrid.replace.swap import Ready, arrival_timestamp, commit_under_lock
from hybrid.runtime.json_values import utc
from hybrid.runtime.sentence_repr import shown_as_sentence
from hybrid.table import columns
from hybrid.table.names import another_name
from hybrid.table.plans import Plan, PlannedBucket, Unit, span, total
from hybrid.table.upsert_order import REPLACEMENT_CONNECTOR, replacement_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Smaller units are written as one file, larger ones by as many tasks as their staged files give.
_ONE_FILE_BYTES = 64 * 1024 * 1024


@shown_as_sentence
@dataclass(frozen=True)
class RunReport:
    """The result of a run: buckets corrected by this run, buckets done so far, and why it stopped."""

    id: str
    table: str
    buckets_now: int
    buckets_done: int
    buckets_total: int
    rows_written: int
    acts: tuple[str, ...]
    stopped: DesiredState | None
    sentence: str

    @property
    def committed(self) -> bool:
        """Whether anything was changed."""
        return bool(self.acts)

    @property
    def did_something(self) -> bool:
        """Whether anything was changed."""
        return self.committed


def run_plan(table: TableContext, plan: Plan, options: BackfillOptions) -> RunReport:
    """Swaps in the remaining units of a plan. ConflictError when what it was planned on has changed.

    Units that were committed before stay. Rejected rows that the plan brings are claimed before the first commit, so
    that nothing else brings them. The caller holds the plan's `runner`.
    """
    run = _Run(table, plan, options)
    claim(table, plan, run.left)
    return run.all_at_once() if options.atomic else run.one_by_one()


class _Run:
    def __init__(self, table: TableContext, plan: Plan, options: BackfillOptions) -> None:
        self._table, self._plan, self._options = table, plan, options
        self._started, self._written, self._acts, self._now = time.monotonic(), 0, list[str](), 0
        self._watch = ConflictMonitor(table.layout.half(Half.OFFLINE), plan)
        half = table.half(Half.OFFLINE)
        self._watch.look(half)
        if self.left:
            self._watch.refuse_changed(self.left, half)

    @property
    def left(self) -> list[Unit]:
        """The remaining units, in the order in which they are committed."""
        remaining = self._watch.left()
        return remaining[::-1] if self._options.newest_first else remaining

    def all_at_once(self) -> RunReport:
        while self.left:  # again when the JVM of a killed run has committed one of them
            self._commit(self.left)
        return self._report(None)

    def one_by_one(self) -> RunReport:
        while self.left:
            wish = plans.desired_state_of(self._table.layout, self._plan.id).wish
            if wish in {DesiredState.PAUSE, DesiredState.CANCEL}:
                return self._report(wish)
            unit = self.left[0]
            self._commit([unit])
            self._table.bench.progress.step("correcting buckets", self._count_done(), self._count_all())
            if self.left:
                self._keep_pace()
        return self._report(None)

    def _commit(self, units: Sequence[Unit]) -> None:
        act_id, started = new_act_id(KIND), time.monotonic()
        counts = total(bucket.counts for bucket in self._buckets(units))
        what = _span_words(self._buckets(units))

        def ready(current: HalfSnapshot) -> Ready:
            # Checked under the lock, because the JVM of a killed run may have completed its commit.
            self._watch.look(current)
            if not self._are_left(units):
                raise OvertakenError(f"Backfill '{self._plan.id}' was run elsewhere.")
            self._watch.refuse_changed(units, current)
            names = _free_names(units, current)
            old = tuple(name for unit in units for name in unit.replaced)
            new = tuple(names.get(segment.name, segment.name) for unit in units for segment in unit.written)
            lineage = lineage_of(
                current,
                (old, new),
                counts,
                f"Corrected {what}: {numbers(counts)}.",
                reason=self._options.reason or self._plan.reason,
                user=self._options.user,
                source=self._plan.id,
                inputs=self._plan.inputs,
                backfill=self._plan.id,
                buckets=tuple(span(bucket) for bucket in self._buckets(units)),
                change=self._plan.change,
                expectations=self._plan.checks,
                seconds=round(time.monotonic() - started, 3),
            )
            return Ready(lineage, self._frame(units, names, current))

        try:
            commit_under_lock(self._table, act_id, "backfill", ready)
        except OvertakenError:
            if self._are_left(units):
                raise
            return
        self._watch.look(self._table.half(Half.OFFLINE))
        self._acts.append(act_id)
        self._written += sum(segment.rows for unit in units for segment in unit.written)
        self._now += len(self._buckets(units))

    def _frame(self, units: Sequence[Unit], names: dict[str, str], current: HalfSnapshot) -> DataFrame:
        """The staged rows of some units. Rows that arrive now arrive after everything that is committed."""
        from pyspark.sql import functions as F

        stored, ddl = physical_columns(self._table.spec, Half.OFFLINE), physical_ddl(self._table.spec, Half.OFFLINE)
        files = plans.staged_files(self._table.layout, self._plan, units)
        if not files:
            return self._table.bench.session.createDataFrame([], ddl)
        folder = plans.rows_folder(self._table.layout, self._plan.id)
        staged = [FrameFile(file.path, file.segment) for file in files]
        frame = file_rows(self._table.bench, ddl, staged, folder)
        if not any(written.is_new for unit in units for written in unit.written):
            return self._laid_out(frame.select(*(quoted(name) for name, _ in stored)), units)
        fresh = (F.col(columns.CONNECTOR) == REPLACEMENT_CONNECTOR) & (F.col(columns.TOPIC) == self._plan.fresh_topic)
        arrived = {
            columns.TOPIC: F.lit(replacement_topic(current.offline.act.number + 1)),
            columns.TIMESTAMP: F.lit(arrival_timestamp(self._table)).cast("bigint"),
        }
        changed = {name: F.when(fresh, value).otherwise(F.col(name)) for name, value in arrived.items()}
        for old, name in names.items():
            segment = changed.get(columns.SEGMENT, F.col(columns.SEGMENT))
            changed[columns.SEGMENT] = F.when(F.col(columns.SEGMENT) == old, F.lit(name)).otherwise(segment)
        frame = frame.withColumns(changed).select(*(quoted(name) for name, _ in stored))
        return self._laid_out(frame, units)

    def _laid_out(self, frame: DataFrame, units: Sequence[Unit]) -> DataFrame:
        """Staged files are sorted already and only copied, except small segments, which share a task."""
        written = [segment for unit in units for segment in unit.written]
        tasks = self._options.max_parallel
        if sum(segment.bytes for segment in written) < _ONE_FILE_BYTES:
            tasks = 1
        if tasks is not None:
            frame = frame.coalesce(tasks)
        if len(written) == 1 and len(written[0].files) == 1:
            return frame
        return frame.sortWithinPartitions(*segment_order(self._table.spec))

    def _keep_pace(self) -> None:
        rate = self._options.rows_per_second
        if rate is None:
            return
        ahead_s = self._written / rate - (time.monotonic() - self._started)
        until = time.monotonic() + ahead_s
        while (
            time.monotonic() < until
            and plans.desired_state_of(self._table.layout, self._plan.id).wish is DesiredState.RUN
        ):
            time.sleep(min(0.2, max(0.0, until - time.monotonic())))

    def _buckets(self, units: Iterable[Unit]) -> list[PlannedBucket]:
        return [bucket for unit in units for bucket in self._plan.buckets_of(unit)]

    def _count_done(self) -> int:
        return self._count_all() - sum(len(unit.buckets) for unit in self._watch.left())

    def _are_left(self, units: Sequence[Unit]) -> bool:
        remaining = {unit.number for unit in self._watch.left()}
        return all(unit.number in remaining for unit in units)

    def _count_all(self) -> int:
        return sum(len(unit.buckets) for unit in self._plan.units)

    def _report(self, stopped: DesiredState | None) -> RunReport:
        done, all_ = self._count_done(), self._count_all()
        sentence = _sentence(self._plan, self._now, done, all_, stopped)
        return RunReport(
            self._plan.id, self._plan.table, self._now, done, all_, self._written, tuple(self._acts), stopped, sentence
        )


def _sentence(plan: Plan, now: int, done: int, all_: int, stopped: DesiredState | None) -> str:
    if not all_:
        return f"Nothing to do: {plan.sentence}"
    if stopped is not None:
        word = "Paused" if stopped is DesiredState.PAUSE else "Cancelled"
        return f"{word} after {done} of {counted(all_, 'bucket')} of '{plan.table}'."
    if not now:
        return f"Nothing to do: all of the {counted(all_, 'bucket')} that '{plan.id}' corrects are done."
    went_on = f" ({all_ - now} of them before this run)" if now < all_ else ""
    return corrected_sentence(plan, [bucket for bucket in plan.buckets if bucket.unit is not None], went_on)


def corrected_sentence(plan: Plan, done: Sequence[PlannedBucket], went_on: str = "") -> str:
    """What all runs of a plan have corrected so far."""
    all_ = sum(bucket.unit is not None for bucket in plan.buckets)
    share = counted(all_, "bucket") if len(done) == all_ else f"{len(done)} of {counted(all_, 'bucket')}"
    return f"Corrected {share} of '{plan.table}'{went_on}: {numbers(total(bucket.counts for bucket in done))}."


def _span_words(buckets: Sequence[PlannedBucket]) -> str:
    first, last = buckets[0], buckets[-1]
    if first.start is None or last.end is None:
        return "the table"
    start, end = (
        min(bucket.start for bucket in buckets if bucket.start is not None),
        max(bucket.end or 0 for bucket in buckets),
    )
    return f"{counted(len(buckets), 'bucket')} [{utc(start)}, {utc(end)})"


def _free_names(units: Sequence[Unit], current: HalfSnapshot) -> dict[str, str]:
    """Other names for new segments whose planned names are in use by now."""
    new = [segment for unit in units for segment in unit.written if segment.is_new]
    existing = {file.segment for file in current.files}
    if not any(segment.name in existing for segment in new):
        return {}
    taken = existing | segments_in_lineage(current) | {segment.name for segment in new}
    names = {}
    for segment in new:
        if segment.name in existing:
            names[segment.name] = another_name(segment.name, taken)
            taken.add(names[segment.name])
    return names
