"""Passes requests about tables that are pinned to other servers on to one of these (docs/adr/0070).

A load balancer may send any request to any server. One about remote tables is passed on to the first server that holds
all of them and answers; a header keeps it from being passed on again. Only reading requests are: others are for the
home that writes. When a server does not answer, the next one is asked, as nothing was changed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from hybrid.config.pinning import Pinning
from hybrid.errors import BusyError, ConflictError, HybridError, QueryError
from hybrid.home.accounts import Right
from hybrid.query.error_mapping import stopped
from hybrid.serve.authentication import Authentication
from hybrid.serve.authorization import RouteRights
from hybrid.serve.console.page import accepts_json, error_page
from hybrid.serve.context import ServerContext
from hybrid.serve.error_responses import QUERY_PATHS, answer_of
from hybrid.serve.peer_client import Header, PeerRequest, PeerResponse, PeerSilent, PeerTuning, ask_peer
from hybrid.serve.pinot_response import failed_answer, json_response
from hybrid.serve.statement_records import StatementRecord
from hybrid.serve.table_requests import TableRequest, TableRequests

_LOG = logging.getLogger(__name__)
PASSED_ON, ANSWERED_BY, TABLES = b"x-hybrid-passed-on", b"x-hybrid-answered-by", b"x-hybrid-tables"
_SENT = frozenset(
    {b"accept", b"authorization", b"content-type", b"hx-request", b"hx-target", b"if-none-match", b"user-agent"}
)
_KEPT_BACK = frozenset(
    {b"connection", b"date", b"keep-alive", b"server", b"set-cookie", b"trailer", b"transfer-encoding", b"upgrade",
     b"x-request-id"}
)  # fmt: skip
# Statuses of a server that does not have the table (yet), or has too many connections: another one may answer.
_NOT_ANSWERED = frozenset({421, 503})
# A statement's own server stops it in time; only if it does not, its connection is closed so long after that.
_GRACE_S = 1.0
_SILENT_S = 5.0  # a server that did not answer is asked last for so long


class HoldersDownError(HybridError):
    """No server that holds the tables answers."""

    code = "holders-down"
    http_status = 503
    pinot_code = 427  # Pinot's SERVER_NOT_RESPONDING


class NotHereError(HybridError):
    """A request that was passed on to a server which does not have its tables."""

    code = "not-here"
    http_status = 421


@dataclass
class _Passing:
    """A request on its way: where it comes from and goes to, and whether its response has begun."""

    scope: Scope
    receive: Receive
    send: Send
    found: TableRequest
    servers: Sequence[str]
    has_begun: bool = False

    @property
    def kind(self) -> str:
        """What it is, as the metrics name it."""
        return "statement" if self.found.sql is not None else "other"


@dataclass
class PassingOn:
    """The requests that one server passes on. Use it on the event loop only."""

    context: ServerContext
    pinning: Pinning
    authentication: Authentication
    rights: RouteRights
    requests: TableRequests
    tuning: PeerTuning = field(default_factory=PeerTuning)
    most: int = 512
    _running: int = 0
    _silent_until: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls, context: ServerContext, authentication: Authentication, rights: RouteRights, routes: Sequence[BaseRoute]
    ) -> PassingOn | None:
        """For a server; None for one that has all tables. SpecError when `[pinning]` cannot be honoured."""
        pinning = context.home.settings.pinning
        requests = TableRequests(routes, context.limits)
        return None if pinning is None else cls(context, pinning, authentication, rights, requests)

    async def answer(self, scope: Scope, receive: Receive, send: Send, app: ASGIApp) -> None:
        """Answer a request: pass it on if it is about remote tables, else let `app` answer it here."""
        remote = self.context.home.context.remote.names()
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        if lacking := self._lacking(scope):
            await _refusal(scope, _not_here(lacking))(scope, receive, send)
            return
        if not remote:  # no table yet, or the home that writes
            await app(scope, receive, send)
            return
        try:
            found, receive = await self.requests.find(scope, receive, remote, self.context.home.context.listed_names)
        except Exception as error:  # of reading the body
            await answer_of(Request(scope), error)(scope, receive, send)
            return
        tables = [table for table in found.tables if table in remote] if found is not None else []
        if found is None or not tables:
            await app(scope, receive, send)
            return
        began = time.monotonic()
        passing = _Passing(scope, receive, send, found, ())
        try:
            self._check(scope, tables)
            passing.servers = self._servers([*tables, *(table for table in found.tables if table not in tables)])
            await self._passed(passing)
        except Exception as error:
            if passing.has_begun:
                _LOG.warning("A response that was passed on ended early: %s", error)
                return  # without the end of the response, so that nobody takes it for whole
            if found.sql is not None:
                StatementRecord(self.context, Request(scope), found.sql, began).failed(error)
            await _refusal(scope, error)(scope, receive, send)

    def _lacking(self, scope: Scope) -> list[str]:
        """The tables of a request that was passed on to this server which it does not have, or not yet."""
        tables = next((value.decode("utf-8", "replace") for name, value in scope["headers"] if name == TABLES), "")
        home = self.context.home.context
        return [table for table in tables.split(",") if table and home.definitions.find(table) is None]

    def _check(self, scope: Scope, tables: Sequence[str]) -> None:
        """Raise the error of a request that is not passed on."""
        headers = dict(scope["headers"])
        if PASSED_ON in headers:
            raise _not_here(tables)
        at = f"This server does not hold {_names(tables)}, but {self._places(tables)}."
        if self.rights.right_for(scope["method"], scope["path"]) is not Right.READ:
            raise ConflictError(f"{at} Nothing was done.", hint="Ask the server of the home that writes the warehouse.")
        account = scope["state"].get("account")
        if account is not None and b"authorization" not in headers:
            raise ConflictError(f"{at} A browser's session is of one server alone.", hint="Sign in there.")
        if self._running >= self.most:
            raise BusyError(f"{self.most} requests are passed on by this server already.", hint="Ask again later.")

    def _servers(self, tables: Sequence[str]) -> list[str]:
        """The other servers that hold all these tables. Those that were silent just now come last."""
        holders = self.pinning.holders_of_all(tables)
        if not holders:
            where = "; ".join(f"'{table}' is on {self._places([table])}" for table in tables)
            raise QueryError(
                f"No server holds all tables of this statement: {where}.",
                hint=f"Set together = [{json.dumps(list(tables))}] under [pinning] on each server, or raise copies.",
            )
        others = [server for server in holders if server != self.pinning.own]
        if not others:
            raise HoldersDownError(
                f"This server alone holds {_names(tables)}, and has not brought all of it yet.", hint="Ask again later."
            )
        now = time.monotonic()
        return sorted(others, key=lambda server: self._silent_until.get(server, now) > now)

    def _places(self, tables: Sequence[str]) -> str:
        return ", ".join(dict.fromkeys(server for table in tables for server in self.pinning.holders(table)))

    async def _passed(self, passing: _Passing) -> None:
        """Pass a request on within its time, for as long as its caller waits and nobody cancels it."""
        loop, cancelled = asyncio.get_running_loop(), asyncio.Event()
        timeout_ms = passing.found.timeout_ms
        left_s = None if timeout_ms is None else timeout_ms / 1000 + _GRACE_S
        with ExitStack() as stack:
            if passing.found.sql is not None:
                record = StatementRecord(self.context, Request(passing.scope), passing.found.sql, time.monotonic())
                running = stack.enter_context(record.running())
                running(partial(_set_on, loop, cancelled))
            self._running += 1
            work = asyncio.ensure_future(self._ask_each(passing))
            others = [asyncio.ensure_future(_gone(passing.receive)), asyncio.ensure_future(cancelled.wait())]
            try:
                await asyncio.wait([work, *others], timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    work.result()
                elif not others[0].done():
                    raise stopped(None if cancelled.is_set() else timeout_ms)
            finally:
                self._running -= 1
                for task in (work, *others):
                    task.cancel()
                await asyncio.gather(work, *others, return_exceptions=True)  # the connection is closed behind it

    async def _ask_each(self, passing: _Passing) -> None:
        """Send the response of the first server that answers. HoldersDownError when none does."""
        request, reasons = self._request(passing), list[str]()
        for server in passing.servers:
            try:
                response = await ask_peer(server, request, self.tuning)
            except PeerSilent as error:
                self._silent_until[server] = time.monotonic() + _SILENT_S
                reasons.append(f"{server} {error}")
                self.context.metrics.passed_on(server, passing.kind, "silent")
                continue
            try:
                if response.status in _NOT_ANSWERED:
                    reasons.append(f"{server} answers with status {response.status}")
                    self.context.metrics.passed_on(server, passing.kind, "refused")
                    continue
                self.context.metrics.passed_on(server, passing.kind, "answered")
                await self._respond(passing, server, response)
                return
            finally:
                response.close()
        raise HoldersDownError(
            f"No server answers that holds {_names(passing.found.tables)}: {'; '.join(reasons)}.",
            hint="Start one of them, or raise copies under [pinning].",
        )

    async def _respond(self, passing: _Passing, server: str, response: PeerResponse) -> None:
        headers = [header for header in response.headers if header[0] not in _KEPT_BACK]
        headers.append((ANSWERED_BY, server.encode()))
        passing.has_begun = True
        await passing.send({"type": "http.response.start", "status": response.status, "headers": headers})
        try:
            async for chunk in response.chunks():
                await passing.send({"type": "http.response.body", "body": chunk, "more_body": True})
        except PeerSilent as error:
            raise HoldersDownError(f"{server} {error}.") from error
        await passing.send({"type": "http.response.body", "body": b"", "more_body": False})

    def _request(self, passing: _Passing) -> PeerRequest:
        scope = passing.scope
        headers: list[Header] = [
            (name, value)
            for name, value in scope["headers"]
            if name in _SENT and not (name == b"authorization" and self.authentication.is_of_home(value))
        ]
        headers.append((b"x-request-id", scope["state"]["request_id"].encode()))
        headers.append((PASSED_ON, self.pinning.own.encode()))
        headers.append((TABLES, ",".join(passing.found.tables).encode()))
        query = scope.get("query_string", b"")
        target = scope["raw_path"] + (b"?" + query if query else b"")
        return PeerRequest(scope["method"].encode(), target, headers, passing.found.body)


def _refusal(scope: Scope, error: Exception) -> Response:
    """The response to a request that was not passed on, or without success, as its path has errors."""
    request, path = Request(scope), scope["path"]
    if path in QUERY_PATHS and isinstance(error, QueryError):
        return json_response(failed_answer(error, request.state.request_id))
    if path.startswith("/ui/") and not path.endswith(".json") and not accepts_json(request):
        return error_page(request, error, "Another server")
    return answer_of(request, error)


def _not_here(tables: Sequence[str]) -> NotHereError:
    return NotHereError(f"This server does not have {_names(tables)}.", hint="Its [pinning] differs, or is new.")


def _names(tables: Sequence[str]) -> str:
    return ("table " if len(tables) == 1 else "tables ") + ", ".join(f"'{table}'" for table in tables)


def _set_on(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    """Set an event of the loop from another thread."""
    loop.call_soon_threadsafe(event.set)


async def _gone(receive: Receive) -> None:
    """Wait until the caller has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
