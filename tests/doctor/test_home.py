"""The machine, the home's folder and the catalog: each finding provoked, each repair looked at."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.catalog.catalog import Catalog
from hybrid.catalog.run_record import RunRequest
from hybrid.cli.main import run
from hybrid.doctor.findings import Severity
from hybrid.errors import MachineError, NotFoundError
from hybrid.jvm.process import Process
from tests.doctor.conftest import Patient, disk

OLD = 1_600_000_000


@pytest.mark.slow
def test_nothing_wrong(orders: Patient) -> None:
    assert orders.examine() == []


def test_a_home_that_is_not_there_is_not_made(patient: Patient) -> None:
    patient.path.rmdir()
    assert patient.examine() == [] and not patient.path.exists()


def test_settings_that_are_not_used(patient: Patient) -> None:
    (patient.path / "hybrid.toml").write_text("kafak = 'x'\n")
    found = patient.only()
    assert (found.check, found.severity) == (
        "settings",
        Severity.WARNING,
    ) and "'kafak' is not a setting" in found.message


def test_a_home_that_others_may_enter(patient: Patient) -> None:
    patient.path.chmod(0o755)
    (found,) = patient.examine()
    assert (found.check, found.severity, found.hint) == ("modes", Severity.WARNING, f"chmod 700 {patient.path}")


def test_no_java(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*, starts_it: bool) -> None:
        raise MachineError("Java was not found.", hint="install it")

    monkeypatch.setattr("hybrid.doctor.machine.find_java", none)
    found = patient.only()
    assert (found.check, found.severity, found.hint) == ("java", Severity.ERROR, "install it")


def test_jars_that_are_not_fetched(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.doctor.machine.missing_jars", lambda: ["a.jar", "b.jar"])
    found = patient.only()
    assert (found.check, found.severity, found.hint) == ("jars", Severity.WARNING, "hybrid setup")
    assert found.message.startswith("2 jars that Spark or Kafka need are not in the cache, e.g. a.jar")


@pytest.mark.parametrize(("total", "free", "said"), [(10**12, 40 * 10**9, "4.0 %"), (10**10, 900 * 2**20, "900 MiB")])
def test_a_disk_that_is_almost_full(
    patient: Patient, monkeypatch: pytest.MonkeyPatch, total: int, free: int, said: str
) -> None:
    monkeypatch.setattr("hybrid.doctor.machine.shutil.disk_usage", disk(total, free))
    found = patient.only()
    assert (found.check, found.severity) == ("disk", Severity.WARNING) and said in found.message


def test_a_disk_without_room_is_an_error(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.doctor.machine.shutil.disk_usage", disk(10**12, 100 * 2**20))
    found = patient.only()
    assert (found.check, found.severity) == ("disk", Severity.ERROR) and "100 MiB left" in found.message


def test_logs_that_cannot_be_written(patient: Patient) -> None:
    (patient.path / "logs").touch()
    found = patient.only()
    assert (found.check, found.severity) == ("logs", Severity.WARNING) and "Work continues" in found.message


# The catalog


def damage(path: Path, how: str) -> None:
    if how == "no database":
        path.write_text("this was a database once\n" * 1000)
        return
    catalog = Catalog.of_home(path.parent)
    for number in range(200):
        catalog.runs.enqueue(RunRequest(f"run-{number}", "orders", "move", "move", {}, "cli"))
    catalog.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 6] = os.urandom(4096 * 3)
    path.write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["no database", "pages"])
def test_a_damaged_catalog_is_begun_anew(orders: Patient, how: str) -> None:
    path = orders.path / "catalog.db"
    catalog = orders.hybrid().context.catalog
    catalog.serving.pause("orders", "for the audit")
    catalog.connectors.pause("orders", "history", {"0": 7})
    catalog.close()
    damage(path, how)
    found = orders.only()
    assert (found.check, found.severity, found.hint) == ("catalog", Severity.ERROR, "hybrid doctor --repair")
    assert found.is_left and "No data depends on it" in found.message
    broken = path.read_bytes()
    mended = orders.only(repair=True)
    assert mended.repair is not None and not mended.is_left and "ueued work" in mended.repair
    kept = list(orders.path.glob("catalog.db.damaged-*"))
    assert [one.read_bytes() for one in kept if not one.name.endswith(("-wal", "-shm"))] == [broken]
    fresh = orders.hybrid().context.catalog
    assert orders.examine() == [] and fresh.runs.list() == []
    comments, paused = [one.comment for one in fresh.serving.pauses().values()], fresh.connectors.of("orders")
    if how == "pages":  # of the runs only
        assert "with the pauses and the states of connectors" in mended.repair
        assert (
            comments == ["for the audit"] and paused["history"].pause_offsets == {"0": 7} and paused["history"].paused
        )
    else:
        assert "hybrid connector pause TABLE" in mended.repair and not comments and not paused


def test_a_catalog_in_use_is_left_alone(orders: Patient) -> None:
    damage(orders.path / "catalog.db", "no database")
    me = Process.of(os.getpid())
    assert me is not None
    me.save(orders.path / "server.json", url="http://127.0.0.1:9000")
    found = orders.only(repair=True)
    assert found.is_left and found.hint is not None and "Stop the server at http://127.0.0.1:9000" in found.hint
    assert not list(orders.path.glob("catalog.db.damaged-*"))


def test_a_catalog_that_cannot_be_opened(orders: Patient) -> None:
    (orders.path / "catalog.db").unlink(missing_ok=True)
    (orders.path / "catalog.db").mkdir()
    found = orders.only(repair=True)
    assert found.is_left and "cannot be opened" in found.message


def test_a_repair_that_fails_says_so(orders: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(orders.path / "catalog.db", "no database")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hybrid.doctor.records.durable.rename", full)
    found = orders.only(repair=True)
    assert found.is_left and found.hint == "It could not be repaired: [Errno 28] No space left on device"


@pytest.mark.process
def test_runs_whose_process_is_gone(patient: Patient) -> None:
    catalog = Catalog.of_home(patient.path)
    code = (
        "import os, sys, pathlib; from hybrid.catalog.catalog import Catalog\n"
        "with Catalog.of_home(pathlib.Path(sys.argv[1])).runs.recorded('run-1', 'orders', 'ingest'): os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(patient.path)]).returncode == 9
    catalog.runs.enqueue(RunRequest("run-2", "orders", "move", "move", {}, "http"))
    assert catalog.runs.claim() is not None
    catalog.close()
    found = patient.examine()
    assert [(one.check, one.table, one.severity) for one in found] == [("runs", "orders", Severity.NOTE)] * 2
    assert {one.message for one in found} == {
        "The process of run run-1 (ingest) is gone, and it did not tell how it ended.",
        "Run run-2 (move) was under way when its server ended.",
    }
    assert not any(one.is_left for one in found)


def test_parts_of_the_home(patient: Patient) -> None:
    (patient.path / "kafka").mkdir()
    old, young = patient.path / "kafka" / "broker.part", patient.path / "server.part"
    for part in (old, young):
        part.touch()
    os.utime(old, (OLD, OLD))
    assert patient.only().check == "part"
    assert patient.only(repair=True).repair == "Removed broker.part."
    assert patient.examine() == [] and young.exists()


# The command


@pytest.mark.slow
def test_the_command(orders: Patient, capsys: pytest.CaptureFixture[str]) -> None:
    home = ["--home", str(orders.path)]
    assert run(["doctor", *home]) == 0
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.endswith("Nothing was found: all is well.\n")
    assert "Checking table 'orders'." in captured.err
    orders.definition.write_text("{")
    (orders.path / "hybrid.toml").write_text("kafak = 'x'\n")
    assert run(["doctor", *home]) == 3
    captured = capsys.readouterr()
    assert captured.out.startswith("warning: settings: ") and "\nerror: orders: definition: " in captured.out
    assert "    hint: hybrid doctor --repair\n" in captured.out
    assert captured.err.endswith("1 error, 1 warning, 0 notes; 0 repaired.\n")
    assert run(["doctor", "orders", "--repair", *home]) == 0
    captured = capsys.readouterr()
    assert "    repaired: Wrote the definition again" in captured.out and captured.err.endswith("1 repaired.\n")
    assert run(["doctor", "--json", *home]) == 3
    (found,) = json.loads(capsys.readouterr().out)
    assert list(found) == ["check", "table", "severity", "message", "hint", "repair"]
    assert (found["check"], found["table"], found["severity"], found["repair"]) == ("settings", None, "warning", None)


def test_settings_that_cannot_be_read(patient: Patient, capsys: pytest.CaptureFixture[str]) -> None:
    (patient.path / "hybrid.toml").write_text("kafka = localhost\n")
    assert run(["doctor", "--json", "--home", str(patient.path)]) == 3
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["check"], found["severity"]) == ("settings", "error") and "not valid TOML" in found["message"]


def test_a_table_that_is_not_there(orders: Patient, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotFoundError, match="Did you mean 'orders'"):
        orders.examine(table="ordrs")
    assert run(["doctor", "../orders", "--home", str(orders.path)]) == 1
    assert "Table '../orders' does not exist." in capsys.readouterr().err
