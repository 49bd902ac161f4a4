"""Routes `/tables/{t}/replacements` and `/tables/{t}/rejected`: segment replacements and rejected rows."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from hybrid.api.table import Table
from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError
from hybrid.home.accounts import Right
from hybrid.rpc.verbs import VERBS
from hybrid.runtime.json_values import json_value
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import ServerContext, context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import TableName, offline_table, path_table

router = StrictRouter(tags=["corrections"])
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
    """Options of a revert; `dryRun` only reports what would change."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"reason": "the correction was wrong", "user": "ada"}]},
    )

    reason: str | None = Field(default=None, max_length=10_000)
    user: str | None = Field(default=None, max_length=200)
    dry_run: bool = Field(default=False, alias="dryRun")


class Replay(BaseModel):
    """Options of a replay; `dryRun` only reports what would convert."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"dryRun": True}]})

    dry_run: bool = Field(default=False, alias="dryRun")


@router.get("/tables/{table}/replacements", summary="List replacements and reverts", responses=shown([_ENTRY]))
def list_replacements(request: Request, table: TableName) -> Any:
    """Returns the lineage entries of the OFFLINE half, newest first, after replacements that are IN_PROGRESS."""
    context = context_of(request)
    return VERBS["replacements"].call(context.home, table=path_table(context, table).table.name)


@router.get("/tables/{table}/replacements/{entry}", summary="Show a replacement", responses=shown(_ENTRY))
def show_replacement(request: Request, table: TableName, entry: EntryId) -> Any:
    """Returns a replacement with input files and checksums."""
    context = context_of(request)
    arguments = {"table": path_table(context, table).table.name, "entry": entry[:_LENGTH_MAX]}
    return VERBS["replacement"].call(context.home, **arguments)


@router.post(
    "/tables/{table}/replacements/{entry}/revert",
    summary="Take a replacement back",
    responses=shown({"table": "orders", "act": "revert-1", "version": 4, "sentence": "Put back 1 segment."}),
)
@needs(Right.OPERATE)
async def revert(request: Request, table: TableName, entry: EntryId, how: Revert | None = None) -> Any:
    """Restores the replaced segments in a new commit and returns the report.

    Reverting a replacement that is IN_PROGRESS discards its pushed segments.
    """
    context, options = context_of(request), how or Revert()
    arguments = await run_in_threadpool(_entry, context, table, entry)
    return await context.carried_out("revert", {**arguments, **options.model_dump()})


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
    """Returns messages that could not become rows, by offset; `total` counts all of them.

    Rows added to the table since are left out, unless `all` is set.
    """
    context = context_of(request)
    target, bounds = _rejecting(context, table), context.rejected_bounds(time.monotonic())
    page = target.rejected_page(limit, offset, everything=everything, bounds=bounds)
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
@needs(Right.OPERATE)
async def replay(request: Request, table: TableName, how: Replay | None = None) -> Any:
    """Decodes rejected rows with the current settings, adds the converted rows in one commit, returns the report."""
    context, options = context_of(request), how or Replay()
    target = await run_in_threadpool(_rejecting, context, table)
    return await context.carried_out("rejected_replay", {"table": target.name, **options.model_dump()})


def _rejecting(context: ServerContext, table: str) -> Table:
    """Return the table that a path names; NotFoundError for an OFFLINE half."""
    target = path_table(context, table)
    if target.half is Half.OFFLINE:
        raise NotFoundError(f"'{table}' names the OFFLINE half, which rejects nothing.")
    return target.table


def _entry(context: ServerContext, table: str, entry: str) -> dict[str, str]:
    target = offline_table(context, table)
    if target.replacing.waiting(entry[:_LENGTH_MAX]) is not None:
        return {"table": target.name, "entry": entry[:_LENGTH_MAX]}
    return {"table": target.name, "entry": target.replacement(entry[:_LENGTH_MAX]).id}
