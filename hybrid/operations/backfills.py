"""Backfills: plan, show, run, pause, cancel, revert.

A plan follows two other operations: it commits what Kafka holds, then moves the rows of the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import BoundaryMode, Half, TableSpec
from hybrid.errors import ConflictError, HybridError, NotFoundError, SpecError, UsageError
from hybrid.lake import plans
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.plans import DesiredState, DesiredStateRecord
from hybrid.lake.table_context import TableContext
from hybrid.operations.backfill_change import BackfillChange
from hybrid.operations.backfill_documents import plan_document
from hybrid.operations.backfill_status import CANCELLED, DONE, REVERTED, BackfillStatus, status_of
from hybrid.operations.ingestion import catch_up
from hybrid.progress import counted
from hybrid.replace.backfill.base import stored_times
from hybrid.replace.backfill.request import (
    ChangeKind,
    Request,
    refuse_deciding,
    require_correctable,
    whole_window,
    window_of,
)
from hybrid.replace.lineage import EntryState, ReplacementEntry, entries_of
from hybrid.replace.swap import require_offline
from hybrid.runtime.json_values import without_samples
from hybrid.runtime.sentence_repr import shown_as
from hybrid.schema.moment import parse_moment
from hybrid.sql.redaction import without_constants
from hybrid.table.plans import Plan

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.lake.refetched_rows import RefetchedRows
    from hybrid.replace.backfill.options import BackfillOptions
    from hybrid.replace.backfill.plan_run import RunReport
    from hybrid.replace.report import JobReport
    from hybrid.sql.redaction import Redaction
    from hybrid.table.correction_window import CorrectionWindow

_MOVES_MAX = 3


@shown_as("{0._home.folder}")
class Backfills:
    """The backfills of a home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def plan(
        self, table: str, change: BackfillChange, redaction: Redaction | None = None, erasure: str | None = None
    ) -> Plan:
        """Plans a correction and stages its rows; nothing of it is visible yet. See `hybrid.replace.backfill`.

        Without `start` or `end` it reaches as far as the table's rows do. What is recorded has no constant of
        `redaction`, and names the `erasure` that it belongs to. UsageError for a change that does not name exactly one
        correction. DataError for rows that cannot be computed or converted.
        """
        from hybrid.expression.parse import notes_of
        from hybrid.replace.backfill.planning import plan_backfill

        ref = self._home.table(table)
        require_offline(ref.spec)
        offline = ref.half(Half.OFFLINE).offline
        edges = _edges(ref.spec, change, self._home.bench.now_ms())
        is_whole = ref.spec.time_column is not None and None in edges
        given = None if is_whole else window_of(ref.spec, offline.boundary, *edges)
        request = self._request(ref.spec, change, given)
        require_correctable(ref.spec, offline, request.kind)
        recorded = _recorded(change.named(self._home.input_rules), redaction)

        def work() -> Plan:
            warnings = catch_up(self._home, ref)
            window = self._whole(ref, edges) if is_whole else given
            halves, late = self._move_first(ref, window)
            spec = self._home.spec(ref.name)  # read after the halves, so that it has every column of their rows
            notes = notes_of(change.update) if change.update is not None else ()
            blank = _blank(recorded, spec, halves, (*warnings, *late, *notes), erasure)
            held = self._held(spec, halves[1]) if change.from_kafka else request.held
            ready_request = replace(request, window=window, held=held)
            with self._with_rows(ref, change, ready_request, halves[0]) as (ready, inputs):
                plan = replace(blank, created_at=self._home.bench.now_iso(), inputs=inputs)
                return plan_backfill(TableContext(self._home.bench, spec, ref.layout), halves, ready, plan)

        return self._home.run_recorded(ref.name, "backfill-plan", work)

    def _whole(self, table: TableRef, edges: tuple[int | None, int | None]) -> CorrectionWindow | None:
        """The window of a request that leaves out an edge, as of the newest versions."""
        halves = _pinned(table)
        times = stored_times(self._home.bench, table.spec, halves)
        return whole_window(table.spec, halves[0].offline.boundary, *edges, times)

    def _held(self, spec: TableSpec, realtime: HalfSnapshot | None) -> RefetchedRows:
        """The messages that Kafka still holds of the offsets committed in this version."""
        from hybrid.ingest.refetch import held_rows

        assert realtime is not None, "a table with a stream has a REALTIME half"
        return held_rows(self._home.bench, spec, realtime.realtime)

    @contextmanager
    def _with_rows(
        self, table: TableRef, change: BackfillChange, request: Request, offline: HalfSnapshot
    ) -> Iterator[tuple[Request, tuple[Mapping[str, object], ...]]]:
        """The request with the rows of its statement, if it has one, and the inputs that lineage records.

        The statement sees committed rows only. ConflictError when rows of the window are not moved yet: a corrected
        copy would be added beside such a row.
        """
        from hybrid.operations.job_input import answered
        from hybrid.query.tail import NoTail
        from hybrid.replace.backfill.base import unmoved
        from hybrid.replace.backfill.inputs import inspect_input

        if change.sql is None:
            yield request, tuple(file.to_json() for file in request.files)
            return
        with answered(self._home, table.name, change.sql, NoTail()) as (path, statement):
            reads_table = statement.offline_version is not None
            moves = reads_table and table.spec.move is not None
            late = moves and unmoved(self._home.bench, table.spec, _pinned(table), request.window)
            if late or (reads_table and statement.offline_version != offline.version):
                raise ConflictError(
                    f"Rows of '{table.name}' were committed or moved while the statement was answered. "
                    "Nothing was changed.",
                    hint="Plan it again.",
                )
            files, csv_format = inspect_input(table.spec, path)
            input_record = {"statement": statement.sql, "revision": statement.revision}
            yield replace(request, files=files, csv_format=csv_format), (input_record,)

    def run(self, plan_id: str, options: BackfillOptions, document: Mapping[str, Any] | None = None) -> RunReport:
        """Swaps in the remaining buckets of a plan. ConflictError (exit 4) when what it was planned on has changed.

        `document` is the plan as its author reviewed it; ConflictError when it differs from the stored plan.
        """
        table, plan = self._find(plan_id)
        # Samples are left out of the comparison: a purge may have removed them.
        if document is not None and without_samples(dict(document)) != without_samples(plan_document(plan)):
            raise ConflictError(
                f"The file does not say what '{plan_id}' was planned to do: it was changed by hand. "
                "Nothing was changed.",
                hint=f"hybrid backfill run {plan_id}",
            )

        def work() -> RunReport:
            with plans.runner(table.layout, plan.id):
                self._refuse_unrunnable(table, plan)
                if not self._was_paused_since(table, plan):
                    self._wish(table, plan, DesiredState.RUN)
                report = self._run_plan(table, plan, options)
                if report.stopped is DesiredState.CANCEL:
                    self._settle(table, plan, ended=True)
                if report.buckets_done == report.buckets_total:
                    self._wish(table, plan, DesiredState.ENDED)
                if report.stopped is not DesiredState.PAUSE:
                    plans.discard_rows(table.layout, plan.id)
                return report

        return self._home.run_recorded(table.name, "backfill", work)

    def _run_plan(self, table: TableRef, plan: Plan, options: BackfillOptions) -> RunReport:
        """Runs a plan, and records its error if it fails."""
        from hybrid.replace.backfill.plan_run import run_plan

        try:
            return run_plan(self._home.table_context(table), plan, options)
        except KeyboardInterrupt:
            self._home.progress.say(self._interrupted_words(table, plan))
            raise
        except HybridError as error:
            wish = plans.desired_state_of(table.layout, plan.id).wish  # keeps a pause or cancel requested meanwhile
            self._wish(table, plan, wish, error=error.words)
            if wish is DesiredState.CANCEL:
                self._settle(table, plan, ended=True)
                plans.discard_rows(table.layout, plan.id)
            raise

    def _interrupted_words(self, table: TableRef, plan: Plan) -> str:
        """The sentence after an interrupted run: what is corrected, and the command that resumes it."""
        status = status_of(table.layout, plan, self._entries(table))
        done, all_ = status.buckets_done, counted(status.buckets_total, "bucket")
        return f"{done} of {all_} of '{plan.table}' are corrected and visible. Go on: hybrid backfill resume {plan.id}"

    def statuses(self, table: str | None = None) -> list[BackfillStatus]:
        """The status of every backfill, of one table or of all, newest first."""
        names = [table] if table is not None else self._home.table_names()
        statuses = [status for name in names for status in self._of_table(self._home.table(name))]
        return sorted(statuses, key=lambda status: status.created_at, reverse=True)

    def status(self, plan_id: str) -> BackfillStatus:
        """The status of one backfill; NotFoundError, with a suggestion, for an unknown id."""
        table, plan = self._find(plan_id)
        return status_of(table.layout, plan, self._entries(table))

    def show(self, plan_id: str) -> Plan:
        """The plan with this id; NotFoundError, with a suggestion, for an unknown id."""
        return self._find(plan_id)[1]

    def pause(self, plan_id: str) -> BackfillStatus:
        """Pauses a backfill: its run stops after the commit in progress."""
        return self._stop(plan_id, DesiredState.PAUSE)

    def cancel(self, plan_id: str) -> BackfillStatus:
        """Cancels a backfill for good. What it has corrected stays; its staged rows are deleted.

        Where its status counts rejected rows as `taken`, `release` gives them back.
        """
        return self._stop(plan_id, DesiredState.CANCEL)

    def release(self, plan_id: str) -> str:
        """Gives back the rejected rows that an ended backfill has claimed and that are not in the table.

        Returns a sentence. ConflictError while the backfill may go on.
        """
        table, plan = self._find(plan_id)
        with plans.runner(table.layout, plan.id), self._home.recorded(table.name, "backfill") as run:
            state = status_of(table.layout, plan, self._entries(table)).state
            if plans.desired_state_of(table.layout, plan.id).wish is not DesiredState.CANCEL and state != REVERTED:
                raise ConflictError(
                    f"Backfill '{plan.id}' may continue: what it has taken stays taken.",
                    hint=f"hybrid backfill cancel {plan.id}",
                )
            rows = self._settle(table, plan, ended=True)
            sentence = f"{counted(rows, 'rejected row')} of '{table.name}' that '{plan.id}' had taken rejected again."
            run.ended(sentence, did_something=bool(rows))
        return sentence

    @contextmanager
    def reverting(self, table: TableRef, entry_id: str) -> Iterator[None]:
        """Wraps the revert of one entry: rows that the revert takes out of the table become rejected rows again.

        Rejected rows that the revert brings back are claimed first. ConflictError when something else has brought them
        since.
        """
        from hybrid.replace.backfill.claims import brought_back, claim, units_of

        entries = self._entries(table)
        entry = next((candidate for candidate in entries if candidate.id == entry_id), None)
        plan_part = brought_back(plans.plan_ids(table.layout), entries, entry) if entry is not None else None
        plan = plans.find_plan(table.layout, plan_part[0]) if plan_part is not None else None
        if plan_part is None or plan is None or plans.claims_folder(table.layout, plan.id) is None:
            yield
            return
        claim(self._home.table_context(table), plan, units_of(plan, plan_part[1]))
        try:
            yield
        finally:
            self._settle(table, plan, ended=plans.desired_state_of(table.layout, plan.id).wish is DesiredState.CANCEL)

    def revert(self, plan_id: str, *, reason: str | None = None, user: str | None = None) -> JobReport:
        """Reverts everything that a backfill has corrected, in one commit."""
        from hybrid.replace.revert import revert_backfill

        table, plan = self._find(plan_id)

        def work() -> JobReport:
            report = revert_backfill(
                self._home.table_context(table),
                plan.id,
                reason=reason,
                user=user,
                act_id=self._home.act_id("revert"),
            )
            self._settle(table, plan, ended=True)
            return report

        with plans.runner(table.layout, plan.id):
            return self._home.run_recorded(table.name, "revert", work)

    # Before planning

    def _request(self, spec: TableSpec, change: BackfillChange, window: CorrectionWindow | None) -> Request:
        from hybrid.ingest.batch import stream_of
        from hybrid.replace.backfill.inputs import inspect_input
        from hybrid.replace.job_checks import with_asked
        from hybrid.sql.row_sql import row_assignments, row_condition

        rows = (change.input is not None, change.sql is not None, change.from_rejected, change.from_kafka)
        if (change.update is not None, change.delete, *rows).count(True) != 1:
            raise UsageError(
                "What is to be corrected? Give one of --update, --delete, --input, --sql, --from-rejected and "
                "--from-kafka."
            )
        if any(rows) and change.where is not None:
            raise UsageError("--where goes with --update and --delete; the others bring the rows themselves.")
        if change.from_rejected and Half.REALTIME not in spec.halves:
            raise SpecError(f"Table '{spec.name}' has no REALTIME half, which alone rejects rows.")
        now_ms = self._home.bench.now_ms()
        expected = with_asked(spec, (), change.expect)
        where = row_condition(change.where, spec, "--where", now_ms=now_ms) if change.where is not None else None
        if change.input is not None:
            files, csv_format = inspect_input(spec, Path(change.input), self._home.input_rules)
            return Request(ChangeKind.ROWS, window, files=files, csv_format=csv_format, expectations=expected)
        if change.sql is not None:
            return Request(ChangeKind.ROWS, window, expectations=expected)
        if change.from_rejected:
            return Request(ChangeKind.REJECTED, window, expectations=expected)
        if change.from_kafka:
            stream_of(spec)
            return Request(ChangeKind.KAFKA, window, expectations=expected)
        if change.delete:
            return Request(ChangeKind.DELETE, window, where, expectations=expected)
        assert change.update is not None
        assignments = row_assignments(change.update, spec, "--update", now_ms=now_ms)
        refuse_deciding(spec, assignments)
        return Request(ChangeKind.UPDATE, window, where, assignments, expectations=expected)

    def _move_first(
        self, table: TableRef, window: CorrectionWindow | None
    ) -> tuple[tuple[HalfSnapshot, HalfSnapshot | None], list[str]]:
        """Moves the rows of the window that are still visible in REALTIME. Returns the halves after it, and warnings.

        ConflictError when rows remain in REALTIME that the backfill would not correct.
        """
        from hybrid.move.move import run_move
        from hybrid.move.plan import Reach
        from hybrid.replace.backfill.base import unmoved

        spec, bench = table.spec, self._home.bench
        reach = Reach(None, window.end if window is not None else None)
        for turn in range(_MOVES_MAX + 1):
            halves = _pinned(table)
            rows = unmoved(bench, spec, halves, window)
            if not rows:
                return halves, []
            if spec.move is None and halves[0].offline.boundary.mode is BoundaryMode.PINOT:
                return halves, [f"{rows} rows of the window are in REALTIME, which outside jobs push past: they stay."]
            _refuse_beyond_limit(spec, halves[0], rows)
            if spec.move is None or turn == _MOVES_MAX:
                break
            newest = partial(self._home.spec, table.name)
            report = run_move(self._home.table_context(table), reach=reach, newest=newest)
            bench.progress.say(f"Before it is planned: {report.sentence}")
        raise ConflictError(
            f"{rows} rows of the window are in REALTIME of '{spec.name}' and cannot be moved, so a backfill would not "
            "correct them. Nothing was changed.",
            hint="Give the table a RealtimeToOfflineSegmentsTask, or plan again.",
        )

    # Desired state and status

    def _refuse_unrunnable(self, table: TableRef, plan: Plan) -> None:
        if plan.failed_checks:
            names = ", ".join(plan.failed_checks)
            raise ConflictError(
                f"Backfill '{plan.id}' cannot run: its rows failed {names}. Nothing was changed.",
                hint=f"hybrid backfill status {plan.id}",
            )
        state = status_of(table.layout, plan, self._entries(table)).state
        wish = plans.desired_state_of(table.layout, plan.id).wish
        if wish is DesiredState.CANCEL or state == REVERTED:
            how = "cancelled" if wish is DesiredState.CANCEL else "reverted"
            raise ConflictError(f"Backfill '{plan.id}' was {how}.", hint=self._way_back(table, plan))

    def _way_back(self, table: TableRef, plan: Plan) -> str:
        """How a plan that was ended can still be had: its revert is reverted, or it is planned again."""
        entries = self._entries(table)
        mine = {plan.id, *(entry.id for entry in entries if entry.lineage.backfill == plan.id)}
        reverts = (entry for entry in entries if entry.lineage.reverts in mine and entry.state is EntryState.ACTIVE)
        last = next(reverts, None)
        again = "Plan it again: hybrid backfill plan ..."
        return again if last is None else f"Take the revert back: hybrid replacement revert {table.name} {last.id}"

    def _was_paused_since(self, table: TableRef, plan: Plan) -> bool:
        """Whether the plan was paused after this run was requested, while the run waited in a server's queue."""
        desired, asked_at = plans.desired_state_of(table.layout, plan.id), self._home.asked_at
        if desired.wish is not DesiredState.PAUSE or asked_at is None or desired.since is None:
            return False
        return datetime.fromisoformat(desired.since) > datetime.fromisoformat(asked_at)

    def _stop(self, plan_id: str, wish: DesiredState) -> BackfillStatus:
        table, plan = self._find(plan_id)
        status = status_of(table.layout, plan, self._entries(table))
        gives_back = wish is DesiredState.CANCEL and status.state == CANCELLED and status.taken
        if (status.state in {DONE, CANCELLED} and not gives_back) or (
            status.state == REVERTED and wish is DesiredState.PAUSE
        ):
            raise ConflictError(f"Backfill '{plan.id}' is {status.state}: there is nothing to {wish.value}.")
        self._wish(table, plan, wish)
        if wish is DesiredState.CANCEL and not plans.is_running(table.layout, plan.id):
            plans.discard_rows(table.layout, plan.id)
        return status_of(table.layout, plan, self._entries(table))

    def _settle(self, table: TableRef, plan: Plan, *, ended: bool) -> int:
        from hybrid.replace.backfill.claims import settle

        return settle(self._home.table_context(table), plan, ended=ended)

    def _wish(self, table: TableRef, plan: Plan, wish: DesiredState, error: str | None = None) -> None:
        plans.want(table.layout, plan.id, DesiredStateRecord(wish, self._home.bench.now_iso(), error))

    def _find(self, plan_id: str) -> tuple[TableRef, Plan]:
        plan_ids: list[str] = []
        for name in self._home.table_names():
            layout = self._home.layout(name)
            plan_ids += plans.plan_ids(layout)
            if plan_id in plan_ids:
                plan = plans.find_plan(layout, plan_id)
                assert plan is not None
                return self._home.table(name), plan
        raise NotFoundError.named("Backfill", plan_id, plan_ids)

    def _of_table(self, table: TableRef) -> Sequence[BackfillStatus]:
        table_plans = [plans.find_plan(table.layout, plan_id) for plan_id in plans.plan_ids(table.layout)]
        entries = self._entries(table) if table_plans else []
        return [status_of(table.layout, plan, entries) for plan in table_plans if plan is not None]

    def _entries(self, table: TableRef) -> Sequence[ReplacementEntry]:
        return entries_of(open_half(table.layout.half(Half.OFFLINE)))


