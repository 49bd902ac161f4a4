"""The realtime-to-offline move: the product beside a real Apache Pinot, each alone, in one go; and how it grows.

    .venv/bin/python -m benchmarks.move [--parts pinot,growth,late,large] [--bucket-rows 1000000] [--rows 20000000]

pinot   buckets of a million rows, one by one, by the schedule request of Pinot's controller; the clock runs until the
        offline half counts more rows by HTTP. Another table is moved before, so both are warm. Append on both (concat),
        upsert on the product (the latest row of each key): this Pinot does not move upsert tables.
growth  twenty such buckets one after the other: the first three against the last three.
late    rows in ninety buckets, all moved; then one more for each hundred, late: bytes against what as many took.
large   all rows as one bucket: the most memory that the server's processes held together.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.ingestion import Memory
from benchmarks.serving import pinot
from benchmarks.serving.http import Client
from benchmarks.serving.pinot import Pinot
from benchmarks.serving.product import Product
from benchmarks.serving.stream import fill, send
from benchmarks.serving.tables import Table
from benchmarks.serving.workload import PARTITIONS, SPAN_MS, START_MS, Sizes, message
from hybrid.lake.log import open_half
from tests.watchdog import running_broker

_POLL_S, _PAUSE_S = 0.5, 15.0
_WAIT_S = 600.0
_BUCKETS = 4  # of the comparison; of these Pinot keeps the last one in its consuming segments
_GROWN = 20
_LATE_BUCKETS = 90

System = Product | Pinot


def move_one(system: System, table: Table, before: int) -> tuple[int, float]:
    """Has one bucket moved; the offline half's rows after it, and the seconds it took."""
    time.sleep(_PAUSE_S)  # both have work of their own after a bucket: their servers take over its segments
    client, started = Client(system.endpoint), time.perf_counter()
    system.schedule(table)
    while (found := offline_rows(client, table)) <= before:
        assert time.perf_counter() - started < _WAIT_S, f"{table.name}: nothing moved after {before} rows"
        time.sleep(_POLL_S)
    took = time.perf_counter() - started
    client.close()
    return found, took


def offline_rows(client: Client, table: Table) -> int:
    """What the offline half holds, hidden rows included."""
    found = client.rows(f"select count(*) from {table.name}_OFFLINE option(skipUpsert=true)")
    return int(found[0][0]) if found else 0


def buckets(system: System, table: Table, rows: int, count: int) -> Iterator[float]:
    """Ingests a topic of `rows`, then moves so many buckets, or all that there are: the seconds of each."""
    system.create(table)
    system.await_rows(table, rows)
    offline = 0
    for number in range(count):
        offline, took = move_one(system, table, offline)
        say(f"{system.name}: {table.name}: bucket {number + 1}: {took:.2f} s, {offline:,} rows are offline")
        yield took
        if offline == rows and not table.upsert:
            return


def beside_pinot(folder: Path, brokers: str, bucket_rows: int, systems: Sequence[str]) -> None:
    rows = _BUCKETS * bucket_rows
    fill(brokers, "buckets", Sizes(rows))
    kinds: dict[str, type[Product] | type[Pinot]] = {"product": Product, "pinot": Pinot}
    rates: dict[tuple[str, str], float] = {}
    for name in systems:
        with kinds[name](folder / name, brokers) as system:
            for mode in ("warm", "append", "upsert") if name == "product" else ("warm", "append"):
                # Segments that are full when half a bucket has come, so that Pinot has sealed all but the last.
                table = Table(f"move_{mode}", "buckets", mode == "upsert", bucket_rows // 2, bucket(rows, bucket_rows))
                took = list(buckets(system, table, rows, 2 if mode == "warm" else _BUCKETS - 1))
                rates[name, mode] = bucket_rows / median(took)
                print(f"{system.version}: {mode} {rates[name, mode]:,.0f} rows/s", flush=True)
                system.drop(table)
    peer = rates.get(("pinot", "append"))
    if peer:
        for mode in ("append", "upsert"):
            print(f"{mode}: {rates['product', mode] / peer:.2f} times Pinot's concat", flush=True)


def bucket(rows: int, bucket_rows: int) -> str:
    """The bucket's length that holds so many of `rows` events."""
    return f"{SPAN_MS * bucket_rows // rows // 60_000}m"


def grown(folder: Path, brokers: str, rows: int) -> None:
    fill(brokers, "many", Sizes(rows))
    with Product(folder / "growth", brokers) as system:
        table = Table("growth", "many", False, rows // 40, bucket(_GROWN, 1))
        took = list(buckets(system, table, rows, _GROWN))
        first, last = median(took[1:4]), median(took[-4:-1])  # the last bucket holds fewer rows
        print(
            f"growth: a bucket of {rows // _GROWN:,} rows: {first:.2f} s, then {last:.2f} s: {last / first:.2f} times",
            flush=True,
        )


def late(folder: Path, brokers: str, rows: int) -> None:
    """Late rows, one for a hundred others: the bytes that they make, against those of as many that were not late."""
    fill(brokers, "late", Sizes(rows))
    home, count, step = folder / "late", rows // 100, SPAN_MS // _LATE_BUCKETS
    with Product(home, brokers) as system:
        table = Table("late", "late", False, rows // 8, f"{step // 60_000}m")
        system.create(table)
        system.await_rows(table, rows)
        system.move(table, _LATE_BUCKETS + 1, rows)
        half = home / "home" / "warehouse" / table.name / "OFFLINE"
        before = {file.path: file for file in open_half(half).files}
        for partition in range(PARTITIONS):
            events = (
                message(number, number % 999, number % 6, 1.25, START_MS + number % _LATE_BUCKETS * step + number)
                for number in range(partition, count, PARTITIONS)
            )
            send(brokers, table.topic, partition, events)
        system.await_rows(table, rows + count)
        print(system.move(table, 1, count), flush=True)
        written = [file.bytes for file in open_half(half).files if file.path not in before]
    each = sum(file.bytes for file in before.values()) / rows
    print(
        f"late: {count:,} rows in {len(written)} files beside {len(before)}: {sum(written):,} bytes written, "
        f"{sum(written) / (each * count):.2f} times what as many rows take that were not late",
        flush=True,
    )


def large(folder: Path, brokers: str, rows: int) -> None:
    fill(brokers, "large", Sizes(rows))
    with Memory().watched() as memory, Product(folder / "large", brokers) as system:
        table = Table("large", "large", False, rows // 8, "2d")
        (took,) = buckets(system, table, rows, 1)
        print(f"large: {rows:,} rows in one bucket: {rows / took:,.0f} rows/s; at most {memory.peak_mib:,.0f} MiB")


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", default="pinot,growth,late,large")
    parser.add_argument("--bucket-rows", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--systems", default="product,pinot")
    asked = parser.parse_args()
    parts, systems = asked.parts.split(","), asked.systems.split(",")
    if "pinot" in systems and (why := pinot.missing()):
        say(f"Pinot is left out: {why}")
        systems.remove("pinot")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_broker(folder / "kafka") as brokers:
            if "pinot" in parts:
                beside_pinot(folder, brokers, asked.bucket_rows, systems)
            if "growth" in parts:
                grown(folder, brokers, asked.rows)
            if "late" in parts:
                late(folder, brokers, asked.rows)
            if "large" in parts:
                large(folder, brokers, asked.rows)


if __name__ == "__main__":
    main()
