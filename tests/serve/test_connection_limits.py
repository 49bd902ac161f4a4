"""Limits of connections, with raw sockets: heads, headers, trailers, slow senders, too many connections."""

import hashlib
import inspect
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hybrid.serve.connection_limits import ConnectionLimits
from tests.serve.app import App

pytestmark = pytest.mark.slow  # deadlines are waited for

FAST = ConnectionLimits(head_s=0.4, body_s=0.5, body_bytes=100, connections=20)
START = b"POST /query/sql HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    made = App(tmp_path_factory.mktemp("limited") / "home", connections=replace(FAST, head_s=3, body_s=3))
    yield made
    made.close()


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    made = App(tmp_path_factory.mktemp("hasty") / "home", connections=FAST)
    yield made
    made.close()


def answer(app: App, *parts: bytes, pause_s: float = 0) -> bytes:
    """What a server says to these bytes, until it closes or falls silent."""
    with socket.create_connection(("127.0.0.1", app.port), timeout=5) as client:
        try:
            for part in parts:
                client.sendall(part)
                time.sleep(pause_s)
        except OSError:
            pass
        return read(client)


def read(client: socket.socket) -> bytes:
    """All that comes until the end."""
    got = b""
    try:
        while piece := client.recv(65_536):
            got += piece
            if b"content-length" in got.lower() and b"connection: close" not in got.lower():
                break
    except OSError:
        pass
    return got


def rss_bytes() -> int:
    """How much memory this process holds: the server is a thread of it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    "parts",
    [
        [START, b"a: " + b"x" * 70_000, b"\r\n\r\n"],
        [b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"],
        [START, *[b"a:b\r\n" * 1000] * 3, b"\r\n"],
        [START, b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n0\r\n", *[b"a: b\r\n" * 1000] * 20],
        [START, b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n0\r\n", b"a: " + b"x" * 100_000],
        [START + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\na: " + b"x" * 100_000],
        [START, b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n0\r\na: " + b"x" * 100_000],
        [START, b"Transfer-Encoding: chunked\r\n\r\n", b"1;" + b"x" * 100_000],
    ],
    ids=[
        *("long header", "long path", "many headers", "many trailers", "long trailer", "long trailer at once"),
        *("long trailer with the body", "long chunk extension"),
    ],
)
def test_long_heads_are_refused(app: App, parts: list[bytes]) -> None:
    got = answer(app, *parts)
    assert (got.startswith(b"HTTP/1.1 431 ") and b'"exceptions"' in got and b"bytes" in got) or b"headers" in got
    assert app.get("/livez") == "OK"


def test_a_head_of_ten_megabytes_costs_no_memory(app: App) -> None:
    answer(app, START)
    before = rss_bytes()
    for _ in range(3):
        assert answer(app, START, *[b"a:b\r\n" * 20_000] * 105)[:12] in (b"HTTP/1.1 431", b"")
    assert rss_bytes() - before < 10 * 1024 * 1024


def test_heads_within_the_limits_pass(app: App) -> None:
    many = b"".join(b"x-%d: %s\r\n" % (number, b"y" * 600) for number in range(90))
    got = answer(app, b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n" + many + b"\r\n")
    assert got.startswith(b"HTTP/1.1 200")
    with socket.create_connection(("127.0.0.1", app.port), timeout=5) as client:
        for _ in range(300):  # many requests of one connection are no long head
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nx: " + b"y" * 500 + b"\r\n\r\n")
            assert client.recv(65_536).startswith(b"HTTP/1.1 200")


def test_large_bodies_pass(app: App) -> None:
    status, _ = app.call("POST", "/query/sql", {"sql": "select 1 /* " + "x" * 500_000 + " */"})
    assert status == 200
    chunks = b"".join(b"1000\r\n" + b" " * 4096 + b"\r\n" for _ in range(100))
    end = b'e\r\n{"sql":"select\r\n4\r\n 1"}\r\n0\r\n\r\n'
    got = answer(app, START, b"Transfer-Encoding: chunked\r\n\r\n", chunks, end)
    assert got.startswith(b"HTTP/1.1 200")


def test_what_is_no_http_is_refused_as_json(app: App) -> None:
    got = answer(app, b"\x16\x03\x01 hello\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 400") and b'"error"' in got


@pytest.mark.parametrize("sent", [[], [b"GET /livez HT"], [b"\r\n"], [START, b"a: b\r\n"]])
def test_heads_have_a_deadline(hasty: App, sent: list[bytes]) -> None:
    began = time.monotonic()
    assert answer(hasty, *sent).startswith(b"HTTP/1.1 408")
    assert time.monotonic() - began < 3


def test_a_head_that_drips_has_a_deadline(hasty: App) -> None:
    assert b"HTTP/1.1 408" in answer(hasty, START, *[b"a: b\r\n"] * 8, pause_s=0.1)


def test_bodies_that_drip_are_refused(hasty: App) -> None:
    sent = [START, b"Content-Length: 1000\r\n\r\n", *[b"x"] * 8]
    assert b"HTTP/1.1 408" in answer(hasty, *sent, pause_s=0.1)
    assert hasty.get("/livez") == "OK"


def test_bodies_that_are_slow_but_steady_pass(hasty: App) -> None:
    body = b'{"sql": "select 1' + b" " * 1982 + b'"}'
    pieces = [body[at : at + 200] for at in range(0, len(body), 200)]
    got = answer(hasty, START, b"Content-Length: %d\r\n\r\n" % len(body), *pieces, pause_s=0.1)
    assert got.startswith(b"HTTP/1.1 200")


def test_too_many_connections_are_told_so(hasty: App) -> None:
    time.sleep(1)
    with ExitStack() as opened:
        clients = [
            opened.enter_context(socket.create_connection(("127.0.0.1", hasty.port), timeout=5)) for _ in range(22)
        ]
        answers = [read(client) for client in clients]
    assert sum(one.startswith(b"HTTP/1.1 503") for one in answers) >= 2
    deadline = time.monotonic() + 5
    while hasty.call("GET", "/livez")[0] != 200 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert hasty.get("/livez") == "OK"


@pytest.mark.process
def test_the_soft_limit_of_files_is_raised() -> None:
    code = (
        "import resource; hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1];"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard));"
        "from hybrid.serve.connection_limits import limits_of_process;"
        "found = limits_of_process(); soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0];"
        "print(soft, found.connections)"
    )
    soft, connections = map(int, subprocess.check_output([sys.executable, "-c", code], text=True).split())
    assert soft == min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 65_536) and 16 <= connections <= 4096


def test_uvicorns_protocol_is_the_one_that_is_extended() -> None:
    """`LimitedProtocol` relies on its inside: read what changed, then change the ceiling in pyproject.toml and this."""
    source = inspect.getsource(HttpToolsProtocol)
    assert hashlib.sha256(source.encode()).hexdigest()[:16] == "18fdf324b11bf160"
