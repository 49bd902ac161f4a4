"""Runs as an account may see them: an account that may only read sees no values of a job's input.

A failed job names the cell that does not fit. The right to query tables does not include a job's input. Nor does it
include the directories of backups, which the reports of their runs name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hybrid.home.accounts import reads_only
from hybrid.runtime.json_values import json_value, without_samples

if TYPE_CHECKING:
    from hybrid.catalog.run_record import RunRecord

HIDDEN_ERROR = "It failed; why is shown to accounts that may operate, for it may quote the input."
HIDDEN_BACKUP = "What was done with a backup is shown to accounts that may operate, for it names folders."
_BACKUP = "backup"


def visible_run(run: RunRecord) -> RunRecord:
    """The run as the requesting account may see it."""
    if not reads_only():
        return run
    error = None if run.error is None else {**run.error, "error": HIDDEN_ERROR, "hint": None}
    if error is not None:
        error.pop("errors", None)
    result = HIDDEN_ERROR if run.state == "FAILED" or run.error is not None else run.result
    if run.type == _BACKUP:
        hidden = None if run.result is None else HIDDEN_BACKUP
        return replace(run, result=hidden, report=None, error=error, progress=None)
    return replace(run, result=result, report=without_samples(run.report), error=error)


def visible_error(text: str | None) -> str | None:
    """The text of an error as the requesting account may see it."""
    return HIDDEN_ERROR if text is not None and reads_only() else text


def run_details(run: RunRecord) -> dict[str, Any]:
    """The details of a run beside its summary: `progress`, `report`, `error` and `source`."""
    visible = visible_run(run)
    details = {"progress": visible.progress, "report": visible.report, "error": visible.error, "source": visible.source}
    return {name: json_value(value) for name, value in details.items()}
