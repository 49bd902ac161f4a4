"""Bursts above what is decoded between two commits, and kills: the cache awaits commits and reads the stream in turn.

Event i of partition p is its offset i there, so what a table shows at the positions that an answer names is arithmetic.
No row is lost, doubled or hidden: every answer is that of its positions, no reader's positions fall while a query
process lives, and each answer holds every commit that existed when it was asked.

A burst is as large as this machine needs it, by what it decodes between two commits. HYBRID_KILLS=8 goes through all
kinds of kills twice.
"""

import os
import random
import re
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hybrid.kafka.topics import create_topic
from tests.serve.server import Server
from tests.soak.served import Client, Lost, states_of
from tests.soak.test_server_kills import (
    JVM_OPTIONS,
    PIPELINE,
    QUERY,
    _kill_and_heal,
    _processes,
    end_while_a_successor_takes_over,
)

ROUNDS = int(os.environ.get("HYBRID_KILLS", "2"))
SEED = int(os.environ.get("HYBRID_KILLS_SEED", "5"))
PARTITIONS, KEYS = 2, 500
FIRST_MS = 1_700_000_000_000
TABLES = {"backlog_a": False, "backlog_u": True}  # name -> upsert
TOPIC = "soak-backlog-kills"
BURST_MIN, CALM_PER_S, STOPPED_S = 100_000, 500, 15.0
CAUGHT_UP_S_MAX = 240.0
MORE_BURSTS_MAX = 5
READ_EACH_S = 0.3  # they read all rows, and must not take the cores from who writes them
READERS = 2
# Both read all rows; virtual columns are read from the files, and the backlog behind them from Kafka, for each answer.
QUESTIONS = ("select p, count(*), sum(i), max(i) from {0} group by p order by p",) * 11 + (
    "select p, count(*), sum(i), max($offset) from {0} group by p order by p",
)
VICTIMS = [(QUERY,), (PIPELINE,), None, (QUERY, PIPELINE)]  # None: the pipeline is stopped for a while

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(300 * ROUNDS + 300),
]


def test_bursts_and_kills_lose_double_and_hide_nothing(broker: str, tmp_path: Path) -> None:
    home, chance = tmp_path / "home", random.Random(SEED)
    create_topic(broker, TOPIC, PARTITIONS)
    with Server(home, broker, JVM_OPTIONS) as server:
        client = Client(server.url, patient=True)
        _create(client, broker)
        watched = Watched(server, home, Producing(broker))
        threads = [threading.Thread(target=watched.read, args=(seed,), daemon=True) for seed in range(READERS)]
        for thread in (*threads, threading.Thread(target=watched.calm, daemon=True)):
            thread.start()
        try:
            for number in range(ROUNDS):
                if number == 0:  # later on, the burst after the kill before
                    watched.burst()  # commits overtake the stream, and earn trust
                    watched.await_caught_up(client)
                watched.burst()
                watched.stopped.wait(chance.uniform(0.5, 4.0))
                watched.fall(VICTIMS[number % len(VICTIMS)])
                if number % 2 or number == ROUNDS - 1:  # the next burst meets the backlog of the other deaths
                    watched.burst()
                    watched.await_caught_up(client)
            for _ in range(MORE_BURSTS_MAX):  # beside other tests, commits may be slower than decoding for a while
                watched.scrape(client)
                if watched.has_switched:
                    break
                watched.burst()
                watched.await_caught_up(client)
        finally:
            watched.stopped.set()
            for thread in threads:
                thread.join(120)
        watched.await_caught_up(client)
        watched.scrape(client)
        watched.check()
        for table, upsert in TABLES.items():
            rows = client.rows(QUESTIONS[0].format(table))
            assert rows == expected(tuple(watched.producing.sent), upsert), table
        client.close()
        end_while_a_successor_takes_over(server, 0.0)
    print(f"\n{watched.words}")
    assert watched.switches["commits"] >= 1 and watched.switches["stream"] >= 1, watched.words
    assert watched.offsets["files"] > 0


