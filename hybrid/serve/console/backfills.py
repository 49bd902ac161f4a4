"""The page of a table's backfills: a form to plan one, the plans, and what was changed by whom and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter

from hybrid.catalog.run_record import RunRecord
from hybrid.errors import UsageError
from hybrid.operations.run_views import visible_run
from hybrid.rpc import json_views as views
from hybrid.rpc.verbs import BACKFILL
from hybrid.serve.console.backfill_views import history
from hybrid.serve.console.copies import copies_of
from hybrid.serve.console.page import Json, PageRequest, change, page

router = APIRouter(include_in_schema=False)
_SHOWN_MAX = 100
_FIELDS = (
    "start", "end", "update", "where", "delete", "sql", "expect", "reason", "user", "from_rejected", "from_kafka",
)  # fmt: skip


@page(router, "/ui/tables/{table}/backfills", template="backfills.html", title="Backfills")
def backfills_page(ask: PageRequest, table: str) -> Json:
    """A table's backfills and lineage; parameters (`start`, `end`, `update`, ...) fill in the form."""
    shown = ask.call("table_show", table=table)
    name, has_offline = shown["name"], "OFFLINE" in shown["halves"]
    found = ask.call("backfills", table=name) if has_offline else []
    return {
        "table": name,
        "has_offline": has_offline,
        "has_stream": shown["topic"] is not None,
        "time_column": shown["time_column"],
        "columns": shown["columns"],
        "form": {field: ask.parameter(field) for field in _FIELDS},
        "backfills": found[:_SHOWN_MAX],
        "backfill_count": len(found),
        "active": [_run(run) for run in ask.context.home.runs(name) if run.incomplete and run.type == BACKFILL],
        "history": history(ask.call("replacements", table=name)) if has_offline else [],
        "copies": copies_of(
            ask.url, "backfills", {"table": name}, cli=("backfill", "list", name),
            python=f"hy.backfills.statuses({name!r})",
        ),
    }  # fmt: skip


def _run(run: RunRecord) -> Json:
    backfill = visible_run(run).arguments.get("backfill")
    return {**views.run_view(run), "backfill": backfill, "plans": run.verb == "backfill_plan"}


@change(
    router, "/ui/tables/{table}/backfills", verb="backfill_plan", then="/ui/tables/{table}/backfills",
    template="backfill_change.html",
)  # fmt: skip
def plan_change(ask: PageRequest, table: str) -> Json:
    """Plans a backfill: update with its condition, the condition of a delete, rows of a statement or of files."""
    where, delete = ask.text("where"), ask.text("delete")
    if where is not None and delete is not None:
        raise UsageError("Where and Delete where are both filled in: leave one of them empty.")
    given: dict[str, Any] = {
        **ask.texts("start", "end", "update", "sql", "reason", "user"),
        "where": where if delete is None else delete,
        "delete": delete is not None,
        "from_rejected": ask.is_checked("from_rejected"),
        "from_kafka": ask.is_checked("from_kafka"),
        "expect": (ask.text("expect") or "").splitlines(),
        "input": ask.stored_files("file"),
    }
    return {"table": table, **_without_empty(given)}


def _without_empty(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value not in (None, "", False, [])}
