"""Routes `/segments/{t}/...ReplaceSegments`: Pinot's segment replacement protocol.

Pushed segments are staged until the replacement ends.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from hybrid.home.accounts import Right
from hybrid.lake.pushes import PushState
from hybrid.serve.authentication import who_asks
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import HalfType, TableName, offline_table

router = StrictRouter(tags=["segments"])
_ID = "replace-5f0c1a2b3c4d5e6f"
_NAMES_MAX = 10_000
_LENGTH_MAX = 200
Name = Annotated[str, Field(max_length=_LENGTH_MAX)]
Notes = dict[Name, Annotated[str, Field(max_length=_NAMES_MAX)]]
EntryId = Annotated[str, Query(alias="segmentLineageEntryId", max_length=_LENGTH_MAX, examples=[_ID])]


class Start(BaseModel):
    """Segments to replace and their replacements; either may be empty. `customMap` is stored as the reason."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "examples": [{"segmentsFrom": ["orders_1_9_0"], "segmentsTo": ["orders_1_4", "orders_5_9"]}]
        },
    )

    segments_from: list[Name] = Field(default_factory=list, alias="segmentsFrom", max_length=_NAMES_MAX)
    segments_to: list[Name] = Field(default_factory=list, alias="segmentsTo", max_length=_NAMES_MAX)
    notes: Notes | None = Field(default=None, alias="customMap", max_length=100)


class End(BaseModel):
    """The new segments to publish, a subset of `segmentsTo` at the start; empty means all."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"segmentsTo": ["orders_1_4"]}]}
    )

    segments_to: list[Name] = Field(default_factory=list, alias="segmentsTo", max_length=_NAMES_MAX)
    notes: Notes | None = Field(default=None, alias="customMap", max_length=100)


class TakeBack(BaseModel):
    """Reason of a revert."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"customMap": {"why": "wrong prices"}}]}
    )

    notes: Notes | None = Field(default=None, alias="customMap", max_length=100)


@router.post(
    "/segments/{table}/startReplaceSegments",
    summary="Start to replace segments",
    responses=shown({"segmentLineageEntryId": _ID}),
    operation_id="startReplaceSegments",
)
@needs(Right.OPERATE)
def start(
    request: Request,
    table: TableName,
    body: Start,
    type_: HalfType = None,
    force_cleanup: Annotated[bool, Query(alias="forceCleanup", description="Revert what is in the way")] = False,
) -> Any:
    """Starts a replacement: jobs stage the segments of `segmentsTo`, and queries do not see them before the end."""
    target = offline_table(context_of(request), table, type_)
    entry = target.replacing.start(
        body.segments_from, body.segments_to, force_cleanup=force_cleanup, notes=body.notes, user=who_asks()
    )
    return {"segmentLineageEntryId": entry.id}


@router.post(
    "/segments/{table}/endReplaceSegments",
    summary="End to replace segments",
    responses=shown(
        {"segmentLineageEntryId": _ID, "state": "COMPLETED", "sentence": "Added segment 'orders_1_4': ..."}
    ),
    operation_id="endReplaceSegments",
)
@needs(Right.OPERATE)
async def end(
    request: Request, table: TableName, entry: EntryId, body: End | None = None, type_: HalfType = None
) -> Any:
    """Publishes all pushed segments in one commit and waits for it. Does nothing if ended already."""
    context = context_of(request)
    target = await run_in_threadpool(offline_table, context, table, type_)
    await run_in_threadpool(target.replacing.find, entry)
    names = body.segments_to if body is not None else []
    arguments = {"table": target.name, "entry": entry, "segments_to": names}
    report = await context.carried_out("replacement_end", arguments)
    return _answer(entry, PushState.COMPLETED, report["sentence"])


@router.post(
    "/segments/{table}/revertReplaceSegments",
    summary="Revert a replacement of segments",
    responses=shown({"segmentLineageEntryId": _ID, "state": "REVERTED", "sentence": "Reverted ..."}),
    operation_id="revertReplaceSegments",
)
@needs(Right.OPERATE)
async def revert(
    request: Request,
    table: TableName,
    entry: EntryId,
    body: TakeBack | None = None,
    type_: HalfType = None,
    force: Annotated[bool, Query(alias="forceRevert", description="Revert a replacement that has not ended")] = False,
) -> Any:
    """Before the end, with `forceRevert`, discards pushed segments; after it, restores the replaced segments."""
    context = context_of(request)
    target = await run_in_threadpool(offline_table, context, table, type_)
    state = await run_in_threadpool(target.replacing.state, entry)
    if state in (PushState.IN_PROGRESS, PushState.REVERTED):
        sentence = await run_in_threadpool(lambda: target.replacing.take_back(entry, force=force))
        return _answer(entry, PushState.REVERTED, sentence)
    replacement = await run_in_threadpool(target.replacement, entry)
    notes = (body.notes if body is not None else None) or {}
    reason = ", ".join(f"{key}={value}" for key, value in notes.items()) or None
    report = await context.carried_out("revert", {"table": target.name, "entry": replacement.id, "reason": reason})
    return _answer(entry, PushState.REVERTED, report["sentence"])


def _answer(entry: str, state: PushState, sentence: str) -> dict[str, str]:
    return {"segmentLineageEntryId": entry, "state": state.value, "sentence": sentence}
