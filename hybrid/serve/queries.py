"""Routes `/query/sql` and `/sql`: SQL statements, in the protocol of Pinot's broker."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from hybrid.errors import CANCELLED, HybridError, NotFoundError, QueryError
from hybrid.home.accounts import Right
from hybrid.operations.query_list import LIMIT, LIMIT_MAX, QueryFilter, list_queries
from hybrid.query.engine import QueryOptions, QueryResult
from hybrid.query.options import AS_OF_OPTION, apply_options, refuse_request_options
from hybrid.rpc.json_views import logged_query_view
from hybrid.serve.authentication import may_operate, who_asks
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import context_of
from hybrid.serve.openapi import shown
from hybrid.serve.pinot_response import failed_answer, json_response, query_answer, requested_options, requested_timeout
from hybrid.serve.statement_records import StatementRecord

router = StrictRouter(tags=["query"])
ARROW = "application/vnd.apache.arrow.stream"


class StatementBody(BaseModel):
    """An SQL statement. Other keys that Pinot's clients send (`trace`, `debugOptions`) have no effect."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sql": "select count(*) from orders"}]}, extra="allow")

    sql: str = Field(min_length=1, max_length=1_000_000)
    query_options: str | None = Field(default=None, alias="queryOptions", max_length=10_000)
    params: dict[str, Any] | list[Any] | None = None


_SHAPE = StatementBody.model_json_schema()
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
            "revision": "orders[OFFLINE=3 REALTIME=5 boundary=2021-09-24T07:00:00Z{kafka/orders/0/0@7}]",
            "answeredFrom": "cache",
        }
    ),
}
_LOGGED = {
    "id": "0d7a6a8b0f2a4c55",
    "started_at": "2026-11-26T10:38:00.017Z",
    "duration_ms": 1.904,
    "state": "DONE",
    "slow": False,
    "account": "ada",
    "client": "127.0.0.1 python-requests/2.32.5",
    "tables": ["orders"],
    "source": "cache",
    "rows": 1,
    "segments": 3,
    "bytes": 0,
    "revision": "orders[OFFLINE=3 REALTIME=5 boundary=2021-09-24T07:00:00Z{kafka/orders/0/0@7}]",
    "code": None,
    "error": None,
    "statement": "select count(*) from orders",
}
# Serializing more rows would block the event loop.
_ROWS_AT_ONCE = 100


@router.post("/query/sql", summary="Answer a statement", **_DESCRIBED)
@router.post("/query", summary="Answer a statement", include_in_schema=False)
@router.post("/sql", summary="Answer a statement (the controller's path)", **_DESCRIBED)
@needs(Right.READ)
async def post_sql(request: Request) -> Response:
    """Runs a statement and returns Pinot's broker response, with `revision`.

    A failed query is HTTP 200 with `exceptions`.
    """
    return await _respond(request, _read(await request.body()))


@router.get("/query/sql", summary="Answer a statement of the URL", responses=_DESCRIBED["responses"])
@router.get("/sql", summary="Answer a statement of the URL (the controller's path)", responses=_DESCRIBED["responses"])
async def get_sql(
    request: Request,
    sql: Annotated[str, Query(min_length=1, max_length=1_000_000, examples=["select count(*) from orders"])],
    options: Annotated[str | None, Query(alias="queryOptions", max_length=10_000)] = None,
) -> Response:
    """Runs the statement in `sql` and returns what `POST /query/sql` returns."""
    return await _respond(request, StatementBody(sql=sql, queryOptions=options))


async def _respond(request: Request, statement: StatementBody) -> Response:
    query = _QueryRequest(request, statement)
    result = query.at_once()  # a thread switch would double the latency
    if result is not None and len(result.rows) <= _ROWS_AT_ONCE:
        return query.answer(result)
    try:
        return await context_of(request).admission.run(request, who_asks(), partial(query.answer, result), query.leave)
    except HybridError as error:
        return query.failed(error)


def _read(body: bytes) -> StatementBody:
    """Parse the statement in a body, without FastAPI, whose parsing takes as long as a small query."""
    try:
        return StatementBody.model_validate_json(body)
    except ValidationError as error:
        details = error.errors()[0]
        raise RequestValidationError([{**details, "loc": ("body", *details["loc"])}]) from None


