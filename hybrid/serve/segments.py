"""Routes `/segments`: segment lists, metadata, status and lineage, in Pinot's formats."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError
from hybrid.home.accounts import Right
from hybrid.lake.pushes import OpenReplacement, PushState
from hybrid.operations.segments import Segment
from hybrid.replace.lineage import EntryState, ReplacementEntry
from hybrid.runtime.json_values import epoch_ms
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import context_of
from hybrid.serve.error_responses import not_built
from hybrid.serve.openapi import NOT_BUILT, StatusBody, shown
from hybrid.serve.path_parameters import HalfType, PathTable, TableName, path_table

router = StrictRouter(tags=["segments"])
SegmentName = Annotated[str, Path(examples=["orders_1632463351000_1632467070000_0"])]
_STATES = {EntryState.ACTIVE: "COMPLETED", EntryState.REVERTED: "REVERTED"}
_LENGTH_MAX = 200
_STATUS = {"segmentName": "orders_1632463351000_1632467070000_0", "segmentStatus": "GOOD"}


@router.get(
    "/segments/{table}",
    summary="List the segments",
    responses=shown(
        [{"OFFLINE": ["orders_1632463351000_1632467070000_0"]}, {"REALTIME": ["orders__0__0__20211121T1038Z"]}]
    ),
)
async def list_segments(request: Request, table: TableName, type_: HalfType = None) -> Any:
    """Returns sorted segment names by half; a table of one half has one entry.

    Waits briefly until the messages that Kafka holds are committed.
    """
    context = context_of(request)
    target = await run_in_threadpool(path_table, context, table, type_)
    await context.await_commits(target.table)
    segments = await run_in_threadpool(target.segments)
    return [
        {half.value: sorted(segment.name for segment in segments if segment.half == half)} for half in target.halves
    ]


@router.get(
    "/segments/{table}/lineage",
    summary="Show which segments replaced which",
    responses=shown(
        {
            "tableNameWithType": "orders_OFFLINE",
            "lineageEntries": {
                "replace-20211121T103800Z-1a2b": {
                    "segmentsFrom": ["orders_1632463351000_1632467070000_0"],
                    "segmentsTo": ["orders_1632463351000_1632467070000_0"],
                    "state": "COMPLETED",
                    "timestamp": 1637491080000,
                }
            },
        }
    ),
)
def show_lineage(request: Request, table: TableName, type_: HalfType = None) -> Any:
    """Returns replacements and reverts of the OFFLINE half, oldest first; details: `/tables/{t}/replacements`."""
    target = path_table(context_of(request), table, type_)
    half = target.half or Half.OFFLINE
    entries: dict[str, dict[str, Any]] = {}
    if half is Half.OFFLINE:
        committed = {entry.id: _entry(entry) for entry in reversed(target.table.replacements())}
        started = {entry.id: _started(entry, state) for entry, state in target.table.replacing.started()}
        entries = {**started, **committed}
    oldest_first = sorted(entries.items(), key=lambda item: item[1]["timestamp"])
    return {"tableNameWithType": f"{target.table.name}_{half}", "lineageEntries": dict(oldest_first)}


@router.get(
    "/segments/{table}/{segment}/metadata",
    summary="Show a segment",
    responses=shown(
        {
            "segment.name": "orders_1632463351000_1632467070000_0",
            "segment.table.name": "orders",
            "segment.type": "OFFLINE",
            "segment.total.docs": "7",
            "segment.size.in.bytes": "2048",
            "segment.creation.time": "1637491080000",
            "segment.start.time": "1632463351000",
            "segment.end.time": "1632467070000",
            "segment.time.unit": "MILLISECONDS",
            "segment.push.time": "1637491080000",
        }
    ),
)
def show_segment(request: Request, table: TableName, segment: SegmentName) -> Any:
    """Returns Pinot's metadata keys, all values as text. A realtime segment also has its status and offsets."""
    target = path_table(context_of(request), table)
    return _metadata(target.table.name, _segment(target, segment))


@router.get("/segments/{table}/metadata", summary="Show all segments", responses=shown({"orders_1_2_0": {}}))
def show_segments(request: Request, table: TableName, type_: HalfType = None) -> Any:
    """Returns the metadata of all segments by name, each as `/segments/{table}/{segment}/metadata` returns it."""
    target = path_table(context_of(request), table, type_)
    return {segment.name: _metadata(target.table.name, segment) for segment in target.segments()}


