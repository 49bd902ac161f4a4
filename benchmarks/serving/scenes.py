"""Two scenes about right answers, not about speed.

Moving: rows arrive and buckets are moved while readers ask for figures that must agree within one answer: each row adds
1.0 to a sum and a customer of its own, so rows, sum and customers are one number (upsert: rows, sum and keys). From one
answer to the next that number may not fall.

Late: rows whose bucket is offline already arrive. They must be seen.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from functools import partial
from typing import Any, Protocol

from benchmarks.serving.http import Client, Endpoint
from benchmarks.serving.measure import Json
from benchmarks.serving.stream import Feeder, send
from benchmarks.serving.tables import Table
from benchmarks.serving.workload import HOUR_MS, PARTITIONS, START_MS, message

RATE = 2000
LATE_ROWS = 4000
_FIRST_LATE = 1_000_000_000
_KEYS = 10_000
_READERS = 2
_THINK_S = 0.02  # readers look for wrong answers; the cores are for those who write
_SCHEDULE_S = 1.0
_FIRST_MOVE_S = 120.0
_LATE_S = 30.0


class Mover(Protocol):
    """A system that moves buckets."""

    @property
    def endpoint(self) -> Endpoint: ...

    def schedule(self, table: Table) -> None: ...

    def boundary_ms(self, table: Table) -> int | None: ...


def in_scene(n: int, hour_rows: int) -> tuple[int, bytes]:
    """The nth event: a customer of its own, an amount of 1, a time that passes an hour in `hour_rows` events."""
    key = n % _KEYS
    return key % PARTITIONS, message(key, n, 0, 1.0, START_MS + n * HOUR_MS // hour_rows)


def _append_sql(table: Table) -> str:
    return f"select count(*), sum(amount), distinctcount(customer_id) from {table.name}"


def _upsert_sql(table: Table) -> str:
    return f"select count(*), sum(amount), distinctcount(order_id) from {table.name}"


class _Reader(threading.Thread):
    """Asks one question again and again; counts what cannot be."""

    def __init__(self, endpoint: Endpoint, sql: str, stopped: threading.Event) -> None:
        super().__init__(daemon=True)
        self._client, self._sql, self._stopped = Client(endpoint), sql, stopped
        self.found: Counter[str] = Counter()
        self.most = 0
        self.example: list[Any] | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stopped.is_set():
                self._ask()
                time.sleep(_THINK_S)
        except BaseException as error:
            self.error = error

    def _ask(self) -> None:
        rows = self._client.rows(self._sql)
        if rows is None:
            self.found["failed"] += 1
            return
        figures = [float(value or 0) for value in rows[0]]  # the sum of no rows is null to some
        self.found["answers"] += 1
        if len(set(figures)) != 1:
            self.found["inconsistent"] += 1
            self.example = rows[0]
        self.found["fewer"] += int(figures[0]) < self.most
        self.most = max(self.most, int(figures[0]))


def moving(system: Mover, brokers: str, append: Table, upsert: Table, seconds: float) -> Json:
    """What readers saw of both tables while `seconds` of events arrived and buckets of the append table moved."""
    limit = int(RATE * seconds)
    make = partial(in_scene, hour_rows=max(1, limit // 24))
    stopped = threading.Event()
    questions = {"append": _append_sql(append), "upsert": _upsert_sql(upsert)}
    readers = {
        mode: [_Reader(system.endpoint, sql, stopped) for _ in range(_READERS)] for mode, sql in questions.items()
    }
    for sql in questions.values():
        _answered(system, sql)
    with Feeder(brokers, append.topic, make, RATE, limit) as feeder:
        for reader in [*readers["append"], *readers["upsert"]]:
            reader.start()
        while feeder.is_going():
            system.schedule(append)
            system.schedule(upsert)
            time.sleep(_SCHEDULE_S)
        sent = feeder.sent
    end = _settled(system, questions["append"], sent)
    stopped.set()
    result: Json = {"seconds": seconds, "sent": sent, "seen_at_the_end": end, "moved": _moved(system, append)}
    for mode, those in readers.items():
        result[mode] = _told(those, sent if mode == "append" else _KEYS)
    return result


def _answered(system: Mover, sql: str) -> None:
    """Waits until a new table is answered for at all."""
    client, deadline = Client(system.endpoint), time.monotonic() + _LATE_S
    while client.rows(sql) is None and time.monotonic() < deadline:
        time.sleep(0.2)
    client.close()


def _told(readers: list[_Reader], limit: int) -> Json:
    total: Counter[str] = Counter()
    for reader in readers:
        reader.join(timeout=120)
        if reader.error is not None:
            raise reader.error
        total.update(reader.found)
        total["more"] += reader.most > limit
    example = next((reader.example for reader in readers if reader.example), None)
    names = ("answers", "inconsistent", "fewer", "more", "failed")
    return {**{name: total[name] for name in names}, "example": example}


def _settled(system: Mover, sql: str, sent: int) -> int:
    """How many rows are seen in the end: as many as were sent, or what is seen half a minute later."""
    client, deadline, seen = Client(system.endpoint), time.monotonic() + _LATE_S, 0
    while seen != sent and time.monotonic() < deadline:
        rows = client.rows(sql)
        seen = int(rows[0][0]) if rows else 0
        time.sleep(0.2)
    client.close()
    return seen


def _moved(system: Mover, table: Table) -> int:
    """How many rows are in the OFFLINE half."""
    client = Client(system.endpoint)
    rows = client.rows(f"select count(*) from {table.name}_OFFLINE")
    client.close()
    return int(rows[0][0]) if rows else 0


def late(system: Mover, brokers: str, append: Table) -> Json:
    """How many of the late rows are seen: at once, and after one more move."""
    deadline = time.monotonic() + _FIRST_MOVE_S
    while not (is_offline := _is_offline(system, append)) and time.monotonic() < deadline:
        system.schedule(append)
        time.sleep(_SCHEDULE_S)
    if not is_offline:
        return {"rows": LATE_ROWS, "note": "the first hour was not moved"}
    for partition in range(PARTITIONS):
        keys = range(_FIRST_LATE + partition, _FIRST_LATE + LATE_ROWS, PARTITIONS)
        messages = (message(key, key, 1, 1.0, START_MS + key % (HOUR_MS // 4)) for key in keys)
        send(brokers, append.topic, partition, messages)
    sql = f"select count(*) from {append.name} where order_id >= {_FIRST_LATE}"
    at_once = _settled(system, sql, LATE_ROWS)
    system.schedule(append)
    time.sleep(_LATE_S)
    return {"rows": LATE_ROWS, "seen": at_once, "seen_later": _settled(system, sql, LATE_ROWS)}


def _is_offline(system: Mover, table: Table) -> bool:
    """Whether the first hour is answered by the OFFLINE half: Pinot leaves its newest hour to the other one."""
    boundary = system.boundary_ms(table)
    return boundary is not None and boundary >= START_MS + HOUR_MS - 1
