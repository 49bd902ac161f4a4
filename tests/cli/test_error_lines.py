"""Several errors on the command line: each with its line, and as a list in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.cli.error_lines import with_line
from hybrid.cli.main import run

SCHEMA = """{
  "schemaName": "orders",
  "dimensionFieldSpecs": [
    {"name": "id", "dataType": "INTEGER"},
    {"name": "who",
     "dataType": "TEXT"}
  ]
}
"""
CONFIG = """{
  "tableName": "or ders",
  "tableType": "OFFLINE"
}
"""


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    (tmp_path / "schema.json").write_text(SCHEMA)
    (tmp_path / "table.json").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return ["--home", "home", "table", "validate", "--schema", "schema.json", "--config", "table.json"]


def test_all_errors_are_printed_with_their_lines(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(given) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert [line.split(": ")[1:3] for line in lines] == [
        ["schema.json", "dimensionFieldSpecs[0].dataType"],
        ["schema.json", "dimensionFieldSpecs[1].dataType"],
        ["table.json", "tableName"],
    ]
    assert [line.rpartition(" (")[2] for line in lines] == ["line 4)", "line 6)", "line 2)"]


def test_json_lists_them(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*given, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["code"] == "spec" and document["message"] == document["errors"][0]["message"]
    assert [error["message"].rpartition(" (")[2] for error in document["errors"]] == ["line 4)", "line 6)", "line 2)"]


def test_a_place_without_a_line(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("a:\n  b:\n    - 1\n    - c: 2\n")
    assert with_line(f"{path}: a.b[1].c: is wrong.") == f"{path}: a.b[1].c: is wrong. (line 4)"
    assert with_line(f"{path}: a.nope: is missing.") == f"{path}: a.nope: is missing. (line 1)"
    (tmp_path / "odd.yaml").write_text("a: [")
    (tmp_path / "odd.json").write_text("{")
    for message in (f"{tmp_path}/odd.yaml: a: x", f"{tmp_path}/odd.json: a: x", "none.json: a: x", "a: b: c", ""):
        assert with_line(message) == message
