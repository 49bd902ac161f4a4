"""Dropped tables: older copies are named, brought back by their names, and purged with the table."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.cli.main import run
from hybrid.errors import ConflictError, NotFoundError
from hybrid.operations.tables.drop import _removed, dropped_copies
from tests.operations.tables.test_change import given
from tests.query.halves import Halves
from tests.serve.app import row

_ROW = row(1, 1000, 0, "orders_1000_1000_0")


@pytest.fixture
def twice(home: Path) -> Hybrid:
    """A table that was dropped and created again, twice; and another table whose name begins alike."""
    found = hybrid.connect(home)
    found.create_table(given("INT"))
    for kind in ("LONG", "STRING"):
        found.drop_table("orders")
        found.create_table(given(kind))
    return found


@pytest.mark.slow
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


# Lists, and single copies


@pytest.mark.slow
def test_dropped_tables_are_listed(twice: Hybrid, capsys: pytest.CaptureFixture[str]) -> None:
    twice.drop_table("orders", purge=False)
    twice.undrop_table(dropped_copies(twice.context, "orders")[0].name)  # its order_id is an INT
    Halves(twice.spec("orders"), twice.context.layout("orders")).commit_offline([_ROW])
    twice.drop_table("orders")
    folder = twice.home / "warehouse" / ".dropped"
    newest = dropped_copies(twice.context, "orders")[-1]
    (folder / "other@long ago").mkdir()
    words = ["--home", str(twice.home), "table", "list", "--dropped"]
    assert run([*words, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["rows"] for row in listed] == [0, 0, 1, 0]
    assert [row["table"] for row in listed] == ["orders", "orders", "orders", "other"]
    assert [row["name"] for row in listed[:3]] == [path.name for path in dropped_copies(twice.context, "orders")]
    assert listed[2]["bytes"] == sum(path.stat().st_size for path in newest.rglob("*") if path.is_file())
    assert listed[2]["state"] == "DROPPED" and listed[3]["dropped_at"] is None
    moment = datetime.fromisoformat(listed[2]["dropped_at"])
    assert newest.name == f"orders@{moment.strftime('%Y%m%dT%H%M%S')}{newest.name[-8:]}"
    shutil.rmtree(newest / "OFFLINE" / "_delta_log")
    assert [found.rows for found in twice.dropped_tables()] == [0, 0, None, 0]
    assert run(words) == 0 and newest.name in capsys.readouterr().out


def test_copies_are_listed_by_table_then_time(home: Path) -> None:
    """`t2` comes before `t20`, though `@` comes after digits."""
    found = hybrid.connect(home)
    found.create_table(given("INT"))
    names = [f"{table}@{year}0101T000000.000000Z" for table in ("t2", "t20", "t_2") for year in (2021, 2022)]
    for name in reversed(names):
        (found.home / "warehouse" / ".dropped" / name).mkdir(parents=True)
    assert [copy.name for copy in found.dropped_tables()] == names


def test_one_copy_is_purged_by_its_name(twice: Hybrid, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (path.name for path in dropped_copies(twice.context, "orders"))
    words = ["--home", str(twice.home), "table", "drop", first, "--purge"]
    assert run(words) == 2
    assert f"Delete these dropped copies of table 'orders' for good: {first}?" in capsys.readouterr().err
    assert run([*words, "--yes"]) == 0
    assert f"The dropped copies of table 'orders' are gone: {first}." in capsys.readouterr().err
    assert [found.name for found in twice.dropped_tables()] == [second] and twice.table_names() == ["orders"]
    assert run([*words, "--yes"]) == 1
    assert "does not exist" in capsys.readouterr().err


def test_the_question_about_copies_alone_names_no_table_that_is_gone(
    twice: Hybrid, capsys: pytest.CaptureFixture[str]
) -> None:
    twice.drop_table("orders")
    copies = ", ".join(path.name for path in dropped_copies(twice.context, "orders"))
    assert run(["--home", str(twice.home), "table", "drop", "orders", "--purge"]) == 2
    assert f"Delete these dropped copies of table 'orders' for good: {copies}?" in capsys.readouterr().err


@pytest.mark.slow
def test_a_purge_that_crashes_leaves_nothing_to_restore(twice: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.rmtree

    def crash(path: Path) -> None:
        real(path / "OFFLINE")
        raise KeyboardInterrupt

    first, second = (path.name for path in dropped_copies(twice.context, "orders"))
    monkeypatch.setattr(shutil, "rmtree", crash)
    with pytest.raises(KeyboardInterrupt):
        twice.drop_table("orders", purge=True)
    monkeypatch.undo()
    states = {found.name: found.state for found in twice.dropped_tables()}
    (broken,) = [name for name, state in states.items() if state == "PURGING"]
    assert twice.table_names() == [] and broken not in (first, second) and broken.endswith(".purging")
    with pytest.raises(NotFoundError, match="does not exist"):
        twice.undrop_table(broken)
    twice.undrop_table("orders")  # the newest whole one
    assert broken in twice.drop_table("orders", purge=True)
    assert twice.dropped_tables() == []


def test_a_copy_that_was_restored_meanwhile_stays(twice: Hybrid) -> None:
    copies = dropped_copies(twice.context, "orders")
    twice.drop_table("orders")
    twice.undrop_table(copies[0].name)
    with pytest.raises(ConflictError, match="was restored or removed by another command"):
        _removed("orders", copies, with_table=False)
    assert twice.spec("orders").schema.fields[0].data_type == "INT"
    assert twice.query("select count(*) from orders").rows[0][0] == 0
