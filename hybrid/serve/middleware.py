"""Middleware of every request: request id, checks of Host and account, body limit, log line, metrics.

A server on loopback accepts only loopback names: a foreign web page could otherwise reach it under its own name that
resolves to 127.0.0.1 (DNS rebinding). Every server refuses requests from pages of other sites: they could otherwise
post with the account that a browser remembers.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hybrid.errors import AccessError, RightError
from hybrid.home.accounts import Account, Right
from hybrid.logs import Audit, Later, Sampler, log_context
from hybrid.serve.authentication import Authentication, asking, may_pass
from hybrid.serve.authorization import RouteRights
from hybrid.serve.console.page import error_page
from hybrid.serve.context import ServerLimits
from hybrid.serve.error_responses import error_answer, hybrid_answer
from hybrid.serve.metrics import Metrics
from hybrid.serve.sessions import is_script_of_page, proves_same_origin, session_cookie, sign_in_answer

_LOG = Later(logging.getLogger(__name__))
_UPLOADS = ("/ingestFromFile",)
_FILE_FORMS = re.compile(r"/ui/tables/[^/]+/backfills")
_QUIET = ("/livez", "/readyz", "/health", "/metrics")
_PATH_MAX = 200
_REFUSED_PER_S = 10
_UNNAMED = (b"", b"application/x-www-form-urlencoded", b"text/plain")
Headers = dict[bytes, bytes]


class Middleware:
    """The outermost layer of the application. `hosts` None: any Host header is accepted."""

    def __init__(
        self,
        app: ASGIApp,
        limits: ServerLimits,
        metrics: Metrics,
        hosts: frozenset[str] | None,
        authentication: Authentication,
        rights: RouteRights,
        audit: Audit,
    ) -> None:
        self._app, self._limits, self._metrics, self._hosts = app, limits, metrics, hosts
        self._authentication, self._rights = authentication, rights
        self._audit, self._refused = audit, Sampler(_REFUSED_PER_S)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: Headers = dict(scope["headers"])
        request_id = _clean(headers.get(b"x-request-id")) or secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        seen = _Seen()
        with log_context(request_id=request_id):
            started = time.monotonic()
            try:
                await self._pass(scope, headers, receive, _watched(send, seen, request_id), seen)
            finally:
                self._told(scope, seen, time.monotonic() - started)

    async def _pass(self, scope: Scope, headers: Headers, receive: Receive, send: Send, seen: _Seen) -> None:
        limit = self._limits.upload_bytes if _takes_files(scope["path"], headers) else self._limits.body_bytes
        refusal = self._host_refusal(headers) or _length_refusal(headers, limit)
        if refusal is not None:
            await error_answer(*refusal, scope["path"], kind="usage", hint=None)(scope, receive, send)
            return
        try:
            peer = (scope.get("client") or (None,))[0]
            authorization, session = headers.get(b"authorization"), session_cookie(headers)
            seen.account = self._authentication.account(scope["path"], authorization, peer, session)
            scope["state"]["account"] = seen.account
            if scope["path"] == "/readyz":
                may_see = self._authentication.may_see_details(authorization, peer)
                scope["state"]["may_see_details"] = may_see
            seen.right = self._rights.right_for(scope["method"], scope["path"])
            may_pass(seen.account, seen.right, scope["method"], scope["path"])
            _check_origin(scope, headers, by_cookie=seen.account is not None and authorization is None)
        except AccessError as error:
            await _refusal(error, scope, headers)(scope, receive, send)
            return
        seen.passed = True
        with asking(seen.account):
            await self._app(_json_meant(scope, headers), _bounded(receive, limit), send)

    def _host_refusal(self, headers: Headers) -> tuple[int, str] | None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
        if self._hosts is not None and name not in self._hosts:
            return 421, f"This server answers on loopback only; Host '{host[:100]}' is not a loopback name."
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if origin and origin.partition("://")[2] != host:
            return 403, f"A page of '{origin[:100]}' may not use this server."
        return None

    def _told(self, scope: Scope, seen: _Seen, took_s: float) -> None:
        route = getattr(scope.get("route"), "path", "(no path)")
        self._metrics.request(scope["method"], route, seen.status, took_s)
        if scope["path"] in _QUIET or not (seen.passed or self._refused.passes()):
            return
        left_out = self._refused.left_out()
        if left_out:
            _LOG.info("%d refused requests before this one were not written down.", left_out)
        changes = seen.passed and seen.right is not Right.READ
        with asking(seen.account):
            log = self._audit if changes else _LOG
            log.info("%s %s %s in %.1f ms", scope["method"], scope["path"][:_PATH_MAX], seen.status, took_s * 1000)


def _check_origin(scope: Scope, headers: Headers, *, by_cookie: bool) -> None:
    """RightError for a change that a page of this server may send, and that does not come from one."""
    if not proves_same_origin(scope["method"], scope["path"], headers, by_cookie):
        raise RightError(
            "This change does not come from a page of this server.", hint="Other clients use the paths listed at /docs."
        )


def _refusal(error: AccessError, scope: Scope, headers: Headers) -> ASGIApp:
    """The response to a request without the account or the right that it needs."""
    if not isinstance(error, RightError):
        query = scope.get("query_string", b"").decode("latin-1")
        answer = sign_in_answer(scope["method"], scope["path"], query, headers)
        if answer is not None:
            return answer
    if b"hx-request" in headers:
        return error_page(Request(scope), error, "Not allowed")
    refusal = hybrid_answer(error, scope["path"])
    if is_script_of_page(headers) and "www-authenticate" in refusal.headers:
        del refusal.headers["www-authenticate"]
    return refusal


class _Seen:
    status = 500
    account: Account | None = None
    right = Right.READ  # that the request needs
    passed = False  # passed all checks


def _watched(send: Send, seen: _Seen, request_id: str) -> Send:
    async def watched(message: Message) -> None:
        if message["type"] == "http.response.start":
            seen.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
        await send(message)

    return watched


def _bounded(receive: Receive, limit: int) -> Callable[[], Awaitable[MutableMapping[str, Any]]]:
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            raise HTTPException(413, _too_long(limit))  # HTTPException: no reader of the body converts it
        return message

    return bounded


def _takes_files(path: str, headers: Headers) -> bool:
    """Whether a request may send files. Other forms and JSON bodies are held in memory, so they are shorter."""
    if path in _UPLOADS:
        return True
    return _FILE_FORMS.fullmatch(path) is not None and headers.get(b"content-type", b"").startswith(b"multipart/")


def _json_meant(scope: Scope, headers: Headers) -> Scope:
    """Label a body as JSON that `curl -d` labels as a URL-encoded form, which only the console's pages send.

    (Browsers send such forms from other sites without a preflight; these are refused by their Origin.)
    """
    kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    if kind not in _UNNAMED or scope["path"].startswith("/ui/"):
        return scope
    others = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
    scope["headers"] = [*others, (b"content-type", b"application/json")]
    return scope


def _length_refusal(headers: Headers, limit: int) -> tuple[int, str] | None:
    text = headers.get(b"content-length", b"0").decode("latin-1")
    if not text.isdigit():
        return 400, f"Content-Length '{text[:40]}' is not a number."
    return (413, _too_long(limit)) if int(text) > limit else None


def _too_long(limit: int) -> str:
    return f"The body is longer than {limit} bytes, which is the bound of this path."


def _clean(value: bytes | None) -> str | None:
    """Return the caller's own request id, if it is one line of plain characters."""
    text = (value or b"").decode("latin-1")
    return text if 0 < len(text) <= 100 and text.isascii() and text.isprintable() else None
