"""Which tables a request is about, on a server with pinned tables: by its path, its arguments or its statement."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.routing import BaseRoute, Route, compile_path
from starlette.types import Message, Receive, Scope

from hybrid.errors import QueryError
from hybrid.operations.statement_tables import StatementTables, may_name, tables_of_statement
from hybrid.query.execution import Limits, timeout_by
from hybrid.serve.context import ServerLimits
from hybrid.serve.pinot_response import requested_options, requested_timeout
from hybrid.sql.tables import table_and_half

_VERBS = "/verbs/"
_EXPORTS = "/query/export"
_SHORT = 16 * 1024  # bytes of a body that is searched on the event loop
# In JSON's text a line break of a statement is a letter right before the next word, and any letter may be escaped.
_LINE_BREAKS = re.compile(rb"\\[bfnrt]")
# The keys of a body, or the parameters of an address, are `sql` and, where there are any, `queryOptions` and `params`.
_STATEMENTS = {
    "POST": frozenset({"/query/sql", "/query", "/sql", _EXPORTS, "/verbs/query", "/verbs/explain"}),
    "GET": frozenset({"/query/sql", "/sql", _EXPORTS, "/ui/query", "/ui/query.json"}),
}


@dataclass(frozen=True)
class TableRequest:
    """A request about tables: their names, its body if it was read, and its time limit, ms (None: no limit).

    `sql` is its statement; None where it has none.
    """

    tables: Sequence[str]
    body: bytes
    timeout_ms: int | None
    sql: str | None = None


class TableRequests:
    """Finds out which tables requests are about. `routes` with `{table}` in their path are about that one."""

    def __init__(self, routes: Sequence[BaseRoute], limits: ServerLimits) -> None:
        named = (route for route in routes if isinstance(route, Route) and "{table}" in route.path)
        self._patterns = [(compile_path(route.path)[0], route) for route in named]
        self._routes = {route.path: route for route in routes if isinstance(route, Route)}
        self._limits = limits

    async def find(
        self, scope: Scope, receive: Receive, remote: frozenset[str], tables: Callable[[], Collection[str]]
    ) -> tuple[TableRequest | None, Receive]:
        """The request, if it may be about a remote table, and what its route reads instead of `receive`.

        `tables` gives the names of all tables. The scope gets the request's route, for the log and the metrics.
        """
        method, path = scope["method"], scope["path"]
        if path in _STATEMENTS.get(method, ()) or (method == "POST" and path.startswith(_VERBS)):
            body = await _read(receive) if method == "POST" else b""
            receive = _replayed(body, receive)
            if method == "POST" and len(body) <= _SHORT and not _may_name(body, remote):
                return None, receive  # most statements: their bodies are parsed once, by their route
            # In a thread: reading and parsing a long statement takes long.
            return await run_in_threadpool(self._by_arguments, scope, body, remote, tables), receive
        return self._by_path(scope, remote, tables), receive

    def _by_path(
        self, scope: Scope, remote: frozenset[str], tables: Callable[[], Collection[str]]
    ) -> TableRequest | None:
        if not may_name(scope["path"], remote):
            return None
        for pattern, route in self._patterns:
            match = pattern.match(scope["path"]) if scope["method"] in (route.methods or ()) else None
            name = match and _table(match["table"], tables())
            if name:
                scope["route"] = route
                return TableRequest((name,), b"", self._limits.query_timeout_ms or None)
        return None

    def _by_arguments(
        self, scope: Scope, body: bytes, remote: frozenset[str], tables: Callable[[], Collection[str]]
    ) -> TableRequest | None:
        arguments, path = _arguments(scope, body), scope["path"]
        scope["route"] = self._routes.get(path) or self._routes.get("/verbs/{verb}")
        if path not in _STATEMENTS[scope["method"]]:
            table = arguments.get("table")
            name = _table(table, tables()) if isinstance(table, str) else None
            return None if name is None else TableRequest((name,), body, self._limits.query_timeout_ms or None)
        sql = arguments.get("sql")
        if not isinstance(sql, str) or not may_name(sql, remote):
            return None
        try:
            found = tables_of_statement(sql, arguments.get("params"), tables())
        except QueryError:
            return None  # whoever runs the statement says what is wrong
        return TableRequest(found.names, body, self._timeout_ms(path, arguments, found), sql)

    def _timeout_ms(self, path: str, arguments: Mapping[str, Any], found: StatementTables) -> int | None:
        limits = self._limits
        most_ms = (limits.export_timeout_s * 1000 if path == _EXPORTS else limits.query_timeout_ms) or None
        asked = arguments.get("queryOptions")
        try:
            timeout_ms = requested_timeout(requested_options(asked)) if isinstance(asked, str) else None
            return timeout_by(found.options, Limits(timeout_ms or most_ms, timeout_max_ms=most_ms))
        except QueryError:
            return most_ms


def _may_name(body: bytes, remote: frozenset[str]) -> bool:
    """Whether a body may name one of these tables, also in a text with escaped letters."""
    return b"\\u" in body or may_name(_LINE_BREAKS.sub(b" ", body).decode("utf-8", "replace"), remote)


def _arguments(scope: Scope, body: bytes) -> dict[str, Any]:
    """The arguments of a body, or of an address; none where they cannot be read, which its route reports."""
    if scope["method"] == "GET":
        return {name: values[0] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()}
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _table(name: str, tables: Collection[str]) -> str | None:
    """The table that a name means, with or without the suffix of a half."""
    try:
        return table_and_half(name, tables)[0]
    except QueryError:
        return None


async def _read(receive: Receive) -> bytes:
    """The body of a request, whose length the middleware bounds."""
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read once more, then what comes behind it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed
