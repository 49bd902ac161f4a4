"""A statement has one time, whichever ways it goes, and an interrupt that comes too early is said again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.query import execution
from hybrid.query.deadline import deadline
from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import NoTail
from tests.query.halves import Halves, orders_spec


def test_an_interrupt_is_said_until_the_block_ends() -> None:
    said: list[float] = []
    with deadline(time.monotonic(), lambda: said.append(time.monotonic())):
        while len(said) < 3:
            time.sleep(0.005)
    ended = len(said)
    with deadline(time.monotonic() + 3600, lambda: None), deadline(None, lambda: said.clear()):
        time.sleep(0.1)
    assert len(said) == ended


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
    cache: Any = SimpleNamespace(answer=answer, note=lambda revision: None)
    halves = Halves.create(tmp_path, orders_spec())
    run("select 1 from orders", halves, QueryOptions(timeout_ms=60_000, tail=NoTail(), cache=cache))
    (at,) = ends
    assert at is not None and at <= asked[0] + 60
