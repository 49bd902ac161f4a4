"""The verbs of backfills: plan, run, list, pause, cancel, revert; `hybrid.rpc.verbs` names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hybrid.operations.backfill_change import BackfillChange
from hybrid.operations.backfill_documents import plan_document
from hybrid.replace.backfill.options import BackfillOptions
from hybrid.rpc import json_views as views
from hybrid.rpc.flat_arguments import flat
from hybrid.runtime.json_values import json_document, json_value

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid

Json = Any


@flat(change=BackfillChange)
def backfill_plan(home: Hybrid, *, table: str, change: BackfillChange) -> Json:
    """Plans a correction and stages its rows."""
    return plan_document(home.backfills.plan(table, change))


@flat(options=BackfillOptions)
def backfill_run(
    home: Hybrid, *, backfill: str, document: dict[str, Any] | None = None, options: BackfillOptions
) -> Json:
    """Swaps in the remaining buckets of a plan; `document` is the plan as its author reviewed it."""
    return json_value(vars(home.backfills.run(backfill, options, document)))


def backfills(home: Hybrid, *, table: str | None = None) -> Json:
    """The status of backfills, newest first."""
    return [views.backfill_view(found) for found in home.backfills.statuses(table)]


def backfill(home: Hybrid, *, backfill: str) -> Json:
    """The status of a backfill, with its plan."""
    status = views.backfill_view(home.backfills.status(backfill))
    return {**status, "plan": plan_document(home.backfills.show(backfill))}


def backfill_pause(home: Hybrid, *, backfill: str) -> Json:
    """Pauses a run after the commit in progress."""
    return views.backfill_view(home.backfills.pause(backfill))


def backfill_cancel(home: Hybrid, *, backfill: str) -> Json:
    """Cancels a run for good."""
    return views.backfill_view(home.backfills.cancel(backfill))


def backfill_release(home: Hybrid, *, backfill: str) -> Json:
    """Releases the rejected rows that a cancelled backfill has claimed; a sentence."""
    return {"sentence": home.backfills.release(backfill)}


def backfill_revert(home: Hybrid, *, backfill: str, reason: str | None = None, user: str | None = None) -> Json:
    """Reverts all corrections of a backfill."""
    return json_document(home.backfills.revert(backfill, reason=reason, user=user).to_json())
