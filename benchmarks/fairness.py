"""Ingestion, moves and corrections while readers query in a closed loop, beside the same without readers, in one go.

    .venv/bin/python -m benchmarks.fairness [--seconds 120] [--readers 3] [--parts warm,start] [--rounds 2]
                                            [--correct-every 20]

warm    2,000 events a second arrive; closed buckets are moved one by one, and offline buckets are corrected one by one
        (`--update`, one bucket each), without a pause or every so many seconds. First without readers, then with them,
        on one warm server: what was finished, and how far commits lag. Then the readers alone: the median of their
        statements with and without other work.
start   a server that starts on 100,000 uncommitted events: seconds to its first commit and to its first move, without
        and with readers, in turn.

Readers ask five small statements in turn, and check each answer: a row that is missing, doubled or changed is an error.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.serving.http import Client, Endpoint
from benchmarks.serving.product import Product
from benchmarks.serving.stream import Feeder, send
from benchmarks.serving.tables import Table
from benchmarks.serving.workload import HOUR_MS, PARTITIONS, START_MS, STATUSES, message
from hybrid.kafka.topics import create_topic
from tests.serve.server import Server
from tests.watchdog import running_broker

RATE = 2000
SEAL_ROWS = 1_000_000
HOUR_ROWS = 10_000  # a bucket is filled in five seconds
BASE_HOURS, WARM_S, ALONE_S = 20, 120.0, 20.0
CUSTOMERS = 1000
BACKLOG_HOURS = 10
SPAWN = multiprocessing.get_context("spawn")
_WAIT_S, _POLL_S = 300.0, 0.2
TABLE = Table("live", "live", upsert=False, seal_rows=SEAL_ROWS, bucket="1h")


def event(n: int) -> tuple[int, bytes]:
    """The nth event: an order and an amount of its own, and a customer who orders again and again."""
    return n % PARTITIONS, message(n, n % CUSTOMERS, 0, 1.0, START_MS + n * HOUR_MS // HOUR_ROWS)


def _later(n: int, first: int) -> tuple[int, bytes]:
    return event(first + n)


# Readers


def _small_statements(base: int, chance: random.Random) -> Iterator[tuple[str, str, Any]]:
    """Name, statement and answer of each, for ever; the answer is None where it depends on what has arrived."""
    hours, columns = base // HOUR_ROWS, "order_id, order_status, amount, ts"
    while True:
        key, hour, customer = chance.randrange(base), chance.randrange(hours), chance.randrange(CUSTOMERS)
        low = START_MS + hour * HOUR_MS
        yield "count", f"select count(*) from {TABLE.name} where ts >= {START_MS}", None
        yield (
            "lookup",
            f"select order_id, customer_id, amount from {TABLE.name} where order_id = {key}",
            [[key, key % CUSTOMERS, 1.0]],
        )
        yield (
            "hour",
            f"select count(*), sum(amount) from {TABLE.name} where ts >= {low} and ts < {low + HOUR_MS}",
            [[HOUR_ROWS, float(HOUR_ROWS)]],
        )
        yield "newest", f"select {columns} from {TABLE.name} order by ts desc limit 10", None
        yield (
            "history",
            f"select order_id, amount, ts from {TABLE.name} where customer_id = {customer} "
            f"and ts < {START_MS + hours * HOUR_MS} order by ts desc limit 20",
            _history(base, customer),
        )


def _history(base: int, customer: int) -> list[list[Any]]:
    last = (base - 1 - customer) // CUSTOMERS * CUSTOMERS + customer
    numbers = range(last, max(-1, last - 20 * CUSTOMERS), -CUSTOMERS)
    return [[n, 1.0, START_MS + n * HOUR_MS // HOUR_ROWS] for n in numbers]


def _read(endpoint: Endpoint, base: int, seed: int, stop: Event, out: Connection) -> None:
    """A reader: milliseconds of its statements by name, and what was wrong."""
    client, took, wrong, seen = Client(endpoint), Counter[str](), [], base
    times: dict[str, list[float]] = {}
    for name, sql, expected in _small_statements(base, random.Random(seed)):
        if stop.is_set():
            break
        try:
            seconds, answer = client.ask(sql)
        except OSError:  # a server that starts
            client, _ = Client(endpoint), time.sleep(0.05)
            continue
        rows = endpoint.rows(answer)
        if rows is None:
            took["failed"] += 1
            continue
        times.setdefault(name, []).append(seconds * 1000)
        if name == "count":
            is_right, seen = rows[0][0] >= seen, max(seen, rows[0][0])
        elif name == "newest":
            is_right = len(rows) == 10 and [row[3] for row in rows] == sorted((row[3] for row in rows), reverse=True)
        else:
            is_right = rows == expected
        if not is_right:
            wrong.append(f"{sql}: {rows[:5]}")
    out.send((times, took["failed"], wrong[:3]))


@dataclass
class Readers:
    """Milliseconds by statement."""

    times: dict[str, list[float]]
    failed: int = 0

    @property
    def median(self) -> float:
        """Of the medians of each statement, so that all count alike."""
        return statistics.median(statistics.median(found) for found in self.times.values()) if self.times else 0.0

    @property
    def answers(self) -> int:
        return sum(map(len, self.times.values()))


@contextmanager
def readers(endpoint: Endpoint, base: int, number: int) -> Iterator[Readers]:
    """So many readers in processes of their own; their figures are there at the end."""
    stop, found, workers = SPAWN.Event(), Readers({}), []
    for seed in range(number):
        mine, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=_read, args=(endpoint, base, seed, stop, theirs), daemon=True)
        process.start()
        workers.append((process, mine))
    try:
        yield found
    finally:
        stop.set()
        for process, mine in workers:
            times, failed, wrong = mine.recv()
            process.join()
            found.failed += failed
            for name, some in times.items():
                found.times.setdefault(name, []).extend(some)
            assert not wrong, wrong


# Work


@dataclass
class Done:
    """What was done in all phases: events produced, buckets moved and corrected."""

    sent: int
    moved: int
    corrected: int = 0


class Work(threading.Thread):
    """Does one thing after the other by HTTP until stopped; `done` counts what was finished."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.done = 0
        self.error: BaseException | None = None
        self._end = threading.Event()

    def run(self) -> None:
        try:
            while not self._end.is_set():
                if self.once():
                    self.done += not self._end.is_set()
                else:
                    self._end.wait(_POLL_S)
        except BaseException as error:
            self.error = error

    def once(self) -> bool:
        """Do it once; False when there is nothing to do."""
        raise NotImplementedError

    def end(self) -> int:
        self._end.set()
        self.join(_WAIT_S)
        if self.error is not None:
            raise self.error
        return self.done


