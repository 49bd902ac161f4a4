"""`/tables/{t}/replacements` and `/tables/{t}/rejected`: what was corrected, and what could not be read."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from hybrid.api.table import Table
from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError
from hybrid.rpc.verbs import VERBS
from hybrid.runtime.json_values import json_value
from hybrid.serve.context import ServerContext, context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import TableName, path_table

router = APIRouter(tags=["corrections"])
_LENGTH_MAX = 200
ROWS_MAX = 10_000
_ENTRY = {
    "id": "replace-20211121T103800Z-1a2b",
    "kind": "replace",
    "created_at": "2021-11-21T10:38:00Z",
    "state": "ACTIVE",
    "version": 3,
    "segments_from": ["orders_1632463351000_1632467070000_0"],
    "segments_to": ["orders_1632463351000_1632467070000_0"],
    "result": "Replaced segment 'orders_1632463351000_1632467070000_0'.",
    "reason": "prices were net",
}
EntryId = Annotated[str, Path(examples=[_ENTRY["id"]])]


class Revert(BaseModel):
    """How to take a replacement back; `dry_run` only says what would change."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"reason": "the correction was wrong", "user": "ada"}]},
    )

    reason: str | None = Field(default=None, max_length=10_000)
    user: str | None = Field(default=None, max_length=200)
    dry_run: bool = Field(default=False, alias="dryRun")


class Replay(BaseModel):
    """How to replay; `dryRun` only says what would convert."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"dryRun": True}]})

    dry_run: bool = Field(default=False, alias="dryRun")


@router.get("/tables/{table}/replacements", summary="List replacements and reverts", responses=shown([_ENTRY]))
def list_replacements(request: Request, table: TableName) -> Any:
    """The lineage entries of the OFFLINE half, newest first; before them replacements that are IN_PROGRESS."""
    context = context_of(request)
    return VERBS["replacements"].call(context.home, table=path_table(context, table).table.name)


@router.get("/tables/{table}/replacements/{entry}", summary="Show a replacement", responses=shown(_ENTRY))
def show_replacement(request: Request, table: TableName, entry: EntryId) -> Any:
    """One of them, with input files and checksums."""
    context = context_of(request)
    arguments = {"table": path_table(context, table).table.name, "entry": entry[:_LENGTH_MAX]}
    return VERBS["replacement"].call(context.home, **arguments)


@router.post(
    "/tables/{table}/replacements/{entry}/revert",
    summary="Take a replacement back",
    responses=shown({"table": "orders", "act": "revert-1", "version": 4, "sentence": "Put back 1 segment."}),
)
async def revert(request: Request, table: TableName, entry: EntryId, how: Revert | None = None) -> Any:
    """Puts back what it replaced, as a new commit, and waits for its report. One IN_PROGRESS: what was pushed goes."""
    context, wanted = context_of(request), how or Revert()
    found = await run_in_threadpool(_entry, context, table, entry)
    return await context.carried_out("revert", {**found, **wanted.model_dump()})


@router.get(
    "/tables/{table}/rejected",
    summary="List rejected rows",
    responses=shown(
        {
            "total": 1,
            "rows": [
                {"topic": "orders", "partition": 0, "offset": 14, "reason": "not JSON", "value": "no JSON"},
            ],
        }
    ),
)
def list_rejected(
    request: Request,
    table: TableName,
    limit: Annotated[int, Query(ge=0, le=ROWS_MAX)] = 100,
    offset: Annotated[int, Query(ge=0, le=10**12)] = 0,
    everything: Annotated[
        bool, Query(alias="all", description="Also those that were brought since, each with its `state`")
    ] = False,
) -> Any:
    """Messages that could not be read, by offset; `total` counts all of them. What was brought since is left out."""
    context = context_of(request)
    found, bounds = _rejecting(context, table), context.rejected_bounds(time.monotonic())
    page = found.rejected_page(limit, offset, everything=everything, bounds=bounds)
    return {"total": page.total, "rows": json_value(page.rows)}


@router.post(
    "/tables/{table}/rejected/replay",
    summary="Bring the rejected rows that convert now",
    responses=shown(
        {
            "table": "orders",
            "rejected": 3,
            "replayed": 2,
            "rows": 2,
            "filtered": 0,
            "left": 1,
            "reasons": [{"reason": "The message is not one JSON object: ...", "rows": 1}],
            "segments": ["orders__replay0__12__20211121T1038Z"],
            "version": 12,
            "sentence": "2 of 3 rejected rows of 'orders' now convert: brought; 1 stay rejected (...).",
            "dry_run": False,
        }
    ),
)
async def replay(request: Request, table: TableName, how: Replay | None = None) -> Any:
    """Decodes them by the table's settings of now, brings what converts in one commit, and waits for the report."""
    context, wanted = context_of(request), how or Replay()
    found = await run_in_threadpool(_rejecting, context, table)
    return await context.carried_out("rejected_replay", {"table": found.name, **wanted.model_dump()})


def _rejecting(context: ServerContext, table: str) -> Table:
    """The table that a path names; NotFoundError for an OFFLINE half."""
    found = path_table(context, table)
    if found.half is Half.OFFLINE:
        raise NotFoundError(f"'{table}' names the OFFLINE half, which rejects nothing.")
    return found.table


def _entry(context: ServerContext, table: str, entry: str) -> dict[str, str]:
    found = path_table(context, table).table
    if found.replacing.waiting(entry[:_LENGTH_MAX]) is not None:
        return {"table": found.name, "entry": entry[:_LENGTH_MAX]}
    return {"table": found.name, "entry": found.replacement(entry[:_LENGTH_MAX]).id}
