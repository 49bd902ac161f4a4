"""Routes `/tables/{t}/schema|size|metadata`: schema, size and metadata of a table, in Pinot's formats."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from hybrid.config.table_config import Half
from hybrid.operations.segments import Segment
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import HalfType, TableName, path_table
from hybrid.serve.schemas import EXAMPLE

router = StrictRouter(tags=["tables"])
_PLACES = {Half.OFFLINE: "offlineSegments", Half.REALTIME: "realtimeSegments"}


@router.get("/tables/{table}/schema", summary="Show a table's schema", responses=shown(EXAMPLE))
def show_schema(request: Request, table: TableName) -> Any:
    """Returns the schema as it was submitted."""
    return path_table(context_of(request), table).table.spec.schema_doc


@router.get(
    "/tables/{table}/size",
    summary="Show a table's size",
    responses=shown(
        {
            "tableName": "events",
            "reportedSizeInBytes": 2048,
            "estimatedSizeInBytes": 2048,
            "reportedSizePerReplicaInBytes": 2048,
            "offlineSegments": {
                "reportedSizeInBytes": 2048,
                "estimatedSizeInBytes": 2048,
                "missingSegments": 0,
                "reportedSizePerReplicaInBytes": 2048,
                "segments": {},
            },
            "realtimeSegments": None,
        }
    ),
)
def show_size(request: Request, table: TableName, verbose: bool = True) -> Any:
    """Returns the bytes of data files by half and segment; without `verbose` only by half."""
    found = path_table(context_of(request), table)
    segments = found.segments()
    half_sizes = {
        place: _part(segments, half, verbose) if half in found.halves else None for half, place in _PLACES.items()
    }
    return {"tableName": found.table.name, **_bytes(sum(segment.bytes for segment in segments)), **half_sizes}


@router.get(
    "/tables/{table}/metadata",
    summary="Show a table's figures",
    responses=shown(
        {
            "tableName": "events_OFFLINE",
            "diskSizeInBytes": 2048,
            "numSegments": 1,
            "numRows": 7,
            "columnLengthMap": {},
            "columnCardinalityMap": {},
            "maxNumMultiValuesMap": {},
            "columnIndexSizeMap": {},
        }
    ),
)
def show_metadata(request: Request, table: TableName, type_: HalfType = None) -> Any:
    """Returns bytes, segments and stored rows of the table or a half. There are no indexes to report."""
    target = path_table(context_of(request), table, type_)
    segments = target.segments()
    name = target.table.name
    return {
        "tableName": f"{name}_{target.halves[0]}" if len(target.halves) == 1 else name,
        "diskSizeInBytes": sum(segment.bytes for segment in segments),
        "numSegments": len(segments),
        "numRows": sum(segment.rows for segment in segments),
        "columnLengthMap": {},
        "columnCardinalityMap": {},
        "maxNumMultiValuesMap": {},
        "columnIndexSizeMap": {},
    }


def _part(segments: list[Segment], half: Half, verbose: bool) -> dict[str, Any]:
    own = [segment for segment in segments if segment.half == half]
    names = {
        segment.name: {
            "reportedSizeInBytes": segment.bytes,
            "estimatedSizeInBytes": segment.bytes,
            "maxReportedSizePerReplicaInBytes": segment.bytes,
            "serverInfo": {},
        }
        for segment in own
    }
    return {**_bytes(sum(segment.bytes for segment in own)), "missingSegments": 0, "segments": names if verbose else {}}


def _bytes(size: int) -> dict[str, int]:
    return {"reportedSizeInBytes": size, "estimatedSizeInBytes": size, "reportedSizePerReplicaInBytes": size}
