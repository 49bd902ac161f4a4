"""Routes `/tables/{t}/pauseConsumption` and related: ingestion of a table from Kafka, in Pinot's formats."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Request

from hybrid.api.table import Table
from hybrid.catalog.run_record import RunRecord
from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError, UsageError
from hybrid.home.accounts import Right
from hybrid.operations.pauses import ConsumingInfo, PauseStatus
from hybrid.rpc.verbs import SEAL
from hybrid.runtime.json_values import epoch_ms, instant
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import ServerContext, context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import TableName, path_table

router = StrictRouter(tags=["consumption"])
_LENGTH_MAX = 200
_PAUSED = shown(
    {
        "pauseFlag": True,
        "consumingSegments": ["orders__0__2__20211121T1038Z"],
        "reasonCode": "ADMINISTRATIVE",
        "comment": "new producers",
        "timestamp": "2021-11-21T10:38:00Z",
        "description": "Table 'orders' is paused (new producers).",
        "state": "PAUSED",
        "detail": "new producers",
    }
)
Comment = Annotated[str | None, Query(description="Why; `pauseStatus` shows it", max_length=1000)]


@router.post("/tables/{table}/pauseConsumption", summary="Pause ingestion", responses=_PAUSED)
@needs(Right.OPERATE)
def pause(request: Request, table: TableName, comment: Comment = None) -> Any:
    """Stops reading from Kafka for this table until it is resumed; committed rows stay queryable."""
    return _pause_view(_realtime(context_of(request), table).pause(comment))


@router.post("/tables/{table}/resumeConsumption", summary="Resume ingestion", responses=_PAUSED)
@needs(Right.OPERATE)
def resume(
    request: Request,
    table: TableName,
    comment: Comment = None,
    consume_from: Annotated[
        str, Query(alias="consumeFrom", description="lastConsumed; nothing else, for rows would be lost or doubled")
    ] = "lastConsumed",
) -> Any:
    """Resumes ingestion after the last committed offsets."""
    target = _realtime(context_of(request), table)
    if consume_from.lower() != "lastconsumed":
        raise UsageError(
            f"consumeFrom: '{consume_from[:_LENGTH_MAX]}' would lose or double rows; only lastConsumed is honoured."
        )
    return _pause_view(target.resume())


@router.get("/tables/{table}/pauseStatus", summary="Show whether ingestion is paused", responses=_PAUSED)
def show_pause(request: Request, table: TableName) -> Any:
    """Returns whether, since when and why ingestion is paused, and its last reported state."""
    return _pause_view(_realtime(context_of(request), table).pause_status())


@router.get(
    "/tables/{table}/consumingSegmentsInfo",
    summary="Show the progress of consuming segments",
    responses=shown(
        {
            "_segmentToConsumingInfoMap": {
                "orders__0__2__20211121T1038Z": [
                    {
                        "serverName": "pipeline",
                        "consumerState": "CONSUMING",
                        "lastConsumedTimestamp": 1637491080000,
                        "partitionToOffsetMap": {"0": "14"},
                        "partitionOffsetInfo": {
                            "currentOffsetsMap": {"0": "14"},
                            "latestUpstreamOffsetMap": {"0": "14"},
                            "recordsLagMap": {"0": "0"},
                            "availabilityLagMsMap": {"0": "UNKNOWN"},
                        },
                    }
                ]
            },
            "serversFailingToRespond": 0,
            "serversUnparsableRespond": 0,
        }
    ),
)
def show_consuming(request: Request, table: TableName) -> Any:
    """Returns committed offsets and Kafka's end offsets by segment; UNKNOWN where Kafka does not answer."""
    target = _realtime(context_of(request), table)
    return {
        "_segmentToConsumingInfoMap": {segment.segment: [_consuming_view(segment)] for segment in target.consuming()},
        "serversFailingToRespond": 0,
        "serversUnparsableRespond": 0,
    }