def _recorded(change: BackfillChange, redaction: Redaction | None) -> BackfillChange:
    """The change as records keep it."""
    if redaction is None or change.where is None:
        return change
    return replace(change, where=redaction.of(without_constants(change.where)))


def _blank(
    change: BackfillChange,
    spec: TableSpec,
    halves: tuple[HalfSnapshot, HalfSnapshot | None],
    warnings: tuple[str, ...],
    erasure: str | None,
) -> Plan:
    """A plan without buckets and units, which planning fills in."""
    offline, realtime = halves
    return Plan(
        id=new_act_id("backfill"),
        table=spec.name,
        created_at="",
        change=change.words,
        request=asdict(change) if erasure is None else {**asdict(change), "erasure": erasure},
        table_id=offline.table_id,
        offline_version=offline.version,
        realtime_version=realtime.version if realtime is not None else None,
        base_revision=_revision(spec.name, halves),
        fresh_topic="",
        buckets=(),
        units=(),
        warnings=warnings,
        reason=change.reason,
        user=change.user,
    )


def _edges(spec: TableSpec, change: BackfillChange, now_ms: int) -> tuple[int | None, int | None]:
    """The begin and end of a change in epoch ms; None where it gives none. UsageError without a time column."""
    edges: list[int | None] = []
    for text, option in ((change.start, "--from"), (change.end, "--to")):
        if text is not None and spec.time_field is None:
            raise UsageError(f"Table '{spec.name}' has no time column, so a backfill of it takes no --from and --to.")
        field = spec.time_field
        edges.append(parse_moment(text, field, option, now_ms) if text is not None and field else None)
    return edges[0], edges[1]


def _refuse_beyond_limit(spec: TableSpec, offline: HalfSnapshot, left: int) -> None:
    """ConflictError where an override or Pinot's mode keeps the rows visible in REALTIME: a move cannot change that."""
    boundary = offline.offline.boundary
    if boundary.override_ms is None and boundary.mode is not BoundaryMode.PINOT:
        return
    hint = "End the window before it"
    if boundary.override_ms is not None:
        hint += f", or: hybrid boundary clear {spec.name}"
    raise ConflictError(
        f"{left} rows of the window lie past the limit between the halves of '{spec.name}', where queries show them "
        "from REALTIME. Nothing was changed.",
        hint=f"{hint}.",
    )


def _pinned(table: TableRef) -> tuple[HalfSnapshot, HalfSnapshot | None]:
    from hybrid.query.revision import pin_halves

    halves = pin_halves(table.spec, table.layout)
    assert halves.offline is not None
    return halves.offline, halves.realtime


def _revision(name: str, halves: tuple[HalfSnapshot, HalfSnapshot | None]) -> str:
    from hybrid.query.revision import TableRevision

    offline, realtime = halves
    return str(TableRevision(name, offline.version, realtime.version if realtime else None, offline.offline.boundary))
