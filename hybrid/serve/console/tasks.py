"""The page of tasks: what runs and waits, what is scheduled, and the history of runs over all tables."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter

from hybrid.catalog.run_record import RunRecord
from hybrid.operations.run_list import STATES, RunFilter, list_runs, tables_and_types
from hybrid.operations.run_views import visible_run
from hybrid.rpc import json_views as views
from hybrid.runtime.json_values import epoch_ms, shown_stamps
from hybrid.serve.console.copies import copies_of
from hybrid.serve.console.durations import duration_words
from hybrid.serve.console.page import Json, PageRequest, page
from hybrid.serve.health import checks
from hybrid.serve.run_lanes import why_waits

router = APIRouter(include_in_schema=False)
_SHOWN_MAX = 100
_PIPELINE = "pipeline"


@page(router, "/ui/tasks", template="tasks.html", title="Tasks")
def tasks_page(ask: PageRequest) -> Json:
    """Runs, queue and schedules. `table`, `type` and `state` choose the runs of the history, `table` the schedules."""
    home = ask.context.home.context
    given = {name: ask.parameter(name) or None for name in ("table", "type", "state")}
    names = home.table_names()
    found = list_runs(home, RunFilter(given["table"], given["type"], given["state"], _SHOWN_MAX))
    running = list_runs(home, RunFilter(state="RUNNING"))
    tables, types = tables_and_types(home)
    table = given["table"] if given["table"] in names else None
    return {
        "filter": given,
        "choices": {"table": tables, "type": types, "state": list(STATES)},
        "tables": names,
        "problem": _pipeline_problem(ask),
        "running": [run_row(run, names) for run in running],
        "queued": _queued(ask, running, names),
        "schedules": _schedules(ask, table, given["table"] is None or table is not None),
        "runs": [run_row(run, names) for run in found],
        "is_cut": len(found) == _SHOWN_MAX,
        "copies": copies_of(
            ask.url, "runs", {"table": table}, cli=("task", "list", *([table] if table else [])),
            python=f"hy.runs({table!r})" if table else "hy.runs()",
        ),
    }  # fmt: skip


def _schedules(ask: PageRequest, table: str | None, wanted: bool) -> Json:
    found = ask.call("schedules", table=table) if wanted else []
    return sorted(found, key=lambda schedule: (schedule["next_run"] is None, schedule["next_run"] or ""))


def _pipeline_problem(ask: PageRequest) -> Json:
    """Why nothing that is queued starts; None while the pipeline works."""
    check = next(check for check in checks(ask.context) if check["name"] == _PIPELINE)
    return None if check["ok"] else f"The pipeline, which carries out what is queued: {check['detail']}."


def _queued(ask: PageRequest, running: Sequence[RunRecord], names: Sequence[str]) -> Json:
    """The queue, oldest first, each with why it waits."""
    found = list_runs(ask.context.home.context, RunFilter(state="QUEUED"))
    queue = sorted(found, key=lambda run: (run.created_at, run.id))
    waits = [why_waits(run, running, queue[:place]) for place, run in enumerate(queue)]
    return [{**run_row(run, names), "wait": wait._asdict()} for run, wait in zip(queue, waits, strict=True)]


def run_row(run: RunRecord, names: Sequence[str]) -> Json:
    """A run as `hybrid task list` has it, with its times, who requested it, and what to do where it failed.

    `names` are the existing tables: a run of all tables, or of one that is gone, leads to none.
    """
    view, error = views.run_view(run), visible_run(run).error or {}
    failed = run.state == "FAILED"
    reason = error.get("error")
    hint = error.get("hint") or (f"hybrid doctor {run.table_name}" if run.table_name in names else "hybrid doctor")
    return {
        **view,
        **shown_stamps({"started_at": run.started_at}),
        "has_table": run.table_name in names,
        "duration": duration_of(run),
        "source": run.source,
        "reason": reason if failed and reason != view["result"] else None,
        "hint": hint if failed else None,
    }


def duration_of(run: RunRecord) -> str | None:
    """How long a run took, in words; None while it runs, or where its start is not known."""
    if run.started_at is None or run.finished_at is None:
        return None
    return duration_words(max(0, epoch_ms(run.finished_at) - epoch_ms(run.started_at)))
