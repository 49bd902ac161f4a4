"""A statement has one time, whichever ways it goes, and an interrupt that comes too early is said again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from hybrid.errors import QueryError
from hybrid.home.running_queries import RunningQueries
from hybrid.query import execution
from hybrid.query.deadline import _Deadlines, deadline
from hybrid.query.engine import QueryOptions, run
from hybrid.query.execution import Limits
from hybrid.query.tail import NoTail
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.stepped import SteppedCache


def test_an_interrupt_is_said_until_the_block_ends() -> None:
    said: list[float] = []
    with deadline(time.monotonic(), lambda: said.append(time.monotonic())):
        while len(said) < 3:
            time.sleep(0.005)
    ended = len(said)
    with deadline(time.monotonic() + 3600, lambda: None), deadline(None, lambda: said.clear()):
        time.sleep(0.1)
    assert len(said) == ended


def test_a_sooner_deadline_is_met_behind_a_later_one() -> None:
    said: list[None] = []
    with deadline(time.monotonic() + 3600, lambda: None):
        time.sleep(0.05)  # the watcher sleeps until then
        with deadline(time.monotonic() + 0.01, lambda: said.append(None)):
            while not said:
                time.sleep(0.005)


def test_statements_that_end_in_time_cost_the_watcher_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn of another thread takes as long as a part of a small statement."""
    deadlines, turns = _Deadlines(), list[None]()
    notify = deadlines._changed.notify
    monkeypatch.setattr(deadlines._changed, "notify", lambda: (turns.append(None), notify()))
    for _ in range(100):
        deadlines.remove(deadlines.add(time.monotonic() + 3600, lambda: None))
        time.sleep(0.001)
    assert len(turns) <= 1  # from the long sleep of one that knew of none


def test_one_that_cannot_be_interrupted_does_not_keep_the_others_from_it() -> None:
    """Who closes a database does not wait for its statements."""
    said: list[None] = []

    def fail() -> None:
        said.append(None)
        raise ValueError("closed")

    with deadline(time.monotonic(), fail):
        while not said:
            time.sleep(0.005)
        with deadline(time.monotonic(), lambda: said.append(None)):
            while len(said) < 3:
                time.sleep(0.005)


def test_duckdb_is_interrupted_late_too() -> None:
    """A first interrupt comes between two statements and is lost."""
    slow = "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range % 7 = b.range"
    with duckdb.connect() as connection, deadline(time.monotonic(), connection.interrupt):
        time.sleep(0.05)
        with pytest.raises(duckdb.InterruptException):
            connection.execute(slow)


def test_a_cancelled_block_is_interrupted_again_and_again() -> None:
    for at in (None, time.monotonic() + 3600):
        said: list[None] = []
        with deadline(at, lambda said=said: said.append(None)) as now:
            time.sleep(0.05)
            assert not said
            now()
            while len(said) < 3:
                time.sleep(0.005)
        now()  # too late: what runs on the connection then is another's
        ended = len(said)
        time.sleep(0.1)
        assert len(said) == ended


@pytest.mark.slow
@pytest.mark.parametrize("cached", [False, True])
def test_a_statement_that_is_cancelled_before_the_engine_begins_is_stopped(tmp_path: Path, cached: bool) -> None:
    """DuckDB forgets an interrupt of a statement that has not begun; without a time limit it ran for ever."""
    halves, queries = Halves.create(tmp_path, orders_spec()), RunningQueries()
    for number in range(3):
        values = {"order_id": number, "customer": "a", "amount": 1.0, "ts": 1000 + number}
        halves.commit_realtime([Row(values, 1000 + number, number)], offsets={KEY: number + 1})
    joins = ", ".join(f"orders as t{number}" for number in range(40))
    slow = f"select count(*) from {joins} where t0.order_id + t39.order_id % 7 > 9000"
    began = time.monotonic()
    with pytest.raises(QueryError, match="cancelled"), queries.running("mine") as running:

        def cancelled(interrupt: Callable[[], None]) -> None:
            running(interrupt)
            queries.cancel("mine")

        if cached:
            cache = SteppedCache(halves, 1_632_700_000_000, ListTail())
            cache.step()
            cache.answers.answer(slow, 1_632_700_000_000, Limits(), cancelled)
        else:
            run(slow, halves, QueryOptions(tail=NoTail(), running=cancelled))
    assert time.monotonic() - began < 60