@router.post(
    "/tables/{table}/forceCommit",
    summary="Seal the consuming segments",
    responses=shown({"forceCommitJobId": "seal_1637491080000", "forceCommitStatus": "SUCCESS"}),
)
@needs(Right.OPERATE)
def force_commit(
    request: Request,
    table: TableName,
    segments: Annotated[str | None, Query(description="One consuming segment; all, if left out")] = None,
    partitions: Annotated[str | None, Query(description="Not built yet: name a segment, or none")] = None,
) -> Any:
    """Queues the seal and responds at once; `/tables/forceCommitStatus/{id}` shows when it is done."""
    context = context_of(request)
    target = _realtime(context, table)
    if partitions is not None or "," in (segments or ""):
        raise UsageError("Give one consuming segment (segments=NAME), or none for all.")
    consuming = target.half(Half.REALTIME).realtime.consuming_names()
    if segments is not None and segments not in consuming:
        raise NotFoundError.named("Consuming segment", segments[:_LENGTH_MAX], consuming)
    run = context.queue("seal", {"table": target.name, "name": segments})
    return {"forceCommitJobId": run.id, "forceCommitStatus": "SUCCESS"}


@router.get(
    "/tables/forceCommitStatus/{job}",
    summary="Show whether segments are sealed",
    responses=shown(
        {
            "jobId": "seal_1637491080000",
            "tableName": "orders_REALTIME",
            "jobType": "FORCE_COMMIT",
            "submissionTimeMs": "1637491080000",
            "segmentsForceCommitted": ["orders__0__2__20211121T1038Z"],
            "segmentsYetToBeCommitted": [],
            "numberOfSegmentsYetToBeCommitted": 0,
            "state": "DONE",
            "result": "Sealed orders__0__2__20211121T1038Z of 'orders'.",
        }
    ),
)
def show_force_commit(
    request: Request,
    job: Annotated[str, Path(description="What forceCommit answered", examples=["seal_1637491080000"])],
) -> Any:
    """Returns the job of a forceCommit, with the state and result of its run."""
    context = context_of(request)
    run = context.home.run(job[:_LENGTH_MAX])
    if run.type != SEAL:
        raise NotFoundError(f"Run '{run.id}' is no forceCommit.")
    waiting = _waiting(context, run)
    return {
        "jobId": run.id,
        "tableName": f"{run.table_name}_{Half.REALTIME}",
        "jobType": "FORCE_COMMIT",
        "submissionTimeMs": str(epoch_ms(run.created_at)),
        "segmentsForceCommitted": list(run.report["segments"]) if run.report else waiting,
        "segmentsYetToBeCommitted": waiting,
        "numberOfSegmentsYetToBeCommitted": len(waiting),
        "state": run.state,
        "result": run.result if not run.incomplete else run.progress,
    }


def _waiting(context: ServerContext, run: RunRecord) -> list[str]:
    """Return the segments that the run has not sealed yet."""
    if not run.incomplete:
        return []
    segment = run.arguments.get("name")
    return (
        [segment]
        if segment
        else sorted(context.home.table(run.table_name).half(Half.REALTIME).realtime.consuming_names())
    )


def _realtime(context: ServerContext, name: str) -> Table:
    target = path_table(context, name)
    if target.half is Half.OFFLINE:
        raise UsageError(f"'{name}' names the OFFLINE half, which consumes nothing.")
    target.table.half(Half.REALTIME)
    return target.table


def _pause_view(found: PauseStatus) -> dict[str, Any]:
    return {
        "pauseFlag": found.paused,
        "consumingSegments": list(found.consuming),
        "reasonCode": "ADMINISTRATIVE",
        "comment": found.comment or ("Table is paused." if found.paused else "Table is unpaused."),
        "timestamp": instant(found.at_ms),
        "description": found.sentence,
        "state": found.state,
        "detail": found.detail,
    }


def _consuming_view(found: ConsumingInfo) -> dict[str, Any]:
    partition = str(found.partition)
    latest = "UNKNOWN" if found.latest is None else str(found.latest)
    lag = "UNKNOWN" if found.latest is None else str(max(0, found.latest - found.offset))
    return {
        "serverName": "pipeline",
        "consumerState": found.state,
        "lastConsumedTimestamp": found.looked_ms or 0,
        "partitionToOffsetMap": {partition: str(found.offset)},
        "partitionOffsetInfo": {
            "currentOffsetsMap": {partition: str(found.offset)},
            "latestUpstreamOffsetMap": {partition: latest},
            "recordsLagMap": {partition: lag},
            "availabilityLagMsMap": {partition: "UNKNOWN"},
        },
    }
