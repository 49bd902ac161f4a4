"""`make unit` runs each file in one of its processes, and fails when one of them does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit_parts import filled_queue, next_number

ROOT = Path(__file__).resolve().parent.parent


def test_a_queue_gives_each_number_once() -> None:
    queue = filled_queue()
    try:
        assert [next_number(queue) for _ in range(300)] == [*range(300)]
    finally:
        os.close(queue)


def started(options: list[str], count: int = 2) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.unit_parts", str(count), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.process
def test_each_file_is_run_by_one_of_the_parts() -> None:
    asked = ["tests/records", "tests/sql/test_nodes.py::test_every_node_in_the_order_of_sqlglot", "-rp"]
    alone, ended = started(asked, 1), started(asked)
    lines = ended.stdout.splitlines()
    assert ended.returncode == 0 and ended.stderr == ""
    assert [line[:4] for line in lines if line.endswith("exit code 0")] == ["1/2:", "2/2:"]
    assert all(" passed" in line for line in lines if line.endswith("exit code 0"))
    passed = [line for line in lines if line.startswith("PASSED")]
    assert len({*passed}) == len(passed) and "test_nodes.py" in ended.stdout
    assert sorted(passed) == sorted(line for line in alone.stdout.splitlines() if line.startswith("PASSED"))


@pytest.mark.process
def test_the_error_of_a_part_is_that_of_all() -> None:
    ended = started(["tests/records", "--no-such-option"])
    assert ended.returncode == 4 and "unrecognized arguments: --no-such-option" in ended.stderr
