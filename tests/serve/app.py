"""The application on a free port, in a thread of the test's process, over a home with tables on disk."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import uvicorn.server

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.catalog.run_record import RunRecord
from hybrid.config.settings import load_settings
from hybrid.errors import DataError, error_document
from hybrid.operations.tables.create import _definition
from hybrid.progress import Silent
from hybrid.rpc.queue import carry_out
from hybrid.serve.app import build_app
from hybrid.serve.connection_limits import ConnectionLimits
from hybrid.serve.context import ServerLimits
from hybrid.serve.httpserver import http_server
from hybrid.table.boundary import Boundary
from hybrid.table.state import Consuming
from tests.query.halves import KEY, Halves, Row

SEALED, CONSUMING = "orders__0__0__20210924T0602Z", "orders__0__1__20210924T0702Z"
MOVED = "orders_1000_2000_0"
MOVE = "RealtimeToOfflineSegmentsTask"
SCHEMA: dict[str, Any] = {
    "schemaName": "orders",
    "dimensionFieldSpecs": [
        {"name": "order_id", "dataType": "INT"},
        {"name": "customer", "dataType": "STRING"},
    ],
    "metricFieldSpecs": [{"name": "amount", "dataType": "FLOAT"}],
    "dateTimeFieldSpecs": [
        {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
    ],
}
OFFLINE: dict[str, Any] = {
    "tableName": "orders",
    "tableType": "OFFLINE",
    "segmentsConfig": {"timeColumnName": "ts", "schemaName": "orders"},
}
REALTIME: dict[str, Any] = {
    "tableName": "orders",
    "tableType": "REALTIME",
    "segmentsConfig": {"timeColumnName": "ts", "schemaName": "orders"},
    "tableIndexConfig": {
        "streamConfigs": {
            "streamType": "kafka",
            "stream.kafka.topic.name": "orders",
            "stream.kafka.broker.list": "127.0.0.1:1",
        }
    },
    "task": {"taskTypeConfigsMap": {MOVE: {"bucketTimePeriod": "2h"}}},
}


class _ShortPauses:
    """asyncio for uvicorn, which looks ten times a second whether it is to end: an application here lives for less."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 20)


uvicorn.server.asyncio = _ShortPauses()  # type: ignore[assignment]


class App:
    """A running application. Requests answer status and body, which is parsed when it is JSON."""

    def __init__(
        self,
        folder: Path,
        limits: ServerLimits | None = None,
        connections: ConnectionLimits | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)  # as a server does when it starts
        self.home = Hybrid(load_settings(home=folder, environ=environ), Silent())
        listener = socket.create_server(("127.0.0.1", port))
        self.port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.app = build_app(self.home, limits or ServerLimits(run_wait_s=60), self.url)
        self._server = http_server(self.app, connections)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)

    def close(self) -> None:
        """Ends it."""
        self._server.should_exit = True
        self._thread.join()
        self.home.close()

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """One request, its path as it stands; a `body` that is neither text nor bytes nor parts goes as JSON."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (str, bytes)) and not hasattr(body, "__next__"):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=100)
        try:
            data = body.encode() if isinstance(body, str) else body
            connection.request(method, path, data, headers, encode_chunked=hasattr(body, "__next__"))
            response = connection.getresponse()
            text, kind = response.read().decode(), response.headers.get_content_type()
        finally:
            connection.close()
        return response.status, json.loads(text) if kind == "application/json" else text

    def get(self, path: str) -> Any:
        """The body of a GET that succeeds."""
        return self.ok("GET", path)

    def ok(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """The body of a request that succeeds."""
        status, found = self.call(method, path, body, **more)
        assert status == 200, found
        return found

    def until_ended(self, path: str) -> Any:
        """The body of a GET that tells the state of a run, once that has ended."""
        while (found := self.get(path))["state"] in {"QUEUED", "RUNNING"}:
            time.sleep(0.05)
        return found

    def refused(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, str]:
        """Status and sentence of a request that is refused, in the one shape that errors have."""
        status, found = self.call(method, path, body, **more)
        assert status >= 400, found
        assert isinstance(found, dict) and found["code"] == status and len(found["error"]) > 5, found
        return status, found["error"]


class Worker:
    """Carries out what is queued, in a thread, as the pipeline would; `carry` is what it does with a run."""

    def __init__(self, home: Hybrid, carry: Callable[[Hybrid, RunRecord], None] | None = None) -> None:
        self._home, self._stop = home, threading.Event()
        self._carry = carry or (lambda home, run: carry_out(home, run, lambda: True))
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Worker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._stop.wait(0.02):
            run = self._home.context.catalog.runs.claim()
            if run is not None:
                self._carry(self._home, run)


def orders_app(folder: Path) -> App:
    """Over a new home in a folder, with the table orders. Close it at the end."""
    made = App(folder / "home")
    lay_orders(made.home)
    return made


def fail_at_once(home: Hybrid, run: RunRecord) -> None:
    """What a worker does with a run where there is no Spark."""
    error = DataError("There is no Spark in this test.")
    home.context.catalog.runs.finish(run.id, "FAILED", str(error), error=error_document(error))


def lay_orders(home: Hybrid) -> Halves:
    """The table orders: two offline rows that were moved, and four realtime rows of which two are covered."""
    given = TableDocuments((SCHEMA, "schema"), [(REALTIME, "realtime"), (OFFLINE, "offline")])
    spec = home.validate(given)
    halves = Halves.create(home.settings.warehouse, spec)
    rows = [row(1, 1000, 0), row(2, 2000, 1), row(3, 3000, 2, CONSUMING), row(4, 4000, 3, CONSUMING)]
    consuming = Consuming(CONSUMING, 1, 2, 2, 100, 1_632_463_351_000)
    halves.commit_realtime(rows, offsets={KEY: 4}, consuming={KEY: consuming}, sequences={KEY: 2})
    moved = [row(1, 1000, 0, MOVED), row(2, 2000, 1, MOVED)]
    halves.commit_offline(moved, Boundary(2001, {KEY: 2}))
    home.context.definitions.add(_definition(spec))
    return halves


def lay_history(home: Hybrid, rows: Sequence[Mapping[str, Any]]) -> None:
    """The table orders without a stream, and these rows of it in the segment `history`."""
    spec = home.validate(TableDocuments((SCHEMA, "schema"), [(OFFLINE, "offline")]))
    halves = Halves.create(home.settings.warehouse, spec)
    halves.commit_offline([Row(values, values["ts"], None, None, segment="history") for values in rows])
    home.context.definitions.add(_definition(spec))


def row(number: int, time_ms: int, offset: int, segment: str = SEALED) -> Row:
    """A row of orders."""
    values = {"order_id": number, "customer": "ada", "amount": number * 1.5, "ts": time_ms}
    return Row(values, time_ms, offset, segment=segment)


def form(name: str, content: bytes, *, boundary: str = "--limit") -> tuple[bytes, dict[str, str]]:
    """A form with one file: its body and headers."""
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
    return body, {"Content-Type": f"multipart/form-data; boundary={boundary}"}
