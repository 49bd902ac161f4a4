"""`/tables/{t}/timeBoundary` and `/debug/timeBoundary/{t}`: the time boundary, in Pinot's format."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from hybrid.api.table import Table
from hybrid.config.table_config import BoundaryMode
from hybrid.errors import NotFoundError
from hybrid.home.accounts import Right
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import context_of
from hybrid.serve.openapi import StatusBody, shown
from hybrid.serve.path_parameters import TableName, path_table
from hybrid.table.boundary import Boundary

router = StrictRouter(tags=["boundary"])


@router.get(
    "/debug/timeBoundary/{table}",
    summary="Show the time boundary",
    responses=shown({"timeColumn": "ts", "timeValue": "1632467070000"}),
)
def show_boundary(request: Request, table: TableName) -> Any:
    """Returns the last covered offline time as text in the time column's format; 404 if there is none."""
    target, _ = _bounded(request, table)
    boundary = target.time_boundary()
    if boundary is None:
        raise NotFoundError(f"Table '{target.name}' has no time boundary: its OFFLINE half covers no time yet.")
    return {"timeColumn": boundary.time_column, "timeValue": boundary.time_value}


@router.post(
    "/tables/{table}/timeBoundary", summary="Set the time boundary to the offline data", response_model=StatusBody
)
@needs(Right.OPERATE)
async def set_boundary(request: Request, table: TableName) -> Any:
    """Overrides the boundary with the last offline time, until it is deleted. No effect in mode exact."""
    target, boundary = await run_in_threadpool(_bounded, request, table)
    if boundary.mode is BoundaryMode.EXACT:
        return {"status": f"Nothing to set: offline data of '{target.name}' is visible once committed."}
    report = await context_of(request).carried_out("boundary_set", {"table": target.name})
    return {"status": report["sentence"]}


@router.delete("/tables/{table}/timeBoundary", summary="Take a set time boundary back", response_model=StatusBody)
@needs(Right.OPERATE)
async def clear_boundary(request: Request, table: TableName) -> Any:
    """Removes the override: the table's mode decides again."""
    target, boundary = await run_in_threadpool(_bounded, request, table)
    if boundary.override_ms is None:
        return {"status": f"Nothing to remove: no time boundary of '{target.name}' is set."}
    report = await context_of(request).carried_out("boundary_clear", {"table": target.name})
    return {"status": report["sentence"]}


def _bounded(request: Request, name: str) -> tuple[Table, Boundary]:
    target = path_table(context_of(request), name).table
    boundary = target.boundary()
    if boundary is None:
        raise NotFoundError(f"Table '{target.name}' has one half only, so it has no boundary.")
    return target, boundary
