"""Scheduled tasks: the next run of each, the result of its last run, and why it waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.config.cron import Cron
from hybrid.config.table_config import TableSpec
from hybrid.operations.run_views import visible_run
from hybrid.operations.tasks import crons_of
from hybrid.runtime.sentence_repr import shown_as

if TYPE_CHECKING:
    from hybrid.home.home import Home

SCHEDULE = "schedule"


@shown_as("{0.type} of {0.table}: {0.state}")
@dataclass(frozen=True)
class Schedule:
    """A task's schedule (`cron` as written). `next_ms` is epoch milliseconds, None when the task never runs again.

    `state` is WAITING, QUEUED or RUNNING; `result` says how the last run ended, or what the incomplete run does.
    """

    table: str
    type: str
    cron: str
    next_ms: int | None
    state: str
    result: str


def schedules_of(home: Home, spec: TableSpec) -> list[Schedule]:
    """The schedules of one table."""
    return [_schedule(home, spec, kind, cron) for kind, cron in crons_of(spec).items()]


def _schedule(home: Home, spec: TableSpec, kind: str, cron: Cron) -> Schedule:
    newest = home.catalog.runs.list(spec.name, 1, kind=kind, dry_runs=False)
    last = visible_run(newest[0]) if newest else None
    if last is None:
        state, result = "WAITING", "It has not run yet."
    elif last.incomplete:
        state, result = last.state, last.progress or f"{last.id} is running."
    else:
        state, result = "WAITING", f"{last.id} {last.state}: {last.result or ''}".rstrip(": ")
    # The scheduler runs whatever was due since the last run it queued, so a time in the past is due now.
    return Schedule(spec.name, kind, cron.text, cron.next_after(home.now_ms()), state, result)
