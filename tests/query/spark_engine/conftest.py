"""Tables on which both engines run the corpus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hybrid.lake.commit_context import CommitContext
from tests.parity.table import NOW_MS, parity_table
from tests.query.halves import Halves, Row
from tests.query.spark_engine.both_engines import BothEngines
from tests.sql import rows

Compare = Callable[[], BothEngines]


@pytest.fixture(scope="session")
def parity_tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, object]:
    return parity_table(tmp_path_factory.mktemp("parity"))


@pytest.fixture
def parity(workbench: CommitContext, parity_tables: tuple[Halves, object]) -> BothEngines:
    """The table of `tests/parity`: committed rows and a tail, with the awkward values of each type."""
    halves, tail = parity_tables
    return BothEngines(lambda: workbench, halves, tail, NOW_MS)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def things_table(tmp_path_factory: pytest.TempPathFactory) -> Halves:
    """The table of row expressions: a row of plain values, one of awkward ones, one of nulls."""
    halves = Halves.create(Path(tmp_path_factory.mktemp("things")), rows.things())
    halves.commit_offline([Row(values, None, None, None, segment="things_0") for values in rows.rows().to_pylist()])
    return halves


@pytest.fixture
def things(workbench: CommitContext, things_table: Halves) -> BothEngines:
    return BothEngines(lambda: workbench, things_table, now_ms=rows.NOW_MS)
