"""How long `hybrid query` takes from a cold process, against the bare libraries on the same rows.

    make bench    or    .venv/bin/python -m benchmarks.cold_query

Plays the orders recipe's table (14 rows) in a temporary home, then runs both as whole processes in turn and prints
medians and their ratio. The bare process imports duckdb and deltalake and runs the same SQL over all files. Then a
process that asks again and again, with databases that serve one statement after the other and with a new one for each.
"""

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hybrid
from hybrid.api.hybrid import TableDocuments
from hybrid.kafka.topics import create_topic, produce
from hybrid.query import engine
from hybrid.query.database_pool import DatabasePool
from tests.watchdog import running_broker

ROUNDS = 15
SQL = "select count(*), sum(amount) from orders"
BARE = """
import sys, duckdb, deltalake
files = [f for half in ("OFFLINE", "REALTIME") for f in deltalake.DeltaTable(sys.argv[1] + "/" + half).file_uris()]
print(duckdb.execute("select count(*), sum(amount) from read_parquet($1)", [files]).fetchall())
"""
DATA = Path(__file__).resolve().parent.parent / "data" / "orders"


def prepare(home: Path, brokers: str) -> None:
    create_topic(brokers, "orders")
    hy = hybrid.connect(home)
    configs = [DATA / "orders_table.json", DATA / "orders_offline_table.json"]
    hy.create_table(TableDocuments.read(DATA / "orders_schema.json", configs, brokers))
    with (DATA / "events.jsonl").open("rb") as events:
        produce(brokers, "orders", [line.strip() for line in events])
    hy.table("orders").ingest()
    hy.table("orders").move()
    hy.close()


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def measure(home: Path) -> None:
    bare = [sys.executable, "-c", BARE, str(home / "warehouse" / "orders")]
    ours = [sys.executable, "-m", "hybrid.cli", "--home", str(home), "query", SQL]
    pairs = [(seconds(ours), seconds(bare)) for _ in range(ROUNDS + 1)][1:]
    mine, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}, {ROUNDS} rounds")
    print(f"hybrid query        {mine * 1000:7.0f} ms")
    print(f"duckdb + deltalake  {theirs * 1000:7.0f} ms")
    print(f"ratio               {mine / theirs:7.2f}")


def measure_again(home: Path) -> None:
    hy = hybrid.connect(home)
    kept, new = engine.databases, DatabasePool(lifetime_s=0)
    times: dict[DatabasePool, list[float]] = {kept: [], new: []}
    for _ in range(ROUNDS * 10 + 1):
        for databases in times:
            engine.databases = databases
            started = time.perf_counter()
            hy.query(SQL)
            times[databases].append(time.perf_counter() - started)
    engine.databases = kept
    hy.close()
    again, each = (statistics.median(times[databases][1:]) for databases in (kept, new))
    print(f"asked again, a new database each time  {each * 1000:6.1f} ms")
    print(f"asked again                            {again * 1000:6.1f} ms")
    print(f"ratio                                  {each / again:6.2f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with running_broker(Path(folder) / "broker") as brokers:
            prepare(home, brokers)
            measure(home)
            measure_again(home)


if __name__ == "__main__":
    main()
