"""A real Apache Pinot on the same topics, by `benchmarks/pinot/pinot.sh`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from benchmarks.serving.http import Client, Endpoint, call
from benchmarks.serving.tables import MOVE, Table
from hybrid.jvm.broker import free_port

SCRIPT = Path(__file__).resolve().parent.parent / "pinot" / "pinot.sh"
_ROLES = ("ZK", "CONTROLLER", "BROKER", "SERVER", "ADMIN", "MINION")
_HOST = "127.0.0.1"
_LOAD_S = 1800.0
_MOVE_S = 300.0
_BUCKET_S = 20.0
_POLL_S = 0.5


def library() -> Path:
    """Where its jars are kept between runs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("PINOT_LIB") or cache / "hybrid-benchmarks" / "pinot")


def missing() -> str | None:
    """Why Pinot cannot be run here; None when it can."""
    tools = ["java", "curl", *([] if library().exists() else ["mvn"])]
    found = [tool for tool in tools if shutil.which(tool) is None]
    return f"{' and '.join(found)} not found" if found else None


class Pinot:
    """Pinot on the topics of `brokers`. Use it in a `with`."""

    name = "pinot"

    def __init__(self, folder: Path, brokers: str) -> None:
        self._folder, self._brokers = folder / "pinot", brokers
        self._ports = {role: free_port() for role in _ROLES}
        self._controller = f"http://{_HOST}:{self._ports['CONTROLLER']}"
        self._broker = f"http://{_HOST}:{self._ports['BROKER']}"

    def __enter__(self) -> Pinot:
        if not library().exists():
            library().parent.mkdir(parents=True, exist_ok=True)
            self._script("fetch", library())
        try:
            self._script("start", library(), self._folder)
        except BaseException:
            self._script("stop", self._folder)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._script("stop", self._folder)

    def stop(self) -> None:
        """Ends the server, which holds the rows; the other roles stay."""
        self._script("stop", self._folder, "server")

    def start(self) -> None:
        """Starts it over the rows that are there."""
        self._script("server", library(), self._folder)

    def _script(self, *words: object) -> None:
        ports = {f"PINOT_{role}": str(port) for role, port in self._ports.items()}
        subprocess.run([str(SCRIPT), *map(str, words)], env={**os.environ, **ports}, check=True)

    @property
    def version(self) -> str:
        (jar,) = library().glob("pinot-server-*.jar")
        return f"Apache Pinot {jar.stem.removeprefix('pinot-server-')}"

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(_HOST, self._ports["BROKER"])

    def create(self, table: Table) -> None:
        """Upsert tables get no OFFLINE half and no move: this Pinot has neither for them."""
        realtime = table.realtime(self._brokers)
        if table.upsert:
            del realtime["task"]
        self._post("/schemas", table.schema())
        self._post("/tables?validationTypesToSkip=ALL", realtime)
        if not table.upsert:
            self._post("/tables?validationTypesToSkip=ALL", table.offline())

    def drop(self, table: Table) -> None:
        call("DELETE", f"{self._controller}/tables/{table.name}")

    def await_rows(self, table: Table, rows: int) -> None:
        """Until all messages of the topic are seen, rows that newer ones of their key hide included."""
        client, deadline = Client(self.endpoint), time.monotonic() + _LOAD_S
        sql = f"select count(*) from {table.name}_REALTIME option(skipUpsert=true)"
        while (found := client.rows(sql)) != [[rows]]:
            assert time.monotonic() < deadline, f"{table.name}: {found}, not {rows} rows"
            time.sleep(_POLL_S)
        client.close()

    def move(self, table: Table, buckets: int, rows: int) -> str:
        """Moves so many buckets, one task after the other; a sentence."""
        if table.upsert:
            return "all rows are in the REALTIME half: this Pinot moves no upsert tables"
        client, deadline, moved = Client(self.endpoint), time.monotonic() + _MOVE_S, 0
        while moved < rows and time.monotonic() < deadline:
            self.schedule(table)
            moved = self._grown(client, table, moved)
        client.close()
        return f"{moved:,} rows are offline"

    def await_warm(self, table: Table) -> None:
        """Its segments answer from the start."""

    def schedule(self, table: Table) -> None:
        """Asks for the move of one bucket; nothing happens while one is under way."""
        call("POST", f"{self._controller}/tasks/schedule?taskType={MOVE}&tableName={table.name}_REALTIME")

    def boundary_ms(self, table: Table) -> int | None:
        status, answer = call("GET", f"{self._broker}/debug/timeBoundary/{table.name}_OFFLINE")
        return int(json.loads(answer)["timeValue"]) if status == 200 else None

    def _grown(self, client: Client, table: Table, moved: int) -> int:
        """The rows of the OFFLINE half, once they are more than `moved`, or after a while."""
        deadline = time.monotonic() + _BUCKET_S
        while time.monotonic() < deadline:
            found = client.rows(f"select count(*) from {table.name}_OFFLINE")
            if found and found[0][0] > moved:
                return int(found[0][0])
            time.sleep(_POLL_S)
        return moved

    def _post(self, path: str, body: object) -> None:
        status, answer = call("POST", self._controller + path, body)
        assert status == 200, (path, status, answer)
