"""A database that serves one statement after the other gives each what a new one would give it, and no more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb
import pytest

from hybrid.query.connection import locked_connection
from hybrid.query.database_pool import DatabasePool

MIB = 1024**2


class Started:
    """A clock (s), and the databases that were started, with their terms."""

    def __init__(self) -> None:
        self.now, self.terms, self.connections = 0.0, list[tuple[Any, ...]](), list[duckdb.DuckDBPyConnection]()

    def start(self, *terms: Any) -> duckdb.DuckDBPyConnection:
        self.terms.append(terms)
        self.connections.append(locked_connection(*terms))
        return self.connections[-1]

    def are_open(self) -> list[bool]:
        return [is_open(connection) for connection in self.connections]


def is_open(connection: duckdb.DuckDBPyConnection) -> bool:
    try:
        connection.execute("select 1")
    except duckdb.ConnectionException:
        return False
    return True


@pytest.fixture
def started() -> Started:
    return Started()


@pytest.fixture
def pool(started: Started) -> Iterator[DatabasePool]:
    pool = DatabasePool(2, 10.0, lambda: started.now, started.start)
    yield pool
    pool.close()
    assert not any(started.are_open())


def ask(pool: DatabasePool, sql: str, *terms: Any) -> list[tuple[Any, ...]]:
    with pool.connection(*terms) as connection:
        return connection.execute(sql).fetchall()


def test_statements_with_the_same_terms_follow_each_other_in_one(
    pool: DatabasePool, started: Started, tmp_path: Path
) -> None:
    terms = ([tmp_path], 64 * MIB, tmp_path / "spill")
    for _ in range(3):
        ((limit, zone),) = ask(pool, "select current_setting('memory_limit'), current_setting('TimeZone')", *terms)
        assert (limit, zone) == ("64.0 MiB", "UTC")
    assert len(started.terms) == 1
    for others in (([tmp_path / "a"], *terms[1:]), (terms[0], 65 * MIB, terms[2]), (*terms[:2], None)):
        ask(pool, "select 1", *others)
    assert started.terms[1:] == [((tmp_path / "a",), *terms[1:]), ((tmp_path,), 65 * MIB, terms[2]),
                                 ((tmp_path,), 64 * MIB, None)]  # fmt: skip
    assert started.are_open() == [False, False, True, True], "the last two wait"


def test_one_that_serves_a_statement_serves_no_other(pool: DatabasePool, started: Started) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(pool.connection([])) for _ in range(3)]
        assert len(started.terms) == 3
        assert [connection.execute("select 1").fetchall() for connection in connections] == [[(1,)]] * 3
    assert started.are_open().count(True) == 2


def test_what_a_statement_leaves_is_gone(pool: DatabasePool, started: Started) -> None:
    with pool.connection([]) as connection:
        for made in ("table t as select 42 as x", "view v as select x from t", "macro m(a) as a + 1"):
            connection.execute(f"create temp {made}")
        connection.execute("prepare p as select 1")
        before = connection
    assert not is_open(before)
    with pytest.raises(duckdb.ConnectionException):
        before.interrupt()  # whoever was to stop the statement comes late
    with pool.connection([]) as connection:
        for sql in ("select * from t", "select * from v", "select m(1)", "execute p"):
            with pytest.raises(duckdb.Error):
                connection.execute(sql)
        assert connection.execute("select sum(range) from range(100000)").fetchall() == [(4999950000,)]
    assert len(started.terms) == 1


def test_its_settings_stay_locked(pool: DatabasePool, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    for folder in ("open", "."):
        (tmp_path / folder / "a.csv").write_text("x\n1\n", encoding="utf-8")
    for _ in range(2):
        with pool.connection([tmp_path / "open"]) as connection:
            assert connection.execute(f"select * from '{tmp_path}/open/a.csv'").fetchall() == [(1,)]
            for sql in (f"select * from '{tmp_path}/a.csv'", "set memory_limit = '1 GB'", "load httpfs"):
                with pytest.raises(duckdb.Error):
                    connection.execute(sql)


def test_one_in_which_a_statement_failed_serves_no_other(pool: DatabasePool, started: Started) -> None:
    with pytest.raises(duckdb.Error), pool.connection([]) as connection:
        connection.execute("select nosuch")
    assert started.are_open() == [False]
    ask(pool, "select 1", [])
    assert started.are_open() == [False, True]


def test_one_ends_some_time_after_its_start(pool: DatabasePool, started: Started) -> None:
    ask(pool, "select 1", [])
    started.now = 9.9
    ask(pool, "select 1", [])
    assert len(started.terms) == 1
    started.now = 10.0
    ask(pool, "select 1", [])
    assert started.are_open() == [False, True]


def test_one_that_has_spilled_serves_no_other(pool: DatabasePool, started: Started, tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    with pool.connection([], 48 * MIB, spill) as connection:
        connection.execute("create temp table t as select md5(range::varchar) as digest from range(2000000)")
        assert sum(path.stat().st_size for path in spill.rglob("*")) > MIB
    assert started.are_open() == [False] and [*spill.rglob("*")] == []


@pytest.mark.process
def test_a_forked_process_starts_its_own() -> None:
    from hybrid.query.database_pool import databases

    assert ask(databases, "select 1", []) == [(1,)]
    process = os.fork()
    if process == 0:
        os._exit(0 if ask(databases, "select 1", []) == [(1,)] else 1)
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert ask(databases, "select 1", []) == [(1,)]


def test_statements_of_many_threads(pool: DatabasePool, started: Started) -> None:
    rows = list[list[tuple[Any, ...]]]()
    threads = [
        Thread(target=lambda: rows.extend(ask(pool, "select 1", []) for _ in range(20)), daemon=True) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows == [[(1,)]] * 80 and len(started.terms) <= 40 and started.are_open().count(True) <= 2