@router.get("/query/log", summary="List statements", responses=shown([_LOGGED]))
def list_statements(
    request: Request,
    slow: Annotated[bool, Query(description="Those that took slow_query_ms or longer")] = False,
    since: Annotated[
        str | None, Query(max_length=100, description="Those that ended since, or so long ago: 2h")
    ] = None,
    account: Annotated[str | None, Query(max_length=100)] = None,
    table: Annotated[str | None, Query(max_length=300, examples=["orders"])] = None,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = LIMIT,
) -> Any:
    """Returns statements that run or have ended, newest first. An account that may only read gets its own."""
    wanted = QueryFilter(slow, since, account, table, limit)
    return [logged_query_view(found) for found in list_queries(context_of(request).home.context, wanted)]


@router.delete("/query/{request_id}", summary="Stop a running statement")
@needs(Right.READ)
def cancel(request_id: str, request: Request) -> dict[str, str]:
    """Interrupts a running statement, whose caller then gets exception 503.

    The id is the `requestId` of the response, or the `X-Request-Id` of the request.
    An account with the right to read can stop only its own statements.
    """
    context_of(request).queries.cancel(request_id, None if may_operate() else who_asks())
    return {"status": f"Cancelled query {request_id}."}


class _QueryRequest:
    """One request to run a statement, and how to answer it."""

    def __init__(self, request: Request, statement: StatementBody) -> None:
        self._context, self._request, self._sql = context_of(request), request, statement.sql
        self._params = statement.params
        # A key of the URL that is an option counts as little as one of the body.
        in_url = request.query_params if request.scope["query_string"] else ()
        self._other_keys = (*(statement.model_extra or ()), *in_url)
        self._asked_for = requested_options(statement.query_options)
        self._as_arrow = ARROW in request.headers.get("accept", "")
        self._began = time.monotonic()
        self._record = StatementRecord(self._context, request, statement.sql, self._began)
        self._gone = False

    def leave(self) -> None:
        """The client has disconnected: interrupt the statement if it runs, or never start it if it waits."""
        self._gone = True
        with suppress(NotFoundError):
            self._context.queries.cancel(self._request.state.request_id, who_asks())

    def failed(self, error: HybridError) -> Response:
        """Return the response for a failed statement."""
        self._record.failed(error)
        return json_response(failed_answer(error, self._request.state.request_id))

    def at_once(self) -> QueryResult | None:
        """Return the result if the event loop can compute and serialize it without a noticeable delay, else None."""
        if self._as_arrow or not self._context.callers.is_alone(self._request.scope.get("client")):
            return None
        try:
            return self._context.home.query_at_once(self._sql, self._options())
        except HybridError:
            return None  # `answer` reports the error

    def answer(self, result: QueryResult | None = None) -> Response:
        """Return the response, from `result` if there is one; otherwise run the statement."""
        if result is None:
            try:
                options = self._options()
                if self._gone:
                    raise QueryError("The client has gone.", pinot_code=CANCELLED)
                with self._record.running() as running:
                    result = self._context.home.query(self._sql, options=replace(options, running=running))
            except HybridError as error:
                return self.failed(error)
            except BaseException as error:
                self._record.failed(error)
                raise
        tables = [revision.table for revision in result.revision.tables]
        result = apply_options(result, self._asked_for, lambda: [self._context.home.spec(name) for name in tables])
        self._record.answered(result)
        if self._as_arrow:
            return Response(_arrow(result), media_type=ARROW)
        return json_response(query_answer(result, self._request.state.request_id))

    def _options(self) -> QueryOptions:
        limits = self._context.limits
        refuse_request_options(self._asked_for, self._other_keys)
        timeout_ms = requested_timeout(self._asked_for) or limits.query_timeout_ms or None
        as_of = self._asked_for.get(AS_OF_OPTION)
        return replace(
            self._context.query_options(), timeout_ms=timeout_ms, as_of=as_of, began=self._began, params=self._params
        )


def _arrow(result: QueryResult) -> bytes:
    import pyarrow as pa

    table, sink = result.arrow(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
