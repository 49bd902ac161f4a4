"""`/query/export`: every format over HTTP, in bounded memory; errors, cuts, clients that leave or stop to read."""

from __future__ import annotations

import asyncio
import csv
import http.client
import io
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.errors import BusyError, HybridError, MachineError, QueryError
from hybrid.files.results.output_file import open_output
from hybrid.files.results.result_format import ResultFormat
from hybrid.progress import Silent
from hybrid.query.memory_budget import default_total
from hybrid.rpc.client import Client
from hybrid.rpc.exports import export_from
from hybrid.serve import exports
from hybrid.serve.byte_channel import ByteChannel, ReaderGone
from hybrid.serve.context import ServerLimits
from hybrid.serve.export_slots import ExportSlots
from tests.serve.app import App, lay_orders
from tests.serve.test_arrow_clients import TYPES, lay_things

SQL = f"select {', '.join([*TYPES, 'price'])} from things order by id"
# 65,536 rows; 16,777,216 rows of 100 bytes, more than any socket takes.
MANY = "select a.order_id, b.customer from orders a" + "".join(f", orders {name}" for name in "bcdefgh")
ENDLESS = "select repeat(a.customer, 33) x from orders a" + "".join(f", orders b{place}" for place in range(11))
# No row for a long time: 17 million rows are counted in less than 300 ms, four billion are not.
NEVER = "select max(a.ts) x from orders a" + "".join(f", orders b{place}" for place in range(15))
NUMBERED = ENDLESS.replace("repeat(a.customer, 33) x", "a.customer x, row_number() over () n")
# Fails after half a million rows: the server computes ahead of what it sends.
FAILING = (
    f"select repeat(x, 33) y, cast(case when n = 500000 then 'a' else '1' end as int) z from ({NUMBERED} limit 600000)"
)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    made = App(tmp_path / "home")
    lay_orders(made.home)
    lay_things(made.home)
    yield made
    made.close()


def exported(app: App, body: Any, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=100)
    try:
        connection.request("POST", "/query/export", json.dumps(body), {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def read_back(fmt: ResultFormat, body: bytes) -> Any:
    match fmt:
        case ResultFormat.PARQUET:
            return pq.read_table(io.BytesIO(body)).to_pylist()
        case ResultFormat.ARROW:
            return pa.ipc.open_stream(body).read_all().to_pylist()
        case ResultFormat.CSV:
            return list(csv.DictReader(io.StringIO(body.decode(), newline="")))
        case ResultFormat.JSON:
            return json.loads(body)
        case ResultFormat.JSONL:
            return [json.loads(line) for line in body.decode().split("\n")[:-1]]
        case ResultFormat.MARKDOWN:
            return body.decode().splitlines()[2:]


@pytest.mark.slow
@pytest.mark.parametrize("fmt", ResultFormat)
def test_every_format_is_what_a_file_has(app: App, tmp_path: Path, fmt: ResultFormat) -> None:
    status, headers, body = exported(app, {"sql": SQL, "format": fmt})
    assert status == 200 and headers.get_content_type() == fmt.media_type
    app.home.export(SQL, tmp_path / "a", format=fmt)
    if fmt is ResultFormat.ARROW:  # over HTTP a stream
        expected = pa.ipc.open_file((tmp_path / "a").read_bytes()).read_all().to_pylist()
    else:
        expected = read_back(fmt, (tmp_path / "a").read_bytes())
    found = read_back(fmt, body)
    assert len(found) == 3 and repr(found) == repr(expected)
    assert "attachment; filename=" in headers["Content-Disposition"] and headers["X-Request-Id"]
    assert unquote(headers["X-Hybrid-Revision"]) == str(app.home.query(SQL).revision)


@pytest.mark.slow
@pytest.mark.parametrize("fmt", ResultFormat)
def test_the_format_is_negotiated(app: App, fmt: ResultFormat) -> None:
    _, headers, body = exported(app, {"sql": SQL}, Accept=f"{fmt.media_type}, */*;q=0.1")
    assert headers.get_content_type() == fmt.media_type and len(read_back(fmt, body)) == 3
    assert exported(app, {"sql": SQL}, Accept="*/*")[1].get_content_type() == "text/csv"


@pytest.mark.slow
def test_all_rows_are_sent_and_the_statement_may_be_in_the_url(app: App) -> None:
    assert exported(app, {"sql": MANY})[2].count(b"\n") == 4**8 + 1
    status, text = app.call("GET", f"/query/export?sql={quote('select order_id from orders order by 1')}&format=jsonl")
    assert status == 200 and [json.loads(line)["order_id"] for line in text.splitlines()] == [1, 2, 3, 4]


@pytest.mark.slow
def test_the_bounds_of_answers_do_not_cut_an_export(tmp_path: Path) -> None:
    made = App(tmp_path / "home", ServerLimits(query_rows=10, query_bytes=1000, query_timeout_ms=60_000))
    try:
        lay_orders(made.home)
        assert exported(made, {"sql": MANY})[2].count(b"\n") == 4**8 + 1
    finally:
        made.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"sql": "selec 1"}, 400, "must be a SELECT"),
        ({"sql": "select * from ordrs"}, 404, "Did you mean 'orders'?"),
        ({"sql": "select nope from orders"}, 400, "Column 'nope' does not exist"),
        ({"sql": "select 1 from orders", "format": "xls"}, 400, "'xls' is no format of a result: csv, json"),
        ({"sql": f"SET timeoutMs = 300; {NEVER}"}, 400, "stopped after 300"),
        ({"sql": ""}, 400, "sql"),
        ({}, 400, "sql"),
        ({"sql": "select 1 from orders", "more": 1}, 400, "more"),
    ],
)  # fmt: skip
def test_an_error_before_the_rows_has_its_status(app: App, body: Any, status: int, words: str) -> None:
    answer = exported(app, body)
    document = json.loads(answer[2])
    assert answer[0] in {status, 400} and words in document["error"] and document["code"] == answer[0]


