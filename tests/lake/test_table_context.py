"""`TableContext` acts on the table that it names, with the newest definition where one is asked for."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import OvertakenError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.lock import last_holder
from hybrid.lake.table_context import TableContext
from hybrid.progress import Silent
from tests.query.halves import Halves, orders_spec


@pytest.fixture
def halves(tmp_path: Path) -> Halves:
    return Halves.create(tmp_path, orders_spec())


@pytest.fixture
def table(halves: Halves) -> TableContext:
    def no_spark() -> Any:
        raise AssertionError("no JVM is needed")

    return halves.context(CommitContext(no_spark, lambda: 0, Silent()))


def test_it_takes_the_newest_definition(table: TableContext) -> None:
    newer = replace(table.spec, boundary_lag_ms=1)
    assert table.renewed(None) is table
    assert table.renewed(lambda: newer) == TableContext(table.bench, newer, table.layout)


def test_it_reads_locks_and_stages_its_own_table(
    table: TableContext, halves: Halves, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.lake.spark.is_running", lambda: False)  # other tests of this process may have one
    assert table.name == halves.spec.name
    assert table.half(Half.OFFLINE).path == halves.layout.half(Half.OFFLINE)
    with table.lock(Half.OFFLINE, with_spark=False), table.staging("move-1") as folder:
        assert halves.layout.lock(Half.OFFLINE).exists() and folder == halves.layout.staging("move-1")


def test_a_lock_names_the_jvm_that_is_needed_after_all(halves: Halves, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state is committed without Spark, unless the half has Delta features that only Spark can commit to."""
    monkeypatch.setattr("hybrid.lake.spark.is_running", lambda: False)
    monkeypatch.setattr("hybrid.lake.spark.jvm_pid", lambda spark: os.getppid())
    monkeypatch.setattr("hybrid.lake.transaction.LogTransaction.is_plain", False)
    path, jvms = halves.layout.lock(Half.OFFLINE), []

    def commit_by_spark(*_: object, **__: object) -> int:
        jvms.append(last_holder(path)["jvm"].pid)
        return 7

    monkeypatch.setattr("hybrid.lake.commit.commit_act", commit_by_spark)
    table = halves.context(CommitContext(MagicMock, lambda: 0, Silent()))
    with table.lock(Half.OFFLINE, with_spark=False) as half:
        assert "jvm" not in last_holder(path)
        assert half.commit_state(table.half(Half.OFFLINE).offline, planned=0) == 7
    assert jvms == [os.getppid()] and "jvm" not in last_holder(path)


def test_sessions_on_a_server_are_asked_for_each_time_and_are_no_holders_of_a_lock(halves: Halves) -> None:
    sessions: list[Any] = [MagicMock(), MagicMock()]
    bench = CommitContext(lambda: sessions.pop(), lambda: 0, Silent(), has_jvm=False)
    with bench.lock(halves.layout, Half.OFFLINE):  # of a move, for which the server need not be up
        assert len(sessions) == 2 and "jvm" not in last_holder(halves.layout.lock(Half.OFFLINE))
    assert bench.session is not bench.session
    assert "SPARK_CONNECT_MODE_ENABLED" in os.environ, "columns are made for the server"
    of_jvm = CommitContext(MagicMock, lambda: 0, Silent())
    assert of_jvm.session is of_jvm.session and "SPARK_CONNECT_MODE_ENABLED" not in os.environ


def test_it_plans_again_as_often_as_it_is_told(table: TableContext) -> None:
    tries: list[int] = []

    def attempt() -> None:
        tries.append(1)
        raise OvertakenError("Another operation came first.")

    with pytest.raises(OvertakenError, match=f"'{table.name}' came first 7 times"):
        table.until_not_overtaken(attempt, 7)
    assert len(tries) == 7
