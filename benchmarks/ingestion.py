"""Ingestion of a backlog: the product and a real Apache Pinot on the same topics, each alone, in turn, in one go.

    .venv/bin/python -m benchmarks.ingestion [--rows 4000000] [--warm 1000000] [--systems product,pinot] [--watched]

A table is created on a topic that is full already; the clock runs until every event is counted: committed, or seen by
Pinot's `count(*)`. Each system has ingested another topic before, so it is warm. Append and upsert, two partitions.
Prints rows a second, their ratio, and the most memory that a system's processes held together.

With `--watched` each table is ingested once more while one client asks `count(*)` four times a second: rows a second
until all is committed, and until that client sees all, and its slowest answer. No count may be lower than the one
before on an append table.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.serving import pinot
from benchmarks.serving.http import Client, Endpoint
from benchmarks.serving.pinot import Pinot
from benchmarks.serving.product import Product
from benchmarks.serving.stream import fill
from benchmarks.serving.tables import Table
from benchmarks.serving.workload import Sizes, make_events
from tests.watchdog import running_broker

SEAL_ROWS = 1_000_000
WATCH_S, SEEN_S_MAX = 0.25, 120.0
MODES = {"append": False, "upsert": True}


class Memory:
    """The most that all processes of this machine but those there were before held together, in MiB."""

    def __init__(self) -> None:
        self._before, self._end = _resident().keys(), threading.Event()
        self.peak_mib = 0.0

    def _watch(self) -> None:
        while not self._end.wait(0.5):
            now = sum(size for pid, size in _resident().items() if pid not in self._before)
            self.peak_mib = max(self.peak_mib, now / 2**20)

    @contextmanager
    def watched(self) -> Iterator[Memory]:
        watcher = threading.Thread(target=self._watch, daemon=True)
        watcher.start()
        try:
            yield self
        finally:
            self._end.set()
            watcher.join()


def _resident() -> dict[int, int]:
    """Bytes of memory by process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = int((folder / "statm").read_text().split()[1]) * 4096
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


class Watcher(threading.Thread):
    """A client that asks `count(*)` of a table four times a second. `answers` counts them by source."""

    def __init__(self, endpoint: Endpoint, table: Table, rows: int, started: float) -> None:
        super().__init__(daemon=True)
        self._client, self._table, self._rows, self._began = Client(endpoint), table, rows, started
        self.answers: Counter[str] = Counter()
        self._seen_s: float | None = None
        self.slowest_ms = 0.0
        self._error: str | None = None
        self._end = threading.Event()

    def run(self) -> None:
        """Asks until the end."""
        due, seen = time.perf_counter(), 0
        while not self._end.wait(max(0.0, due - time.perf_counter())):
            due = max(due + WATCH_S, time.perf_counter())
            asked_at = time.perf_counter()
            answer = json.loads(self._client.ask(f"select count(*) from {self._table.name}")[1])
            self.slowest_ms = max(self.slowest_ms, 1000 * (time.perf_counter() - asked_at))
            if answer.get("exceptions") or "resultTable" not in answer:
                continue  # the table is not there yet
            ((count,),) = answer["resultTable"]["rows"]
            self.answers[answer.get("answeredFrom", "pinot")] += 1
            if count > self._rows or (count < seen and not self._table.upsert):
                self._error = f"{self._table.name}: {count:,} after {seen:,}, of {self._rows:,}"
            seen = count
            if count == self._rows and self._seen_s is None:
                self._seen_s = time.perf_counter() - self._began

    def seen_s(self) -> float:
        """Seconds until the client saw all rows; ends the client."""
        deadline = time.perf_counter() + SEEN_S_MAX
        while self._seen_s is None and time.perf_counter() < deadline:
            time.sleep(0.05)
        self._end.set()
        self.join(SEEN_S_MAX)
        assert self._error is None and self._seen_s is not None, self._error
        return self._seen_s


def measure(
    kind: type[Product] | type[Pinot], folder: Path, brokers: str, rows: int, warm: int, *, watched: bool
) -> dict[str, float]:
    """Rows a second by mode, and the most memory."""
    found: dict[str, float] = {}
    with Memory().watched() as memory, kind(folder, brokers) as system:
        _say(f"{system.version}: warming")
        first = Table("warm", "warm", upsert=False, seal_rows=SEAL_ROWS)
        system.create(first)
        system.await_rows(first, warm)
        for mode, upsert in MODES.items():
            table = Table(f"backlog_{mode}", "backlog", upsert, SEAL_ROWS)
            started = time.perf_counter()
            system.create(table)
            system.await_rows(table, rows)
            found[mode] = rows / (time.perf_counter() - started)
            _say(f"{system.version}: {mode} {found[mode]:,.0f} rows a second")
            system.drop(table)
            if watched:
                _measure_watched(system, mode, rows, found)
    found["memory"] = memory.peak_mib
    return found


def _measure_watched(system: Product | Pinot, mode: str, rows: int, found: dict[str, float]) -> None:
    table = Table(f"watched_{mode}", "backlog", MODES[mode], SEAL_ROWS)
    shown = len(make_events(Sizes(rows)).latest()) if table.upsert else rows
    started = time.perf_counter()
    system.create(table)
    watcher = Watcher(system.endpoint, table, shown, started)
    watcher.start()
    system.await_rows(table, rows)
    found[f"{mode} committed"] = rows / (time.perf_counter() - started)
    found[f"{mode} visible"] = rows / watcher.seen_s()
    _say(
        f"{system.version}: {mode} watched: {found[f'{mode} committed']:,.0f} rows a second committed, "
        f"{found[f'{mode} visible']:,.0f} visible; answers {dict(watcher.answers)}, the slowest after "
        f"{watcher.slowest_ms:,.0f} ms"
    )
    system.drop(table)


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--warm", type=int, default=1_000_000)
    parser.add_argument("--systems", default="product,pinot")
    parser.add_argument("--watched", action="store_true")
    asked = parser.parse_args()
    kinds: dict[str, type[Product] | type[Pinot]] = {"product": Product, "pinot": Pinot}
    names = asked.systems.split(",")
    if unknown := [name for name in names if name not in kinds]:
        parser.error(f"--systems: no system {', '.join(unknown)}; there are {', '.join(kinds)}")
    if "pinot" in names and (why := pinot.missing()):
        _say(f"Pinot is left out: {why}")
        names.remove("pinot")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_broker(folder / "kafka") as brokers:
            for topic, rows in (("warm", asked.warm), ("backlog", asked.rows)):
                _say(f"produced {rows:,} events to {topic} in {fill(brokers, topic, Sizes(rows)):.0f} s")
            found = {
                name: measure(kinds[name], folder, brokers, asked.rows, asked.warm, watched=asked.watched)
                for name in names
            }
    for name, figures in found.items():
        rates = ", ".join(f"{mode} {rate:,.0f} rows/s" for mode, rate in figures.items() if mode != "memory")
        print(f"{name}: {rates}; at most {figures['memory']:,.0f} MiB")
    if len(found) > 1:
        product, others = found["product"], found["pinot"]
        ratios = (f"{mode} {rate / others[mode]:.2f}" for mode, rate in product.items() if mode != "memory")
        print(f"times as fast as Pinot: {', '.join(ratios)}")


if __name__ == "__main__":
    main()
