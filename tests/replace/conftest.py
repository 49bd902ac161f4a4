"""A table prepared as a move would leave it, on one Spark session for the whole folder."""

from __future__ import annotations

import os

os.environ.setdefault("HYBRID_TEST_JARS", "/tmp/w/ivy/jars/spark")

from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.lake.workbench import Workbench
from tests.replace.tables import Table, new_workbench


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    bench = new_workbench(tmp_path_factory.mktemp("spark"))
    yield bench
    bench.spark.stop()


@pytest.fixture
def orders(workbench: Workbench, tmp_path: Path) -> Table:
    """The orders recipe after one move: orders 1-7 offline, 8-14 in REALTIME."""
    return Table.of_recipe(workbench, tmp_path, "orders", moved=7)


@pytest.fixture
def upsert(workbench: Workbench, tmp_path: Path) -> Table:
    """The upsert recipe after one move: the latest rows of orders 1-4 offline, the other events in REALTIME."""
    return Table.of_recipe(workbench, tmp_path, "orders_upsert", moved=7, kept=(3, 4, 5, 7))
