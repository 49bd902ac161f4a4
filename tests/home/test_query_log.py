"""The query log: written beside the statements, bounded in memory and on disk, and honest about what it dropped."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.errors import BusyError, QueryError, UsageError
from hybrid.home import query_log
from hybrid.home.accounts import ASKING_ACCOUNT, ASKING_RIGHT, Right
from hybrid.home.home import Home
from hybrid.home.query_log import EndedQuery
from hybrid.operations.query_list import LoggedQuery, QueryFilter, list_queries
from hybrid.progress import Silent
from hybrid.runtime.rotated_file import RotatedFile

DAY_MS = 86_400_000


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Home]]:
    """Opens the same home again and again, with settings."""
    (tmp_path / "home").mkdir()
    opened: list[Home] = []

    def open_home(**settings: object) -> Home:
        for name, value in settings.items():
            monkeypatch.setenv(f"HYBRID_{name.upper()}", str(value).lower())
        opened.append(Home(load_settings(home=tmp_path / "home"), Silent()))
        return opened[-1]

    yield open_home
    for one in opened:
        one.close()


def ended(sql: str = "select 1", took_s: float = 0.001, **more: Any) -> EndedQuery:
    now_ms = time.time_ns() // 1_000_000
    return EndedQuery(**{
        "id": "id", "sql": sql, "account": None, "client": "test", "ended_ms": now_ms, "took_s": took_s,
        "state": "DONE", **more,
    })  # fmt: skip


@contextmanager
def seeing(account: str, right: Right) -> Iterator[None]:
    name, kind = ASKING_ACCOUNT.set(account), ASKING_RIGHT.set(right)
    try:
        yield
    finally:
        ASKING_RIGHT.reset(kind)
        ASKING_ACCOUNT.reset(name)


def listed(home: Home, **wanted: Any) -> list[LoggedQuery]:
    return list_queries(home, QueryFilter(**wanted))


def texts(home: Home, **wanted: Any) -> list[str]:
    return [entry.statement for entry in listed(home, **wanted)]


def test_a_statement_is_in_the_file_a_moment_later_and_after_a_restart(home: Callable[..., Home]) -> None:
    first = home()
    first.query_log.add(ended("select 1", rows=3, details=lambda: {"source": "files", "tables": ["orders"]}))
    path = first.settings.logs / "queries.log"
    until = time.monotonic() + 10
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.02)
    (record,) = map(json.loads, path.read_text().splitlines())
    assert (record["statement"], record["rows"], record["source"]) == ("select 1", 3, "files")
    assert path.stat().st_mode & 0o077 == 0
    first.close()
    (entry,) = listed(home())
    assert (entry.state, entry.tables, entry.slow) == ("DONE", ("orders",), False)


def test_states_follow_from_errors(home: Callable[..., Home]) -> None:
    one = home()
    errors: list[BaseException] = [
        QueryError("no", pinot_code=710),
        QueryError("gone", pinot_code=503),
        KeyboardInterrupt(),
        BusyError("full"),
        QueryError("full", pinot_code=429),
        ZeroDivisionError("what"),
        UsageError("usage"),
    ]
    for number, error in enumerate(errors):
        with suppress(BaseException), one.query_log.recorded(f"select {number}", "test"):
            raise error
    found = [(entry.state, entry.code) for entry in reversed(listed(one))]
    assert found == [
        ("FAILED", 710), ("CANCELLED", 503), ("CANCELLED", 503), ("REFUSED", 429), ("REFUSED", 429), ("FAILED", None),
        ("FAILED", 200),
    ]  # fmt: skip
    assert all(entry.error for entry in listed(one)) and one.query_log.running.list() == []


def test_running_statements_come_first(home: Callable[..., Home]) -> None:
    one = home(slow_query_ms=0)
    one.query_log.add(ended("select 'before'"))
    with one.query_log.recorded("select 'now' from orders", "cli"):
        running, before = listed(one)
        assert (running.state, running.statement, running.client) == ("RUNNING", "select 'now' from orders", "cli")
        assert running.slow and running.rows is None and before.statement == "select 'before'"
        assert texts(one, table="orders") == ["select 'now' from orders"] and len(listed(one, limit=1)) == 1


def test_slow_ones_are_marked_and_displaced_by_nothing(home: Callable[..., Home]) -> None:
    one = home(slow_query_ms=500, query_log_bytes=40_000)
    one.query_log.add(ended("select 'slow'", took_s=0.5))
    for number in range(1000):
        one.query_log.add(ended(f"select {number}"))
        if not number % 100:
            one.query_log.flush()
    assert texts(one, slow=True) == ["select 'slow'"]
    shown = texts(one, limit=10_000)
    assert shown[0] == "select 999" and 50 < len(shown) < 400 and shown[-1] == "select 'slow'"
    size = sum(path.stat().st_size for path in one.settings.logs.glob("*queries.log*"))
    assert size <= 40_000
    assert texts(home(slow_query_ms=1000), slow=True) == [], "the limit of now counts"


def test_filters(home: Callable[..., Home]) -> None:
    one, now_ms = home(), time.time_ns() // 1_000_000
    log = one.query_log
    log.add(ended("select a", ended_ms=now_ms - 3 * 3_600_000, account="ada"))
    log.add(ended("select b", ended_ms=now_ms - 60_000, account="bob", details=lambda: {"tables": ["orders"]}))
    log.add(ended("select nope from Orders_OFFLINE", state="FAILED", account="ada"))
    log.add(ended("select nope from reorders", state="FAILED"))
    assert texts(one, since="2h") == ["select nope from reorders", "select nope from Orders_OFFLINE", "select b"]
    assert texts(one, account="ada") == ["select nope from Orders_OFFLINE", "select a"]
    assert texts(one, table="orders") == ["select nope from Orders_OFFLINE", "select b"]
    assert texts(one, limit=1) == ["select nope from reorders"]
    for wanted in ({"limit": 0}, {"limit": 10_001}, {"since": "later"}):
        with pytest.raises(UsageError):
            listed(one, **wanted)


def test_an_account_that_may_only_read_sees_its_own(home: Callable[..., Home]) -> None:
    one = home()
    for account in ("ada", "bob", None):
        one.query_log.add(ended(f"select '{account}'", account=account))
    one.query_log._untold = 3
    every = ["select 'bob runs'", "select 'None'", "select 'bob'", "select 'ada'"]
    with seeing("bob", Right.READ), one.query_log.recorded("select 'bob runs'", "test"):
        assert texts(one) == ["select 'bob runs'", "select 'bob'"]
        with seeing("ada", Right.READ):
            assert texts(one) == texts(one, account="ada") == ["select 'ada'"] and texts(one, account="bob") == []
        for right in (Right.OPERATE, Right.ADMIN):
            with seeing("eve", right):
                assert [text for text in texts(one) if "not logged" not in text] == every and len(texts(one)) == 5


def test_what_memory_has_no_room_for_is_counted(home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch) -> None:
    one = home()
    monkeypatch.setattr(query_log._WRITER, "wake", lambda log: None)
    one.query_log.waiting_max = 10
    for number in range(25):
        one.query_log.add(ended(f"select {number}"))
    dropped, *others = listed(one)
    assert one.query_log.dropped == 15 and (dropped.state, dropped.rows) == ("DROPPED", 15)
    assert "15 statements were not logged" in dropped.statement and len(others) == 10
    one.query_log.waiting_characters_max = 100
    for _ in range(3):
        one.query_log.add(ended("x" * 60))
    assert one.query_log.dropped == 16 and listed(one)[0].rows == 1
    assert [entry.rows for entry in listed(one) if entry.state == "DROPPED"] == [1, 15], "each is told once"


def test_a_disk_that_is_full_stops_no_statement(home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch) -> None:
    one = home()
    with monkeypatch.context() as full:
        full.setattr(RotatedFile, "append", _refuse)
        for number in range(5):
            one.query_log.add(ended(f"select {number}"))
        one.query_log.flush()
        assert one.query_log.dropped == 5 and listed(one) == []
    one.query_log.add(ended("select 'after'"))
    assert [(entry.state, entry.rows) for entry in listed(one)] == [("DROPPED", 5), ("DONE", None)]


def test_a_statement_that_cannot_be_written_costs_no_other(home: Callable[..., Home]) -> None:
    one = home()
    one.query_log.add(ended("select 1", details=lambda: 1 / 0))  # type: ignore[arg-type, return-value]
    one.query_log.add(ended("select 2"))
    assert [(entry.state, entry.rows) for entry in listed(one)] == [("DROPPED", 1), ("DONE", None)]


def test_a_torn_write_counts_the_lines_that_are_lost(
    home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, really = home(), os.write
    with monkeypatch.context() as torn:
        torn.setattr(
            os, "write", lambda descriptor, lines: really(descriptor, lines[:-10] if len(lines) > 200 else lines)
        )
        for number in range(6):
            one.query_log.add(ended(f"select {number}"))
        one.query_log.flush()
    assert one.query_log.dropped == 1
    assert [(entry.state, entry.rows) for entry in listed(one)] == [("DROPPED", 1), *5 * [("DONE", None)]]


def test_values_are_left_out_on_request(home: Callable[..., Home]) -> None:
    one = home(query_log_values=False)
    sql = "select 'it''s', 17 -- for Ada\nfrom orders where name = 'Ada' and \"id\" in (1, 2) limit 5"
    bare = 'select ? , ? from orders where name = ? and "id" in ( ? , ? ) limit ?'
    with one.query_log.recorded(sql, "test") as record:
        assert texts(one) == [bare]
        record.answered(1, dict)
    with pytest.raises(QueryError), one.query_log.recorded("select 'open", "test"):
        raise QueryError("No column 'Ada'.", pinot_code=710)
    long = f"select '{'x' * 20_000}'"
    with pytest.raises(QueryError), one.query_log.recorded(long, "test"):
        raise QueryError("No 'xxx'.")
    one.query_log.flush()
    written = (one.settings.logs / "queries.log").read_text()
    assert "Ada" not in written and "xxx" not in written
    found = texts(one)
    assert found[0] == f"(a statement of {len(long)} characters)"
    assert found[1:] == ["(a statement of 12 characters that cannot be read)", bare] and listed(one)[1].error is None


def test_a_long_statement_is_cut(home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch) -> None:
    one = home()
    monkeypatch.setattr(query_log._WRITER, "wake", lambda log: None)
    with one.query_log.recorded("select '" + "ä" * 1_000_000 + "'", "test") as record:
        assert len(texts(one)[0]) == 10_003
        record.answered(1, dict)
        assert len(one.query_log._waiting[0].sql) == 10_000
    (text,) = texts(one)
    assert len(text) == 10_003 and text.endswith("ä...")


def test_any_text_is_one_line(home: Callable[..., Home]) -> None:
    one = home()
    for sql in ("select 1\n\nfrom \u2028 t\r\n", "select '\ud800'", "", "select '\x00'"):
        one.query_log.add(ended(sql))
    assert len(texts(one)) == 4 and texts(one)[3] == "select 1\n\nfrom \u2028 t\r\n"


def test_it_can_be_switched_off(home: Callable[..., Home]) -> None:
    one = home(query_log_bytes=0)
    one.query_log.add(ended())
    assert listed(one) == [] and not one.settings.logs.exists() and one.query_log.dropped == 0


def test_it_makes_no_home(tmp_path: Path) -> None:
    one = Home(load_settings(home=tmp_path / "none"), Silent())
    with suppress(ValueError), one.query_log.recorded("select 1", "cli"):
        raise ValueError
    one.close()
    assert not (tmp_path / "none").exists()


def test_old_statements_are_left_out_before_their_file_goes(home: Callable[..., Home]) -> None:
    one, now_ms = home(query_log_days=2), time.time_ns() // 1_000_000
    one.query_log.add(ended("select 'old'", ended_ms=now_ms - 3 * DAY_MS))
    one.query_log.add(ended("select 'new'", ended_ms=now_ms - DAY_MS))
    assert texts(one) == ["select 'new'"]


def test_foreign_lines_are_passed_over(home: Callable[..., Home]) -> None:
    one = home()
    one.query_log.add(ended())
    one.query_log.flush()
    with (one.settings.logs / "queries.log").open("a") as file:
        file.write('{"ts": "no time", "ms": "x"}\nnothing\n{"ts": "2999-01-01T00:00:00Z", "ms": null}\n')
    assert texts(one) == ["select 1"]


def test_all_threads_write_and_nothing_is_lost(home: Callable[..., Home]) -> None:
    one = home()

    def ask(first: int) -> None:
        for number in range(first, first + 200):
            with one.query_log.recorded(f"select {number}", "test") as record:
                record.answered(1, dict)

    threads = [threading.Thread(target=ask, args=(1000 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(texts(one, limit=10_000))) == 800


def test_a_statement_pays_little(home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch) -> None:
    """Small statements take 1 to 2 ms: 2 % of that are 20 to 40 microseconds, and this runs on busy machines."""
    one = home()
    monkeypatch.setattr(query_log._WRITER, "wake", lambda log: None)
    best_s = float("inf")
    for _ in range(5):
        began = time.thread_time()
        for _ in range(500):
            query_log.QueryRecord(one.query_log, "select 1", id="1", account=None, client="x").answered(1, dict)
        best_s = min(best_s, (time.thread_time() - began) / 500)
        one.query_log._waiting.clear()
    assert best_s < 20e-6


@pytest.mark.slow
def test_a_cancelled_statement_of_python(home: Callable[..., Home]) -> None:
    """`aquery` interrupts its statement, whose error says so."""
    hy = Hybrid.of(home())
    sql = "with recursive r(n) as (select 1 union all select n + 1 from r) select max(n) from r"

    async def cancelled() -> None:
        task = asyncio.create_task(hy.aquery(sql))
        while not hy.queries():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    (entry,) = hy.queries()
    assert (entry.state, entry.code, entry.client, entry.statement) == ("CANCELLED", 503, "python", sql)


def test_the_log_of_a_closed_home_can_be_used_again(home: Callable[..., Home]) -> None:
    one = home()
    one.close()
    one.query_log.add(ended("select 'after'"))
    one.query_log.flush()
    assert texts(home()) == ["select 'after'"]


def _refuse(file: RotatedFile, lines: bytes) -> int:
    raise OSError("No space left on device")
