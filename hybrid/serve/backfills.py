"""Routes `/backfills`: plan, inspect and run corrections of a time range."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from hybrid.home.accounts import Right
from hybrid.rpc import json_views as views
from hybrid.rpc.verbs import VERBS
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import offline_table, path_table

router = StrictRouter(tags=["backfills"])
_ID = "backfill-5f0c1a2b3c4d5e6f"
_LENGTH_MAX = 200
_TEXT_MAX = 10_000
_BUCKET = {
    "start": "2021-09-24T06:00:00Z",
    "end": "2021-09-24T08:00:00Z",
    "state": "present",
    "rows_before": 7,
    "rows_after": 7,
    "added": 0,
    "removed": 0,
    "changed": 7,
    "swap": 0,
}
_PLAN = {
    "id": _ID,
    "table": "orders",
    "base_revision": "orders[OFFLINE=1 REALTIME=1 boundary=2021-09-24T08:00:00Z{kafka/orders/0/0@14}]",
    "change": "update amount = amount * 1.2",
    "sentence": "Would correct 1 of 1 bucket of 'orders': 7 rows before, 7 after; 0 added, 0 removed, 7 changed.",
    "buckets": [_BUCKET],
}
_STATUS = {
    "id": _ID,
    "table": "orders",
    "created_at": "2021-11-21T10:38:00Z",
    "state": "PLANNED",
    "buckets_done": 0,
    "buckets_total": 1,
    "change": "update amount = amount * 1.2",
    "result": _PLAN["sentence"],
    "reason": None,
    "user": "ada",
    "error": None,
    "taken": 0,
}
_REPORT = {"id": _ID, "table": "orders", "buckets_done": 1, "buckets_total": 1, "sentence": "Corrected 1 bucket."}
BackfillId = Annotated[str, Path(examples=[_ID])]


class BackfillBody(BaseModel):
    """A backfill to plan: exactly one of `update`, `delete`, `input` (a path on the server's machine), `sql`,
    `fromRejected` and `fromKafka`.

    `from` and `to` are ISO 8601 with a zone, or in the format of the time column.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        populate_by_name=True,
        json_schema_extra={
            "examples": [
                {
                    "table": "orders",
                    "from": "2021-09-24T06:00:00Z",
                    "to": "2021-09-24T08:00:00Z",
                    "update": "amount = amount * 1.2",
                    "where": "order_status = 'OPEN'",
                    "reason": "prices were net",
                }
            ]
        },
    )

    table: str = Field(max_length=_LENGTH_MAX)
    start: str | None = Field(default=None, alias="from", max_length=_LENGTH_MAX)
    end: str | None = Field(default=None, alias="to", max_length=_LENGTH_MAX)
    update: str | None = Field(default=None, max_length=_TEXT_MAX)
    delete: bool = False
    where: str | None = Field(default=None, max_length=_TEXT_MAX)
    input: str | None = Field(default=None, min_length=1, max_length=4096)
    sql: str | None = Field(default=None, min_length=1, max_length=100_000)
    from_rejected: bool = Field(default=False, alias="fromRejected")
    from_kafka: bool = Field(default=False, alias="fromKafka")
    expect: list[str] = Field(default_factory=list, max_length=1000)
    reason: str | None = Field(default=None, max_length=_TEXT_MAX)
    user: str | None = Field(default=None, max_length=_LENGTH_MAX)


class Going(BaseModel):
    """Options of a run: `atomic` (all buckets in one commit), `newest_first`, at most `rows_per_second`."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"reason": "prices were net", "newestFirst": True}]},
    )

    atomic: bool = False
    newest_first: bool = Field(default=False, alias="newestFirst")
    rows_per_second: float | None = Field(default=None, alias="rowsPerSecond", gt=0)
    max_parallel: int | None = Field(default=None, alias="maxParallel", ge=1)
    reason: str | None = Field(default=None, max_length=_TEXT_MAX)
    user: str | None = Field(default=None, max_length=_LENGTH_MAX)


class TakingBack(BaseModel):
    """Reason and user of a revert."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"reason": "it was right"}]})

    reason: str | None = Field(default=None, max_length=_TEXT_MAX)
    user: str | None = Field(default=None, max_length=_LENGTH_MAX)


