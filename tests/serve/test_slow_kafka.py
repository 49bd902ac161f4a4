"""Kafka and ingestion that take their time hold up nobody who does not ask for them."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from hybrid.api.table import Table
from hybrid.errors import StreamError, TopicError
from hybrid.kafka.streams import SilentBrokers, StreamView
from hybrid.operations.tables.status import status_of_all
from hybrid.serve.commit_waits import CommitWaits
from hybrid.serve.status_cache import StatusCache, StatusCaches
from hybrid.table.boundary import TopicPartition
from tests.serve.app import App

ENDS = {TopicPartition("orders", 0): 10**9}


def timed(app: App, path: str) -> float:
    started = time.monotonic()
    assert app.call("GET", path)[0] == 200
    return time.monotonic() - started


@pytest.mark.slow
def test_any_number_may_wait_for_commits_and_nothing_else_waits(orders: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """11: forty of them stopped every path that has a thread. Now threads are asked for a look only."""
    monkeypatch.setattr(Table, "stream_ends", lambda _: ENDS)
    orders.app.state.context = replace(orders.app.state.context, commit_waits=CommitWaits(timeout_s=2.0))
    orders.home.context.catalog.serving.beat("pipeline", "ready")
    took: list[float] = []
    threads = [threading.Thread(target=lambda: took.append(timed(orders, "/segments/orders"))) for _ in range(60)]
    for thread in threads:
        thread.start()
    time.sleep(0.8)
    assert max(timed(orders, path) for path in ("/tables", "/readyz?x=1", "/livez")[::2]) < 0.5
    assert orders.call("POST", "/verbs/segments", {"table": "orders"})[0] == 200
    for thread in threads:
        thread.join()
    assert len(took) == 60 and min(took) > 1.5 and max(took) < 6


def test_one_too_many_is_answered_at_once() -> None:
    table: Any = SimpleNamespace(stream_ends=lambda: ENDS, has_committed=lambda _: False)

    async def ask() -> list[bool]:
        waits, took = CommitWaits(most=2, timeout_s=0.6), list[float]()

        async def one() -> None:
            started = time.monotonic()
            assert not await waits.wait(table)
            took.append(time.monotonic() - started)

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(one)
        return [seconds > 0.5 for seconds in sorted(took)]

    assert anyio.run(ask) == [False, True, True]


def test_who_waits_is_answered_when_it_is_committed() -> None:
    looks = iter([False, False, True])
    table: Any = SimpleNamespace(stream_ends=lambda: ENDS, has_committed=lambda _: next(looks))

    async def ask() -> bool:
        return await CommitWaits(timeout_s=10).wait(table)

    assert anyio.run(ask)


def test_a_silent_broker_is_asked_once_for_all_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """11: `GET /` asked Kafka of each table in turn, 1.5 s each."""
    asked: list[str] = []

    def silent(stream: Any, *_: object) -> StreamView:
        asked.append(stream.brokers)
        raise StreamError("does not answer") if stream.brokers == "a:1" else TopicError("is gone")

    monkeypatch.setattr("hybrid.kafka.streams.require_topics", silent)
    state: Any = SimpleNamespace(known_ids=lambda _: {}, known_leader_epochs=lambda _: {})
    brokers = SilentBrokers(1500)
    for name in ("a:1", "a:1", "b:1", "a:1", "b:1"):
        with pytest.raises(StreamError):
            brokers.view(SimpleNamespace(brokers=name), state)  # type: ignore[arg-type]
    assert asked == ["a:1", "b:1", "b:1"], "brokers that answer for a topic are asked for the others"


def test_tables_are_looked_at_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(_home: Any, table: Any, *_: object) -> Any:
        time.sleep(0.2)
        return table.name

    monkeypatch.setattr("hybrid.operations.tables.status.status_of", slow)
    spec = SimpleNamespace(halves=[])
    home: Any = SimpleNamespace(
        table_names=lambda: [f"t{number}" for number in range(16)],
        table=lambda name: SimpleNamespace(name=name, spec=spec),
    )
    started = time.monotonic()
    assert status_of_all(home) == [f"t{number}" for number in range(16)]
    assert time.monotonic() - started < 1.5


@pytest.mark.slow
def test_the_page_is_made_once_for_all_who_look() -> None:
    made: list[None] = []

    def look() -> list[Any]:
        time.sleep(0.2)
        made.append(None)
        return []

    kept = StatusCache(look, kept_s=0.5)
    threads = [threading.Thread(target=kept.get) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept.get()
    assert len(made) == 1
    deadline = time.monotonic() + 60  # kept for longer than 0.5 s, because looking takes long
    while len(made) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
        kept.get()
    assert len(made) == 2


def test_what_another_look_found_is_kept_as_long_as_an_own() -> None:
    looks = iter(["own", "own, later"])
    caches = StatusCaches(lambda table: next(looks))
    caches.put("orders", "too old", time.monotonic() - 3600)
    assert caches.get("orders") == "own"
    caches.put("orders", "of the overview", time.monotonic())
    assert caches.get("orders") == "of the overview"
    assert caches.get("rides") == "own, later", "of another table"
