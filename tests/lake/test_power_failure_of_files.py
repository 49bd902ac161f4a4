"""Uploaded files and dropped tables after a power failure, in the model of ADR 24."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lake.test_power_failure import run_worker

pytestmark = pytest.mark.process

WORKER = "tests.lake.power_files_worker"


def found(tmp_path: Path, scenario: str, **settings: str) -> list[dict[str, Any]]:
    return run_worker(tmp_path, [scenario], WORKER, **settings)


def test_a_file_is_there_whole_when_its_job_was_acknowledged(tmp_path: Path) -> None:
    first, second = found(tmp_path, "upload")
    for one in (first, second):
        assert one["status"] == 504 and one["runs"][-1]["run"] in one["answer"], one
    whole = [{"state": "QUEUED", **one["sent"]} for one in (first, second)]
    assert [{**run, "run": None} for run in first["runs"]] == [{**whole[0], "run": None}]
    assert [{**run, "run": None} for run in second["runs"]] == [{**one, "run": None} for one in whole]


def test_without_syncs_the_model_loses_an_uploaded_file(tmp_path: Path) -> None:
    last = found(tmp_path, "upload-unsynced")[-1]
    assert [run["bytes"] for run in last["runs"]] == [0, 0], last


def test_what_was_dropped_comes_back_and_what_was_purged_does_not(tmp_path: Path) -> None:
    steps = found(tmp_path, "drop")
    states = [(one["step"], one["table"], one["copies"]) for one in steps]
    assert states == [
        ("create", True, 0),
        ("drop", False, 1),
        ("undrop", True, 0),
        ("drop", False, 1),
        ("create", True, 1),
        ("drop", False, 2),
        ("create", True, 2),
        ("purge", False, 0),
        ("create", True, 0),
        ("drop", False, 1),
        ("create", True, 1),
        ("drop", False, 2),
        ("purge", False, 0),
    ]
    assert [one["lost"] for one in steps] == [[]] * len(steps)
    assert [one["left"] for one in steps if one["step"] == "purge"] == [[], []]


def test_without_a_sync_the_model_brings_a_purged_table_back(tmp_path: Path) -> None:
    """The names of dropped copies are on the device until their folder is synced."""
    steps = found(tmp_path, "drop-unsynced")
    assert all(one["left"] for one in steps if one["step"] == "purge")
