"""The pool of admin clients: what it keeps and for how long, failures, threads, forks, and its end. No broker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError, KafkaError

from hybrid.config.kafka_security import KafkaSecurity
from hybrid.kafka.admin_pool import AdminPool
from hybrid.kafka.clients import connect_admin, consumer

A, B = "a:1", "b:1"


@dataclass
class Clock:
    """A clock that stands until it is set (s)."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Admin:
    """A client that counts what it is asked, and fails once it is broken."""

    asked: int = 0
    closed: int = 0
    error: Exception | None = None

    def close(self) -> None:
        self.closed += 1


@dataclass
class Clients:
    """All clients that were connected, and the arguments of each."""

    made: list[Any] = field(default_factory=list)
    arguments: list[tuple[Any, ...]] = field(default_factory=list)
    error: Exception | None = None

    def connect(self, *arguments: Any) -> Any:
        self.arguments.append(arguments)
        if self.error is not None:
            raise self.error
        self.made.append(Admin())
        return self.made[-1]

    @property
    def counts(self) -> list[tuple[int, int]]:
        return [(admin.asked, admin.closed) for admin in self.made]


def question(admin: Any) -> Any:
    assert not admin.closed
    admin.asked += 1
    if admin.error is not None:
        raise admin.error
    return admin


@pytest.fixture
def clients() -> Clients:
    return Clients()


def test_a_command_keeps_nothing(clients: Clients) -> None:
    pool = AdminPool(clients.connect)
    for _ in range(2):
        pool.ask(A, 5, question)
    assert clients.counts == [(1, 1), (1, 1)]


def test_a_kept_client_is_asked_again_and_closed_at_the_end(clients: Clients) -> None:
    pool = AdminPool(clients.connect)
    with pool.keeping():
        for _ in range(3):
            pool.ask(A, 5, question)
        assert clients.counts == [(3, 0)]
        late = pool.ask(B, 5, lambda admin: admin)
    assert clients.counts == [(3, 1), (0, 1)] and late is clients.made[1]
    pool.ask(A, 5, question)
    assert clients.counts[2] == (1, 1), "what ends after the server keeps nothing"


def test_other_brokers_timeouts_and_secrets_share_nothing(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = AdminPool(clients.connect)
    ada, eve = (KafkaSecurity("SASL_PLAINTEXT", "PLAIN", "ada", password) for password in ("s3cret", "other"))
    by_reference = KafkaSecurity("SASL_PLAINTEXT", "PLAIN", "ada", "${env:POOL_PASSWORD}")
    monkeypatch.setenv("POOL_PASSWORD", "s3cret")
    with pool.keeping():
        for arguments in ((A, 5, ada), (B, 5, ada), (A, 6, ada), (A, 5, eve)) * 2:
            pool.ask(arguments[0], arguments[1], question, arguments[2])
        assert clients.counts == [(2, 0)] * 4
        pool.ask(A, 5, question, by_reference)
        assert clients.counts[0] == (3, 0), "the resolved secret counts"
        monkeypatch.setenv("POOL_PASSWORD", "rotated")
        pool.ask(A, 5, question, by_reference)
        assert clients.arguments[-1] == (A, 5, by_reference) and len(clients.made) == 5
        assert "s3cret" not in repr(pool)


def test_idle_and_old_clients_are_closed(clients: Clients) -> None:
    clock = Clock()
    pool = AdminPool(clients.connect, clock, idle_s=30, age_s=60)
    with pool.keeping():
        pool.ask(A, 5, question)
        clock.now += 30
        pool.ask(A, 5, question)
        clock.now += 31
        pool.ask(B, 5, question)
        assert clients.counts == [(2, 1), (1, 0)], "idle for more than 30 s, seen when another is asked"
        for _ in range(4):
            clock.now += 16
            pool.ask(B, 5, question)
        assert clients.counts[1:] == [(4, 1), (1, 0)], "connected more than 60 s ago"
        clock.now += 31
        pool.close_expired()
        assert clients.counts[2] == (1, 1)


def test_a_client_that_became_too_old_over_a_question_is_not_kept(clients: Clients) -> None:
    clock = Clock()
    pool = AdminPool(clients.connect, clock)

    def slow(admin: Any) -> None:
        question(admin)
        clock.now += 61

    with pool.keeping():
        pool.ask(A, 5, slow)
        assert clients.counts == [(1, 1)]


def test_unused_clients_are_closed_though_nobody_asks(clients: Clients) -> None:
    pool = AdminPool(clients.connect, idle_s=0.02)
    with pool.keeping():
        pool.ask(A, 5, question)
        ended = threading.Event()
        for _ in range(500):
            if clients.counts == [(1, 1)]:
                break
            ended.wait(0.02)
        assert clients.counts == [(1, 1)]


def test_threads_do_not_share_a_client_and_two_are_kept(clients: Clients) -> None:
    pool, together = AdminPool(clients.connect), threading.Barrier(5)
    seen: list[Any] = []

    def together_with_others(admin: Any) -> None:
        seen.append(question(admin))
        together.wait(10)

    def run() -> None:
        threads = [threading.Thread(target=pool.ask, args=(A, 5, together_with_others)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)

    with pool.keeping():
        run()
        assert len({id(admin) for admin in seen}) == 5
        assert sorted(clients.counts) == [(1, 0)] * 2 + [(1, 1)] * 3
        run()
        assert len(clients.made) == 8
    assert all(closed == 1 for _, closed in clients.counts)


@pytest.mark.parametrize("error", [KafkaConnectionError("gone"), KafkaError("other"), OSError("cut")])
def test_a_kept_client_that_fails_is_replaced_once(clients: Clients, error: Exception) -> None:
    pool = AdminPool(clients.connect)
    with pool.keeping():
        pool.ask(A, 5, lambda admin: pool.ask(A, 5, question))
        first, second = clients.made
        first.error = second.error = error
        assert pool.ask(A, 5, question) is clients.made[2]
        assert (first.closed, second.closed) == (1, 1), "all that were connected before"
        clients.made[2].error = error
        clients.error = KafkaError("still gone")
        with pytest.raises(KafkaError, match="still gone"):
            pool.ask(A, 5, question)
        assert clients.made[2].closed == 1 and len(clients.arguments) == 4


def test_the_error_of_a_new_client_is_final(clients: Clients) -> None:
    pool = AdminPool(clients.connect)

    def fails(admin: Any) -> None:
        question(admin)
        raise KafkaError("refused")

    with pool.keeping():
        with pytest.raises(KafkaError, match="refused"):
            pool.ask(A, 5, fails)
        assert clients.counts == [(1, 1)]


def test_a_forked_process_leaves_the_clients_to_its_parent(clients: Clients) -> None:
    pool = AdminPool(clients.connect)
    with pool.keeping():
        pool.ask(A, 5, question)
        pool.abandon()
        pool.ask(A, 5, question)
        assert clients.counts == [(1, 0), (1, 1)], "a client of its own, which is not kept"
    assert clients.counts[0] == (1, 0), "not closed at the end either"


@pytest.mark.parametrize(
    "connect",
    [
        lambda brokers: connect_admin(brokers, 200),
        lambda brokers: consumer(brokers, KafkaSecurity(), 200),
    ],
)
def test_a_client_that_reaches_no_broker_leaves_nothing_behind(connect: Callable[[str], object]) -> None:
    """A listener that answers nothing: kafka-python would leave its thread and its sockets."""
    before = threading.active_count()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with pytest.raises(KafkaError):
            connect(f"127.0.0.1:{listener.getsockname()[1]}")
    assert threading.active_count() == before
