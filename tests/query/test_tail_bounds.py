"""What is read of a long tail before DuckDB has anything to do: so many bytes, and half of the statement's time."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition as Part

from hybrid.query import tail
from hybrid.query.engine import QueryOptions, _bounded_tail
from hybrid.query.tail import KafkaTail, NoTail, _Reader
from hybrid.sql.statement import parse_statement
from hybrid.table.boundary import PartitionKey

KEY = PartitionKey("kafka", "orders", 0, 0)
BIG = 1_000_000


class Endless:
    """A partition whose messages have a megabyte each; `pause_s` before each ten of them."""

    def __init__(self, pause_s: float = 0.0) -> None:
        self._next, self._pause_s = 0, pause_s

    def assign(self, _: object) -> None:
        pass

    def seek(self, _: object, offset: int) -> None:
        self._next = offset

    def poll(self, **_: object) -> dict[Part, list[Any]]:
        time.sleep(self._pause_s)
        start, self._next = self._next, self._next + 10
        return {
            Part("orders", 0): [
                SimpleNamespace(offset=offset, timestamp=offset, value=b"x" * BIG)
                for offset in range(start, self._next)
            ]
        }

    def position(self, _: object) -> int:
        return self._next

    def pause(self, _: object) -> None:
        pass

    def close(self, **_: object) -> None:
        pass


def read(monkeypatch: pytest.MonkeyPatch, consumer: Endless, bytes_max: int, seconds: float) -> tail.Tail:
    monkeypatch.setattr(tail, "_consumer", lambda *_: consumer)
    reader = _Reader({KEY: (0, 10**9)}, 10**9, bytes_max, time.monotonic() + seconds, with_headers=False)
    return reader.read("b:1", SimpleNamespace())  # type: ignore[arg-type]


def test_a_long_tail_is_read_up_to_a_bound_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """21: two million messages may be of any size."""
    found = read(monkeypatch, Endless(), 50 * BIG, 60)
    assert 50 <= len(found.messages) <= 60
    assert "The tail is too long for one query" in found.warnings[0]
    assert found.positions == {KEY: len(found.messages)}, "the revision says how far"


def test_a_slow_tail_is_read_up_to_its_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    started = time.monotonic()
    found = read(monkeypatch, Endless(0.05), 10**12, 0.3)
    assert time.monotonic() - started < 1 and found.messages and "left out" in found.warnings[0]


def test_the_tail_has_half_of_the_statements_time() -> None:
    """21 and 4: also of one that is only explained."""
    started = time.monotonic()
    statement = parse_statement("SET timeoutMs = 4000; select 1 from orders")
    for options, ends in ((QueryOptions(timeout_ms=10_000), 2.0), (QueryOptions(timeout_max_ms=1000), 0.5)):
        bounded = _bounded_tail(statement, options, started)
        assert isinstance(bounded, KafkaTail) and bounded._until == pytest.approx(started + ends)
    unbounded = QueryOptions()
    assert _bounded_tail(parse_statement("select 1 from orders"), unbounded, started) is unbounded.tail
    other = NoTail()
    assert _bounded_tail(statement, QueryOptions(tail=other), started) is other
