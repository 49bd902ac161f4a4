"""Starts the soak tests' workers, produces their events, and holds what a home answers to what the events say."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from kafka import KafkaProducer

import hybrid
from tests.shared_jvm import INTERPRETED
from tests.watchdog import watch

# A JVM that lives for seconds spends them compiling plans that it executes once or twice: it interprets them, as the
# session of the tests does.
JVM_OPTIONS = {
    "JAVA_TOOL_OPTIONS": " ".join(
        [os.environ.get("JAVA_TOOL_OPTIONS", ""), *(f"-D{name}={value}" for name, value in INTERPRETED.items())]
    )
}


def start(home: Path, log: Path, *words: str, tables: str = "soak_a,soak_u", failpoint: str = "") -> subprocess.Popen:
    """A worker in a process group of its own; what it says goes to `log`."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.worker", str(home), tables, *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, **JVM_OPTIONS, "HYBRID_FAILPOINT": failpoint},
            start_new_session=True,
        )
    watch(process)
    return process


class Producer:
    """Produces events to their partition, in order, and counts those that Kafka has acknowledged."""

    def __init__(self, brokers: str, topic: str) -> None:
        self._producer = KafkaProducer(bootstrap_servers=brokers, acks="all", linger_ms=5)
        self._topic = topic
        self.acknowledged: Counter[int] = Counter()

    def send(self, events: list) -> None:
        futures = [self._producer.send(self._topic, event.payload, partition=event.p) for event in events]
        self._producer.flush()
        for event, future in zip(events, futures, strict=True):
            assert future.get(timeout=30).offset == event.i
            self.acknowledged[event.p] += 1

    def close(self) -> None:
        self._producer.close()


def check_all_once(home: Path, table: str, expected: dict[tuple[int, int], dict], bad: set[tuple[int, int]]) -> None:
    """Every expected row is visible exactly once, with its values; nothing else is."""
    hy = hybrid.connect(home)
    try:
        result = hy.query(f"select p, i, k, v, ts from {table} limit 10000000")
        assert not result.warnings
        seen = Counter((row[0], row[1]) for row in result.rows)
        twice = {place: count for place, count in seen.items() if count > 1}
        assert not twice, f"{table}: rows seen twice: {list(twice)[:5]}"
        assert seen.keys() == expected.keys(), (
            f"{table}: missing {sorted(expected.keys() - seen.keys())[:5]}, "
            f"beyond {sorted(seen.keys() - expected.keys())[:5]}"
        )
        for p, i, *values in result.rows:
            row = expected[(p, i)]
            assert values == [row["k"], row["v"], row["ts"]]
        kept = {(row["partition"], row["offset"]) for row in hy.table(table).rejected(1_000_000)}
        assert kept <= bad, f"{table}: rejected without reason: {sorted(kept - bad)[:5]}"
    finally:
        hy.close()


def rejected_places(home: Path, table: str) -> set[tuple[int, int]]:
    hy = hybrid.connect(home)
    try:
        return {(row["partition"], row["offset"]) for row in hy.table(table).rejected(1_000_000)}
    finally:
        hy.close()
