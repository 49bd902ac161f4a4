"""The page of one run: its state, progress and result. Changes that were queued are followed here."""

from __future__ import annotations

from fastapi import APIRouter

from hybrid.operations.run_views import run_details
from hybrid.rpc import json_views as views
from hybrid.serve.console.page import Json, PageRequest, page

router = APIRouter(include_in_schema=False)


@page(router, "/ui/runs/{run}", template="run.html", title="Run")
def run_page(ask: PageRequest, run: str) -> Json:
    """A run as `GET /runs/{id}` has it, and whether it is incomplete."""
    found = ask.context.home.run(run)
    return {**views.run_view(found), **run_details(found), "incomplete": found.incomplete}
