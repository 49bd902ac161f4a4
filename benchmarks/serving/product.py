"""The product: a real `hybrid serve` on a home of its own, driven by HTTP as a user drives it."""

from __future__ import annotations

import json
import re
import time
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.serving.http import Client, Endpoint
from benchmarks.serving.tables import MOVE, Table
from tests.serve.server import Server

_LOAD_S = 1800.0
_POLL_S = 0.5


class Product:
    """The product on the topics of `brokers`. Use it in a `with`."""

    name = "product"

    def __init__(self, folder: Path, brokers: str) -> None:
        self._home, self._brokers = folder / "home", brokers
        self._server: Server | None = None

    def __enter__(self) -> Product:
        self._home.mkdir(parents=True)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, *options: str) -> None:
        """Starts its server over what is there; returns when it is ready."""
        self._server = Server(self._home, self._brokers, options=options)
        self._server.__enter__()

    def stop(self) -> None:
        """Ends its server, all processes."""
        self.server.kill()

    @property
    def server(self) -> Server:
        assert self._server is not None
        return self._server

    @property
    def version(self) -> str:
        return f"hybrid {version('hybrid')}"

    @property
    def endpoint(self) -> Endpoint:
        parts = urlsplit(self.server.address["broker_url"])
        assert parts.hostname and parts.port
        return Endpoint(parts.hostname, parts.port)

    def create(self, table: Table) -> None:
        self.server.ok("POST", "/schemas", table.schema())
        self.server.ok("POST", "/tables", table.realtime(self._brokers))
        self.server.ok("POST", "/tables", table.offline())

    def drop(self, table: Table) -> None:
        self.server.ok("DELETE", f"/tables/{table.name}")

    def await_rows(self, table: Table, rows: int) -> None:
        """Until all messages of the topic are committed. The status of a table would count its visible rows too.

        The last message of a partition must not fill a segment: then none would be consuming.
        """
        deadline = time.monotonic() + _LOAD_S
        path = f"/tables/{table.name}/consumingSegmentsInfo"
        while True:
            segments = self.server.ok("GET", path)["_segmentToConsumingInfoMap"].values()
            offsets = {part: int(at) for (info,) in segments for part, at in info["partitionToOffsetMap"].items()}
            if sum(offsets.values()) == rows:
                return
            assert time.monotonic() < deadline, f"{offsets}\n{self.server.logged()}"
            time.sleep(_POLL_S)

    def move(self, table: Table, buckets: int, rows: int) -> str:
        """Moves so many buckets, which hold `rows` messages; a sentence."""
        status, queued = self.server.call("POST", "/verbs/move", {"table": table.name, "max_buckets": buckets})
        assert status == 202, queued
        run = self.server.await_task(queued["run"], _LOAD_S)
        assert run["state"] == "DONE" and run["report"]["rows_read"] == rows, run
        return f"{run['report']['rows_written']:,} rows of {rows:,} events are offline"

    def await_warm(self, table: Table) -> None:
        """Until statements are answered from memory, in which the first one has the table laid."""
        deadline = time.monotonic() + _LOAD_S
        while self.source(table) != "cache":
            assert time.monotonic() < deadline, self.server.logged()
            time.sleep(_POLL_S)

    def source(self, table: Table) -> str | None:
        """Where a statement is answered from, `cache` or `files`; None when it failed."""
        client = Client(self.endpoint)
        answer = json.loads(client.ask(f"select count(*) from {table.name}")[1])
        client.close()
        return answer.get("answeredFrom")

    def cached_bytes(self, kind: str = "") -> int:
        """What its tables take in memory, or what that kind of it takes."""
        text = self.server.call("GET", "/metrics", text=True)[1]
        found = re.findall(r'hybrid_cache_bytes\{kind="(.*)",place="memory"\} (\S+)', text)
        return int(sum(float(size) for name, size in found if kind in {"", name}))

    def peak_bytes(self) -> int:
        """The most memory that the process that answers has had."""
        (pid,) = self.server.pids("query")
        status = Path(f"/proc/{pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024

    def schedule(self, table: Table) -> None:
        """Asks for the move of one bucket; nothing happens while one is under way."""
        self.server.call("POST", f"/tasks/schedule?taskType={MOVE}&tableName={table.name}_REALTIME")

    def boundary_ms(self, table: Table) -> int | None:
        """The last offline time that is covered; None while nothing was moved."""
        status, answer = self.server.call("GET", f"/debug/timeBoundary/{table.name}")
        return int(answer["timeValue"]) if status == 200 else None