@router.get("/tables/{table}/segmentsStatus", summary="Show the segments' states", responses=shown([_STATUS]))
def show_status(request: Request, table: TableName, type_: HalfType = None) -> Any:
    """Returns Pinot's segment states: a sealed or offline segment is GOOD, the newest of a partition is CONSUMING."""
    target = path_table(context_of(request), table, type_)
    return [{"segmentName": segment.name, "segmentStatus": _status(segment)} for segment in target.segments()]


@router.delete(
    "/segments/{table}/{segment}",
    summary="Drop a segment (not built yet)",
    response_model=StatusBody,
    responses=NOT_BUILT,
)
@needs(Right.ADMIN)
def delete_segment(request: Request, table: TableName, segment: SegmentName) -> JSONResponse:
    """Not built yet: always answers an error."""
    _segment(path_table(context_of(request), table), segment)
    return not_built("Dropping a segment is not built yet. A job with an empty input empties one: hybrid job run.")


@router.post("/segments/{table}/reload", summary="Reload the segments", response_model=StatusBody)
@needs(Right.OPERATE)
def reload_all(request: Request, table: TableName, type_: HalfType = None) -> Any:
    """Does nothing: no server keeps a copy of a segment or builds indexes for it."""
    return _nothing_to_reload(path_table(context_of(request), table, type_))


@router.post("/segments/{table}/{segment}/reload", summary="Reload a segment", response_model=StatusBody)
@needs(Right.OPERATE)
def reload_one(request: Request, table: TableName, segment: SegmentName) -> Any:
    """Does nothing, as for all segments: there is nothing to reload."""
    target = path_table(context_of(request), table)
    _segment(target, segment)
    return _nothing_to_reload(target)


@router.post("/segments/{table}/reset", summary="Reset the segments", response_model=StatusBody)
@needs(Right.OPERATE)
def reset_all(request: Request, table: TableName, type_: HalfType = None) -> Any:
    """Does nothing: a segment is committed whole, so none is ever in Pinot's state ERROR."""
    return _nothing_to_reset(path_table(context_of(request), table, type_))


@router.post("/segments/{table}/{segment}/reset", summary="Reset a segment", response_model=StatusBody)
@needs(Right.OPERATE)
def reset_one(request: Request, table: TableName, segment: SegmentName) -> Any:
    """Does nothing, as for all segments: there is nothing to reset."""
    target = path_table(context_of(request), table)
    _segment(target, segment)
    return _nothing_to_reset(target)


def _nothing_to_reset(found: PathTable) -> dict[str, str]:
    return {"status": f"Nothing to reset in '{found.table.name}': none of its segments is in ERROR."}


def _status(segment: Segment) -> str:
    return "CONSUMING" if segment.state == "CONSUMING" else "GOOD"


def _nothing_to_reload(found: PathTable) -> dict[str, str]:
    return {"status": f"Nothing to reload in '{found.table.name}': queries read what is committed."}


def _segment(found: PathTable, name: str) -> Segment:
    segments = {segment.name: segment for segment in found.segments()}
    if name not in segments:
        raise NotFoundError.named("Segment", name[:_LENGTH_MAX], segments)
    return segments[name]


def _started(entry: OpenReplacement, state: PushState) -> dict[str, Any]:
    return {
        "segmentsFrom": list(entry.segments_from),
        "segmentsTo": list(entry.segments_to),
        "state": state.value,
        "timestamp": epoch_ms(entry.created_at),
    }


def _entry(entry: ReplacementEntry) -> dict[str, Any]:
    return {
        "segmentsFrom": list(entry.lineage.segments_from),
        "segmentsTo": list(entry.lineage.segments_to),
        "state": _STATES[entry.state],
        "timestamp": epoch_ms(entry.created_at),
    }


def _metadata(table: str, one: Segment) -> dict[str, str]:
    values: dict[str, object] = {
        "segment.name": one.name,
        "segment.table.name": table,
        "segment.type": one.half,
        "segment.total.docs": one.rows,
        "segment.size.in.bytes": one.bytes,
        "segment.creation.time": one.created_ms,
        "segment.start.time": one.start_ms,
        "segment.end.time": one.end_ms,
        "segment.time.unit": "MILLISECONDS",
    }
    if one.half == Half.OFFLINE:
        values["segment.push.time"] = one.created_ms
    else:
        consuming = one.state == "CONSUMING"
        values["segment.realtime.status"] = "IN_PROGRESS" if consuming else "DONE"
        values["segment.realtime.startOffset"] = one.start_offset
        values["segment.realtime.endOffset"] = None if consuming else one.end_offset
        values["segment.realtime.numReplicas"] = 1
    return {key: str(value) for key, value in values.items() if value is not None}
