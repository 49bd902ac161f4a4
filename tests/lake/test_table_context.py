"""`TableContext` acts on the table that it names, with the newest definition where one is asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import OvertakenError
from hybrid.lake.commit_context import CommitContext
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


def test_it_plans_again_as_often_as_it_is_told(table: TableContext) -> None:
    tries: list[int] = []

    def attempt() -> None:
        tries.append(1)
        raise OvertakenError("Another operation came first.")

    with pytest.raises(OvertakenError, match=f"'{table.name}' came first 7 times"):
        table.until_not_overtaken(attempt, 7)
    assert len(tries) == 7
