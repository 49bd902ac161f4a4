"""What tables cost that nobody writes to and nobody asks: processor, threads and files of a server's processes.

    .venv/bin/python -m benchmarks.idle_tables [--tables 100] [--offline 0] [--seconds 30] [--rows 50]

`hybrid serve` follows tables of a topic each on one broker, and `--offline` ones without a stream. Its query process
and its pipeline process (without Spark's JVM) are compared with themselves before there were tables. Then rows are
produced to one of the tables, and its count is asked for until it includes the row: `first` after a pause, `next` while
statements follow each other.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from kafka import KafkaProducer

from benchmarks.serving.http import Client
from benchmarks.serving.product import Product
from benchmarks.serving.tables import Table
from hybrid.kafka.topics import create_topic
from tests.watchdog import running_broker

_ROLES = ("query", "pipeline")
_SETTLE_S, _FOLLOW_S, _SEEN_S = 5.0, 300.0, 30.0
_FIRST_PAUSE_S = 0.3


@dataclass(frozen=True)
class Cost:
    """Of one process: share of a core in percent, threads, open files."""

    share: float
    threads: int
    files: int


def cost(pid: int, seconds: float) -> Cost:
    """What a process costs for some seconds."""
    used, started = processor_s(pid), time.perf_counter()
    time.sleep(seconds)
    share = 100 * (processor_s(pid) - used) / (time.perf_counter() - started)
    return Cost(share, len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd")))


def processor_s(pid: int) -> float:
    """Processor time that a process has used, seconds."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Rows:
    """Rows for one table, and a client that counts them."""

    def __init__(self, product: Product, table: Table, brokers: str) -> None:
        self._client, self._table = Client(product.endpoint), table
        self._producer = KafkaProducer(bootstrap_servers=brokers, acks="all")
        self.count = 0

    def visible_ms(self, pause_s: float, rows: int) -> list[float]:
        """Milliseconds from the acknowledgement of a row until a count includes it, for some rows."""
        return sorted(self._next_ms(pause_s) for _ in range(rows))

    def _next_ms(self, pause_s: float) -> float:
        deadline = time.perf_counter() + pause_s
        while (left_s := deadline - time.perf_counter()) > 0:
            if pause_s >= _FIRST_PAUSE_S:
                time.sleep(left_s)
            else:
                self._counted()
        row = {"order_id": self.count, "customer_id": 1, "order_status": "NEW", "amount": 1.0}
        value = json.dumps({**row, "ts": int(time.time() * 1000)}).encode()
        self._producer.send(self._table.topic, value, partition=0).get(10)
        self.count += 1
        acknowledged = time.perf_counter()
        while (seen := self._counted()) < self.count:
            assert time.perf_counter() < acknowledged + _SEEN_S, (seen, self.count)
        assert seen == self.count, (seen, self.count)
        return 1000 * (time.perf_counter() - acknowledged)

    def _counted(self) -> int:
        answer = json.loads(self._client.ask(f"select count(*) from {self._table.name}")[1])
        assert not answer["exceptions"], answer
        return int(answer["resultTable"]["rows"][0][0])


def _create(product: Product, brokers: str, tables: int, offline: int) -> list[Table]:
    created = [Table(f"idle_{number}", f"idle_{number}", upsert=False, seal_rows=1_000_000) for number in range(tables)]
    for table in created:
        create_topic(brokers, table.topic)
        product.create(table)
    for number in range(offline):
        table = Table(f"offline_{number}", "", upsert=False, seal_rows=1_000_000)
        product.server.ok("POST", "/schemas", table.schema())
        product.server.ok("POST", "/tables", table.offline())
        created.append(table)
    return created


def _await_followed(product: Product, tables: Sequence[Table]) -> None:
    """Until each is answered from memory."""
    deadline = time.monotonic() + _FOLLOW_S
    for table in tables:
        while product.source(table) != "cache":
            assert time.monotonic() < deadline, product.server.logged()
            time.sleep(0.1)


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _print_cost(role: str, before: Cost, after: Cost, tables: int) -> None:
    more = after.share - before.share
    print(f"{role}: {after.share:.1f} % of a core, {more:.1f} more than without tables")
    print(f"  threads {after.threads}, {(after.threads - before.threads) / tables:.2f} a table")
    print(f"  open files {after.files}, {(after.files - before.files) / tables:.2f} a table")


def measure(folder: Path, brokers: str, asked: argparse.Namespace) -> None:
    """Prints what the tables cost."""
    with Product(folder, brokers) as product:
        pids = {role: pid for role in _ROLES for pid in product.server.pids(role)}
        time.sleep(_SETTLE_S)
        before = {role: cost(pid, asked.seconds) for role, pid in pids.items()}
        _say(f"without tables: {before}")
        started = time.perf_counter()
        tables = _create(product, brokers, asked.tables, asked.offline)
        _say(f"{len(tables)} tables after {time.perf_counter() - started:.0f} s")
        _await_followed(product, tables)
        time.sleep(_SETTLE_S)
        count = len(tables)
        print(f"{count} idle tables, {asked.offline} of them without a stream")
        for role, pid in pids.items():
            _print_cost(role, before[role], cost(pid, asked.seconds), count)
        if asked.rows and asked.tables:
            rows = Rows(product, tables[0], brokers)
            rows.visible_ms(_FIRST_PAUSE_S, 5)
            for name, pause_s in (("first", _FIRST_PAUSE_S), ("next", 0.02)):
                times = rows.visible_ms(pause_s, asked.rows)
                worst = times[int(0.99 * len(times))]
                print(f"a row is visible after {median(times):.2f} ms, p99 {worst:.1f} ms ({name})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--offline", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rows", type=int, default=50)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_broker(folder / "kafka") as brokers:
            measure(folder, brokers, asked)


if __name__ == "__main__":
    main()
