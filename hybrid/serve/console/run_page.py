"""The page of one run: its state, progress and result. Changes that were queued are followed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter

from hybrid.catalog.run_record import RunRecord
from hybrid.operations.run_views import run_details
from hybrid.rpc import json_views as views
from hybrid.serve.console.page import Json, PageRequest, page
from hybrid.serve.console.rendering import path_part

router = APIRouter(include_in_schema=False)


@page(router, "/ui/runs/{run}", template="run.html", title="Run")
def run_page(ask: PageRequest, run: str) -> Json:
    """A run as `GET /runs/{id}` has it, and whether it is incomplete."""
    found = ask.context.home.run(run)
    place = None if found.incomplete or found.error else place_of(found)
    return {**views.run_view(found), **run_details(found), "incomplete": found.incomplete, "place": place}


def place_of(run: RunRecord) -> str | None:
    """The page that shows what a run has made: the plan of a backfill, or the backfill that it ran."""
    report: Mapping[str, Any] = run.report if isinstance(run.report, dict) else {}
    backfill = report.get("id") if run.verb == "backfill_plan" else run.arguments.get("backfill")
    if not isinstance(backfill, str):
        return None
    return f"/ui/tables/{path_part(run.table_name)}/backfills/{path_part(backfill)}"
