"""All statements over files share one bound of memory: sixteen that may take a gigabyte each do not take sixteen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import QueryError
from hybrid.query import engine
from hybrid.query.database_pool import DatabasePool
from hybrid.query.memory_budget import MemoryBudget, default_total
from tests.query.halves import Halves, Row, orders_spec

MIB = 1024**2


def test_the_sum_never_is_more_than_the_budget() -> None:
    """5: each has half of what is left, the first as much as it may take."""
    budget, granted = MemoryBudget(2048 * MIB), list[int]()
    with ExitStack() as stack:
        for _ in range(5):
            granted.append(stack.enter_context(budget.share(1024 * MIB)))
        assert granted == [1024 * MIB, 512 * MIB, 256 * MIB, 128 * MIB, 64 * MIB]
        sixth = stack.enter_context(budget.share(1024 * MIB))
        assert sum(granted) + sixth <= 2048 * MIB
        late = budget.share(1024 * MIB, time.monotonic() + 0.05)
        with pytest.raises(QueryError, match="took all memory") as raised:
            stack.enter_context(late)
        assert raised.value.pinot_code == 250
    with budget.share(None) as again:
        assert again == 1024 * MIB, "all of it came back"


def test_who_waits_goes_on_when_another_ends() -> None:
    budget, got = MemoryBudget(64 * MIB), threading.Event()

    def wait() -> None:
        with budget.share(MIB * 64, time.monotonic() + 10):
            got.set()

    thread = threading.Thread(target=wait)
    with budget.share(None):
        thread.start()
        assert not got.wait(0.1)
    assert got.wait(5)
    thread.join()


@pytest.mark.slow
def test_a_statement_over_files_takes_its_share(
    tmp_path: Path, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    halves = Halves.create(tmp_path, orders_spec())
    halves.commit_realtime([Row({"order_id": 1, "customer": "a", "amount": 1.0, "ts": 1}, 0, 1)])
    budget, seen = MemoryBudget(256 * MIB), list[object]()
    pool = engine.databases

    class Noted(DatabasePool):
        def connection(self, folders: Any, bytes_max: int | None = None, spill: Path | None = None) -> Any:
            seen.append(bytes_max)
            return pool.connection(folders, bytes_max, spill)

    monkeypatch.setattr(engine, "databases", Noted())
    for _ in range(2):
        assert ask(halves, "select count(*) from orders", budget=budget, memory_bytes=1024 * MIB).rows == [(1,)]
    assert seen == [128 * MIB] * 2, "given back at the end"
    with pytest.raises(QueryError):
        ask(halves, "select nosuch from orders", budget=budget)
    with budget.share(None) as left:
        assert left == 128 * MIB
    assert default_total() > 64 * MIB
