"""Limits of connections, before authentication: bytes and number of headers, time, and number of connections.

uvicorn's parser has none of these limits. An endless request head would fill memory, and a client that sends nothing
would hold a connection for ever.
"""

from __future__ import annotations

import asyncio
import json
import resource
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hybrid.serve.error_responses import for_pinot

_SLICE = 4 * 1024
# Slice size of a body: bytes after its end in a slice (trailers, an extension) are not counted as part of a head.
_BODY_SLICE = 16 * 1024
_LINGER_S = 0.5
_OWN_FILES = 512  # descriptors for tables, caches and Kafka
_FILES_WANTED = 65_536


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits: `head_s` for a whole request head; in every `body_s` a body must deliver `body_bytes`."""

    head_bytes: int = 64 * 1024
    headers: int = 100
    head_s: float = 10.0
    body_s: float = 30.0
    body_bytes: int = 16 * 1024
    connections: int = 4096


def raise_file_limit() -> int:
    """Raise the soft limit of open files as far as the hard one allows; return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, _FILES_WANTED)
    if soft == resource.RLIM_INFINITY or soft >= target:
        return soft if soft != resource.RLIM_INFINITY else _FILES_WANTED
    resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return target


def limits_of_process() -> ConnectionLimits:
    """Return the limits for a server in this process; they reserve file descriptors for its own files."""
    files = raise_file_limit()
    return ConnectionLimits(connections=max(16, min(ConnectionLimits.connections, files - _OWN_FILES)))


class _Phase(Enum):
    HEAD = 1
    BODY = 2
    ANSWER = 3  # also idle afterwards, until uvicorn's keep-alive timer ends it


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits. A request over a limit gets an error response, then the connection closes."""

    def __init__(self, limits: ConnectionLimits, **options: Any) -> None:
        super().__init__(**options)
        self._limits = limits
        self._phase, self._since = _Phase.HEAD, self.loop.time()
        self._unparsed_bytes = self._header_count = self._body_seen = 0
        self._is_refused = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`. A connection over the limit gets an error response."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            text = f"This server has {self._limits.connections} connections, which is its bound."
            self._refuse(503, text, linger_s=0.0)
        else:
            self._timer = self.loop.call_later(self._limits.head_s, self._check_time)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if self._timer is not None:
            self._timer.cancel()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`: in slices, so that little is parsed past the limit."""
        if self._is_refused:
            return
        if self._phase is _Phase.ANSWER:  # the next request begins
            self._phase, self._since, self._unparsed_bytes = _Phase.HEAD, self.loop.time(), 0
        if len(data) <= _SLICE:
            self._feed(data)
            return
        at = 0
        while at < len(data) and not self._is_refused and self.parser is not None:
            size = _BODY_SLICE if self._phase is _Phase.BODY else _SLICE
            self._feed(data[at : at + size])
            at += size

    def on_message_begin(self) -> None:
        """See `HttpToolsProtocol`."""
        super().on_message_begin()
        self._phase, self._header_count = _Phase.HEAD, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """See `HttpToolsProtocol`. Trailers of a body count too."""
        self._header_count += 1
        if self._header_count > self._limits.headers:
            if self._header_count == self._limits.headers + 1:
                self._refuse(431, f"The request has more than {self._limits.headers} headers.")
            return
        if self._phase is _Phase.HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """See `HttpToolsProtocol`."""
        if self._is_refused:
            return
        self._unparsed_bytes, self._body_seen = 0, 0
        self._phase, self._since = _Phase.BODY, self.loop.time()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """See `HttpToolsProtocol`."""
        if self._is_refused:
            return
        self._unparsed_bytes = 0
        self._body_seen += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """See `HttpToolsProtocol`."""
        if self._is_refused:
            return
        self._unparsed_bytes = 0
        self._phase = _Phase.ANSWER
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """See `HttpToolsProtocol`."""
        self._refuse(400, "This is not a request of HTTP/1.1.")

    def _feed(self, data: bytes) -> None:
        """Parse some bytes, unless too many arrived that were neither a whole head nor part of a body."""
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._unparsed_bytes > self._limits.head_bytes and not self._is_refused:
            self._refuse(431, f"The request's head is longer than {self._limits.head_bytes} bytes.")

    def _check_time(self) -> None:
        """Close the connection if a head or a body takes too long; otherwise check again later."""
        limits, now = self._limits, self.loop.time()
        answering = self.cycle is not None and not self.cycle.response_complete
        if self._phase is _Phase.BODY:
            if self.flow.read_paused:  # the server is slow, not the client
                self._since, self._body_seen = now, 0
            elif now - self._since >= limits.body_s:
                if self._body_seen < limits.body_bytes:
                    self._refuse(408, f"The body brought {self._body_seen} bytes in {limits.body_s:g} s.")
                    return
                self._since, self._body_seen = now, 0
            remaining_s = self._since + limits.body_s - now
        elif self._phase is _Phase.HEAD and not answering:
            remaining_s = self._since + limits.head_s - now
            if remaining_s <= 0:
                self._refuse(408, f"The request's head was not whole after {limits.head_s:g} s.")
                return
        else:
            self._since = now if self._phase is _Phase.HEAD else self._since
            remaining_s = limits.head_s
        self._timer = self.loop.call_later(max(remaining_s, 0.01), self._check_time)

    def _refuse(self, status: int, message: str, linger_s: float = _LINGER_S) -> None:
        """Respond with an error, unless a response has begun, and close the connection. Later bytes are discarded."""
        self._is_refused = True
        cycle = self.cycle
        begun = cycle is not None and cycle.response_started and not cycle.response_complete
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        if not begun:
            self.transport.write(_answer(status, message))
        # A reset would discard the response for a client that still sends, so its bytes are read for a moment.
        self.flow.resume_reading()
        self.loop.call_later(linger_s, self.transport.close)


def _answer(status: int, message: str) -> bytes:
    body = json.dumps(for_pinot(status, {"code": status, "error": message, "kind": "usage", "hint": None})).encode()
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *(["retry-after: 5"] if status == 503 else []),
        "connection: close",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
