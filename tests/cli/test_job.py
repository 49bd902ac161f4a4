"""`hybrid job run`: the exit code of a dry run with an expectation, and where a path of `--input` starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.cli.job import _input_path
from hybrid.cli.main import run
from hybrid.errors import UsageError


@pytest.mark.parametrize(("state", "code"), [("PASSED", 0), ("WARNED", 0), ("DROPPED", 0), ("FAILED", 3)])
def test_a_dry_run_with_an_expectation(state: str, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Server:
        def __init__(self, *_: object) -> None:
            pass

        def call(self, verb: str, arguments: Mapping[str, Any]) -> Any:
            assert verb == "job_run" and arguments["expect"] == ["amount > 0"] and arguments["dry_run"]
            expectation = {"name": "amount > 0", "on_failure": "fail", "state": state, "rows": 2, "sentence": "2 of 9."}
            return {
                "sentence": "Would replace it.", "dry_run": True, "expectations": [expectation], "samples": [],
                "warnings": [], "table": "orders",
            }  # fmt: skip

    monkeypatch.setattr("hybrid.cli.dispatch.server_url", lambda cli: "http://prepared")
    monkeypatch.setattr("hybrid.rpc.client.Client", Server)
    (tmp_path / "job.yml").write_text("tableSpec: {tableName: orders}\n")
    words = ["job", "run", str(tmp_path / "job.yml"), "--dry-run", "--expect", "amount > 0"]
    assert run([*words, "--home", str(tmp_path)]) == code


def test_a_path_of_input_in_two_places_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    specs, here = tmp_path / "specs", tmp_path / "here"
    for folder in (specs, here):
        folder.mkdir()
    monkeypatch.chdir(here)
    assert _input_path("rows.csv", specs) == str(here / "rows.csv")
    (specs / "rows.csv").touch()
    assert _input_path("rows.csv", specs) == "rows.csv"
    (here / "rows.csv").touch()
    with pytest.raises(UsageError, match="and both exist"):
        _input_path("rows.csv", specs)
    assert _input_path(str(here / "rows.csv"), specs) == str(here / "rows.csv")
    monkeypatch.chdir(specs)
    assert _input_path("rows.csv", specs) == "rows.csv"
