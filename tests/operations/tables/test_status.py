"""The status of tables: rows that a query sees, rows that are stored twice, bytes."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.cli.main import run
from hybrid.config.table_config import Half
from hybrid.errors import QueryError
from hybrid.jvm.process import Process
from hybrid.operations.queries import Queries
from hybrid.operations.tables import visible_rows
from hybrid.operations.tables.status import status_of_all, stored_bytes
from hybrid.operations.tables.visible_rows import RowCount, VisibleRows
from hybrid.query.tail import KafkaTail, NoTail
from hybrid.query.visible_count import VisibleCount
from hybrid.rpc.client import SERVER_FILE
from hybrid.table.boundary import Boundary
from tests.query.halves import KEY, Halves
from tests.serve.app import CONSUMING, lay_orders, row


@pytest.fixture
def hy(home: Path) -> Hybrid:
    found = hybrid.connect(home)
    home.mkdir(exist_ok=True)
    return found


@pytest.fixture
def orders(hy: Hybrid) -> Halves:
    """Two rows were moved and are in both halves; two others wait for a move."""
    return lay_orders(hy)


def figures(hy: Hybrid) -> tuple[int | None, int, int, int]:
    (found,) = hy.status()
    return found.visible_rows, found.offline_rows, found.realtime_rows, found.stored_twice_rows


@pytest.mark.slow
def test_rows_that_a_query_sees_are_told_from_rows_that_are_stored(hy: Hybrid, orders: Halves) -> None:
    assert figures(hy) == (4, 2, 4, 2)
    assert hy.query("select count(*) from orders").rows[0][0] == 4
    orders.commit_offline([row(3, 3000, 2, "orders_3000_4000_0"), row(4, 4000, 3, "orders_3000_4000_0")])
    orders.commit_offline([], Boundary(4001, {KEY: 4}))
    assert figures(hy) == (4, 4, 4, 4)


@pytest.mark.slow
def test_of_a_file_of_which_some_rows_have_moved_these_are_counted(hy: Hybrid, orders: Halves) -> None:
    orders.commit_offline([row(3, 3000, 2, "orders_3000_3000_0")], Boundary(3001, {KEY: 4}))
    (found,) = hy.status()
    assert figures(hy) == (4, 3, 4, 3)
    files = {
        CONSUMING in str(path): path.stat().st_size for path in (orders.layout.root / "REALTIME").rglob("*.parquet")
    }
    assert found.stored_twice_bytes == files[False] + files[True] // 2
    assert status_of_all(hy.context)[0].stored_twice_rows is None, "by statistics alone it is not known"
    late = VisibleRows(hy.context, hy._queries, all_s=0)
    assert status_of_all(hy.context, late)[0].stored_twice_rows is None


@pytest.mark.slow
def test_moved_rows_count_by_offset_as_well_as_time(hy: Hybrid, orders: Halves) -> None:
    """A late row, beyond the frontier, has not moved though its time lies before the boundary."""
    orders.commit_realtime([row(5, 1500, 4, CONSUMING), row(6, 3000, 5, CONSUMING)], offsets={KEY: 6})
    assert figures(hy) == (6, 2, 6, 2)
    orders.commit_offline([row(5, 1500, 4, "orders_1500_1500_0")], Boundary(2001, {KEY: 5}))
    assert figures(hy) == (6, 3, 6, 3)


def test_bytes_are_those_of_the_data_files(hy: Hybrid, orders: Halves) -> None:
    (found,) = hy.status()
    files = [*orders.layout.root.rglob("*.parquet")]
    twice = [path for path in files if "REALTIME" in path.parts and CONSUMING not in str(path)]
    assert found.bytes == sum(path.stat().st_size for path in files) == stored_bytes(hy.context, "orders")
    assert found.stored_twice_bytes == sum(path.stat().st_size for path in twice)


def test_the_page_of_a_server_counts_nothing(hy: Hybrid, orders: Halves) -> None:
    assert status_of_all(hy.context)[0].visible_rows is None


def divide(orders: Halves) -> None:
    """Moves one of the two rows of a file, so that statistics do not tell how many of them a query sees."""
    orders.commit_offline([row(3, 3000, 2, "orders_3000_3000_0")], Boundary(3001, {KEY: 4}))


def refuse(*_: Any) -> Any:
    raise QueryError("The statement took longer than 3 s.")


@pytest.mark.slow
def test_committed_rows_are_counted_without_a_statement(
    hy: Hybrid, orders: Halves, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Queries, "query", refuse)
    with monkeypatch.context() as patched:
        patched.setattr(VisibleCount, "by_reading", refuse)
        assert figures(hy) == (4, 2, 4, 2)
    divide(orders)
    assert figures(hy) == (4, 3, 4, 3)


@pytest.mark.slow
def test_what_cannot_be_counted_is_left_open_with_the_reason(
    hy: Hybrid, orders: Halves, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    divide(orders)
    monkeypatch.setattr(VisibleCount, "by_reading", lambda *_: None)
    assert figures(hy) == (4, 3, 4, 3), "by a query"
    monkeypatch.setattr(Queries, "query", refuse)
    assert figures(hy) == (None, 3, 4, 3)
    capsys.readouterr()
    assert run(["--home", str(hy.home), "status"]) == 3, "no broker is here"
    said = "visible_rows of 'orders' is not known: The statement took longer than 3 s."
    assert said in capsys.readouterr().err.splitlines()


@pytest.mark.slow
def test_a_commit_between_the_halves_is_seen(hy: Hybrid, orders: Halves) -> None:
    table = hy.context.table("orders").pinned()
    table.half(Half.OFFLINE)
    orders.commit_offline([row(3, 3000, 2, "orders_3000_4000_0"), row(4, 4000, 3, "orders_3000_4000_0")])
    orders.commit_offline([], Boundary(4001, {KEY: 4}))
    assert VisibleRows(hy.context, hy._queries).count(table, None) == RowCount(4)


@pytest.mark.slow
def test_all_counts_share_their_time(hy: Hybrid, orders: Halves, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[Any] = []
    real = Queries.query

    def query(self: Queries, sql: str, options: Any) -> Any:
        limits.append(options)
        return real(self, sql, options)

    divide(orders)
    table = hy.context.table("orders").pinned()
    monkeypatch.setattr(Queries, "query", query)
    monkeypatch.setattr(VisibleCount, "by_reading", lambda *_: None)
    counts = VisibleRows(hy.context, hy._queries, all_s=60)
    unknown, known = counts.count(table, behind=1), counts.count(table, behind=None)
    assert (unknown.rows, known) == (None, RowCount(4)) and unknown.reason is not None
    assert limits[0].began == limits[1].began and limits[0].timeout_ms == limits[1].timeout_ms == 60_000
    assert isinstance(limits[0].tail, KafkaTail) and isinstance(limits[1].tail, NoTail)
    began = time.monotonic()
    monkeypatch.setattr(visible_rows.time, "monotonic", lambda: began + 61)
    late = RowCount(None, "all tables together were not counted within 60 s")
    assert counts.count(table, behind=None) == late and len(limits) == 2


def test_bytes_in_lists(hy: Hybrid, orders: Halves, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--home", str(hy.home), "table", "list", "--json"]
    assert run(words) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert list(listed)[-1] == "bytes" and listed["bytes"] == stored_bytes(hy.context, "orders")
    for path in (orders.layout.root / "OFFLINE" / "_delta_log").iterdir():
        path.unlink()
    assert run(words) == 0
    assert json.loads(capsys.readouterr().out)[0]["bytes"] is None


def test_status_names_the_server_and_its_process(
    hy: Hybrid, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hybrid.cli.status.ask", lambda *_: {"home": str(hy.home), "tables": [], "healthy": True})
    own, words = Process.of(os.getpid()), ["--home", str(hy.home), "status"]
    assert own is not None and run(words) == 0
    assert "server:" not in capsys.readouterr().err
    own.save(hy.home / SERVER_FILE, url="http://127.0.0.1:9000")
    assert run(words) == 0
    assert f"server: http://127.0.0.1:9000 (process {own.pid})\n" in capsys.readouterr().err
    assert run([*words, "--server", "http://localhost:9000"]) == 0
    assert f"server: http://localhost:9000 (process {own.pid})\n" in capsys.readouterr().err
    assert run([*words, "--server", "http://10.0.0.1:9000"]) == 0
    assert "server: http://10.0.0.1:9000\n" in capsys.readouterr().err
