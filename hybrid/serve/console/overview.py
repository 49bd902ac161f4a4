"""The overview: one card per table, and what keeps the server itself from work."""

from __future__ import annotations

from fastapi import APIRouter

from hybrid.catalog.run_record import RunRecord
from hybrid.operations.overview import TREND_BUCKET_MS, TableOverview
from hybrid.operations.warehouse.sync import placements
from hybrid.rpc import json_views as views
from hybrid.runtime.json_values import instant
from hybrid.serve.console.copies import copies_of
from hybrid.serve.console.durations import about
from hybrid.serve.console.lag import lag_trend
from hybrid.serve.console.page import Json, PageRequest, Threads, page
from hybrid.serve.console.sparkline import sparkline
from hybrid.serve.health import checks
from hybrid.serve.lag_history import catch_up_s

router = APIRouter(include_in_schema=False)
_POLL_MS = 2000
_OWN_LINES = frozenset({"connectors"})  # a failed connector is told with its table
_COMMANDS = {"pipeline": "hybrid logs", "catalog": "hybrid doctor", "warehouse": "hybrid doctor"}


@page(router, "/", template="overview.html", title="Overview", poll_ms=_POLL_MS, threads=Threads.OVERVIEW)
def overview_page(ask: PageRequest) -> Json:
    """Every table as `hybrid status` has it, with its runs, schedules and problems."""
    found = ask.context.overview.get()
    return {
        "copies": copies_of(ask.url, "status", {}, cli=("status",), python="hy.status()"),
        "tables": [card_view(ask, table) for table in found],
        "remote": [placement.to_json() for placement in placements(ask.context.home.context) if not placement.is_here],
        "problems": [
            {"sentence": f"{check['name'].capitalize()}: {check['detail']}.", "command": _COMMANDS[check["name"]]}
            for check in checks(ask.context)
            if not check["ok"] and check["name"] not in _OWN_LINES
        ],
    }


@page(router, "/ui/tables/{table}/status", template="table_status.html", title="Status", threads=Threads.OVERVIEW)
def table_status_page(ask: PageRequest, table: str) -> Json:
    """One card of the overview. The timeline loads it by itself, because it may take longer than the marks.

    `tails` are the messages that are not committed, by partition.
    """
    name = ask.context.home.context.table(table).name
    card = overview_of(ask, name)
    if card is None:
        return {"table": name, "status": None, "tails": {}}
    return {"table": name, "status": card_view(ask, card), "tails": dict(card.status.tails)}


def overview_of(ask: PageRequest, name: str) -> TableOverview | None:
    """The overview of one table, from what all viewers share; None where it has none yet."""
    return next((found for found in ask.context.overview.get() if found.status.table == name), None)


def card_view(ask: PageRequest, table: TableOverview) -> Json:
    """One table. `catch_up` says about when it has caught up at the present rate, in words."""
    now_ms = ask.context.home.context.now_ms()
    samples = ask.context.lag.samples(table.status.table, now_ms)
    return {
        **views.status_view(table.status),
        "healthy": not table.problems,
        "committed_until": instant(table.committed_until_ms),
        "catch_up": about(catch_up_s(samples, now_ms)),
        "lag": lag_trend(samples, now_ms),
        "trend": {
            "rows": list(table.trend.rows),
            "bucket_ms": TREND_BUCKET_MS,
            "end": instant(table.trend.end_ms),
            "line": sparkline(table.trend.rows),
        },
        "active": [short_run(run) for run in table.active],
        "failed": [short_run(run) for run in table.failed],
        "schedules": [views.schedule_view(schedule) for schedule in table.schedules],
        "problems": [vars(problem) for problem in table.problems],
    }


def short_run(run: RunRecord) -> Json:
    """What a list of a page shows of a run."""
    view = views.run_view(run)
    return {name: view[name] for name in ("id", "type", "state", "result", "created_at")}
