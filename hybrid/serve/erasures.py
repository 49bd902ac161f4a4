"""Routes `/erasures`: a person's rows leave every place of one or several tables, with a certificate."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from fastapi import Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from hybrid.errors import NotFoundError, UsageError
from hybrid.home.accounts import Right
from hybrid.operations.erasure import by_table
from hybrid.rpc import json_views as views
from hybrid.rpc.verbs import VERBS
from hybrid.serve.authentication import who_asks
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import ServerContext, context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import whole_table

router = StrictRouter(tags=["corrections"])
_ID = "erasure-5f0c1a2b3c4d5e6f"
_LENGTH_MAX, _TEXT_MAX, _TABLES_MAX = 200, 10_000, 100
_CERTIFICATE = {
    "id": _ID,
    "created_at": "2021-11-21T10:38:00Z",
    "state": "DONE",
    "tables": [{"table": "orders", "columns": ["customer_id"], "condition": "customer_id = ?"}],
    "sentence": "Erased from 'orders': 4 stored rows matched, and none is left in 24 rows of 6 files.",
}
ErasureId = Annotated[str, Path(examples=[_ID])]
Wait = Annotated[bool, Query(description="Wait for its end, and answer its certificate or its error")]


class SubjectBody(BaseModel):
    """Conditions by table. `dryRun` only reports where matching rows are stored.

    `undecided` also removes rejected messages for which it cannot be decided whether they match, `droppedCopies`
    copies of dropped tables with such rows.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"tables": {"orders": "customer_id = 101"}, "reason": "erasure request 17"}]},
    )

    tables: dict[str, Annotated[str, Field(min_length=1, max_length=_TEXT_MAX)]] = Field(
        min_length=1, max_length=_TABLES_MAX
    )
    undecided: bool = False
    dropped_copies: bool = Field(default=False, alias="droppedCopies")
    dry_run: bool = Field(default=False, alias="dryRun")
    reason: str | None = Field(default=None, max_length=_TEXT_MAX)
    user: str | None = Field(default=None, max_length=_LENGTH_MAX)


@router.post("/erasures", summary="Erase a person's rows", responses=shown(_CERTIFICATE))
@needs(Right.ADMIN)
async def erase(request: Request, subject: SubjectBody, wait: Wait = True) -> Any:
    """Removes the rows from every place, and returns the certificate. The same request resumes an open erasure."""
    context = context_of(request)
    if subject.dry_run and not wait:
        raise UsageError("wait: a dry run is always waited for, and removed at its end. Leave wait=false out.")
    begun = await run_in_threadpool(_begin, context, subject)
    arguments = {"erasure": begun["id"]}
    if not begun["is_new"]:  # a new one has its options; one that was open gets them when it runs
        arguments |= {name: value for name, value in _options(subject).items() if value}
    if not subject.dry_run:
        return await _run(context, arguments, wait)
    return await _look(context, {**arguments, "dry_run": True, "give_back": begun["is_new"]})


@router.get("/erasures", summary="List the erasures", responses=shown([_CERTIFICATE]))
def list_erasures(request: Request) -> Any:
    """Returns the certificate of every erasure, newest first."""
    return VERBS["erasures"].call(context_of(request).home)


@router.get("/erasures/{erasure}", summary="Show a certificate", responses=shown(_CERTIFICATE))
def show_erasure(request: Request, erasure: ErasureId) -> Any:
    """Returns the certificate of an erasure, complete or not."""
    return VERBS["erasure"].call(context_of(request).home, erasure=erasure[:_LENGTH_MAX])


@router.post("/erasures/{erasure}/resume", summary="Resume an erasure", responses=shown(_CERTIFICATE))
@needs(Right.ADMIN)
async def resume(request: Request, erasure: ErasureId, wait: Wait = True) -> Any:
    """Goes on with an open erasure. Without `wait` returns the queued run; follow it at `/runs/{id}`."""
    return await _run(context_of(request), {"erasure": erasure[:_LENGTH_MAX]}, wait)


@router.delete("/erasures/{erasure}", summary="Discard an erasure", responses=shown(_CERTIFICATE))
@needs(Right.ADMIN)
def discard(request: Request, erasure: ErasureId) -> Any:
    """Ends an open erasure without its proof and removes its conditions. What was removed stays removed."""
    return VERBS["erase_discard"].call(context_of(request).home, erasure=erasure[:_LENGTH_MAX])


async def _run(context: ServerContext, arguments: dict[str, Any], wait: bool) -> Any:
    if wait:
        return await context.carried_out("erase_run", arguments)
    return views.run_view(await run_in_threadpool(context.queue, "erase_run", arguments))


async def _look(context: ServerContext, arguments: dict[str, Any]) -> Any:
    """Return the report of a dry run. An erasure that was begun for it is removed, by the run if that ends later."""
    run = None
    try:
        run = await run_in_threadpool(context.queue, "erase_run", arguments)
        run = await context.ended(run)
    finally:
        if arguments["give_back"] and (run is None or not run.incomplete):
            with suppress(NotFoundError):  # the run has removed it
                await run_in_threadpool(context.home.erasures.give_back, arguments["erasure"])
    return context.report(run)


def _begin(context: ServerContext, subject: SubjectBody) -> Any:
    tables = by_table(subject.tables, lambda name: whole_table(context, name, "an erasure").name)
    return VERBS["erase_begin"].call(context.home, tables=tables, **_options(subject))


def _options(subject: SubjectBody) -> dict[str, Any]:
    return {**subject.model_dump(exclude={"dry_run", "tables"}), "user": who_asks() or subject.user}
