"""Checks of a table's backfills: which were interrupted, stopped by an error, forgotten, or keep rejected rows."""

from __future__ import annotations

from hybrid.api.table import Table
from hybrid.doctor.findings import Checkup, Severity
from hybrid.lake.plans import staged_bytes
from hybrid.operations.backfill_status import CANCELLED, FAILED, INTERRUPTED, PLANNED, REFUSED, REVERTED, BackfillStatus

_DAY_MS = 86_400_000


def check_backfills(checkup: Checkup, name: str) -> None:
    """The backfills of one table. One that is planned, paused or cancelled is as it is wanted, for a while."""
    table = checkup.home.table(name)
    for one in checkup.home.backfills.statuses(name):
        how_far = f"{one.buckets_done} of {one.buckets_total} buckets are corrected"
        if one.state == INTERRUPTED:
            message = f"Backfill '{one.id}' was interrupted: {how_far}."
            hint = f"hybrid backfill resume {one.id}, or cancel it"
            checkup.found(Severity.WARNING, "backfill", message, table=name, hint=hint)
        elif one.state == FAILED:
            message = f"Backfill '{one.id}' ended in an error, and {how_far}: {one.error}"
            hint = f"hybrid backfill cancel {one.id}; plan what is left anew"
            checkup.found(Severity.NOTE, "backfill", message, table=name, hint=hint)
        elif one.taken and one.state in {CANCELLED, REVERTED}:
            message = f"Backfill '{one.id}' is {one.state}, and rejected rows are still taken by it: {one.taken}."
            hint = f"hybrid backfill cancel {one.id} (gives them back)"
            checkup.found(Severity.WARNING, "backfill", message, table=name, hint=hint)
        elif one.state in (PLANNED, REFUSED) and checkup.age_ms(one.created_at) > table.spec.revert_window_ms:
            _found_forgotten(checkup, table, one)


def _found_forgotten(checkup: Checkup, table: Table, one: BackfillStatus) -> None:
    """A plan that is older than the table's revert window: the version that it was planned on is not kept any more."""
    size, days = staged_bytes(table.layout, one.id), table.spec.revert_window_ms / _DAY_MS
    if not size:
        return
    why = "it was never run" if one.state == PLANNED else "its rows failed expectations, so it does not run"
    message = (
        f"Backfill '{one.id}' was planned at {one.created_at}, longer ago than the {days:g} days of the revert window, "
        f"and {why}. Its staged rows take {size} bytes."
    )
    hint = f"hybrid backfill cancel {one.id} (removes them); plan it anew if it is still wanted"
    checkup.found(Severity.WARNING, "backfill", message, table=table.name, hint=hint)
