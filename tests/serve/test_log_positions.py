"""The positions of halves: kept while nothing is committed, and never those of a table that was created again."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from hybrid.config.table_config import Half
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.serve.log_positions import LogPositions

HALF = Half.OFFLINE


class Table:
    """One half at a path; `opened` counts how often its log was read."""

    def __init__(self, path: Path) -> None:
        self.path, self.opened = path, 0
        self.layout: Any = SimpleNamespace(half=lambda half: path)
        self.commit()

    def commit(self) -> None:
        """One more version."""
        write_deltalake(self.path, pa.table({"x": [1]}), mode="append")

    def half(self, half: Half) -> HalfSnapshot:
        """Its newest state."""
        self.opened += 1
        return open_half(self.path)


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """A half at version 0."""
    return Table(tmp_path / "half")


def test_a_position_is_kept_until_the_next_commit(table: Any) -> None:
    positions = LogPositions()
    first = positions.of(table, HALF)
    assert positions.of(table, HALF) == first and (first.version, table.opened) == (0, 1)
    table.commit()
    second = positions.of(table, HALF)
    assert (second.table_id, second.version, table.opened) == (first.table_id, 1, 2)


def test_a_table_created_again_is_another(table: Any) -> None:
    """At the same path and at the same version."""
    positions = LogPositions()
    first = positions.of(table, HALF)
    shutil.rmtree(table.path)
    table.commit()
    second = positions.of(table, HALF)
    assert second.version == first.version and second.table_id != first.table_id


def test_without_its_entry_a_log_is_read_each_time(table: Any) -> None:
    """The entry of the newest version may be cleaned up behind a checkpoint."""
    DeltaTable(table.path).create_checkpoint()
    (table.path / "_delta_log" / f"{0:020d}.json").unlink()
    positions = LogPositions()
    assert positions.of(table, HALF) == positions.of(table, HALF)
    assert table.opened == 2


def test_few_positions_are_kept(table: Any, tmp_path: Path) -> None:
    positions = LogPositions(halves_max=1)
    positions.of(table, HALF)
    positions.of(Table(tmp_path / "other"), HALF)  # type: ignore[arg-type]
    positions.of(table, HALF)
    assert table.opened == 2
