"""Runs of all tables, chosen by table, type and state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.catalog.run_record import DRY_RUN
from hybrid.errors import NotFoundError

if TYPE_CHECKING:
    from hybrid.catalog.run_record import RunRecord
    from hybrid.home.home import Home

STATES = ("QUEUED", "RUNNING", "DONE", "NOTHING", "FAILED", "INTERRUPTED", DRY_RUN)
_RUNNING, _INTERRUPTED = "RUNNING", "INTERRUPTED"


@dataclass(frozen=True)
class RunFilter:
    """Which runs are listed: all, where a field is None."""

    table: str | None = None
    type: str | None = None
    state: str | None = None
    limit: int = 100


def list_runs(home: Home, wanted: RunFilter) -> list[RunRecord]:
    """The newest runs that are wanted, newest first. NotFoundError for a state that no run has.

    Tables and types may be gone: their runs are listed as long as they are kept.
    """
    if wanted.state is None:
        return home.catalog.runs.list(wanted.table, wanted.limit, kind=wanted.type)
    if wanted.state not in STATES:
        raise NotFoundError.named("State", wanted.state[:40], STATES)
    # A run whose process has died is stored as running until somebody looks at it.
    stored = [wanted.state, _RUNNING] if wanted.state == _INTERRUPTED else [wanted.state]
    found = home.catalog.runs.list(wanted.table, wanted.limit, kind=wanted.type, states=stored)
    return [run for run in found if run.state == wanted.state]


def tables_and_types(home: Home) -> tuple[list[str], list[str]]:
    """The names of tables and the types that runs have, sorted."""
    counts = home.catalog.runs.counts()
    return sorted({table for table, _, _ in counts}), sorted({kind for _, kind, _ in counts})
