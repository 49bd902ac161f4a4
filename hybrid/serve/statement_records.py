"""Statements that clients ask of this server: counted in the metrics, written into the query log, listed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from starlette.requests import Request

from hybrid.errors import CANCELLED, HybridError, QueryError
from hybrid.home.query_log import QueryRecord, state_of
from hybrid.operations.queries import record_answer
from hybrid.query.engine import QueryResult
from hybrid.serve.authentication import who_asks
from hybrid.serve.context import ServerContext

_AGENT_MAX = 100


class StatementRecord:
    """One statement; `began` is when its request came (monotonic). `answered` or a method of failures ends it."""

    def __init__(self, context: ServerContext, request: Request, sql: str, began: float) -> None:
        self._context, self._path, self._sql, self._began = context, request.scope["path"], sql, began
        self._id, self._account, self._client = request.state.request_id, who_asks(), _client_of(request)
        self._record = QueryRecord(
            context.query_log, sql, id=self._id, account=self._account, client=self._client, began=began
        )

    def running(self) -> AbstractContextManager[Callable[[Callable[[], None]], None]]:
        """Register the statement as running; the context's value accepts its interrupt."""
        return self._context.queries.running(self._id, self._account, self._sql, self._client)

    def answered(self, result: QueryResult, rows: int | None = None) -> None:
        """The statement has its result; `rows` where they went to a stream."""
        tables = [revision.table for revision in result.revision.tables]
        self._context.metrics.query(tables, self._path, result.source, time.monotonic() - self._began)
        record_answer(self._record, result, rows)

    def failed(self, error: BaseException) -> None:
        """The statement has no result."""
        code = error.pinot_code if isinstance(error, HybridError) else None
        self._context.metrics.query_failed(state_of(error), code)
        self._record.failed(error)

    def abandoned(self) -> None:
        """Nobody reads the result any more: the statement was cancelled, which is no error."""
        error = QueryError("The client has gone.", pinot_code=CANCELLED)
        self._context.metrics.query_failed(state_of(error), None)
        self._record.failed(error)


def _client_of(request: Request) -> str:
    """The address of a client, and the name of its program, as it gives it."""
    address = (request.scope.get("client") or ("local",))[0]
    agent = next((value for name, value in request.scope["headers"] if name == b"user-agent"), b"")
    return f"{address} {agent[:_AGENT_MAX].decode('latin-1')}" if agent else str(address)
