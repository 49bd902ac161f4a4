"""Routes `/tables/{t}/connectors`: show, pause, start and reset the connectors of a table."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from hybrid.home.accounts import Right
from hybrid.rpc import json_views as views
from hybrid.rpc.verbs import VERBS
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import TableName, path_table

router = StrictRouter(tags=["connectors"])
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
    """Returns the state of each: RUNNING, WAITING, PAUSED, FAILED or COMPLETED, with its statistics."""
    return views.connector_views(_connectors(request, table).statuses())


@router.get("/tables/{table}/connectors/{connector}", summary="Show a connector", responses=shown(_EXAMPLE))
def show_connector(request: Request, table: TableName, connector: ConnectorName) -> Any:
    """Returns the state of one connector."""
    return views.connector_views([_connectors(request, table).status(connector)])[0]


@router.post("/tables/{table}/connectors/{connector}/start", summary="Start a connector", responses=shown(_EXAMPLE))
@needs(Right.OPERATE)
def start_connector(request: Request, table: TableName, connector: ConnectorName) -> Any:
    """Ends a pause. The connector runs at once, or after the connectors that it waits for."""
    connectors = _connectors(request, table)
    connectors.start(connector)
    return views.connector_views([connectors.status(connector)])[0]


@router.post("/tables/{table}/connectors/{connector}/pause", summary="Pause a connector", responses=shown(_EXAMPLE))
@needs(Right.OPERATE)
def pause_connector(request: Request, table: TableName, connector: ConnectorName) -> Any:
    """Pauses a connector. Messages that Kafka holds now are still ingested; later ones only after a start."""
    connectors = _connectors(request, table)
    connectors.pause(connector)
    return views.connector_views([connectors.status(connector)])[0]


class Reset(BaseModel):
    """The new start of a stream: earliest, latest, a time, a time ago, or offsets by partition.

    `yes` accepts lost, skipped and re-read messages; without it nothing changes. `dryRun` only reports their numbers.
    Its response as `accepted` fixes these offsets: no more is lost, skipped or read again than it reports.
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
@needs(Right.ADMIN)
async def reset_connector(request: Request, table: TableName, connector: ResetName, body: Reset) -> Any:
    """Restarts a stream whose offsets have expired or whose topic was recreated; only a reset can do this."""
    context = context_of(request)
    target = await run_in_threadpool(path_table, context, table)
    arguments = {"table": target.table.name, "name": connector, "to": body.to}
    plan = await run_in_threadpool(VERBS["connector_reset_plan"].call, context.home, **arguments)
    if body.dry_run:
        return plan
    if not body.yes:  # answers the error at once, without queueing a run
        return await run_in_threadpool(VERBS["connector_reset"].call, context.home, **arguments)
    # Accepts the offsets of now, not those when the queued run starts.
    accepted = plan if body.accepted is None else body.accepted
    return await context.carried_out("connector_reset", {**arguments, "accepted": accepted})


def _connectors(request: Request, table: str) -> Any:
    return path_table(context_of(request), table).table.connectors
