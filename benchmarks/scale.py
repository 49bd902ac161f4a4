"""How costs grow on one machine: with the segments of a table, with the partitions of its topic, with stored rows.

    .venv/bin/python -m benchmarks.scale [--parts segments,partitions,rows] [--segments 1000,10000,100000]
                                         [--partitions 2,10,50,200] [--rows 1000000]

segments    A half with so many segments of an hour each, by log entries alone. Milliseconds to open it and list its
            files, of a plan that prunes them to one hour, of a commit; the time and bytes of a checkpoint; memory.
partitions  A topic of so many partitions: seconds of a batch of 1,000 rows, as near the end of a stream, rows a second
            of a backlog of `--rows` events, and bytes of its log entry, which names a file and a position of each.
rows        Bytes a row of `--rows` events: in Kafka's log (lz4), in REALTIME, and in OFFLINE after a move.

Every size is measured in a process of its own, as memory is the most that a process held.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from kafka import KafkaProducer

from benchmarks.serving.tables import Table
from benchmarks.serving.workload import HOUR_MS, Sizes, make_events
from hybrid.api.hybrid import Hybrid, TableDocuments, connect
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half
from hybrid.kafka.topics import create_topic
from hybrid.lake.checkpoint import write_checkpoint
from hybrid.lake.log import open_half
from hybrid.lake.transaction import LogTransaction
from hybrid.progress import Silent
from hybrid.table.state import next_act
from tests.console.many_segments import lay_many
from tests.watchdog import running_broker

_LOOKS, _SEAL_ROWS = 5, 250_000
# Batches of so many rows: some until the JVM is warm, and those that are measured.
_SMALL, _COLD, _BATCHES = 1000, 3, 9
_SPAWN = get_context("spawn")


def segments(count: int) -> None:
    """Prints the costs of a half of so many segments."""
    with tempfile.TemporaryDirectory() as folder:
        home = Hybrid(load_settings(home=Path(folder) / "home"), Silent())
        lay_many(home, count, 0)
        half = home.table("orders").layout.half(Half.OFFLINE)
        before, entry_ms = _resident_mib(), _ms(lambda: open_half(half).files)
        checkpoint_s = _seconds(lambda: write_checkpoint(half, open_half(half).version))
        (checkpoint,) = (half / "_delta_log").glob("*.checkpoint.parquet")
        open_ms = _ms(lambda: open_half(half).files)
        hour = f"select count(*) from orders_OFFLINE where ts >= {HOUR_MS} and ts < {2 * HOUR_MS}"
        plan_ms, commit_ms = _ms(lambda: home.explain(hour)), _ms(lambda: _commit_nothing(half))
        print(
            f"| {count:,} | {entry_ms:.0f} | {open_ms:.0f} | {plan_ms:.0f} | {commit_ms:.0f} | {checkpoint_s:.2f}, "
            f"{checkpoint.stat().st_size / count:.0f} | {_resident_mib() - before:.0f} |",
            flush=True,
        )
        home.close()


def _commit_nothing(half: Path) -> None:
    state = open_half(half).offline
    act = next_act(state, f"boundary-{state.act.number + 1}", "boundary", "", {})
    LogTransaction(half).commit(replace(state, act=act), [])


def partitions(count: int, rows: int, brokers: str) -> None:
    """Prints the costs of a backlog in so many partitions."""
    with tempfile.TemporaryDirectory() as folder:
        home, table = _filled(Path(folder), f"parts_{count}", count, rows, brokers)
        batches = [_seconds(lambda: home.table(table.name).ingest_batch(_SMALL)) for _ in range(_COLD + _BATCHES)]
        took_s = _seconds(lambda: home.table(table.name).ingest())
        half = home.table(table.name).half(Half.REALTIME)
        entry = (half.path / "_delta_log" / f"{half.version:020d}.json").stat().st_size
        assert sum(file.rows for file in half.files) == rows
        rate = (rows - len(batches) * _SMALL) / took_s
        print(f"| {count} | {median(batches[_COLD:]):.2f} | {rate:,.0f} | {entry / 1000:.1f} |", flush=True)
        home.close()


def stored_rows(rows: int, brokers: str, logs: Path) -> None:
    """Prints the bytes of a row in Kafka and in both halves."""
    with tempfile.TemporaryDirectory() as folder:
        home, table = _filled(Path(folder), "stored", 2, rows, brokers)
        in_kafka = sum(path.stat().st_size for path in logs.rglob("stored-*/*.log"))
        home.table(table.name).ingest()
        in_realtime = sum(file.bytes for file in home.table(table.name).half(Half.REALTIME).files)
        while home.table(table.name).move(max_buckets=None).rows_read:
            pass
        offline = home.table(table.name).half(Half.OFFLINE).files
        moved = sum(file.rows for file in offline)
        print(
            f"| {rows:,} | {in_kafka / rows:.1f} | {in_realtime / rows:.1f} | "
            f"{sum(file.bytes for file in offline) / moved:.1f} ({moved:,} rows moved) |",
            flush=True,
        )
        home.close()


def _filled(folder: Path, name: str, count: int, rows: int, brokers: str) -> tuple[Hybrid, Table]:
    """A home with a table over a topic with so many partitions and rows."""
    table = Table(name, name, upsert=False, seal_rows=_SEAL_ROWS)
    create_topic(brokers, name, count)
    producer = KafkaProducer(bootstrap_servers=brokers, linger_ms=20, batch_size=1 << 18, compression_type="lz4")
    events = make_events(Sizes(rows))
    for source in range(2):
        for number, message in enumerate(events.messages(source)):
            producer.send(name, message, partition=(2 * number + source) % count)
    producer.flush()
    producer.close()
    configs = [(table.realtime(brokers), "realtime"), (table.offline(), "offline")]
    home = connect(folder / "home", progress=Silent())
    home.create_table(TableDocuments((table.schema(), "schema"), configs, brokers))
    return home, table


def _ms(work: Callable[[], object]) -> float:
    """The median of some goes, after one."""
    return 1000 * median([_seconds(work) for _ in range(_LOOKS + 1)][1:])


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _resident_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _alone(work: Callable[..., None], *arguments: object) -> None:
    """Run it in a process of its own."""
    process = _SPAWN.Process(target=work, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{work.__name__} of {arguments[0]} failed")


def _with_broker(asked: argparse.Namespace, parts: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, running_broker(Path(folder) / "kafka") as brokers:
        if "partitions" in parts:
            print("\n| partitions | a batch of 1,000 rows, s | backlog, rows/s | its entry, kB |\n|---|---|---|---|")
            for count in _sizes(asked.partitions):
                _alone(partitions, count, asked.rows, brokers)
        if "rows" in parts:
            print("\n| rows | bytes a row in Kafka | REALTIME | OFFLINE |\n|---|---|---|---|")
            _alone(stored_rows, asked.rows, brokers, Path(folder))


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", default="segments,partitions,rows")
    parser.add_argument("--segments", default="1000,10000,100000")
    parser.add_argument("--partitions", default="2,10,50,200")
    parser.add_argument("--rows", type=int, default=1_000_000)
    asked = parser.parse_args()
    parts = asked.parts.split(",")
    print(json.dumps({"machine": platform.machine(), "python": platform.python_version(), "argv": sys.argv[1:]}))
    if "segments" in parts:
        print("| segments | first open | open | plan of an hour | commit, ms | checkpoint, s, bytes a segment | MiB |")
        print("|---|---|---|---|---|---|---|")
        for count in _sizes(asked.segments):
            _alone(segments, count)
    if {"partitions", "rows"} & set(parts):
        _with_broker(asked, parts)


if __name__ == "__main__":
    main()
