"""Exports of a million rows in processes of their own: the memory does not grow with the rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.export import SQL, lay_events

pytestmark = [pytest.mark.slow, pytest.mark.process]
FEW, MANY = 100_000, 1_000_000
# A process with the libraries takes some 150 MiB; a bound of DuckDB's memory and some batches come on top. Who kept the
# rows would take 100 bytes for each at the least.
MOST_MIB, GROWTH_MIB = 500, 100
# Exports few rows, then many, and prints the process's peak of memory (KiB) behind each.
# VmHWM: a ru_maxrss would begin with the memory of the process that started this one.
CHILD = r"""
import re, sys
from hybrid.cli.main import run
for home, path in (sys.argv[1:3], sys.argv[3:5]):
    assert run(["--home", home, "query", sys.argv[5], "-o", path]) == 0
    print("peak", re.findall(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[0])
"""


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folders = {rows: tmp_path_factory.mktemp(f"rows{rows}") / "home" for rows in (FEW, MANY)}
    for rows, folder in folders.items():
        lay_events(folder, rows)
    return folders


@pytest.mark.parametrize("fmt", ["csv", "jsonl", "parquet", "arrow"])
def test_memory_is_bounded(homes: dict[int, Path], tmp_path: Path, fmt: str) -> None:
    paths = {rows: tmp_path / f"{rows}.{fmt}" for rows in homes}
    words = [str(each) for rows, home in homes.items() for each in (home, paths[rows])]
    done = subprocess.run([sys.executable, "-c", CHILD, *words, SQL], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    few, many = (int(line.split()[1]) / 1024 for line in done.stdout.splitlines() if line.startswith("peak "))
    assert all(path.stat().st_size > rows * 10 for rows, path in paths.items())
    assert many < MOST_MIB and many - few < GROWTH_MIB, (few, many)
