"""Commit lag: how long messages wait from their arrival in Kafka to the commit that holds them, under steady streams.

    .venv/bin/python -m benchmarks.commit_lag [--rates 2000,20000] [--backlogs 0,1000000] [--seconds 40]

A server ingests a table of two partitions while messages are produced at a steady rate. The Delta log is watched: a
commit's lag is the time since the first message after the previous commit was acknowledged, so it is the longest wait
of its messages. With a backlog the topic holds so many messages when the table is created; lag is counted once the
table has caught up. The client that asks `count(*)` four times a second is the one of `benchmarks.ingestion`.

With `--batches 20000,100000` only the duration of single batches of these sizes, without a server.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer

import hybrid
from benchmarks.serving.http import Client
from benchmarks.serving.product import Product
from benchmarks.serving.tables import Table
from hybrid.config.table_config import Half
from hybrid.config.table_documents import TableDocuments
from hybrid.ingest.batch import run_batch
from hybrid.kafka.topics import create_topic
from hybrid.lake.layout import TableLayout
from hybrid.lake.log_entries import read_commit
from hybrid.table.state import RealtimeState
from tests.watchdog import running_broker

PARTITIONS = 2
TICK_S, LOOK_S = 0.02, 0.02
SEAL_ROWS = 1_000_000


def message(number: int) -> bytes:
    event = {"order_id": number, "customer_id": number % 1000, "order_status": "paid", "amount": 9.5, "ts": number}
    return json.dumps(event).encode()


class Feeder(threading.Thread):
    """Produces at a rate until its end. `sent` holds (time, messages acknowledged so far)."""

    def __init__(self, brokers: str, topic: str, rate: int, first: int = 0) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5, "acks": "all"})
        self._topic, self._rate, self._next = topic, rate, first
        self._acknowledged = first
        self.sent: list[tuple[float, int]] = [(time.monotonic(), first)]
        self.end = threading.Event()

    def run(self) -> None:
        started, first = time.monotonic(), self._next
        while not self.end.wait(TICK_S):
            due = first + int((time.monotonic() - started) * self._rate)
            self.produce(due - self._next)
            self.sent.append((time.monotonic(), self._acknowledged))

    def produce(self, count: int) -> None:
        """Produces messages, alternately into the partitions."""
        for number in range(self._next, self._next + count):
            while True:
                try:
                    self._producer.produce(
                        self._topic, message(number), partition=number % PARTITIONS, on_delivery=self._delivered
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._next += count
        self._producer.poll(0)

    def fill(self, count: int) -> None:
        """Produces messages and awaits them."""
        self.produce(count)
        self._producer.flush()
        self.sent = [(time.monotonic(), self._acknowledged)]

    def _delivered(self, error: object, _: object) -> None:
        assert error is None, error
        self._acknowledged += 1

    def sent_at(self, number: int) -> float:
        """When the message of this number had been acknowledged, s."""
        place = bisect_right(self.sent, number, key=lambda entry: entry[1])
        return self.sent[min(place, len(self.sent) - 1)][0]


@dataclass
class Commits:
    """The commits of a half as they appear: (time seen, offsets committed in all)."""

    half: Path
    version: int = 0
    seen: list[tuple[float, int]] = field(default_factory=list)

    def look(self) -> None:
        while (commit := read_commit(self.half, self.version)) is not None:
            self.version += 1
            if isinstance(commit.state, RealtimeState) and commit.state.act.kind == "ingest":
                self.seen.append((time.monotonic(), sum(commit.state.offsets.values())))


def lags(feeder: Feeder, commits: Commits, since: float) -> list[float]:
    """The longest wait of the messages of each commit after an instant, s."""
    before, found = 0, []
    for at, total in commits.seen:
        if at > since and total > before:
            found.append(at - feeder.sent_at(before))
        before = total
    return found


def measure(product: Product, home: Path, brokers: str, rate: int, backlog: int, seconds: float) -> str:
    """One table under one stream; a line of figures."""
    name = f"lag_{rate}_{backlog}"
    create_topic(brokers, name, PARTITIONS)
    feeder = Feeder(brokers, name, rate)
    feeder.fill(backlog)
    table = Table(name, name, upsert=False, seal_rows=SEAL_ROWS)
    feeder.start()
    started = time.monotonic()
    product.create(table)
    (root,) = home.glob(f"**/{name}/REALTIME")
    commits = Commits(TableLayout(root.parent).half(Half.REALTIME))
    client, asked_at = Client(product.endpoint), 0.0
    caught_up: float | None = None
    deadline = started + 120
    while time.monotonic() < (deadline if caught_up is None else caught_up + seconds):
        commits.look()
        if time.monotonic() - asked_at > 0.25:
            asked_at = time.monotonic()
            client.ask(f"select count(*) from {name}")
        if caught_up is None and commits.seen and commits.seen[-1][1] >= feeder.sent[-1][1] - 3 * rate:
            caught_up = time.monotonic()
        time.sleep(LOOK_S)
    feeder.end.set()
    feeder.join()
    client.close()
    assert caught_up is not None, commits.seen
    found = sorted(lags(feeder, commits, caught_up + 5))
    sizes = [after[1] - before[1] for before, after in zip(commits.seen, commits.seen[1:], strict=False)]
    catching = [round(at - started, 1) for at, _ in commits.seen if at <= caught_up]
    product.drop(table)
    return (
        f"{rate:,}/s, backlog {backlog:,}: caught up after {caught_up - started:.1f} s, commits at {catching[:12]}; "
        f"later {len(found)} commits of {statistics.median(sizes[-10:]):,.0f}, "
        f"lag median {statistics.median(found):.2f} s, p90 {found[int(0.9 * len(found))]:.2f} s, max {found[-1]:.2f} s"
    )


def measure_batches(folder: Path, brokers: str, sizes: list[int]) -> Iterator[str]:
    """Durations of batches of different sizes, in this process."""
    create_topic(brokers, "batches", PARTITIONS)
    Feeder(brokers, "batches", 0).fill(sum(sizes) + 50_000)
    table = Table("batches", "batches", upsert=False, seal_rows=SEAL_ROWS)
    here = hybrid.connect(folder / "home")
    here.create_table(TableDocuments((table.schema(), "schema"), [(table.realtime(brokers), "config")]))
    context = here.context.table_context(here.table("batches")._ref)
    for size in (50_000, *sizes):
        started = time.perf_counter()
        report = run_batch(context, batch_offsets_max=size)
        took_s = time.perf_counter() - started
        assert report is not None and report.rows == size
        yield f"{size:,} in {took_s:.2f} s: {size / took_s:,.0f}/s"
    here.close()


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rates", default="2000,20000")
    parser.add_argument("--backlogs", default="0,1000000")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--batches", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_broker(folder / "kafka") as brokers:
            if options.batches:
                for line in measure_batches(folder, brokers, list(map(int, options.batches.split(",")))):
                    print(line, flush=True)
                return
            with Product(folder / "product", brokers) as product:
                warm = Table("warm", "warm", upsert=False, seal_rows=SEAL_ROWS)
                create_topic(brokers, "warm", PARTITIONS)
                Feeder(brokers, "warm", 0).fill(200_000)
                product.create(warm)
                product.await_rows(warm, 200_000)
                product.drop(warm)
                for rate in map(int, options.rates.split(",")):
                    for backlog in map(int, options.backlogs.split(",")):
                        print(measure(product, folder / "product", brokers, rate, backlog, options.seconds), flush=True)


if __name__ == "__main__":
    main()
