"""What the machine lacks is said as such: which disk, how much is left, what would do. Never as a bug of ours."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

import hybrid
from hybrid.catalog.catalog import Catalog
from hybrid.cli.main import run
from hybrid.errors import MachineError
from hybrid.home.home import Home
from hybrid.runtime.disk import machine_error, reserve_bytes
from tests.operations.tables.test_change import given


def test_a_full_disk_is_told_by_whoever_meets_it(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as full, open("/dev/full", "w") as file:
        file.write("x")
    for error in (full.value, OSError(28, "No space left on device", str(tmp_path / "a" / "b")), sqlite_full(tmp_path)):
        found = machine_error(error, tmp_path)
        assert found is not None and f"The disk of {tmp_path}" in str(found), error
        assert "MiB are left" in str(found) and "at least 1024 MiB" in str(found.hint)
    spark = RuntimeError("Job aborted: java.io.IOException: No space left on device")
    assert "is full" in str(machine_error(spark, tmp_path / "not" / "there"))
    assert machine_error(ValueError("x"), tmp_path) is None
    assert machine_error(PermissionError(13, "no"), tmp_path) is None


def sqlite_full(folder: Path) -> sqlite3.Error:
    connection = sqlite3.connect(folder / "small.db")
    connection.execute("PRAGMA max_page_count=2")
    with pytest.raises(sqlite3.OperationalError) as full:
        for number in range(5):
            connection.execute(f"CREATE TABLE t{number} (a)")
    return full.value


def test_the_catalog_on_a_full_disk(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hybrid.connect(home).create_table(given("INT"))
    catalog = Catalog.of_home(home)

    @sa.event.listens_for(catalog._engine, "connect")
    def _small(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA max_page_count=1")

    catalog._engine.dispose()
    with pytest.raises(MachineError, match=r"The disk of .* is full: [0-9]+ MiB are left"):
        for number in range(200):
            catalog.runs.finish("x", "DONE", "y")
            with catalog.runs.recorded(f"run-{number}", "orders", "ingest", {"much": "x" * 10_000}):
                pass


@pytest.mark.parametrize("verb", [["status"], ["task", "list"], ["ingest", "orders", "--until-caught-up"]])
def test_a_full_disk_on_the_command_line(
    home: Path, verb: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hybrid.connect(home).create_table(given("INT"))

    def full(*_: object) -> None:
        raise sqlite_full(home)

    monkeypatch.setattr(Home, "catalog", property(full))
    assert run(["--home", str(home), *verb, "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["code"] == "machine" and f"error: The disk of {home}" in err
    assert "bug" not in err and "Unexpected" not in err


def test_a_catalog_that_cannot_be_used_is_not_a_bug(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hybrid.connect(home).create_table(given("INT"))
    for path in home.glob("catalog.db*"):
        path.unlink()
    (home / "catalog.db").write_text("no database at all\n" * 1000)
    assert run(["--home", str(home), "task", "list"]) == 1
    err = capsys.readouterr().err
    assert "catalog.db is damaged" in err and "hint: hybrid doctor --repair" in err and "bug" not in err
    (home / "catalog.db").unlink()
    (home / "catalog.db").mkdir()
    assert run(["--home", str(home), "task", "list"]) == 1
    err = capsys.readouterr().err
    assert "catalog.db cannot be opened or written" in err and "bug" not in err


def test_the_reserve_of_the_disk_is_a_setting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """10: statements, uploads and jobs leave it free."""
    from hybrid.query.connection import spill_bytes

    monkeypatch.setattr("hybrid.query.connection.free_bytes", lambda _: 10 * 1024**3)
    hybrid.connect(home)
    assert spill_bytes(home) == 9 * 1024**3 // 2, "the default"
    monkeypatch.setenv("HYBRID_DISK_RESERVE_BYTES", str(4 * 1024**3))
    hybrid.connect(home)
    assert spill_bytes(home) == 3 * 1024**3 and reserve_bytes(home / "uploads") == 4 * 1024**3
    monkeypatch.setenv("HYBRID_DISK_RESERVE_BYTES", str(40 * 1024**3))
    hybrid.connect(home)
    assert spill_bytes(home) == 0
