"""DuckDB alone behind the barest HTTP server, as the mark of what an answer costs at least.

    python -m benchmarks.serving.bare PORT FOLDER

Each parquet file of FOLDER is a table in memory, its rows sorted by time and its texts an ENUM. There is no stream, no
boundary and no upsert: the rows are there as they are to be seen. Starlette and uvicorn, one process, no thread beside
DuckDB's own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.serving.http import Client, Endpoint
from benchmarks.serving.workload import STATUSES, Events
from hybrid.jvm.broker import free_port

_START_S = 120.0


class Bare:
    """The bare server over tables by name. Use it in a `with`."""

    name = "bare"

    def __init__(self, folder: Path, tables: dict[str, Events]) -> None:
        self._folder, self._log = folder / "bare", folder / "bare.log"
        self._folder.mkdir(parents=True)
        for name, events in tables.items():
            pq.write_table(_columns(events), self._folder / f"{name}.parquet")
        self.endpoint = Endpoint("127.0.0.1", free_port())

    def __enter__(self) -> Bare:
        command = [sys.executable, "-m", "benchmarks.serving.bare", str(self.endpoint.port), str(self._folder)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self._await_answer()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=20)

    @property
    def version(self) -> str:
        return f"DuckDB {duckdb.__version__}"

    def _await_answer(self) -> None:
        deadline = time.monotonic() + _START_S
        while True:
            try:
                client = Client(self.endpoint)
                client.rows("select 1")
                return client.close()
            except OSError:
                assert time.monotonic() < deadline and self._process.poll() is None, self._log.read_text()
                time.sleep(0.1)


def _columns(events: Events) -> pa.Table:
    return pa.table(
        {
            "order_id": events.order_id,
            "customer_id": events.customer_id,
            "order_status": pa.DictionaryArray.from_arrays(pa.array(events.status, pa.int32()), list(STATUSES)),
            "amount": events.amount,
            "ts": events.ts,
        }
    )


def serve(port: int, folder: Path) -> None:
    """Answers until it is terminated."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    connection = duckdb.connect()
    connection.execute("create macro distinctcount(x) as count(distinct x)")
    connection.execute(f"create type status as enum {STATUSES}")
    for file in sorted(folder.glob("*.parquet")):
        connection.execute(
            f"create table {file.stem} as select order_id, customer_id, order_status::status as order_status, amount, "
            f"ts from read_parquet('{file}') order by ts"
        )

    async def answer(request: Request) -> Response:
        sql = json.loads(await request.body())["sql"]
        rows = connection.execute(sql).fetchall()
        return Response(json.dumps({"resultTable": {"rows": rows}}), media_type="application/json")

    app = Starlette(routes=[Route("/query/sql", answer, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]))
