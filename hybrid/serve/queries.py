"""The broker's paths: `POST /query/sql` and `/sql`, as Pinot's clients call them."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from hybrid.errors import HybridError
from hybrid.query.asof import AS_OF_OPTION
from hybrid.query.engine import QueryOptions, QueryResult
from hybrid.serve.context import Context, context_of
from hybrid.serve.openapi import shown
from hybrid.serve.wire import failed_answer, query_answer, requested_options, requested_timeout

router = APIRouter(tags=["query"])
ARROW = "application/vnd.apache.arrow.stream"


class Statement(BaseModel):
    """A statement; other keys that Pinot's clients send (`trace`, `debugOptions`) have no effect."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sql": "select count(*) from orders"}]})

    sql: str = Field(min_length=1, max_length=1_000_000)
    query_options: str | None = Field(default=None, alias="queryOptions", max_length=10_000)


_SHAPE = Statement.model_json_schema()
_DESCRIBED: dict[str, Any] = {
    "openapi_extra": {"requestBody": {"required": True, "content": {"application/json": {"schema": _SHAPE}}}},
    "responses": shown(
        {
            "resultTable": {
                "dataSchema": {"columnNames": ["count(*)"], "columnDataTypes": ["LONG"]},
                "rows": [[14]],
            },
            "exceptions": [],
            "numDocsScanned": 14,
            "totalDocs": 14,
            "timeUsedMs": 2,
            "requestId": "0d7a6a8b0f2a4c55",
            "revision": "orders[OFFLINE=3 REALTIME=5 boundary=2021-09-24T07:00:00.000Z{kafka/orders/0/0@7}]",
            "answeredFrom": "cache",
        }
    ),
}
# Threads of their own, each with its connection: no query waits for a slow path, and none takes a new connection.
_WORKERS = ThreadPoolExecutor(16, thread_name_prefix="query")


@router.post("/query/sql", summary="Answer a statement", **_DESCRIBED)
@router.post("/query", summary="Answer a statement", include_in_schema=False)
@router.post("/sql", summary="Answer a statement (the controller's path)", **_DESCRIBED)
async def post_sql(request: Request) -> Response:
    """Pinot's broker response, with `revision`; a failed query is HTTP 200 with `exceptions`."""
    statement = _read(await request.body())
    work = partial(_answer, context_of(request), request, statement.sql, statement.query_options)
    return await asyncio.get_running_loop().run_in_executor(_WORKERS, copy_context().run, work)


def _read(body: bytes) -> Statement:
    """The statement in a body. By hand, as FastAPI's own way takes as long as a small query."""
    try:
        return Statement.model_validate_json(body)
    except ValidationError as error:
        found = error.errors()[0]
        raise RequestValidationError([{**found, "loc": ("body", *found["loc"])}]) from None


@router.delete("/query/{request_id}", summary="Stop a running statement")
def cancel(request_id: str, request: Request) -> dict[str, str]:
    """Interrupts it; its own caller gets the exception 503. Ids are the responses', or a request's `X-Request-Id`."""
    context_of(request).queries.cancel(request_id)
    return {"status": f"Cancelled query {request_id}."}


def _answer(context: Context, request: Request, sql: str, options: str | None) -> Response:
    request_id, started = request.state.request_id, time.monotonic()
    as_arrow = ARROW in request.headers.get("accept", "")
    try:
        asked = requested_options(options)
        timeout_ms = requested_timeout(asked) or context.limits.query_timeout_ms
        with context.queries.running(request_id) as running:
            allowed = QueryOptions(
                timeout_ms,
                context.limits.query_rows,
                memory_bytes=context.limits.query_memory_bytes or None,
                spill=context.home.settings.spill,
                running=running,
                as_of=asked.get(AS_OF_OPTION),
            )
            result = context.home.query(sql, allowed)
    except HybridError as error:
        context.metrics.query_failed(error.pinot_code)
        return _json(failed_answer(error, request_id))
    took_s = time.monotonic() - started
    tables = [one.table for one in result.revision.tables]
    context.metrics.query(tables, request.scope["path"], result.source, took_s)
    if as_arrow:
        return Response(_arrow(result), media_type=ARROW)
    return _json(query_answer(result, request_id))


def _json(document: dict[str, Any]) -> Response:
    return Response(json.dumps(document, ensure_ascii=False, separators=(",", ":")), media_type="application/json")


def _arrow(result: QueryResult) -> bytes:
    import pyarrow as pa

    table, sink = result.arrow(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
