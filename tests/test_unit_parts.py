"""`make unit` runs each file in one of its processes, and fails when one of them does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit_parts import dealt

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_file_is_in_one_part_and_parts_are_alike(count: int) -> None:
    files = [*Path(__file__).parent.rglob("test_*.py")]
    parts = dealt(files, count)
    assert sorted(path for part in parts for path in part) == sorted(files)
    bytes_of = [sum(path.stat().st_size for path in part) for part in parts]
    assert len(parts) == count and max(bytes_of) < 1.1 * min(bytes_of)


def started(options: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.unit_parts", "2", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.process
def test_files_of_both_parts_are_run() -> None:
    ended = started(["tests/records"])
    lines = ended.stdout.splitlines()
    assert ended.returncode == 0 and ended.stderr == ""
    assert [line[:4] for line in lines if line.endswith("exit code 0")] == ["1/2:", "2/2:"]
    assert all(" passed" in line for line in lines if line.endswith("exit code 0"))


@pytest.mark.process
def test_the_error_of_a_part_is_that_of_all() -> None:
    ended = started(["tests/records", "--no-such-option"])
    assert ended.returncode == 4 and "unrecognized arguments: --no-such-option" in ended.stderr
