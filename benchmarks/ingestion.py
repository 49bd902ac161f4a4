"""Ingestion of a backlog: the product and a real Apache Pinot on the same topics, each alone, in turn, in one go.

    .venv/bin/python -m benchmarks.ingestion [--rows 4000000] [--warm 1000000] [--systems product,pinot]

A table is created on a topic that is full already; the clock runs until every event is counted: committed, or seen by
Pinot's `count(*)`. Each system has ingested another topic before, so it is warm. Append and upsert, two partitions.
Prints rows a second, their ratio, and the most memory that a system's processes held together.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.serving import pinot
from benchmarks.serving.pinot import Pinot
from benchmarks.serving.product import Product
from benchmarks.serving.stream import fill
from benchmarks.serving.tables import Table
from benchmarks.serving.workload import Sizes
from hybrid.jvm.broker import LocalBroker

SEAL_ROWS = 1_000_000
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


def measure(kind: type[Product] | type[Pinot], folder: Path, brokers: str, rows: int, warm: int) -> dict[str, float]:
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
    found["memory"] = memory.peak_mib
    return found


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--warm", type=int, default=1_000_000)
    parser.add_argument("--systems", default="product,pinot")
    asked = parser.parse_args()
    names = asked.systems.split(",")
    if "pinot" in names and (why := pinot.missing()):
        _say(f"Pinot is left out: {why}")
        names.remove("pinot")
    kinds: dict[str, type[Product] | type[Pinot]] = {"product": Product, "pinot": Pinot}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker = LocalBroker(folder / "kafka")
        brokers = broker.start(port=0)
        try:
            for topic, rows in (("warm", asked.warm), ("backlog", asked.rows)):
                _say(f"produced {rows:,} events to {topic} in {fill(brokers, topic, Sizes(rows)):.0f} s")
            found = {name: measure(kinds[name], folder, brokers, asked.rows, asked.warm) for name in names}
        finally:
            broker.stop()
    for name, figures in found.items():
        rates = ", ".join(f"{mode} {figures[mode]:,.0f} rows/s" for mode in MODES)
        print(f"{name}: {rates}; at most {figures['memory']:,.0f} MiB")
    if len(found) > 1:
        ratios = (f"{mode} {found['product'][mode] / found['pinot'][mode]:.2f}" for mode in MODES)
        print(f"times as fast as Pinot: {', '.join(ratios)}")


if __name__ == "__main__":
    main()