class Mover(Work):
    """Moves each bucket that is full."""

    def __init__(self, product: Product, done: Done, feeder: Feeder) -> None:
        super().__init__("mover")
        self._product, self._all, self._feeder = product, done, feeder

    def once(self) -> bool:
        if (
            self._all.sent + self._feeder.sent < (self._all.moved + 2) * HOUR_ROWS
        ):  # the last one may lack what is on its way
            return False
        report = _run(self._product, "move", {"table": TABLE.name, "max_buckets": 1})
        assert report["rows_read"] == HOUR_ROWS, report
        self._all.moved += 1
        return True


class Corrector(Work):
    """Corrects one bucket after the other, `every` so many seconds, or later where one takes longer."""

    def __init__(self, product: Product, done: Done, every: float) -> None:
        super().__init__("corrector")
        self._product, self._all, self._every, self._due = product, done, every, time.monotonic()

    def once(self) -> bool:
        if time.monotonic() < self._due:
            return False
        self._due += self._every
        rounds, hour = divmod(self._all.corrected, BASE_HOURS - 1)
        low, status = START_MS + hour * HOUR_MS, STATUSES[1 + rounds % 2]
        self._all.corrected += 1
        change = {"start": str(low), "end": str(low + HOUR_MS), "update": f"order_status = '{status}'"}
        plan = _run(self._product, "backfill_plan", {"table": TABLE.name, **change})
        report = _run(self._product, "backfill_run", {"backfill": plan["id"]})
        assert report["buckets_done"] == 1, report
        return True


def _run(product: Product, verb: str, body: dict[str, Any]) -> Any:
    status, queued = product.server.call("POST", f"/verbs/{verb}", body)
    assert status == 202, queued
    run = product.server.await_task(queued["run"], _WAIT_S)
    assert run["state"] == "DONE", run
    return run["report"]


def _status(product: Product) -> dict[str, Any]:
    (found,) = product.server.ok("POST", "/verbs/status", {})["tables"]
    return dict(found)


# Parts


def phase(
    product: Product, brokers: str, done: Done, seconds: float, number: int, every: float
) -> tuple[dict[str, float], Readers]:
    """What was finished while further events arrived, and the readers' figures."""
    with Feeder(brokers, TABLE.topic, partial(_later, first=done.sent), RATE) as feeder:
        mover, corrector = Mover(product, done, feeder), Corrector(product, done, every)
        mover.start()
        corrector.start()
        with readers(product.endpoint, BASE_HOURS * HOUR_ROWS, number) as found:
            time.sleep(seconds)
            lag = _status(product)["behind"] / RATE
        figures = {"moves": mover.end(), "corrections": corrector.end(), "lag_s": lag}
    done.sent += feeder.sent
    client, expected = Client(product.endpoint), [[done.sent, float(done.sent)]]
    deadline = time.monotonic() + _WAIT_S
    while (rows := client.rows(f"select count(*), sum(amount) from {TABLE.name}")) != expected:
        assert time.monotonic() < deadline, (rows, expected)
        time.sleep(_POLL_S)
    client.close()
    return figures, found


