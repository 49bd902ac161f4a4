"""Exports of a million rows in processes of their own: the memory does not grow with the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.export import SQL, exported, lay_events

pytestmark = [pytest.mark.slow, pytest.mark.process]
FEW, MANY = 100_000, 1_000_000
# A process with the libraries takes some 150 MiB; a bound of DuckDB's memory and some batches come on top. Who kept the
# rows would take 100 bytes for each at the least.
MOST_MIB, GROWTH_MIB = 500, 100


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folders = {rows: tmp_path_factory.mktemp(f"rows{rows}") / "home" for rows in (FEW, MANY)}
    for rows, folder in folders.items():
        lay_events(folder, rows)
    return folders


@pytest.mark.parametrize("fmt", ["csv", "jsonl", "parquet", "arrow"])
def test_memory_is_bounded(homes: dict[int, Path], tmp_path: Path, fmt: str) -> None:
    paths = {rows: tmp_path / f"{rows}.{fmt}" for rows in homes}
    commands = [["--home", str(home), "query", SQL, "-o", str(paths[rows])] for rows, home in homes.items()]
    few, many = (mib for _, mib in exported(*commands))
    assert all(path.stat().st_size > rows * 10 for rows, path in paths.items())
    assert many < MOST_MIB and many - few < GROWTH_MIB, (few, many)
