"""Checks of replacements in several requests: started ones that never ended, and leftovers of ended ones."""

from __future__ import annotations

from functools import partial

from hybrid.doctor.findings import Checkup, Severity
from hybrid.lake import pushes
from hybrid.lake.layout import TableLayout
from hybrid.lake.pushes import OpenReplacement, PushState
from hybrid.replace.pending import PendingReplacement

_HOUR_MS = 3_600_000
# Long pushes take less time than this. Until the replacement ends, jobs that write its segments change nothing visible.
_AGE_MS = 6 * _HOUR_MS


def check_replacements(checkup: Checkup, name: str) -> None:
    """Reports replacements of a table that are IN_PROGRESS for hours, and staged rows of the ended ones."""
    table = checkup.home.table(name)
    for replacement in table.replacing.in_progress():
        if checkup.age_ms(replacement.entry.created_at) > _AGE_MS:
            _found_open(checkup, name, replacement)
    for entry, state in pushes.left_behind(table.layout):
        message = (
            f"Replacement '{entry.id}' is {state.value}, and {pushes.staged_bytes(table.layout, entry.id)} bytes that "
            "were pushed to it are still staged. They are in no half."
        )
        mend = partial(_removed, table.layout, entry, state)
        checkup.found(Severity.WARNING, "replacement", message, table=name, mend=mend)


def _found_open(checkup: Checkup, name: str, one: PendingReplacement) -> None:
    entry = one.entry
    by = f" by {entry.user}" if entry.user else ""
    message = f"Replacement '{entry.id}', started at {entry.created_at}{by}, is IN_PROGRESS. {one.sentence}"
    hint = (
        f"hybrid replacement revert {name} {entry.id} (throws away what was pushed), or end it: "
        f"POST /segments/{name}/endReplaceSegments?segmentLineageEntryId={entry.id}"
    )
    checkup.found(Severity.WARNING, "replacement", message, table=name, hint=hint)


def _removed(layout: TableLayout, entry: OpenReplacement, state: PushState) -> str:
    pushes.remove_left(layout, entry.id, state)
    return f"Removed what was pushed to '{entry.id}'."
