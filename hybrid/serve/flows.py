"""Route `/flows`: what flows have loaded, and when they ran."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from hybrid.rpc.verbs import VERBS
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import context_of
from hybrid.serve.openapi import shown

router = StrictRouter(tags=["flows"])
_FLOW = {
    "target": "registration_events_raw",
    "flow": "registration_events_raw_backfill_2024",
    "type": "once",
    "state": "IDLE",
    "last_run": "2026-01-05T09:00:00Z",
    "rows": 3000,
    "rejected": 0,
    "files": 12,
    "refreshes": 0,
    "result": "Loaded 3000 rows of 12 files into 1 offline segment.",
}


@router.get("/flows", summary="List flows", responses=shown([_FLOW]))
def list_flows(request: Request) -> Any:
    """Returns every flow that has run in this home, by target and name."""
    return VERBS["flows"].call(context_of(request).home)
