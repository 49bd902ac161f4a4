"""Checks of a table's backfills: which were interrupted or stopped by an error, and what would do."""

from __future__ import annotations

from hybrid.backfill_status import FAILED, INTERRUPTED
from hybrid.doctor.findings import Checkup, Severity


def check_backfills(checkup: Checkup, name: str) -> None:
    """The backfills of one table. One that is planned, paused or cancelled is as it is wanted."""
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
