"""Routes `/query/export`: the rows of a statement as CSV, JSON, Markdown, Parquet or Arrow, sent as they come."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hybrid.errors import HybridError, NotFoundError, error_document
from hybrid.files.results.result_format import ResultFormat, format_accepted, format_named
from hybrid.files.results.result_sink import ResultSink
from hybrid.home.accounts import Right
from hybrid.operations.exports import EXPORT_MEMORY_BYTES
from hybrid.progress import Silent
from hybrid.query.engine import QueryOptions
from hybrid.query.options import AS_OF_OPTION, refuse_request_options
from hybrid.serve.authentication import who_asks
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.byte_channel import ByteChannel, ReaderGone
from hybrid.serve.context import context_of
from hybrid.serve.export_slots import EXPORTS_MAX
from hybrid.serve.pinot_response import requested_options, requested_timeout
from hybrid.serve.statement_records import StatementRecord

router = StrictRouter(tags=["query"])
_LOG = logging.getLogger(__name__)
# Exports have threads of their own, so that statements do not wait for slow clients.
_THREADS = ThreadPoolExecutor(EXPORTS_MAX, thread_name_prefix="export")
_SAFE = "".join(chr(code) for code in range(32, 127) if chr(code) != "%")


class ExportBody(BaseModel):
    """A statement, and the format of its rows: by default that of the header `Accept`, else csv."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"sql": "select * from orders", "format": "parquet"}]}, extra="forbid"
    )

    sql: str = Field(min_length=1, max_length=1_000_000)
    format: str | None = Field(default=None, max_length=40)
    as_of: str | None = Field(default=None, alias="asOf", max_length=100_000)
    query_options: str | None = Field(default=None, alias="queryOptions", max_length=10_000)
    params: dict[str, Any] | list[Any] | None = None


_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The rows",
        "content": {fmt.media_type: {"schema": {"type": "string", "format": "binary"}} for fmt in ResultFormat},
    },
    429: {"description": "Too many exports run at once"},
}


@router.post("/query/export", summary="Stream a statement's rows", response_class=Response, responses=_RESPONSES)
@needs(Right.READ)
async def post_export(request: Request, body: ExportBody) -> Response:
    """Sends all rows of a statement, without Pinot's default LIMIT and without a bound of rows.

    An error before the first rows is JSON with its HTTP status. After that the connection ends before the response
    does.
    """
    return await _Export(request, body).response()


@router.get("/query/export", summary="Stream a statement's rows", response_class=Response, responses=_RESPONSES)
async def get_export(
    request: Request,
    sql: Annotated[str, Query(min_length=1, max_length=1_000_000, examples=["select * from orders"])],
    format: Annotated[str | None, Query(max_length=40, examples=["csv"])] = None,
    as_of: Annotated[str | None, Query(alias="asOf", max_length=100_000)] = None,
    options: Annotated[str | None, Query(alias="queryOptions", max_length=10_000)] = None,
) -> Response:
    """Sends what `POST /query/export` sends, for the statement in the URL."""
    return await _Export(request, ExportBody(sql=sql, format=format, asOf=as_of, queryOptions=options)).response()


