"""DuckDB alone behind the barest HTTP server, as the mark of what an answer costs at least.

    python -m benchmarks.serving.bare PORT FOLDER

Each parquet file of FOLDER is a table in memory, its rows sorted by time and its texts an ENUM. There is no stream, no
boundary and no upsert: the rows are there as they are to be seen. Starlette and uvicorn, one process, no thread beside
DuckDB's own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb

from benchmarks.serving.http import Endpoint
from benchmarks.serving.loaded import HOST, Loaded
from benchmarks.serving.workload import STATUSES


class Bare(Loaded):
    """The bare server over tables by name."""

    name = "bare"
    parts = ("latency", "peers", "growth")

    @property
    def version(self) -> str:
        return f"DuckDB {duckdb.__version__}"

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(HOST, self.port)

    def command(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.serving.bare", str(self.port), str(self.files)]


def serve(port: int, folder: Path) -> None:
    """Answers until it is terminated."""
    connection = duckdb.connect()
    connection.execute("create macro distinctcount(x) as count(distinct x)")
    connection.execute(f"create type status as enum {STATUSES}")
    for file in sorted(folder.glob("*.parquet")):
        connection.execute(
            f"create table {file.stem} as select order_id, customer_id, order_status::status as order_status, amount, "
            f"ts from read_parquet('{file}') order by ts"
        )
    run(port, lambda sql: json.dumps({"resultTable": {"rows": connection.execute(sql).fetchall()}}))


def run(port: int, answer: Callable[[str], str | bytes]) -> None:
    """Serves statements by `answer`, which gives the JSON of an answer, until the process is terminated."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def post(request: Request) -> Response:
        sql = json.loads(await request.body())["sql"]
        return Response(answer(sql), media_type="application/json")

    app = Starlette(routes=[Route("/query/sql", post, methods=["POST"])])
    uvicorn.run(app, host=HOST, port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]))
