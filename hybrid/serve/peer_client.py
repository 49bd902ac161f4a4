"""The client by which a server passes a request on to another query server, and streams the response back.

It runs on the event loop: a request that waits takes no thread, and a caller that goes away closes the connection, so
the other server stops the statement. A server that does not even answer `/livez` meanwhile is taken for dead.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

import httptools

Header = tuple[bytes, bytes]
_CHUNK = 64 * 1024
_FAILURES = (OSError, TimeoutError, EOFError, asyncio.IncompleteReadError, httptools.HttpParserError)
_LENGTHS = frozenset({b"content-length", b"transfer-encoding"})


class PeerSilent(Exception):
    """A server does not answer; `str()` says why, in a few words."""


@dataclass(frozen=True)
class PeerTuning:
    """Times, seconds: to connect; until a server that has not responded is probed, and then each time; for a probe.

    A server with much to do must not be taken for dead: the next one would get its work, too.
    """

    connect_s: float = 2.0
    probe_every_s: float = 5.0
    probe_s: float = 5.0


@dataclass(frozen=True)
class PeerRequest:
    """A request to pass on: `target` is path and query as they came."""

    method: bytes
    target: bytes
    headers: Sequence[Header]
    body: bytes = b""


class PeerResponse:
    """The response of a server: its status and headers, then the chunks of its body. Close it when it is done with."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: list[bytes] = []
        self._has_head = self._is_complete = False
        self.status = 0
        self.headers: list[Header] = []

    async def read_head(self) -> None:
        """Send what is not sent yet, and read status and headers. EOFError when the server closes the connection."""
        await self._writer.drain()
        while not self._has_head:
            if not await self._read():
                raise EOFError

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. PeerSilent when it ends before its end."""
        try:
            while True:
                for chunk in self._chunks:
                    yield chunk
                self._chunks.clear()
                if self._is_complete:
                    return
                if not await self._read():
                    if _LENGTHS.isdisjoint(name.lower() for name, _ in self.headers):
                        return  # such a response ends with its connection
                    raise EOFError
        except _FAILURES as error:
            raise PeerSilent("ended its response too early") from error

    def close(self) -> None:
        """Close the connection: whatever the server still does for the request has no reader."""
        with suppress(Exception):
            self._writer.close()

    async def _read(self) -> bool:
        data = await self._reader.read(_CHUNK)
        if data:
            self._parser.feed_data(data)
        return bool(data)

    # The parser calls these.

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The end of the head."""
        self.status = self._parser.get_status_code()
        self._has_head = True

    def on_body(self, data: bytes) -> None:
        """A part of the body."""
        self._chunks.append(data)

    def on_message_complete(self) -> None:
        """The end of the response."""
        self._is_complete = True


async def ask_peer(server: str, request: PeerRequest, tuning: PeerTuning) -> PeerResponse:
    """Send a request to a server and await the head of its response. PeerSilent when it does not answer.

    Cancelling this closes the connection.
    """
    response = await _sent(server, request, tuning.connect_s)
    head = asyncio.ensure_future(response.read_head())
    try:
        while not (await asyncio.wait([head], timeout=tuning.probe_every_s))[0]:
            await _probe(server, tuning)
        await head
    except BaseException as error:
        head.cancel()
        response.close()
        if isinstance(error, _FAILURES):
            raise PeerSilent(_words(error, "closed the connection")) from error
        raise
    return response


async def _probe(server: str, tuning: PeerTuning) -> None:
    """PeerSilent unless the server answers `/livez`, which none of its routes can delay."""
    try:
        async with asyncio.timeout(tuning.probe_s):
            response = await _sent(server, PeerRequest(b"GET", b"/livez", ()), tuning.probe_s)
            try:
                await response.read_head()
            finally:
                response.close()
    except (*_FAILURES, PeerSilent) as error:
        raise PeerSilent("accepts connections and does not answer") from error


async def _sent(server: str, request: PeerRequest, connect_s: float) -> PeerResponse:
    parts = urlsplit(server)
    secure = _tls() if parts.scheme == "https" else None
    try:
        async with asyncio.timeout(connect_s):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=secure)
    except _FAILURES as error:
        raise PeerSilent(_words(error, "cannot be reached")) from error
    fixed = [(b"host", parts.netloc.encode()), (b"connection", b"close")]
    sized = [(b"content-length", str(len(request.body)).encode())] if request.body else []
    writer.write(_head(request, [*fixed, *request.headers, *sized]) + request.body)
    return PeerResponse(reader, writer)


def _head(request: PeerRequest, headers: Iterable[Header]) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method, request.target), *(b"%s: %s" % header for header in headers)]
    return b"\r\n".join([*lines, b"", b""])


def _words(error: BaseException, otherwise: str) -> str:
    """A failed connection in a few words."""
    if isinstance(error, TimeoutError):
        return "does not answer"
    return "refuses connections" if isinstance(error, ConnectionRefusedError) else otherwise


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
