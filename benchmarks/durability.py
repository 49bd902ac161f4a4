"""What it costs that a commit outlasts a power failure: ingestion, moves and replacements with and without syncs.

    .venv/bin/python -m benchmarks.durability [--rows 1000,200000] [--rounds 6]

One process, one Spark session and one table over a real Kafka broker. In each round a bucket of rows comes from Kafka
in one commit, is moved, and is replaced by a job that reads corrected rows from a file. Rounds are synced or not in
turn (on, off, off, on). Prints medians and their ratio; and how long the driver waited for the device, which other work
on the machine disturbs less. Workers wait too, once for each file, side by side.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from benchmarks.serving.stream import send
from benchmarks.serving.tables import Table
from benchmarks.serving.workload import HOUR_MS, START_MS
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.job_spec import JobSpec, load_job_spec
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half
from hybrid.kafka.topics import create_topic
from hybrid.lake.log import open_half
from hybrid.progress import Silent
from hybrid.runtime import durable
from tests.watchdog import running_broker

TABLE = Table("orders", "orders", upsert=False, seal_rows=100_000_000, bucket="2h")
BUCKET_MS = 2 * HOUR_MS
PARTITIONS = 2
OPERATIONS = ("ingestion", "move", "replacement")

Times = dict[tuple[str, bool], list[float]]


class Waited:
    """How long the process waited for the device, seconds: of waits side by side the longest."""

    def __init__(self) -> None:
        self.seconds, self._all, self._one = 0.0, durable._sync_all, durable.sync
        self._is_inside = False
        durable._sync_all = lambda paths: self._timed(lambda: self._all(paths))
        durable.sync = lambda path: self._timed(lambda: self._one(path))

    def _timed(self, work: Callable[[], None]) -> None:
        if self._is_inside:
            return work()
        self._is_inside, before = True, time.perf_counter()
        try:
            return work()
        finally:
            self._is_inside, self.seconds = False, self.seconds + time.perf_counter() - before


class Bench:
    """The table, seen by two homes over the same folder: one syncs, one does not."""

    def __init__(self, folder: Path, brokers: str) -> None:
        self._folder, self._brokers, self._bucket, self._waited = folder, brokers, 0, Waited()
        create_topic(brokers, TABLE.topic, PARTITIONS)
        environ = {key: value for key, value in os.environ.items() if not key.startswith("HYBRID_")}
        self._homes = {
            on: Hybrid(
                load_settings(home=folder / "home", environ={**environ, "HYBRID_DURABLE": str(on)}),
                Silent(),
            )
            for on in (True, False)
        }
        configs = [(TABLE.realtime(brokers), "realtime"), (TABLE.offline(), "offline")]
        self._homes[True].create_table(TableDocuments((TABLE.schema(), "schema"), configs))

    def round(self, on: bool, rows: int) -> dict[str, tuple[float, float]]:
        """Milliseconds of each operation on a bucket of its own, and of these how many it waited for the device."""
        durable.configure(self._folder / "home", on)
        table = self._homes[on].table(TABLE.name)
        self._bucket += 1
        messages = self._produce(rows)
        found = {"ingestion": self._ms(lambda: table.ingest_batch()), "move": self._ms(lambda: table.move())}
        job = self._job(messages)
        found["replacement"] = self._ms(lambda: table.replace(job))
        print(f"{'synced' if on else 'bare'}: {found}", file=sys.stderr)
        return found

    def _ms(self, work: Callable[[], object]) -> tuple[float, float]:
        waited, before = self._waited.seconds, time.perf_counter()
        work()
        return (time.perf_counter() - before) * 1000, (self._waited.seconds - waited) * 1000

    def _produce(self, rows: int) -> list[bytes]:
        start = START_MS + self._bucket * BUCKET_MS
        orders = (
            {
                "order_id": self._bucket * rows + number,
                "customer_id": number * 7919 % 100_003,
                "order_status": "DELIVERED",
                "amount": number * 0.25,
                "ts": start + number * BUCKET_MS // rows,
            }
            for number in range(rows)
        )
        messages = [json.dumps(order).encode() for order in orders]
        for partition in range(PARTITIONS):
            send(self._brokers, TABLE.topic, partition, messages[partition::PARTITIONS])
        return messages

    def _job(self, messages: list[bytes]) -> JobSpec:
        """Replaces the newest segment by rows of a file, with another status: the same rows would change nothing."""
        half = open_half(self._homes[True].context.layout(TABLE.name).half(Half.OFFLINE))
        folder = self._folder / f"input-{self._bucket}"
        folder.mkdir()
        (folder / "orders.json").write_bytes(b"\n".join(messages).replace(b"DELIVERED", b"RETURNED"))
        spec = self._folder / "job.yml"
        spec.write_text(
            json.dumps(
                {
                    "jobType": "SegmentCreationAndTarPush",
                    "inputDirURI": str(folder),
                    "includeFileNamePattern": "glob:**/*.json",
                    "recordReaderSpec": {"dataFormat": "json"},
                    "tableSpec": {"tableName": TABLE.name},
                    "segmentNameGeneratorSpec": {
                        "type": "fixed",
                        "configs": {"segment.name": max(file.segment for file in half.files)},
                    },
                }
            )
        )
        return load_job_spec(spec, {}, None, int(time.time() * 1000))


def measured(rows: int, rounds: int) -> Times:
    """Milliseconds by operation and whether it was synced, with those that it waited for the device."""
    times: Times = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, running_broker(Path(folder) / "kafka") as brokers:
        bench = Bench(Path(folder), brokers)
        for on in (True, False):  # warm
            bench.round(on, rows)
        for number in range(rounds):
            for on in (True, False) if number % 2 == 0 else (False, True):
                for operation, (took, waited) in bench.round(on, rows).items():
                    times[operation, on].append(took)
                    times[f"{operation} waited", on].append(waited)
    return times


def main() -> None:
    """Prints a row of a table for each size and operation."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default="1000,200000")
    parser.add_argument("--rounds", type=int, default=6)
    asked = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} processors, {asked.rounds} rounds, medians")
    print("| rows | operation | without, ms | with, ms | ratio | waited, ms |\n|---|---|---|---|---|---|")
    for rows in map(int, asked.rows.split(",")):
        times = measured(rows, asked.rounds)
        for operation in OPERATIONS:
            synced, bare = (statistics.median(times[operation, on]) for on in (True, False))
            waited = statistics.median(times[f"{operation} waited", True])
            print(f"| {rows:,} | {operation} | {bare:.0f} | {synced:.0f} | {synced / bare:.2f} | {waited:.0f} |")


if __name__ == "__main__":
    main()