def test_a_statement_whose_time_is_over_does_not_begin(tmp_path: Path) -> None:
    cache: Any = SimpleNamespace(answer=lambda *_: time.sleep(0.01), note=lambda *_: None)
    halves = Halves.create(tmp_path, orders_spec())
    with pytest.raises(QueryError, match="stopped after 5 ms"):
        run("select 1 from orders", halves, QueryOptions(timeout_ms=5, tail=NoTail(), cache=cache))


def test_what_the_cache_took_is_of_the_statements_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def answer(*_: Any) -> None:
        asked.append(time.monotonic())
        time.sleep(0.05)

    ends: list[float | None] = []

    @contextmanager
    def noted(at: float | None, interrupt: Callable[[], None]) -> Iterator[None]:
        ends.append(at)
        yield

    monkeypatch.setattr(execution, "deadline", noted)
    cache: Any = SimpleNamespace(answer=answer, note=lambda *_: None)
    halves = Halves.create(tmp_path, orders_spec())
    run("select 1 from orders", halves, QueryOptions(timeout_ms=60_000, tail=NoTail(), cache=cache))
    (at,) = ends
    assert at is not None and at <= asked[0] + 60


def test_a_far_deadline_does_not_end_the_watcher() -> None:
    """A condition waits no longer than 292 years: `timeoutMs = 10000000000000` ended the thread for all statements."""
    deadlines, said = _Deadlines(), list[None]()
    far = deadlines.add(1e18, lambda: None)
    time.sleep(0.05)
    near = deadlines.add(time.monotonic() + 0.01, lambda: said.append(None))
    time.sleep(0.2)
    deadlines.remove(near)
    deadlines.remove(far)
    assert said


def test_an_error_in_the_watcher_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    deadlines, said, look = _Deadlines(), list[None](), _Deadlines._look
    failing = [True]

    def looks(self: _Deadlines) -> None:
        if failing.pop() if failing else False:
            raise OverflowError("timestamp too large")
        look(self)

    monkeypatch.setattr(_Deadlines, "_look", looks)
    number = deadlines.add(time.monotonic() + 0.01, lambda: said.append(None))
    time.sleep(0.3)
    deadlines.remove(number)
    assert said and not failing


def test_a_watcher_that_ended_is_started_again() -> None:
    deadlines, said = _Deadlines(), list[None]()
    deadlines._looks_at = time.monotonic() + 3600
    deadlines._thread = ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    number = deadlines.add(time.monotonic() + 0.01, lambda: said.append(None))
    time.sleep(0.2)
    deadlines.remove(number)
    assert said


@pytest.mark.parametrize(
    ("written", "most", "meant"), [("10", 60_000, 10), ("999999999", 60_000, 60_000), ("999999999", None, 999_999_999)]
)
def test_a_statement_cannot_give_itself_more_time_than_the_server(written: str, most: int | None, meant: int) -> None:
    asked: Any = SimpleNamespace(statement=SimpleNamespace(options={"timeoutms": written}))
    assert execution.timeout_of(asked, execution.Limits(50, timeout_max_ms=most)) == meant


@pytest.mark.parametrize("written", ["\u00b2", "\u0663", "0", "-1", "10000000000000", "9" * 5000, "", "1.5"])
def test_what_is_no_timeout_is_an_error_of_the_statement(written: str) -> None:
    with pytest.raises(QueryError, match="timeoutMs must be a number") as raised:
        execution.parse_timeout(written)
    assert raised.value.pinot_code == 700
