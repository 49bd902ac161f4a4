"""Dropped tables: older copies are named, brought back by their names, and purged with the table."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.cli.main import run
from hybrid.errors import NotFoundError
from hybrid.operations.tables.drop import dropped_copies
from tests.operations.tables.test_change import given


@pytest.fixture
def twice(home: Path) -> Hybrid:
    """A table that was dropped and created again, twice; and another table whose name begins alike."""
    found = hybrid.connect(home)
    found.create_table(given("INT"))
    for kind in ("LONG", "STRING"):
        found.drop_table("orders")
        found.create_table(given(kind))
    return found


def test_purge_removes_all_copies(twice: Hybrid) -> None:
    copies = [path.name for path in dropped_copies(twice.context, "orders")]
    assert len(copies) == 2
    sentence = twice.drop_table("orders", purge=True)
    assert sentence == (
        "Table 'orders' and all its data are gone, and so are the copies that were dropped before: "
        f"{', '.join(copies)}."
    )
    with pytest.raises(NotFoundError, match="Dropped table 'orders' does not exist"):
        twice.undrop_table("orders")
    assert not list((twice.home / "warehouse").rglob("*.parquet"))


def test_the_command_names_them_before_it_asks(twice: Hybrid, capsys: pytest.CaptureFixture[str]) -> None:
    copies = [path.name for path in dropped_copies(twice.context, "orders")]
    words = ["--home", str(twice.home), "table", "drop", "orders", "--purge"]
    assert run(words) == 2
    assert f"also the copies that were dropped before: {', '.join(copies)}?" in capsys.readouterr().err
    twice.drop_table("orders")
    assert run([*words, "--yes"]) == 0, "copies alone are purged too"
    assert "The dropped copies of table 'orders' are gone" in capsys.readouterr().err
    assert run([*words, "--yes"]) == 1
    assert "Table 'orders' does not exist" in capsys.readouterr().err


def test_an_older_copy_comes_back_by_its_name(twice: Hybrid) -> None:
    first, second = (path.name for path in dropped_copies(twice.context, "orders"))
    twice.drop_table("orders")
    told = twice.undrop_table(first)
    assert told.startswith("Table 'orders' is back, as it was. Other copies are kept: ") and second in told
    assert twice.spec("orders").schema.fields[0].data_type == "INT"
    twice.drop_table("orders")
    with pytest.raises(NotFoundError, match=f"Dropped table '{second[:-1]}' does not exist. Did you mean"):
        twice.undrop_table(second[:-1])


def test_other_tables_stay(twice: Hybrid) -> None:
    folder = twice.home / "warehouse" / ".dropped"
    shutil.copytree(next(folder.iterdir()), folder / "orders2@20210101T000000.000000Z")
    twice.drop_table("orders", purge=True)
    assert [path.name for path in folder.iterdir()] == ["orders2@20210101T000000.000000Z"]