def warm(product: Product, brokers: str, seconds: float, number: int, every: float) -> None:
    """Prints both phases and the readers alone."""
    done = Done(sent=BASE_HOURS * HOUR_ROWS, moved=BASE_HOURS - 1)
    _run(product, "move", {"table": TABLE.name, "max_buckets": done.moved})
    phase(product, brokers, done, WARM_S, number, every)
    alone, _ = phase(product, brokers, done, seconds, 0, every)
    beside, busy = phase(product, brokers, done, seconds, number, every)
    time.sleep(5)
    with readers(product.endpoint, BASE_HOURS * HOUR_ROWS, number) as idle:
        time.sleep(ALONE_S)
    for name in ("moves", "corrections"):
        share = beside[name] / alone[name] if alone[name] else 0.0
        print(f"{name} in {seconds:.0f} s: alone {alone[name]:.0f}, beside readers {beside[name]:.0f} ({share:.2f})")
    print(f"commits lag at the end, s: alone {alone['lag_s']:.1f}, beside readers {beside['lag_s']:.1f}")
    print(
        f"readers' median, ms: alone {idle.median:.2f}, beside work {busy.median:.2f} "
        f"({busy.median / idle.median:.2f}); {busy.answers:,} answers, {busy.failed} failed, 0 wrong"
    )
    for name in busy.times:
        one, other = statistics.median(idle.times[name]), statistics.median(busy.times[name])
        print(f"  {name}: {one:.2f}, {other:.2f} ms ({other / one:.2f})")


def start(folder: Path, brokers: str, rounds: int, number: int) -> None:
    """Prints what a server takes from its start to its first commit and move, in turn without and with readers."""
    took: dict[int, list[tuple[float, float]]] = {0: [], number: []}
    for turn in range(rounds):
        for readers_now in took:
            place = folder / f"start-{turn}-{readers_now}"
            place.mkdir()
            took[readers_now].append(_start(place, brokers, f"start{turn}x{readers_now}", readers_now))
            _say(f"from the start, {readers_now} readers: commit, move after {took[readers_now][-1]} s")
    alone, beside = (tuple(statistics.median(values) for values in zip(*some, strict=True)) for some in took.values())
    for name, one, other in zip(("commit", "move"), alone, beside, strict=True):
        print(f"first {name} after, s: alone {one:.1f}, beside readers {other:.1f} ({other / one:.2f})")


def _start(folder: Path, brokers: str, topic: str, number: int) -> tuple[float, float]:
    base, product = BASE_HOURS * HOUR_ROWS, Product(folder, brokers)
    create_topic(brokers, topic, PARTITIONS)
    fill(brokers, topic, 0, base)
    with product:
        table = replace(TABLE, topic=topic)
        product.create(table)
        product.await_rows(table, base)
    fill(brokers, topic, base, base + BACKLOG_HOURS * HOUR_ROWS)
    began, committed, moved = time.perf_counter(), 0.0, 0.0
    server = Server(folder / "home", brokers)
    try:
        with readers(_endpoint(server), base, number):
            _, queued = server.call("POST", "/verbs/move", {"table": TABLE.name, "max_buckets": 1})
            while not (committed and moved):
                assert time.perf_counter() < began + _WAIT_S, server.logged()
                (status,) = server.ok("POST", "/verbs/status", {})["tables"]
                if not committed and status["behind"] == 0:
                    committed = time.perf_counter() - began
                if not moved and server.ok("GET", f"/runs/{queued['run']}")["state"] == "DONE":
                    moved = time.perf_counter() - began
                time.sleep(_POLL_S)
    finally:
        server.kill()
    return round(committed, 1), round(moved, 1)


def _endpoint(server: Server) -> Endpoint:
    """Where a server that starts listens: as soon as it does."""
    deadline = time.perf_counter() + _WAIT_S
    while True:
        assert time.perf_counter() < deadline, server.logged()
        try:
            parts = urlsplit(server.address["broker_url"])
            if parts.hostname and parts.port and server.address["pid"] == server.process.pid:
                return Endpoint(parts.hostname, parts.port)
        except (OSError, ValueError, KeyError):
            pass
        time.sleep(0.02)


def fill(brokers: str, topic: str, first: int, end: int) -> None:
    """Produces the events with these numbers."""
    for partition in range(PARTITIONS):
        send(brokers, topic, partition, (event(n)[1] for n in range(first, end) if n % PARTITIONS == partition))


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--readers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--correct-every", type=float, default=0.0, help="seconds; 0: one after the other")
    parser.add_argument("--parts", default="warm,start")
    asked = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} processors, {asked.readers} readers, {RATE:,} events a second")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_broker(folder / "kafka") as brokers:
            if "warm" in asked.parts:
                create_topic(brokers, TABLE.topic, PARTITIONS)
                fill(brokers, TABLE.topic, 0, BASE_HOURS * HOUR_ROWS)
                place = folder / "warm"
                place.mkdir()
                with Product(place, brokers) as product:
                    product.create(TABLE)
                    product.await_rows(TABLE, BASE_HOURS * HOUR_ROWS)
                    warm(product, brokers, asked.seconds, asked.readers, asked.correct_every)
            if "start" in asked.parts:
                start(folder, brokers, asked.rounds, asked.readers)


if __name__ == "__main__":
    main()