def expected(positions: tuple[int, ...], upsert: bool) -> list[list[int]]:
    """Partition, count, sum and greatest number of what a table shows below these positions."""
    rows = []
    for p, end in enumerate(positions):
        first = max(0, end - KEYS) if upsert else 0
        if end:
            rows.append([p, end - first, (end * (end - 1) - first * (first - 1)) // 2, end - 1])
    return rows


def _create(client: Client, broker: str) -> None:
    fields = [{"name": name, "dataType": "LONG"} for name in ("k", "p", "i")]
    time_field = {
        "name": "ts",
        "dataType": "LONG",
        "format": "1:MILLISECONDS:EPOCH",
        "granularity": "1:MILLISECONDS",
    }
    streams = {
        "streamType": "kafka",
        "stream.kafka.topic.name": TOPIC,
        "stream.kafka.broker.list": broker,
        "stream.kafka.decoder.class.name": "org.apache.pinot.plugin.stream.kafka.KafkaJSONMessageDecoder",
        "stream.kafka.consumer.prop.auto.offset.reset": "smallest",
    }
    for table, upsert in TABLES.items():
        key = {"primaryKeyColumns": ["k"]} if upsert else {}
        schema = {"schemaName": table, "dimensionFieldSpecs": fields, "dateTimeFieldSpecs": [time_field], **key}
        client.ask("POST", "/schemas", schema)
        config = {
            "tableName": table,
            "tableType": "REALTIME",
            "segmentsConfig": {"timeColumnName": "ts", "schemaName": table},
            "tableIndexConfig": {"streamConfigs": streams},
            **({"upsertConfig": {"mode": "FULL"}} if upsert else {}),
        }
        client.ask("POST", "/tables", config)


class Producing:
    """Produces events; `sent` counts those of each partition."""

    def __init__(self, broker: str) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({"bootstrap.servers": broker, "linger.ms": 5, "compression.type": "lz4"})
        self._lock = threading.Lock()
        self.sent = [0] * PARTITIONS

    def send(self, count: int) -> None:
        """Produces so many events, in turn to each partition, and awaits their acknowledgement."""
        with self._lock:
            for n in range(count):
                p = n % PARTITIONS
                i = self.sent[p]
                self.sent[p] += 1
                text = f'{{"k": {i % KEYS * PARTITIONS + p}, "p": {p}, "i": {i}, "ts": {FIRST_MS + i}}}'
                while True:
                    try:
                        self._producer.produce(TOPIC, text.encode(), partition=p)
                        break
                    except BufferError:
                        self._producer.poll(0.1)
            assert self._producer.flush(60) == 0


@dataclass
class Seen:
    """One answer: `life` is None if a query process fell meanwhile, `version` the newest commit when it was asked."""

    table: str
    reader: int
    life: int | None
    version: int
    answer: dict[str, Any]


@dataclass
class Watched:
    """A server under readers, bursts and kills."""

    server: Server
    home: Path
    producing: Producing
    stopped: threading.Event = field(default_factory=threading.Event)
    seen: list[Seen] = field(default_factory=list)
    life: int = 0
    burst_size: int = BURST_MIN
    switches: Counter[str] = field(default_factory=Counter)
    offsets: Counter[str] = field(default_factory=Counter)
    errors: list[BaseException] = field(default_factory=list)
    _last: Counter[tuple[str, str]] = field(default_factory=Counter)

    def read(self, seed: int) -> None:
        chance, client = random.Random(seed), Client(self.server.url, patient=True)
        versions = dict.fromkeys(TABLES, 0)
        try:
            while not self.stopped.is_set():
                table = chance.choice(list(TABLES))
                log = self.home / "warehouse" / table / "REALTIME" / "_delta_log"
                while (log / f"{versions[table] + 1:020d}.json").exists():
                    versions[table] += 1
                life, version = self.life, versions[table]
                try:
                    status, answer = client.call("POST", "/query/sql", {"sql": chance.choice(QUESTIONS).format(table)})
                except Lost:
                    time.sleep(0.2)
                    continue
                assert status == 200 and not answer["exceptions"], answer
                self.seen.append(Seen(table, seed, life if life == self.life else None, version, answer))
                time.sleep(READ_EACH_S)
        except BaseException as error:
            self.errors.append(error)
            self.stopped.set()
        finally:
            client.close()

    @property
    def has_switched(self) -> bool:
        """Whether commits were awaited, have overtaken the stream, and the stream was read again."""
        return min(self.switches["commits"], self.switches["stream"], self.offsets["files"]) > 0

    def calm(self) -> None:
        while not self.stopped.wait(0.2):
            self.producing.send(CALM_PER_S // 5)

    def burst(self) -> None:
        self.producing.send(self.burst_size)

    def fall(self, victims: tuple[str, ...] | None) -> None:
        """Kills processes and awaits their successors; or stops the pipeline, and lets it go on."""
        client = Client(self.server.url, patient=True)
        self.scrape(client)
        client.close()
        if victims is None:
            pids = [pid for role in (PIPELINE, "java") for pid in _processes(self.server)[role]]
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            self.stopped.wait(STOPPED_S)
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
            return
        self.life += QUERY in victims
        _kill_and_heal(self.server, victims)
        self.life += QUERY in victims
        if QUERY in victims:
            self._last.clear()

    def scrape(self, client: Client) -> None:
        """Adds what the counters of the query process have gained, and lets bursts exceed the limit."""
        try:
            status, text = self.server.call("GET", "/metrics", text=True)
        except OSError:
            return
        if status != 200:
            return
        for name, label, table, value in re.findall(
            r'^hybrid_tail_(switches|offsets)_total\{(?:mode|source)="(\w+)",table="(\w+)"\} (\S+)', text, re.M
        ):
            key, now = (f"{name} {label}", table), int(float(value))
            gained = now - self._last[key]
            self._last[key] = now
            (self.switches if name == "switches" else self.offsets)[label] += max(0, gained)
        limits = [float(value) for value in re.findall(r"^hybrid_tail_limit_offsets\{[^}]*\} (\S+)", text, re.M)]
        self.burst_size = max(BURST_MIN, int(1.5 * max(limits, default=0)))

    def await_caught_up(self, client: Client) -> None:
        """Waits until both tables show all that was produced by now."""
        target, deadline = list(self.producing.sent), time.monotonic() + CAUGHT_UP_S_MAX
        for table in TABLES:
            while True:
                rows = client.answer(QUESTIONS[0].format(table))["resultTable"]["rows"]
                ends = {row[0]: row[3] + 1 for row in rows}
                if all(ends.get(p, 0) >= end for p, end in enumerate(target)):
                    break
                assert time.monotonic() < deadline, (table, ends, target, self.server.logged()[-3000:])
                assert not self.errors, self.errors
                time.sleep(0.3)
        self.scrape(client)

    def check(self) -> None:
        """Every answer is that of its positions; they never fall, and hold the commits of before."""
        assert not self.errors, self.errors
        committed = {
            table: [_positions(state["offsets"]) for state in states_of(self.home / "warehouse" / table / "REALTIME")]
            for table in TABLES
        }
        shown: dict[tuple[str, int, int], tuple[int, ...]] = {}
        wrong = []
        for seen in self.seen:
            revision = seen.answer["revision"]
            tail = re.search(r"tail=\{([^}]*)\}", revision)
            version = re.search(r"REALTIME=(\d+)", revision)
            assert version is not None, revision
            positions = committed[seen.table][int(version[1])]
            if tail is not None:
                ends = {int(p): int(end) for p, end in re.findall(r"/(\d+)@(\d+)", tail[1])}
                positions = tuple(ends.get(p, end) for p, end in enumerate(positions))
            rows = [[int(value) for value in row] for row in seen.answer["resultTable"]["rows"]]
            if rows != expected(positions, TABLES[seen.table]):
                wrong.append(f"{rows}, not {expected(positions, TABLES[seen.table])}: {revision}")
            if _is_below(positions, committed[seen.table][seen.version]):
                wrong.append(f"commit {seen.version} at {committed[seen.table][seen.version]} is hidden: {revision}")
            if seen.answer["warnings"] or seen.life is None:
                continue  # it says that Kafka was not read, or it came while the process fell
            key = (seen.table, seen.reader, seen.life)
            if _is_below(positions, shown.get(key, ())):
                wrong.append(f"back from {shown[key]}: {revision}")
            shown[key] = positions
        assert not wrong, f"{len(wrong)} of {len(self.seen)}:\n" + "\n".join(wrong[:10])

    @property
    def words(self) -> str:
        sources = Counter(seen.answer["answeredFrom"] for seen in self.seen)
        return (
            f"{len(self.seen)} answers ({dict(sources)}), {sum(self.producing.sent)} events; "
            f"switches {dict(self.switches)}, offsets {dict(self.offsets)}"
        )


def _is_below(positions: tuple[int, ...], others: tuple[int, ...]) -> bool:
    return any(end < other for end, other in zip(positions, others, strict=False))


def _positions(offsets: dict[str, int]) -> tuple[int, ...]:
    ends = {int(key.rpartition("/")[2]): offset for key, offset in offsets.items()}
    return tuple(ends.get(p, 0) for p in range(PARTITIONS))


def test_what_is_expected_is_what_the_events_say() -> None:
    for upsert in (False, True):
        for end in (0, 1, KEYS, KEYS + 1, 3 * KEYS + 7):
            winners = {i % KEYS if upsert else i: i for i in range(end)}
            rows = [[p, len(winners), sum(winners.values()), end - 1] for p in range(PARTITIONS) if end]
            assert expected((end,) * PARTITIONS, upsert) == rows
