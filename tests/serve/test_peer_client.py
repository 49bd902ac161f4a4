"""The client by which servers ask each other, before servers that answer as proxies, dead and strange ones do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hybrid.serve.peer_client import PeerRequest, PeerSilent, PeerTuning, ask_peer

TUNING = PeerTuning(connect_s=2.0, probe_every_s=0.2, probe_s=0.2)
REQUEST = PeerRequest(b"POST", b"/query/sql?x=1", [(b"authorization", b"Bearer s")], b"body")
Serve = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def asked(serve: Serve) -> tuple[int, dict[bytes, bytes], bytes]:
    """Status, headers and body of what a server answers; `serve` gets the head of each request."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(await reader.readuntil(b"\r\n\r\n"), reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        response = await ask_peer(f"http://127.0.0.1:{port}", REQUEST, TUNING)
        try:
            body = b"".join([chunk async for chunk in response.chunks()])
        finally:
            response.close()
    return response.status, dict(response.headers), body


def answering(*parts: bytes) -> Serve:
    async def serve(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if head.startswith(b"POST"):
            await reader.readexactly(4)
        for part in parts:
            writer.write(part)
            await writer.drain()

    return serve


def test_a_request_as_it_is_sent() -> None:
    heads = list[bytes]()

    async def serve(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(head)
        await answering(b"HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n")(head, reader, writer)

    assert asyncio.run(asked(serve)) == (204, {b"etag": b"x"}, b"")
    lines = heads[0].decode().split("\r\n")
    assert lines[0] == "POST /query/sql?x=1 HTTP/1.1" and {"authorization: Bearer s", "content-length: 4"} < {*lines}


@pytest.mark.parametrize(
    "parts",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", b"an", b"swer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nan\r\n", b"4\r\nswer\r\n0\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\n\r\nan", b"swer"),  # ends with its connection
        (b"HTTP/1.1 20", b"0 OK\r\nContent-Le", b"ngth: 6\r\n\r\nanswer"),
    ],
)
def test_a_response_however_it_is_framed(parts: tuple[bytes, ...]) -> None:
    status, _, body = asyncio.run(asked(answering(*parts)))
    assert (status, body) == (200, b"answer")


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((), "closed the connection"),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n",), "closed the connection"),
        ((b"no http at all\r\n\r\n",), "closed the connection"),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nan",), "ended its response too early"),
        ((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nan\r\n",), "ended its response too early"),
    ],
)
def test_a_response_that_ends_early(parts: tuple[bytes, ...], words: str) -> None:
    with pytest.raises(PeerSilent, match=words):
        asyncio.run(asked(answering(*parts)))


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(PeerSilent, match="refuses connections"):
        asyncio.run(ask_peer("http://127.0.0.1:1", REQUEST, TUNING))
    with pytest.raises(PeerSilent, match="cannot be reached"):
        asyncio.run(ask_peer("http://nowhere.invalid:80", REQUEST, TUNING))


def test_a_server_that_works_is_waited_for_and_a_frozen_one_is_not() -> None:
    async def slow(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if head.startswith(b"POST"):
            await asyncio.sleep(1.0)
        await answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")(head, reader, writer)

    async def frozen(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(100)

    assert asyncio.run(asked(slow))[2] == b"ok"
    with pytest.raises(PeerSilent, match="accepts connections and does not answer"):
        asyncio.run(asked(frozen))
