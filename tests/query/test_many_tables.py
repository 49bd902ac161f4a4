"""Many tables in memory over a real Kafka: what each costs while nobody asks, and a broker that goes and comes back."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import Half
from hybrid.kafka.topics import create_topic
from hybrid.query.cache.cache import Cache
from hybrid.query.cache.cache_reader import CachedAnswers
from hybrid.query.execution import Limits
from hybrid.query.query_table import QueryTable
from hybrid.table.boundary import Boundary
from tests.query.halves import Halves, Row, orders_spec
from tests.query.test_cache_kafka import awaited
from tests.query.test_many_streams import table_on
from tests.query.test_tail import produce, value
from tests.watchdog import watched_broker

pytestmark = pytest.mark.kafka
TABLES = 10


@dataclass
class Tables:
    """Some tables of one warehouse."""

    halves: dict[str, Halves]

    def names(self) -> list[str]:
        return list(self.halves)

    def open(self, name: str) -> QueryTable:
        return self.halves[name].open(name)

    def stamp(self, name: str) -> Hashable | None:
        return 1 if name in self.halves else None


def shown(cache: Cache, name: str) -> list[Any] | None:
    sql = f"select order_id from {name} order by 1 limit 100"
    found = CachedAnswers(cache).answer(sql, 0, Limits(), lambda interrupt: None)
    return None if found is None else [row[0] for row in found.rows]


def threads_and_files() -> tuple[int, int]:
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def test_tables_share_their_connections(tmp_path: Path, broker: str, topic: str) -> None:
    """A thread a table, no file, and a few steps a second while nobody asks."""
    tables = Tables({f"t{n}": table_on(tmp_path, broker, f"{topic}-{n}", f"t{n}") for n in range(TABLES)})
    for number in range(TABLES):
        create_topic(broker, f"{topic}-{number}")
    cache = Cache(tables, tmp_path)
    try:
        cache.follow_all()
        awaited(lambda: shown(cache, "t0"), [])
        (entry,) = cache._brokers._entries.values()
        one_threads, one_files = threads_and_files()
        for name in tables.names():
            awaited(lambda name=name: shown(cache, name), [])
        threads, files = threads_and_files()
        assert threads <= one_threads + TABLES and files <= one_files + TABLES, (one_threads, one_files, threads, files)
        assert entry.client is not None and entry.client.users == TABLES
        named = [thread.name for thread in threading.enumerate()]
        assert [sum(name.startswith(kind) for name in named) for kind in ("watch-", "route-")] == [1, 1]
        steps = {name: 0 for name in tables.names()}
        for name, table in cache.followed().items():
            _count_steps(table.follower, name, steps)
        time.sleep(3.0)
        assert all(3 <= count <= 9 for count in steps.values()), steps
        produce(broker, f"{topic}-3", value(7))
        assert shown(cache, "t3") == [7] and shown(cache, "t4") == [], "a statement after a pause has all"
    finally:
        cache.close()
    assert entry.client is None


def _count_steps(follower: Any, name: str, steps: dict[str, int]) -> None:
    step = follower.step

    def counted() -> bool:
        steps[name] += 1
        return bool(step())

    follower.step = counted


def test_a_commit_to_an_idle_table_is_seen_by_the_next_statement(tmp_path: Path, broker: str, topic: str) -> None:
    """A table whose stream is silent wakes for it, and so does one that has none."""
    streamed = table_on(tmp_path, broker, topic, "streamed")
    spec = replace(orders_spec(halves=(Half.OFFLINE,)), name="plain", stream=None)
    plain = Halves.create(tmp_path, spec)
    cache = Cache(Tables({"streamed": streamed, "plain": plain}), tmp_path)

    def row(number: int) -> Row:
        stored = {"order_id": number, "customer": "k", "amount": 1.0, "ts": number}
        return Row(stored, number, None, key=None, segment="o")

    try:
        for name in ("streamed", "plain"):
            awaited(lambda name=name: shown(cache, name), [])
        for number in range(1, 4):
            time.sleep(2.2)
            streamed.commit_offline([row(number)], Boundary(1000, {}))
            plain.commit_offline([row(number)], kind="append")
            committed = time.monotonic()
            for name in ("streamed", "plain"):
                answers = []
                while not answers or answers[-1] is None:
                    answers.append(shown(cache, name))  # None: the files answer, until the follower was woken
                assert answers[-1] == list(range(1, number + 1))
            assert time.monotonic() - committed < 0.45, "sooner than the next step"
    finally:
        cache.close()


def test_a_broker_goes_and_comes_back(tmp_path: Path) -> None:
    """Answers come from memory again, all rows once, without a client that is left behind."""
    local = watched_broker(tmp_path / "broker")
    broker = local.start(port=0)
    try:
        topics = ["first", "second"]
        for name in topics:
            create_topic(broker, name)
        tables = Tables({name: table_on(tmp_path, broker, name, name) for name in topics})
        cache = Cache(tables, tmp_path)
        try:
            for number, name in enumerate(topics):
                produce(broker, name, value(number))
                awaited(lambda name=name: shown(cache, name), [number])
            before = len(threading.enumerate())
            local.stop()
            awaited(lambda: [shown(cache, name) for name in topics], [None, None])
            local.start(port=int(broker.rpartition(":")[2]))
            for number, name in enumerate(topics):
                produce(broker, name, value(number + 10))
                awaited(lambda name=name: shown(cache, name), [number, number + 10])
            assert len(threading.enumerate()) <= before
            (entry,) = cache._brokers._entries.values()
            assert entry.client is not None and entry.client.users == 2
        finally:
            cache.close()
    finally:
        local.stop()
