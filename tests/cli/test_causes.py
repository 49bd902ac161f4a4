"""What goes wrong before any work: missing files, swapped options, a home that cannot be made. The cause is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.cli.main import run
from hybrid.errors import MachineError
from hybrid.runtime import durable

SCHEMA = {"schemaName": "t", "dimensionFieldSpecs": [{"name": "a", "dataType": "INT"}]}
CONFIG = {"tableName": "t", "tableType": "OFFLINE", "segmentsConfig": {}}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "table.json").write_text(json.dumps(CONFIG))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--schema", "nofile"], 1, "File 'nofile' does not exist."),
        (["-f", "nofile.sql"], 1, "File 'nofile.sql' does not exist."),
        (["--schema", "schema.json"], 2, "--config FILE is missing."),
        (["--config", "table.json"], 2, "--schema FILE is missing."),
        ([], 2, "Both are missing."),
        (
            ["--schema", "table.json", "--config", "schema.json"],
            1,
            "table.json: holds a table config, and is given as the",
        ),
        (
            ["--schema", "schema.json", "--config", "schema.json"],
            1,
            "schema.json: holds a schema, and is given as a table",
        ),
    ],
)
@pytest.mark.usefixtures("files")
def test_files_of_a_table(args: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--home", "home", "table", "create", *args]) == code
    said = capsys.readouterr().err
    assert words in said and said.count("error: ") == 1
    assert not Path("home").exists()


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("home", ["/proc/x"])
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder of this machine refuses every user")
def test_a_home_that_cannot_be_made(home: str, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["table", "create", "--schema", "schema.json", "--config", "table.json"]
    assert run(["--home", home, *args]) == 1
    said = capsys.readouterr().err
    assert "cannot be made" in said and "--home DIR" in said and "traceback" not in said and "Errno" not in said


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match="file/home cannot be made: "):
        durable.make_private(tmp_path / "file" / "home")
    durable.make_private(tmp_path / "a" / "b")
    durable.make_private(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
