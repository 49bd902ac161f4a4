"""Ctrl-C ends a statement where it runs: in this process at the engine, at a server by a request."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hybrid.cli.cancellation import Started, cancellable
from hybrid.cli.error_report import was_interrupted
from hybrid.errors import QueryError
from hybrid.progress import Silent
from hybrid.rpc.client import Client
from tests.serve.app import App, lay_orders

ENDLESS = "select max(a.ts) x from orders_OFFLINE a" + "".join(f", orders_OFFLINE b{place}" for place in range(40))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[App]:
    """A server with the table orders."""
    app = App(tmp_path / "home")
    lay_orders(app.home)
    yield app
    app.close()


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Ctrl-C ends a system call, as in a command; asyncio of other tests may have left it otherwise."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted_soon(when: Callable[[], bool]) -> threading.Thread:
    """Presses Ctrl-C as soon as something is so."""

    def press() -> None:
        while not when():
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


def test_the_result_and_the_error_are_those_of_the_work() -> None:
    assert cancellable(lambda started: 7) == 7
    with pytest.raises(QueryError, match="wrong"):
        cancellable(_fail)


def test_work_that_ends_in_spite_of_it_has_its_result() -> None:
    """An export may be writing its last bytes: the file is there then."""
    began, may_end = threading.Event(), threading.Event()

    def work(started: Started) -> int:
        began.set()
        may_end.wait(10)
        return 7

    pressing = interrupted_soon(began.is_set)
    threading.Timer(0.5, may_end.set).start()
    assert cancellable(work) == 7
    pressing.join()


def _fail(started: Started) -> int:
    raise QueryError("wrong")


def test_a_statement_is_interrupted_and_awaited() -> None:
    ended, begun = threading.Event(), threading.Event()
    calls: list[int] = []

    def work(started: Started) -> None:
        stop = threading.Event()
        started(lambda: (calls.append(1), stop.set()))
        begun.set()
        assert stop.wait(10)
        time.sleep(0.1)
        ended.set()
        raise QueryError("The query was cancelled.")

    press = interrupted_soon(begun.is_set)
    with pytest.raises(KeyboardInterrupt):
        cancellable(work)
    press.join()
    assert ended.is_set() and calls == [1]


def test_a_statement_that_is_still_planned_never_begins() -> None:
    planning, cancelled, ran = threading.Event(), threading.Event(), threading.Event()

    def work(started: Started) -> None:
        planning.set()
        cancelled.wait(1.0)
        started(lambda: None)
        ran.set()

    press = interrupted_soon(planning.is_set)
    with pytest.raises(KeyboardInterrupt):
        cancellable(work)
    press.join()
    assert not ran.is_set()


def test_a_second_interrupt_does_not_wait() -> None:
    begun, release = threading.Event(), threading.Event()

    def work(started: Started) -> None:
        begun.set()
        release.wait(20)

    first = interrupted_soon(begun.is_set)
    second = interrupted_soon(lambda: not first.is_alive() and time.monotonic() > at + 0.5)
    at = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        cancellable(work)
    assert time.monotonic() - at < 10
    release.set()
    second.join()


def test_what_duckdb_raises_for_an_interrupt_is_one() -> None:
    assert was_interrupted(RuntimeError("Query interrupted")) and not was_interrupted(RuntimeError("other"))


def test_an_error_below_itself_is_looked_at_once() -> None:
    error, other = ValueError("a"), ValueError("b")
    error.__cause__, other.__cause__ = other, error
    assert not was_interrupted(error)
    error.__cause__ = error
    assert not was_interrupted(error)


@pytest.mark.slow
def test_a_server_stops_the_statement(server: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a request: behind some proxies a closed connection stays open."""
    said: list[str] = []
    progress = Silent()
    monkeypatch.setattr(progress, "say", said.append, raising=False)
    client = Client(server.url, progress)
    cancelled: list[str] = []
    queries = server.app.state.context.queries
    cancel = queries.cancel
    monkeypatch.setattr(queries, "cancel", lambda *args: (cancelled.append(args[0]), cancel(*args)))
    press = interrupted_soon(lambda: any(query.interrupt for query in queries._running.values()))
    with pytest.raises(KeyboardInterrupt):
        client.call("query", {"sql": ENDLESS})
    press.join()
    assert cancelled and len(cancelled[0]) == 16 and said == []
    until = time.monotonic() + 10
    while queries._running and time.monotonic() < until:
        time.sleep(0.02)
    assert not queries._running