@router.post("/backfills", summary="Plan a backfill", responses=shown(_PLAN))
@needs(Right.OPERATE)
async def plan(request: Request, correction: BackfillBody) -> Any:
    """Stages the corrected rows and returns the plan when it is ready. Queries see no change before `resume`."""
    context = context_of(request)
    target = await run_in_threadpool(offline_table, context, correction.table)
    return await context.carried_out("backfill_plan", {**correction.model_dump(), "table": target.name})


@router.get("/backfills", summary="List the backfills", responses=shown([_STATUS]))
def list_backfills(request: Request, table: Annotated[str | None, Query(examples=["orders"])] = None) -> Any:
    """Returns the status of every backfill, newest first."""
    context = context_of(request)
    name = path_table(context, table).table.name if table is not None else None
    return VERBS["backfills"].call(context.home, table=name)


@router.get("/backfills/{backfill}", summary="Show a backfill", responses=shown({**_STATUS, "plan": _PLAN}))
def show_backfill(request: Request, backfill: BackfillId) -> Any:
    """Returns the status of a backfill with its plan."""
    return VERBS["backfill"].call(context_of(request).home, backfill=backfill[:_LENGTH_MAX])


@router.post("/backfills/{backfill}/resume", summary="Run or resume a backfill", responses=shown(_REPORT))
@needs(Right.OPERATE)
async def resume(
    request: Request,
    backfill: BackfillId,
    how: Going | None = None,
    wait: Annotated[bool, Query(description="Wait for its end, and answer its report or its error")] = True,
) -> Any:
    """Applies the buckets that are not done yet. Without `wait` returns the queued run; follow it at `/runs/{id}`."""
    context = context_of(request)
    arguments = {"backfill": backfill[:_LENGTH_MAX], **(how or Going()).model_dump()}
    if wait:
        return await context.carried_out("backfill_run", arguments)
    return views.run_view(await run_in_threadpool(context.queue, "backfill_run", arguments))


@router.post("/backfills/{backfill}/pause", summary="Pause a backfill", responses=shown({**_STATUS, "state": "PAUSED"}))
@needs(Right.OPERATE)
def pause(request: Request, backfill: BackfillId) -> Any:
    """Stops the run after the commit in progress."""
    return VERBS["backfill_pause"].call(context_of(request).home, backfill=backfill[:_LENGTH_MAX])


@router.post(
    "/backfills/{backfill}/cancel", summary="Cancel a backfill", responses=shown({**_STATUS, "state": "CANCELLED"})
)
@needs(Right.OPERATE)
async def cancel(request: Request, backfill: BackfillId) -> Any:
    """Stops the run for good; corrected buckets stay corrected.

    Rejected rows that it took but did not add to the table become rejected rows again.
    """
    context, name = context_of(request), backfill[:_LENGTH_MAX]
    status = await run_in_threadpool(lambda: VERBS["backfill_cancel"].call(context.home, backfill=name))
    if status["taken"] and status["state"] in {"CANCELLED", "REVERTED"}:
        await context.carried_out("backfill_release", {"backfill": name})
        status = {**status, "taken": 0}
    return status


@router.post("/backfills/{backfill}/revert", summary="Take a backfill back", responses=shown(_REPORT))
@needs(Right.OPERATE)
async def revert(request: Request, backfill: BackfillId, why: TakingBack | None = None) -> Any:
    """Restores everything the backfill replaced, in one commit, and returns the report."""
    arguments = {"backfill": backfill[:_LENGTH_MAX], **(why or TakingBack()).model_dump()}
    return await context_of(request).carried_out("backfill_revert", arguments)
