"""Backfills: plan, show, run, pause, cancel, revert. Planning itself: `hybrid.operations.backfill_planning`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, HybridError, NotFoundError, StoreError
from hybrid.lake import plans
from hybrid.lake.log import open_half
from hybrid.lake.plans import DesiredState, DesiredStateRecord
from hybrid.operations.backfill_change import BackfillChange
from hybrid.operations.backfill_documents import plan_document
from hybrid.operations.backfill_planning import BackfillPlanning
from hybrid.operations.backfill_status import CANCELLED, DONE, REVERTED, BackfillStatus, status_of
from hybrid.progress import counted
from hybrid.replace.lineage import EntryState, ReplacementEntry, entries_of
from hybrid.runtime.json_values import without_samples
from hybrid.runtime.sentence_repr import shown_as
from hybrid.table.plans import Plan

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.replace.backfill.options import BackfillOptions
    from hybrid.replace.backfill.plan_run import RunReport
    from hybrid.replace.report import JobReport
    from hybrid.sql.redaction import Redaction


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
        return BackfillPlanning(self._home, self._home.table(table), change).plan(redaction, erasure)

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
                with suppress(StoreError):  # what is done is done: the log has it, and the next state listed says so
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
            with suppress(HybridError):  # a store that does not answer, or a warehouse that is another's now
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
        # A cancel that the store did not answer is asked for again: its rows are there yet.
        is_unfinished = status.taken or plans.has_rows(table.layout, plan.id)
        ends_again = wish is DesiredState.CANCEL and status.state == CANCELLED and is_unfinished
        if (status.state in {DONE, CANCELLED} and not ends_again) or (
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
