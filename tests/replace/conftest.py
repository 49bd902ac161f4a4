"""Tables as one move leaves them, built once and copied for each test, on one Spark session for the whole folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hybrid.lake.commit_context import CommitContext
from hybrid.progress import Silent
from tests.replace.tables import NOW_MS, Table, copied

Copy = Callable[[Path], Table]


@pytest.fixture(scope="session")
def workbench(workbench: CommitContext) -> CommitContext:
    """The session of all tests, with a clock that stands still."""
    return CommitContext(lambda: workbench.spark, lambda: NOW_MS, Silent())


@pytest.fixture(scope="session")
def orders_template(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table.of_recipe(workbench, tmp_path_factory.mktemp("orders"), "orders", moved=7)


@pytest.fixture(scope="session")
def concat_template(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table.of_recipe(workbench, tmp_path_factory.mktemp("concat"), "orders_upsert", moved=7)


@pytest.fixture(scope="session")
def upsert_template(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> Table:
    kept = (3, 4, 5, 7)
    return Table.of_recipe(workbench, tmp_path_factory.mktemp("upsert"), "orders_upsert", moved=7, kept=kept)


@pytest.fixture
def orders(orders_template: Table, tmp_path: Path) -> Table:
    """The orders recipe after one move: orders 1-7 offline, 8-14 visible in REALTIME."""
    return copied(orders_template, tmp_path)


@pytest.fixture
def upsert(upsert_template: Table, tmp_path: Path) -> Table:
    """The upsert recipe after one move: the latest rows of orders 1-4 offline."""
    return copied(upsert_template, tmp_path)


@pytest.fixture
def concat(concat_template: Table, tmp_path: Path) -> Table:
    """The upsert recipe after one move with mergeType concat: all 7 events offline."""
    return copied(concat_template, tmp_path)
