"""The status of a backfill: what the OFFLINE half's log says is done, and the desired state in the plan's folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.lake import plans
from hybrid.lake.layout import TableLayout
from hybrid.lake.plans import DesiredState, DesiredStateRecord
from hybrid.replace.backfill.claims import taken_of
from hybrid.replace.backfill.plan_run import corrected_sentence
from hybrid.replace.lineage import EntryState, ReplacementEntry
from hybrid.runtime.sentence_repr import shown_as
from hybrid.table.plans import Plan, PlannedBucket, Span, span

PLANNED, REFUSED, RUNNING, INTERRUPTED = "PLANNED", "REFUSED", "RUNNING", "INTERRUPTED"
PAUSED, CANCELLED, FAILED, DONE, REVERTED = "PAUSED", "CANCELLED", "FAILED", "DONE", "REVERTED"


@shown_as("{0.id}: {0.state}, {0.buckets_done} of {0.buckets_total} buckets")
@dataclass(frozen=True)
class BackfillStatus:
    """The status of a backfill. `result` is the sentence of the plan, or that of the last run.

    `taken` counts the rejected rows that the backfill has claimed and that are not in the table. A run brings them, or
    `release` gives them back.
    """

    id: str
    table: str
    created_at: str
    state: str
    buckets_done: int
    buckets_total: int
    change: str
    result: str
    reason: str | None
    user: str | None
    error: str | None
    taken: int = 0


def status_of(layout: TableLayout, plan: Plan, entries: Sequence[ReplacementEntry]) -> BackfillStatus:
    """The status of a plan; `entries` are all lineage entries of its table, newest first."""
    mine = [entry for entry in entries if entry.lineage.backfill == plan.id]
    done = {place for entry in mine for place in entry.lineage.buckets}
    corrected = [span(bucket) for bucket in plan.buckets if bucket.unit is not None]
    desired = plans.desired_state_of(layout, plan.id)
    has_ended = desired.wish is DesiredState.ENDED  # old entries may have left the log
    remaining = 0 if has_ended else sum(place not in done for place in corrected)
    if mine and all(entry.state is EntryState.REVERTED for entry in mine):
        state = REVERTED
    elif has_ended or (mine and not remaining):
        state = DONE
    elif plans.is_running(layout, plan.id):
        state = RUNNING
    else:
        state = _waiting_state(plan, desired)
    return BackfillStatus(
        id=plan.id,
        table=plan.table,
        created_at=plan.created_at,
        state=state,
        buckets_done=len(corrected) - remaining,
        buckets_total=len(corrected),
        change=plan.change,
        result=corrected_sentence(plan, _done(plan, done, has_ended)) if mine else plan.sentence,
        reason=next((entry.reason for entry in mine if entry.reason), plan.reason),
        user=next((entry.lineage.user for entry in mine if entry.lineage.user), plan.user),
        error=desired.error,
        taken=taken_of(layout, plan, entries),
    )


def _done(plan: Plan, done: set[Span], has_ended: bool) -> list[PlannedBucket]:
    """The buckets that a plan has corrected."""
    corrected = [bucket for bucket in plan.buckets if bucket.unit is not None]
    return corrected if has_ended else [bucket for bucket in corrected if span(bucket) in done]


def _waiting_state(plan: Plan, wanted: DesiredStateRecord) -> str:
    if wanted.wish is DesiredState.CANCEL:
        return CANCELLED
    if wanted.wish is DesiredState.PAUSE:
        return PAUSED
    if wanted.error is not None:
        return FAILED
    if wanted.wish is DesiredState.RUN:
        return INTERRUPTED
    return REFUSED if plan.failed_checks else PLANNED