class _Export:
    """One request for an export. A thread runs the statement; the event loop sends what it writes."""

    def __init__(self, request: Request, body: ExportBody) -> None:
        self._context, self._request, self._body = context_of(request), request, body
        self._options_asked = requested_options(body.query_options)
        known = {"asOf"} if request.method == "GET" else set[str]()  # a POST has it in its body
        self._other_keys = [key for key in request.query_params if key not in known]
        accept = request.headers.get("accept", "")
        self._format = format_named(body.format) if body.format is not None else format_accepted(accept)
        self._id = request.state.request_id
        self._account = who_asks()
        self._began = time.monotonic()
        self._record = StatementRecord(self._context, request, body.sql, self._began)
        self._channel = ByteChannel(asyncio.get_running_loop())
        self._sink = ResultSink(self._channel, self._format, Silent())

    async def response(self) -> Response:
        """The response, once the first bytes are there. Raises the error of a statement that fails before them."""
        slots = self._context.exports
        try:
            options = self._options()
            slots.enter()
        except HybridError as error:
            self._record.failed(error)
            raise
        loop, context = asyncio.get_running_loop(), copy_context()
        try:
            running = loop.run_in_executor(_THREADS, lambda: context.run(self._run, options))
        except BaseException:
            slots.leave()
            raise
        running.add_done_callback(lambda _: slots.leave())
        watch = loop.create_task(self._watch())
        try:
            first = await self._channel.next_chunk()
        except BaseException:
            self._leave()
            watch.cancel()
            raise
        return _StreamedResponse(self._channel, first, self._headers(), watch, self._leave)

    def _run(self, options: QueryOptions) -> None:
        """Runs the statement and writes its rows, in a thread."""
        sink = self._sink
        try:
            with self._record.running() as running:
                given = replace(options, running=running, sink=sink)
                result = self._context.home.query(self._body.sql, options=given)
                report = sink.complete()
        except BaseException as error:
            if isinstance(error, ReaderGone):
                self._record.abandoned()
            else:
                self._record.failed(error)
            self._end_with(error)
            return
        self._record.answered(result, report.rows)
        self._channel.end()

    def _end_with(self, error: BaseException) -> None:
        # Before the first bytes the response can have the error's status, and no rows.
        document = error_document(error) if isinstance(error, HybridError) and self._channel.has_begun else None
        try:
            with suppress(HybridError):  # nobody reads it
                self._sink.abandon(document)
        finally:
            self._channel.end(error)  # whatever happens, because the response waits for it

    async def _watch(self) -> None:
        """Waits until the client has disconnected."""
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        """Nobody reads the rest: interrupts the statement."""
        self._channel.close()
        with suppress(NotFoundError):
            self._context.queries.cancel(self._id, self._account)

    def _options(self) -> QueryOptions:
        limits, asked = self._context.limits, self._options_asked
        refuse_request_options(asked, self._other_keys)
        most_ms = limits.export_timeout_s * 1000 or None
        memory = min(limits.query_memory_bytes or EXPORT_MEMORY_BYTES, EXPORT_MEMORY_BYTES)
        return replace(
            self._context.query_options(),
            timeout_ms=requested_timeout(asked) or most_ms,
            timeout_max_ms=most_ms,
            rows_max=None,
            bytes_max=None,
            memory_bytes=memory,
            whole=True,
            as_of=self._body.as_of or asked.get(AS_OF_OPTION),
            began=self._began,
            params=self._body.params,
        )

    def _headers(self) -> dict[str, str]:
        sink = self._sink
        name = f"result.{'md' if self._format is ResultFormat.MARKDOWN else self._format.value}"
        kind = self._format.media_type + ("; charset=utf-8" if self._format.media_type.startswith("text/") else "")
        return {
            "Content-Type": kind,
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Hybrid-Revision": quote(sink.revision, safe=_SAFE),
            **({"X-Hybrid-Warnings": quote("\n".join(sink.warnings), safe=_SAFE)} if sink.warnings else {}),
        }


class _StreamedResponse(Response):
    """Sends the chunks of a channel. A result that is not whole ends the connection in the middle of the response."""

    def __init__(
        self,
        channel: ByteChannel,
        first: bytes | None,
        headers: dict[str, str],
        watch: asyncio.Task[None],
        leave: Callable[[], None],
    ) -> None:
        super().__init__(headers=headers)
        del self.headers["content-length"]
        self._channel, self._first, self._watch, self._leave = channel, first, watch, leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the response."""
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            chunk = self._first
            while chunk is not None:
                async with asyncio.timeout(self._channel.stall_s):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                chunk = await self._channel.next_chunk()
        except ReaderGone:
            return
        except (HybridError, TimeoutError) as error:
            _LOG.warning("An export ended early: %s", error or "the client reads nothing")
            return  # without the end of the response, so that nobody takes it for whole
        finally:
            self._watch.cancel()
            self._leave()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
