"""Checks of a table's backfills: which were interrupted, failed, were forgotten, or keep rejected rows."""

from __future__ import annotations

from hybrid.api.table import Table
from hybrid.doctor.findings import Checkup, Severity
from hybrid.lake.plans import staged_bytes
from hybrid.operations.backfill_status import CANCELLED, FAILED, INTERRUPTED, PLANNED, REFUSED, REVERTED, BackfillStatus

_DAY_MS = 86_400_000


def check_backfills(checkup: Checkup, name: str) -> None:
    """Checks the backfills of one table. A recent plan, a pause and a cancellation are no findings."""
    table = checkup.home.table(name)
    for status in checkup.home.backfills.statuses(name):
        how_far = f"{status.buckets_done} of {status.buckets_total} buckets are corrected"
        if status.state == INTERRUPTED:
            message = f"Backfill '{status.id}' was interrupted: {how_far}."
            hint = f"hybrid backfill resume {status.id}, or cancel it"
            checkup.found(Severity.WARNING, "backfill", message, table=name, hint=hint)
        elif status.state == FAILED:
            message = f"Backfill '{status.id}' ended in an error, and {how_far}: {status.error}"
            hint = f"hybrid backfill cancel {status.id}; plan what is left again"
            checkup.found(Severity.NOTE, "backfill", message, table=name, hint=hint)
        elif status.taken and status.state in {CANCELLED, REVERTED}:
            message = (
                f"Backfill '{status.id}' is {status.state}, and rejected rows are still taken by it: {status.taken}."
            )
            hint = f"hybrid backfill cancel {status.id} (gives them back)"
            checkup.found(Severity.WARNING, "backfill", message, table=name, hint=hint)
        elif status.state in (PLANNED, REFUSED) and checkup.age_ms(status.created_at) > table.spec.revert_window_ms:
            _found_forgotten(checkup, table, status)


def _found_forgotten(checkup: Checkup, table: Table, one: BackfillStatus) -> None:
    """Reports a plan with staged rows that is older than the revert window: its base version is no longer kept."""
    size, days = staged_bytes(table.layout, one.id), table.spec.revert_window_ms / _DAY_MS
    if not size:
        return
    why = "it was never run" if one.state == PLANNED else "its rows failed expectations, so it does not run"
    message = (
        f"Backfill '{one.id}' was planned at {one.created_at}, longer ago than the {days:g} days of the revert window, "
        f"and {why}. Its staged rows take {size} bytes."
    )
    hint = f"hybrid backfill cancel {one.id} (removes them); plan it again if it is still wanted"
    checkup.found(Severity.WARNING, "backfill", message, table=table.name, hint=hint)
