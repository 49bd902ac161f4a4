"""Routes `/tables/{t}/purges`: permanent removal of deleted rows, with proof."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from hybrid.home.accounts import Right
from hybrid.rpc.verbs import VERBS
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import TableName, path_table, whole_table

router = StrictRouter(tags=["corrections"])
_REPORT = {
    "id": "purge-5f0c1a2b3c4d5e6f",
    "table": "orders",
    "created_at": "2021-11-21T10:38:00Z",
    "columns": ["customer_id"],
    "rows": {"REALTIME": 2},
    "files": [],
    "sentence": "Removed 2 rows of REALTIME of 'orders'.",
}


class ErasureBody(BaseModel):
    """Deleted rows to remove permanently; `dryRun` only reports where they are stored.

    `undecided` also removes rejected messages for which it cannot be decided whether they match.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"where": "customer_id = 101", "reason": "erasure request 17"}]},
    )

    where: str = Field(min_length=1, max_length=10_000)
    undecided: bool = False
    dry_run: bool = Field(default=False, alias="dryRun")
    reason: str | None = Field(default=None, max_length=10_000)
    user: str | None = Field(default=None, max_length=200)


@router.post("/tables/{table}/purges", summary="Purge deleted rows", responses=shown(_REPORT))
@needs(Right.ADMIN)
async def purge(request: Request, table: TableName, erasure: ErasureBody) -> Any:
    """Removes deleted rows from every place that still stores them, verifies all places, and returns the record."""
    context = context_of(request)
    target = await run_in_threadpool(whole_table, context, table, "a purge")
    return await context.carried_out("purge", {"table": target.name, **erasure.model_dump()})


@router.get("/tables/{table}/purges", summary="List purges", responses=shown([_REPORT]))
def list_purges(request: Request, table: TableName) -> Any:
    """Returns the records of a table's purges, newest first."""
    context = context_of(request)
    return VERBS["purges"].call(context.home, table=path_table(context, table).table.name)
