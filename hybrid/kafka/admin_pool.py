"""Admin clients that stay connected between two looks at a stream, in processes that look often.

A connection costs more than what is asked over it. Nothing that a look reports is kept by a client: topics, ids,
partitions and leaders are requested each time. It does keep the brokers' addresses, its TLS and DNS results and the
versions of the protocol. That is why clients are replaced after a minute. See docs/adr/0045-shared-kafka-clients.md.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from hybrid.config.kafka_security import PLAINTEXT, KafkaSecurity
from hybrid.kafka.clients import connect_admin

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

    Connect = Callable[[str, int, KafkaSecurity], KafkaAdminClient]

_KEPT_MAX = 2  # of one broker list, security and timeout
_IDLE_S, _AGE_S = 30.0, 60.0
_JOIN_S = 1.0
Answer = TypeVar("Answer")


@dataclass
class _PooledClient:
    """A client with the times (the pool's clock, s) of its connection and of its latest return."""

    admin: KafkaAdminClient
    connected_at: float
    returned_at: float


class AdminPool:
    """Connected admin clients by bootstrap list, timeout and resolved security. Each serves one thread at a time.

    It keeps clients only within `keeping`. Thread-safe; clients are closed outside of its lock, because that waits for
    their threads. A forked process keeps none: see `abandon`.
    """

    def __init__(
        self,
        connect: Connect = connect_admin,
        clock: Callable[[], float] = time.monotonic,
        *,
        kept_max: int = _KEPT_MAX,
        idle_s: float = _IDLE_S,
        age_s: float = _AGE_S,
    ) -> None:
        self._connect, self._clock = connect, clock
        self._kept_max, self._idle_s, self._age_s = kept_max, idle_s, age_s
        self._lock = threading.Lock()
        self._is_keeping = False
        # The keys contain passwords, and are not shown anywhere.
        self._idle: dict[Hashable, list[_PooledClient]] = defaultdict(list)
        self._abandoned: list[object] = []

    def ask(
        self,
        brokers: str,
        timeout_ms: int,
        question: Callable[[KafkaAdminClient], Answer],
        security: KafkaSecurity = PLAINTEXT,
    ) -> Answer:
        """The answer to a question, whose requests wait `timeout_ms` each; raises the client's own errors.

        If a kept client fails, a new one is asked once more: the broker may have been restarted. A connection that was
        cut silently costs one timeout before that. A client is kept only after an answer, because failed
        authentications and pauses before reconnects stick to it.
        """
        from kafka.errors import KafkaError

        key = (brokers, timeout_ms, frozenset(security.for_python().items()))
        client = self._take(key)
        if client is not None:
            try:
                return self._answer(key, client, question)
            except (KafkaError, OSError):
                self._close(self._removed(key))
        now = self._clock()
        return self._answer(key, _PooledClient(self._connect(brokers, timeout_ms, security), now, now), question)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep clients until the block ends, and close them then. A thread closes those that nobody uses."""
        stop = threading.Event()

        def work() -> None:
            while not stop.wait(self._idle_s / 2):
                self.close_expired()

        thread = threading.Thread(target=work, name="admin-pool", daemon=True)
        self._is_keeping = True
        thread.start()
        try:
            yield
        finally:
            stop.set()
            with self._lock:
                self._is_keeping = False
                rest = [client for clients in self._idle.values() for client in clients]
                self._idle.clear()
            self._close(rest)
            thread.join(_JOIN_S)

    def close_expired(self) -> None:
        """Close the clients that are too old, or were not used for too long."""
        with self._lock:
            expired = self._without_expired()
        self._close(expired)

    def abandon(self) -> None:
        """Forget the clients in a forked child: their threads and connections are the parent's.

        They stay referenced, since to close or collect them would end sessions of the parent.
        """
        self._lock = threading.Lock()  # a thread of the parent may have held the other one
        self._is_keeping = False
        self._abandoned.append(self._idle)
        self._idle = defaultdict(list)

    def _answer(self, key: Hashable, client: _PooledClient, question: Callable[[KafkaAdminClient], Answer]) -> Answer:
        try:
            answer = question(client.admin)
        except BaseException:
            client.admin.close()
            raise
        self._give_back(key, client)
        return answer

    def _take(self, key: Hashable) -> _PooledClient | None:
        """The client of a key that was used last, so that the others become idle; None without any."""
        with self._lock:
            expired = self._without_expired()
            clients = self._idle.get(key)
            client = clients.pop() if clients else None
        self._close(expired)
        return client

    def _give_back(self, key: Hashable, client: _PooledClient) -> None:
        client.returned_at = self._clock()
        with self._lock:
            if self._is_keeping and len(self._idle[key]) < self._kept_max:
                self._idle[key].append(client)
                surplus = []
            else:
                surplus = [client]
            surplus += self._without_expired()
        self._close(surplus)

    def _removed(self, key: Hashable) -> list[_PooledClient]:
        """The other clients of a key of which one has failed."""
        with self._lock:
            return self._idle.pop(key, [])

    def _without_expired(self) -> list[_PooledClient]:
        """Remove and return all expired clients. The lock is held."""
        now, expired = self._clock(), list[_PooledClient]()
        for key, clients in list(self._idle.items()):
            expired += [client for client in clients if self._is_expired(client, now)]
            rest = [client for client in clients if not self._is_expired(client, now)]
            if rest:
                self._idle[key] = rest
            else:
                del self._idle[key]
        return expired

    def _is_expired(self, client: _PooledClient, now: float) -> bool:
        return now - client.returned_at > self._idle_s or now - client.connected_at > self._age_s

    @staticmethod
    def _close(clients: list[_PooledClient]) -> None:
        for client in clients:
            client.admin.close()


_PROCESS_POOL = AdminPool()
os.register_at_fork(after_in_child=_PROCESS_POOL.abandon)


def ask_admin(
    brokers: str,
    timeout_ms: int,
    question: Callable[[KafkaAdminClient], Answer],
    security: KafkaSecurity = PLAINTEXT,
) -> Answer:
    """`AdminPool.ask` of this process: over a kept client within `admin_clients_kept`, else over one of its own."""
    return _PROCESS_POOL.ask(brokers, timeout_ms, question, security)


def admin_clients_kept() -> AbstractContextManager[None]:
    """Keep admin clients connected in this process until the block ends. For servers: commands ask once or twice."""
    return _PROCESS_POOL.keeping()
