"""`/tables/{t}/timeBoundary` and `/debug/timeBoundary/{t}`: the boundary as Pinot's clients ask for it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from hybrid.errors import NotFoundError
from hybrid.handle import Table
from hybrid.serve.context import context_of
from hybrid.serve.named import TableName, named
from hybrid.serve.openapi import Done, shown
from hybrid.spec.table_config import Half
from hybrid.table.boundary import INFINITE

router = APIRouter(tags=["boundary"])


@router.get(
    "/debug/timeBoundary/{table}",
    summary="Show the time boundary",
    responses=shown({"timeColumn": "ts", "timeValue": "1632467070000"}),
)
def show_boundary(request: Request, table: TableName) -> Any:
    """The last offline time that is covered, as text in the time column's own format; 404 while there is none."""
    found = _hybrid(request, table)
    time_ms, field = _last_covered_ms(found), found.spec.time_field
    if time_ms is None or field is None:
        raise NotFoundError(f"Table '{found.name}' has no time boundary: its OFFLINE half covers no time yet.")
    value = field.time_format.from_millis(time_ms) if field.time_format else time_ms
    return {"timeColumn": field.name, "timeValue": str(value)}


@router.post("/tables/{table}/timeBoundary", summary="Set the time boundary to the offline data", response_model=Done)
def set_boundary(request: Request, table: TableName) -> Any:
    """There is nothing to do: offline data is visible from its commit on."""
    return {"status": f"Nothing to set: offline data of '{_hybrid(request, table).name}' is visible once committed."}


@router.delete("/tables/{table}/timeBoundary", summary="Take a set time boundary back", response_model=Done)
def clear_boundary(request: Request, table: TableName) -> Any:
    """There is nothing to do: none was set."""
    return {"status": f"Nothing to remove: no time boundary of '{_hybrid(request, table).name}' was set."}


def _hybrid(request: Request, name: str) -> Table:
    found = named(context_of(request), name).table
    if len(found.spec.halves) < 2:
        raise NotFoundError(f"Table '{found.name}' has one half only, so it has no boundary.")
    return found


def _last_covered_ms(table: Table) -> int | None:
    """The newest time of the OFFLINE half's rows that lies before the boundary; None when it covers nothing."""
    boundary = table.boundary()
    if boundary is None or boundary.time_ms is None or boundary.time_ms >= INFINITE:
        return None
    ends = [one.end_ms for one in table.segments() if one.half == Half.OFFLINE and one.end_ms is not None]
    return min(max(ends), boundary.time_ms - 1) if ends else None