@pytest.mark.slow
def test_options_and_the_past(app: App) -> None:
    revision = str(app.home.query("select count(*) from things").revision)
    assert exported(app, {"sql": SQL, "asOf": revision})[0] == 200
    status, _, body = exported(app, {"sql": SQL, "asOf": "things[OFFLINE=99]"})
    assert status == 400 and b"has no version 99" in body
    status, _, body = exported(app, {"sql": ENDLESS + " order by 1", "queryOptions": "timeoutMs=200"})
    assert status == 400 and b"stopped after 200 ms" in body
    assert unquote(exported(app, {"sql": "SET numGroupsLimit = 3; select ts from things"})[1]["X-Hybrid-Warnings"])


@pytest.mark.slow
def test_an_error_among_the_rows_cuts_the_response(app: App) -> None:
    with pytest.raises(http.client.IncompleteRead):
        exported(app, {"sql": FAILING, "format": "csv"})
    assert_freed(app)


@pytest.mark.slow
def test_the_command_line_s_client_learns_the_reason(app: App, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with pytest.raises(QueryError, match="'a' is no number") as failed:
        received(app, FAILING, path)
    assert failed.value.pinot_code == 200 and not path.exists() and list(tmp_path.glob("*.part")) == []
    with pytest.raises(QueryError, match="Did you mean 'orders'") as unknown:
        received(app, "select 1 from ordrs", path)
    assert unknown.value.pinot_code == 190


def received(app: App, sql: str, path: Path, fmt: ResultFormat = ResultFormat.CSV) -> Any:
    return export_from(Client(app.url, Silent()), {"sql": sql}, open_output(path, force=False), fmt, Silent())


@pytest.mark.slow
@pytest.mark.parametrize("fmt", ResultFormat)
def test_a_client_writes_what_the_server_would(app: App, tmp_path: Path, fmt: ResultFormat) -> None:
    report = received(app, SQL, tmp_path / "a", fmt)
    app.home.export(SQL, tmp_path / "b", format=fmt)
    assert report.rows == 3 and report.revision == str(app.home.query(SQL).revision)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_server_that_ends_leaves_no_file(tmp_path: Path) -> None:
    """It dies in the midst of an Arrow stream, as a killed process does."""
    batch = pa.RecordBatch.from_pydict({"n": list(range(1000))})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    whole = out.getvalue()
    for body in (whole[: len(whole) // 2], whole[:-8], whole):  # the last lacks only the end of the response
        server = socket.create_server(("127.0.0.1", 0))

        def answer(server: socket.socket = server, body: bytes = body) -> None:
            connection, _ = server.accept()
            connection.recv(65536)
            head = b"HTTP/1.1 200 OK\r\ncontent-type: x/y\r\ntransfer-encoding: chunked\r\n\r\n"
            connection.sendall(head + b"%x\r\n" % len(body) + body + b"\r\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        client = Client(f"http://127.0.0.1:{server.getsockname()[1]}", Silent())
        with pytest.raises(MachineError, match="ended its answer too early"):
            export_from(client, {"sql": "x"}, open_output(tmp_path / "a.csv", force=False), ResultFormat.CSV, Silent())
        thread.join()
        server.close()
        assert list(tmp_path.iterdir()) == []


def begun(app: App, sql: str = ENDLESS, *, window: int = 4096, **headers: str) -> tuple[socket.socket, bytes]:
    """A connection that has read the head of an export and some rows, and reads no further."""
    connection = socket.create_connection(("127.0.0.1", app.port), timeout=30)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    body = json.dumps({"sql": sql}).encode()
    lines = [
        "POST /query/export HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}",
        "Content-Type: application/json", *(f"{name}: {value}" for name, value in headers.items()),
    ]  # fmt: skip
    connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    head = connection.recv(4096)
    assert b"200" in head.split(b"\r\n")[0], head
    return connection, head


def assert_freed(app: App) -> None:
    """Soon nothing of an export is left: its place, its statement, and its share of the memory."""
    context, until = app.app.state.context, time.monotonic() + 20
    whole = max(context.memory._least, default_total())

    def is_busy() -> bool:
        return bool(context.exports.running or context.queries._running or context.memory._left < whole)

    while is_busy() and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_busy()


@pytest.mark.slow
def test_a_client_that_leaves_frees_the_server(app: App) -> None:
    connection, _ = begun(app)
    assert app.app.state.context.exports.running == 1 and app.app.state.context.queries._running
    connection.close()
    assert_freed(app)


@pytest.mark.slow
def test_a_client_that_leaves_before_the_first_row(app: App) -> None:
    connection = socket.create_connection(("127.0.0.1", app.port))
    body = json.dumps({"sql": NEVER}).encode()
    head = f"POST /query/export HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    until = time.monotonic() + 10
    while not app.app.state.context.queries._running and time.monotonic() < until:
        time.sleep(0.01)
    connection.close()
    assert_freed(app)


@pytest.mark.slow
def test_a_client_that_stops_reading_is_left(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "ByteChannel", partial(ByteChannel, stall_s=0.5))
    connection, _ = begun(app)
    assert_freed(app)
    connection.close()


@pytest.mark.slow
def test_an_export_is_cancelled(app: App) -> None:
    connection, _ = begun(app, window=1 << 20, **{"X-Request-Id": "mine"})
    app.ok("DELETE", "/query/mine")
    while connection.recv(1 << 16):
        pass
    connection.close()
    assert_freed(app)


@pytest.mark.slow
def test_only_so_many_at_once_and_statements_go_on(app: App) -> None:
    connections = [begun(app)[0] for _ in range(4)]
    status, _, body = exported(app, {"sql": SQL})
    assert status == 429 and b"4 exports run on this server" in body
    assert app.ok("POST", "/query/sql", {"sql": "select count(*) from things"})["exceptions"] == []
    for connection in connections:
        connection.close()
    assert_freed(app)
    assert exported(app, {"sql": SQL})[0] == 200


@pytest.mark.slow
def test_a_slow_reader_makes_the_statement_wait(app: App) -> None:
    """Its rows do not gather in memory: little more is made than was read."""
    connection, _ = begun(app)
    time.sleep(1.0)
    (thread,) = [one for one in threading.enumerate() if one.name.startswith("export") and one.is_alive()][:1]
    assert thread.is_alive() and app.app.state.context.exports.running == 1
    connection.close()
    assert_freed(app)


@pytest.mark.slow
def test_metrics_count_exports(app: App) -> None:
    exported(app, {"sql": SQL})
    exported(app, {"sql": "selec 1"})
    text = app.get("/metrics")
    assert 'hybrid_queries_total{route="/query/export",source="files",table="things"} 1.0' in text
    assert 'hybrid_errors_total{code="150",kind="query"} 1.0' in text


def test_slots() -> None:
    slots = ExportSlots(1)
    slots.enter()
    with pytest.raises(BusyError, match="1 exports run"):
        slots.enter()
    slots.leave()
    slots.enter()


def channel_run(work: Callable[[ByteChannel], None], read: Callable[[ByteChannel], Any], stall_s: float = 5.0) -> Any:
    """What `read` gives, a coroutine, while a thread does `work`."""

    async def main() -> Any:
        channel = ByteChannel(asyncio.get_running_loop(), stall_s)
        thread = threading.Thread(target=work, args=(channel,))
        thread.start()
        try:
            return await read(channel)
        finally:
            channel.close()
            await asyncio.to_thread(thread.join)

    return asyncio.run(main())


@pytest.mark.slow
def test_a_channel_passes_all_bytes_in_order() -> None:
    def work(channel: ByteChannel) -> None:
        for number in range(1000):
            channel.write(b"%06d" % number * 1000)
        channel.complete()
        channel.end()

    async def read(channel: ByteChannel) -> bytes:
        data = b""
        while (chunk := await channel.next_chunk()) is not None:
            data += chunk
        return data

    assert channel_run(work, read) == b"".join(b"%06d" % number * 1000 for number in range(1000))


def test_a_channel_holds_a_bounded_number_of_bytes() -> None:
    errors: list[HybridError] = []

    def work(channel: ByteChannel) -> None:
        try:
            while True:
                channel.write(b"x" * 100_000)
        except HybridError as error:
            errors.append(error)

    async def leave(channel: ByteChannel) -> int:
        await channel.next_chunk()
        await asyncio.sleep(0.2)
        return channel.bytes

    assert channel_run(work, leave) < 3_000_000
    assert isinstance(errors.pop(), ReaderGone)

    async def stall(channel: ByteChannel) -> None:
        await asyncio.sleep(0.5)

    channel_run(work, stall, stall_s=0.1)
    assert "read nothing for 0.1 s" in str(errors.pop())


def test_a_channel_can_begin_again_until_bytes_were_sent() -> None:
    async def main() -> None:
        channel = ByteChannel(asyncio.get_running_loop())
        channel.write(b"old")
        channel.restart()
        channel.write(b"new")
        channel.flush()
        assert await channel.next_chunk() == b"new" and channel.bytes == 3
        with pytest.raises(HybridError, match="Run it again"):
            channel.restart()
        channel.end(QueryError("no"))
        with pytest.raises(QueryError, match="no"):
            await channel.next_chunk()

    asyncio.run(main())
