"""Ingestion of the same backlog by one and by two workers of a Spark standalone cluster, each with one core.

    .venv/bin/python -m benchmarks.spark_workers [--rows 2000000] [--runs 2]

One worker is pinned to core 0, two are to cores 0 and 1. Both ways of `spark.worker_files` are measured in turn:
`shared`, and `store` with versitygw over a folder of the same disk. A smaller topic is ingested before, so that all is
warm.

The driver, the broker and the store share these cores with the workers. So beside rows a second stand the seconds of
processor time that each of them took: together they say where a second worker finds no core of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from hybrid.kafka.topics import TopicRecord, create_topic, produce
from tests.mirrors import new_url
from tests.s3_server import S3Server, s3_server
from tests.spark_cluster import spark_cluster
from tests.watchdog import running_broker, watch

ROOT = Path(__file__).resolve().parents[1]
PARTITIONS, WARM_ROWS, CHUNK = 8, 200_000, 50_000
CORES = {1: ((0,),), 2: ((0,), (1,))}
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Run:
    """Seconds of one ingestion, and of processor time by who took it."""

    seconds: float
    processor_s: dict[str, float]


def main() -> None:
    """Print the figures, or ingest as the driver of one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--driver", type=Path, help="internal: the home of a run")
    options = parser.parse_args()
    if options.driver is not None:
        _drive(options.driver)
        return
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        server = stack.enter_context(s3_server(folder / "s3" / "store"))
        server.create_bucket("bucket")
        address = stack.enter_context(running_broker(folder / "broker"))
        for topic, rows in (("warm", WARM_ROWS), ("orders", options.rows)):
            _fill(address, topic, rows)
        found: dict[tuple[str, int], list[Run]] = {}
        for number in range(options.runs):
            for mode in ("shared", "store"):
                for workers in CORES:
                    run = _run(folder / f"{mode}-{workers}-{number}", mode, workers, address, server)
                    found.setdefault((mode, workers), []).append(run)
        _print(found, options.rows)


def _print(found: dict[tuple[str, int], list[Run]], rows: int) -> None:
    for mode in ("shared", "store"):
        seconds = {workers: median(run.seconds for run in found[mode, workers]) for workers in CORES}
        for workers, runs in ((workers, found[mode, workers]) for workers in CORES):
            parts = ", ".join(
                f"{name} {median(run.processor_s[name] for run in runs):.1f}" for name in runs[0].processor_s
            )
            print(f"{mode}, {workers} worker(s): {rows / seconds[workers]:,.0f} rows/s; processor s: {parts}")
        print(f"{mode}: two workers take in {seconds[1] / seconds[2]:.2f} times the rows of one")


def _fill(address: str, topic: str, rows: int) -> None:
    create_topic(address, topic, PARTITIONS)
    for start in range(0, rows, CHUNK):
        partition = start // CHUNK % PARTITIONS
        values = (
            f'{{"order_id":{n},"customer_id":{n % 1000},"order_status":"OPEN","amount":1.5,"ts":{1632463351000 + n}}}'
            for n in range(start, min(start + CHUNK, rows))
        )
        produce(address, topic, [TopicRecord(value.encode(), partition=partition) for value in values])


def _run(folder: Path, mode: str, workers: int, address: str, server: S3Server) -> Run:
    home, here = folder / "home", {**os.environ, **server.environment, "PYTHONPATH": str(ROOT)}
    home.mkdir(parents=True)
    with spark_cluster(folder / "spark") as cluster:
        warehouse = f'warehouse = "{new_url()}"\n' if mode == "store" else ""
        (home / "hybrid.toml").write_text(f'{warehouse}{cluster.settings}worker_files = "{mode}"\n')
        started = [cluster.start_worker(f"worker{number}", cores) for number, cores in enumerate(CORES[workers])]
        cluster.await_workers(*started)
        for table in ("warm", "orders"):
            _create(home, table, address, here)
        command = [sys.executable, "-m", "benchmarks.spark_workers", "--driver", str(home)]
        driver = subprocess.Popen(
            command,
            cwd=ROOT,
            env=here,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        watch(driver)
        assert driver.stdin is not None and driver.stdout is not None
        assert driver.stdout.readline() == "warm\n"
        roles = {"workers": [worker.process.pid for worker in started], "driver": [driver.pid]}
        with _processor_time(roles) as spent:
            driver.stdin.write("go\n")
            driver.stdin.flush()
            seconds = float(driver.stdout.readline())
        driver.stdin.close()
        driver.wait()
    return Run(seconds, spent)


def _create(home: Path, table: str, address: str, here: dict[str, str]) -> None:
    """A table by the documents of the orders example, on the topic of its name."""
    source = ROOT / "data" / "orders"
    schema = {**json.loads((source / "orders_schema.json").read_text()), "schemaName": table}
    config = json.loads((source / "orders_table.json").read_text())
    config["tableName"] = config["segmentsConfig"]["schemaName"] = table
    config["task"] = {}
    config["tableIndexConfig"]["streamConfigs"] |= {
        "stream.kafka.topic.name": table,
        "stream.kafka.consumer.prop.auto.offset.reset": "smallest",
        "realtime.segment.flush.threshold.rows": 1_000_000,
    }
    for name, document in (("schema", schema), ("config", config)):
        (home / f"{table}_{name}.json").write_text(json.dumps(document))
    words = ["--schema", f"{home}/{table}_schema.json", "--config", f"{home}/{table}_config.json", "--kafka", address]
    command = [sys.executable, "-c", "from hybrid.cli.main import main; main()", "--home", str(home)]
    subprocess.run(
        [*command, "table", "create", *words, "--json"], check=True, cwd=ROOT, env=here, stdout=subprocess.DEVNULL
    )


def _drive(home: Path) -> None:
    """Ingest the topic `warm`; then, when a line comes in, the topic `orders`. Prints the seconds that this took."""
    import hybrid

    with hybrid.connect(home) as hy:
        hy.table("warm").ingest()
        print("warm", flush=True)
        sys.stdin.readline()
        began = time.perf_counter()
        hy.table("orders").ingest()
        print(time.perf_counter() - began, flush=True)


@contextmanager
def _processor_time(roles: dict[str, list[int]]) -> Iterator[dict[str, float]]:
    """Seconds of processor time in the block: by roles, whose processes lead sessions, and of all others."""
    spent: dict[str, float] = {}
    before = _times(roles)
    yield spent
    spent.update({name: after - before[name] for name, after in _times(roles).items()})


def _times(roles: dict[str, list[int]]) -> dict[str, float]:
    found = dict.fromkeys((*roles, "broker, store and others"), 0.0)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        session, ticks = int(fields[3]), sum(map(int, fields[11:15]))  # with those of children that have ended
        role = next((name for name, leaders in roles.items() if session in leaders), "broker, store and others")
        found[role] += ticks / _TICKS
    return found


if __name__ == "__main__":
    main()
