"""`/tables/{t}/connectors`: what brings a table's rows, and letting it pause and go on."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request

from hybrid import views
from hybrid.serve.context import context_of
from hybrid.serve.named import TableName, named
from hybrid.serve.openapi import shown

router = APIRouter(tags=["connectors"])
ConnectorName = Annotated[str, Path(description="The connector's name or a label of it", examples=["lineitem.live"])]
_EXAMPLE: dict[str, Any] = {
    "name": "lineitem.historical",
    "labels": ["lineitem.historical"],
    "transport": "delta_table_input",
    "state": "COMPLETED",
    "detail": "60175 records from 4 files",
    "waits_for": [],
    "records": 60175,
    "bytes": 2219837,
    "errors": 0,
    "end_of_input": True,
    "lag": None,
    "latest_error": None,
}


@router.get("/tables/{table}/connectors", summary="List a table's connectors", responses=shown([_EXAMPLE]))
def list_connectors(request: Request, table: TableName) -> Any:
    """How each stands: RUNNING, WAITING, PAUSED, FAILED or COMPLETED, with its figures."""
    return views.connector_views(_connectors(request, table).statuses())


@router.get("/tables/{table}/connectors/{connector}", summary="Show a connector", responses=shown(_EXAMPLE))
def show_connector(request: Request, table: TableName, connector: ConnectorName) -> Any:
    """One of them."""
    return views.connector_views([_connectors(request, table).status(connector)])[0]


@router.post("/tables/{table}/connectors/{connector}/start", summary="Start a connector", responses=shown(_EXAMPLE))
def start_connector(request: Request, table: TableName, connector: ConnectorName) -> Any:
    """Takes a pause back. It runs at once, or when what it waits for has ended."""
    found = _connectors(request, table)
    found.start(connector)
    return views.connector_views([found.status(connector)])[0]


@router.post("/tables/{table}/connectors/{connector}/pause", summary="Pause a connector", responses=shown(_EXAMPLE))
def pause_connector(request: Request, table: TableName, connector: ConnectorName) -> Any:
    """What Kafka holds at this moment still comes; nothing after it, until it is started."""
    found = _connectors(request, table)
    found.pause(connector)
    return views.connector_views([found.status(connector)])[0]


def _connectors(request: Request, table: str) -> Any:
    return named(context_of(request), table).table.connectors
