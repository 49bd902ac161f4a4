"""`/tables/{t}/schema|size|metadata`: what a table is and how large, in Pinot's shapes."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from hybrid.config.table_config import Half
from hybrid.operations.segments import Segment
from hybrid.serve.context import context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import HalfType, TableName, path_table
from hybrid.serve.schemas import EXAMPLE

router = APIRouter(tags=["tables"])
_PLACES = {Half.OFFLINE: "offlineSegments", Half.REALTIME: "realtimeSegments"}


@router.get("/tables/{table}/schema", summary="Show a table's schema", responses=shown(EXAMPLE))
def show_schema(request: Request, table: TableName) -> Any:
    """The schema as it was given."""
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
    """Bytes of data files, by half and segment; without `verbose` only by half."""
    found = path_table(context_of(request), table)
    segments = found.segments()
    kept = {place: _part(segments, half, verbose) if half in found.halves else None for half, place in _PLACES.items()}
    return {"tableName": found.table.name, **_bytes(sum(one.bytes for one in segments)), **kept}


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
    """Bytes, segments and stored rows of the table, or of one half. There are no indexes to tell of."""
    found = path_table(context_of(request), table, type_)
    segments = found.segments()
    name = found.table.name
    return {
        "tableName": f"{name}_{found.halves[0]}" if len(found.halves) == 1 else name,
        "diskSizeInBytes": sum(one.bytes for one in segments),
        "numSegments": len(segments),
        "numRows": sum(one.rows for one in segments),
        "columnLengthMap": {},
        "columnCardinalityMap": {},
        "maxNumMultiValuesMap": {},
        "columnIndexSizeMap": {},
    }


def _part(segments: list[Segment], half: Half, verbose: bool) -> dict[str, Any]:
    own = [one for one in segments if one.half == half]
    names = {
        one.name: {
            "reportedSizeInBytes": one.bytes,
            "estimatedSizeInBytes": one.bytes,
            "maxReportedSizePerReplicaInBytes": one.bytes,
            "serverInfo": {},
        }
        for one in own
    }
    return {**_bytes(sum(one.bytes for one in own)), "missingSegments": 0, "segments": names if verbose else {}}


def _bytes(size: int) -> dict[str, int]:
    return {"reportedSizeInBytes": size, "estimatedSizeInBytes": size, "reportedSizePerReplicaInBytes": size}
