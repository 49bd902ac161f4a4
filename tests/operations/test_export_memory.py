"""Exports of two million rows in processes of their own: the memory does not grow with the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.export import SQL, exported, lay_events

pytestmark = [pytest.mark.slow, pytest.mark.process]
FEW, MANY = 100_000, 2_000_000
# A process with the libraries takes some 150 MiB; a bound of DuckDB's memory and some batches come on top.
MOST_MIB, GROWTH_MIB = 500, 200


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folders = {rows: tmp_path_factory.mktemp(f"rows{rows}") / "home" for rows in (FEW, MANY)}
    for rows, folder in folders.items():
        lay_events(folder, rows)
    return folders


@pytest.mark.parametrize("fmt", ["csv", "jsonl", "parquet", "arrow"])
def test_memory_is_bounded(homes: dict[int, Path], tmp_path: Path, fmt: str) -> None:
    peaks = {}
    for rows, home in homes.items():
        path = tmp_path / f"{rows}.{fmt}"
        _, peaks[rows] = exported(["--home", str(home), "query", SQL, "-o", str(path)])
        assert path.stat().st_size > rows * 10
    assert peaks[MANY] < MOST_MIB and peaks[MANY] - peaks[FEW] < GROWTH_MIB, peaks
