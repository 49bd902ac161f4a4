"""Pinot's default LIMIT in Python, and statements of `asyncio` tasks."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.background_query import Cancellation, run_in_background
from hybrid.api.hybrid import Hybrid
from hybrid.errors import QueryError
from hybrid.query.engine import QueryOptions
from hybrid.rpc.verbs import VERBS
from tests.serve.app import OFFLINE, SCHEMA, lay_orders


@pytest.fixture
def hy(tmp_path: Path) -> Iterator[Hybrid]:
    with hybrid.connect(tmp_path / "home") as opened:
        lay_orders(opened)
        yield opened


MANY = "select a.order_id, b.order_id from orders a cross join orders b"  # 16 rows


def test_a_cut_result_gives_a_python_warning(hy: Hybrid) -> None:
    with pytest.warns(hybrid.ResultLimitWarning, match="first 10 rows.*all_rows=True") as found:
        assert len(hy.query(MANY)) == 10
    assert [warning.filename for warning in found] == [__file__]  # the caller's line


@pytest.mark.slow
def test_no_warning_where_nothing_is_cut(hy: Hybrid) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(hy.query(MANY, all_rows=True)) == 16
        assert len(hy.query(f"{MANY} limit 5")) == 5
        assert len(hy.query("select * from orders")) == 4
        assert len(hy.query(MANY, options=QueryOptions())) == 10  # a server has its own place for notes
        assert len(VERBS["query"].call(hy, sql=MANY)["rows"]) == 10
        assert len(VERBS["query"].call(hy, sql=MANY, all_rows=True)["rows"]) == 16


@pytest.mark.slow
def test_a_warning_can_be_made_an_error_or_ignored(hy: Hybrid) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", hybrid.ResultLimitWarning)
        with pytest.raises(hybrid.ResultLimitWarning):
            hy.query(MANY)
        warnings.simplefilter("ignore", hybrid.ResultLimitWarning)
        assert len(hy.query(MANY)) == 10


@pytest.mark.slow
def test_a_statement_is_awaited(hy: Hybrid) -> None:
    async def both() -> list[Any]:
        found = await asyncio.gather(hy.aquery("select count(*) from orders"), hy.aquery(MANY, all_rows=True))
        return [list(found[0]), len(found[1])]

    assert asyncio.run(both()) == [[(4,)], 16]
    with pytest.raises(QueryError, match="does not exist"):
        asyncio.run(hy.aquery("select * from nothing"))
    with pytest.warns(hybrid.ResultLimitWarning):
        asyncio.run(hy.aquery(MANY))


@pytest.mark.slow
def test_a_cancelled_task_interrupts_its_statement(hy: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    began, ended = threading.Event(), list[BaseException]()
    take = Cancellation.began

    def note(self: Cancellation, interrupt: Any) -> None:
        take(self, interrupt)
        began.set()

    answer = type(hy._queries).query

    def query(*arguments: Any, **options: Any) -> Any:
        try:
            return answer(*arguments, **options)
        except QueryError as error:
            ended.append(error)
            raise

    monkeypatch.setattr(Cancellation, "began", note)
    monkeypatch.setattr(type(hy._queries), "query", query)
    power = " cross join ".join(f"orders t{number}" for number in range(14))  # 4 ** 14 rows

    async def cancelled() -> None:
        task = asyncio.create_task(hy.aquery(f"select sum(t0.amount * t1.amount + t13.amount) from {power}"))
        await asyncio.to_thread(began.wait, 60)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancelled(), 60))  # `run` waits for the thread: it ends because of the interrupt
    assert ["cancelled" in str(error) for error in ended] == [True]


def test_a_cancellation_reaches_a_statement_that_begins_later() -> None:
    begins, interrupted = threading.Event(), threading.Event()

    def work(cancellation: Cancellation) -> None:
        begins.wait(10)
        cancellation.began(interrupted.set)

    async def cancelled() -> None:
        task = asyncio.create_task(run_in_background(work))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        begins.set()

    asyncio.run(cancelled())
    assert interrupted.wait(10)


def test_a_statement_that_begins_again_is_interrupted_again() -> None:
    cancellation, calls = Cancellation(), list[int]()
    cancellation.began(lambda: calls.append(1))
    cancellation.began(lambda: calls.append(2))
    cancellation.cancel()
    cancellation.began(lambda: calls.append(3))
    assert calls == [2, 3]


def test_a_table_of_one_half_has_no_drawing(tmp_path: Path) -> None:
    with hybrid.connect(tmp_path / "home") as opened:
        opened.create_table(SCHEMA, OFFLINE)
        assert "<svg" not in opened.table("orders")._repr_html_()
