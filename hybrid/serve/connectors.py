"""`/tables/{t}/connectors`: what brings a table's rows, and letting it pause and go on."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from hybrid.rpc import json_views as views
from hybrid.rpc.verbs import VERBS
from hybrid.serve.context import context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import TableName, path_table

router = APIRouter(tags=["connectors"])
ConnectorName = Annotated[str, Path(description="The connector's name or a label of it", examples=["lineitem.live"])]
ResetName = Annotated[
    str, Path(description="The topic; where the table reads one, also its connector's name", examples=["orders"])
]
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
_RESET: dict[str, Any] = {
    "table": "orders",
    "topic": "orders",
    "topic_id": "5f0c1a2b-3c4d-5e6f-7081-92a3b4c5d6e7",
    "recreated": False,
    "partitions": [{"partition": 0, "epoch": 1, "position": 4, "to": 6, "lost": 2, "skipped": 0, "again": 0}],
    "lost": 2,
    "skipped": 0,
    "again": 0,
    "version": 7,
    "sentence": "Topic 'orders' is read into 'orders' from offset (by partition) 0: 6; "
    "2 offsets are gone from Kafka unread.",
    "dry_run": False,
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


class Reset(BaseModel):
    """From where a stream is read on: earliest, latest, a time, a time ago, or offsets by partition.

    `yes` accepts what is lost, skipped and read again: without it nothing is changed. `dryRun` only tells the numbers;
    with its answer as `accepted` these offsets are taken, and no more is lost, skipped or read again than it says.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"to": "earliest", "dryRun": True}]}
    )

    to: str = Field(min_length=1, max_length=10_000)
    yes: bool = False
    dry_run: bool = Field(default=False, alias="dryRun")
    accepted: dict[str, Any] | None = None


@router.post(
    "/tables/{table}/connectors/{connector}/reset", summary="Reset a stream's offsets", responses=shown(_RESET)
)
async def reset_connector(request: Request, table: TableName, connector: ResetName, body: Reset) -> Any:
    """Has ingestion go on where offsets have expired or the topic is another one: nothing else does."""
    context = context_of(request)
    found = await run_in_threadpool(path_table, context, table)
    wanted = {"table": found.table.name, "name": connector, "to": body.to}
    told = await run_in_threadpool(VERBS["connector_reset_plan"].call, context.home, **wanted)
    if body.dry_run:
        return told
    if not body.yes:  # who did not accept it is told why not, and no run is queued
        return await run_in_threadpool(VERBS["connector_reset"].call, context.home, **wanted)
    # What stands now is accepted, and not what does when the run's turn has come.
    accepted = told if body.accepted is None else body.accepted
    return await context.carried_out("connector_reset", {**wanted, "accepted": accepted})


def _connectors(request: Request, table: str) -> Any:
    return path_table(context_of(request), table).table.connectors
