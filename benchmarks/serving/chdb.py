"""ClickHouse's engine (chdb) behind the same bare HTTP server as DuckDB.

    python -m benchmarks.serving.chdb PORT FOLDER

chdb is installed into a folder of its own, from `benchmarks/requirements-chdb.txt`: the product does not know of it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.serving.bare import run
from benchmarks.serving.http import Endpoint, Rows
from benchmarks.serving.loaded import HOST, Loaded, cache_folder, fetch_once
from benchmarks.serving.workload import STATUSES

REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements-chdb.txt"


def library() -> Path:
    """Where it is installed, and kept between runs."""
    return cache_folder() / "chdb"


class ChdbEndpoint(Endpoint):
    """The bare server over ClickHouse's engine: its answers are in the format JSONCompact."""

    def dialect(self, text: str) -> str:
        return text.replace("distinctcount(", "uniqExact(")

    def rows(self, answer: bytes) -> Rows | None:
        rows: Rows | None = json.loads(answer).get("data")
        return rows


class Chdb(Loaded):
    """The server over tables by name."""

    name = "chdb"

    @property
    def version(self) -> str:
        (found,) = library().glob("chdb-*.dist-info")
        return f"chdb {found.name.removeprefix('chdb-').removesuffix('.dist-info')}"

    @property
    def endpoint(self) -> ChdbEndpoint:
        return ChdbEndpoint(HOST, self.port)

    def prepare(self) -> None:
        fetch_once(library(), _install)

    def environment(self) -> Mapping[str, str]:
        return {"PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(library()))))}

    def command(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.serving.chdb", str(self.port), str(self.files)]


def _install(part: Path) -> list[str]:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return [*pip, "--no-deps", "--target", str(part), "-r", str(REQUIREMENTS)]


# Looked-up values are spread over the granules of the order by time: bloom filters skip those without them. Projections
# in the orders of these columns took longer.
_TABLE = """
create table {name} (
  order_id Int64, customer_id Int64, order_status Enum8({statuses}), amount Float64, ts Int64,
  index order_ids order_id type bloom_filter(0.01) granularity 1,
  index customer_ids customer_id type bloom_filter(0.01) granularity 1
) engine = MergeTree order by ts settings index_granularity = 2048
"""


def serve(port: int, folder: Path) -> None:
    """Loads the files and answers until it is terminated."""
    import chdb

    connection = chdb.connect(str(folder / "data"))
    statuses = ", ".join(f"'{name}' = {number}" for number, name in enumerate(STATUSES, start=1))
    for file in sorted(folder.glob("*.parquet")):
        connection.query(_TABLE.format(name=file.stem, statuses=statuses))
        connection.query(f"insert into {file.stem} select * from file('{file}') order by ts")
        connection.query(f"optimize table {file.stem} final")

    def answer(sql: str) -> bytes:
        found: bytes = connection.query(sql, "JSONCompact").bytes()
        return found

    run(port, answer)


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]))
