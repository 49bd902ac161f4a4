"""DuckDB in workers reads the rows of files by name, type, time and place, and takes no more than its limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.lake.files import RowsFile
from hybrid.lake.log_entries import DataFile
from hybrid.move.file_reader import FILE, ROW, FileRows, TaskLimits, memory_of_task, worker_database
from hybrid.move.time_ranges import TimeRange
from hybrid.runtime.disk import machine_error

# Needs more memory than those tasks have.
_LONG = "CREATE TEMP TABLE long AS SELECT hash(range) AS a, hash(range + 1) AS b FROM range(1_500_000)"


@pytest.fixture
def grown(tmp_path: Path) -> Iterator[FileRows]:
    """Two files: one without a column that was added later, one with it in a wider type."""
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "old.parquet")
    pq.write_table(pa.table({"a": pa.array([2**40], pa.int64()), "b": ["x"]}), tmp_path / "new.parquet")
    files = [DataFile(str(tmp_path / name), "s", 1, 1, 0) for name in ("old.parquet", "new.parquet")]
    yield FileRows(files, "TRUE", [("a", "bigint"), ("b", "string"), ("c", "array<timestamp>")], True)


def test_files_may_lack_columns_and_hold_narrower_types(grown: FileRows) -> None:
    with worker_database() as database:
        assert sorted(database.execute(grown.select("a, b, c")).fetchall()) == [(1, None, None), (2**40, "x", None)]
        placed = grown.select_placed("_hy_file, _hy_row, a", grown.files[1:])
        assert database.execute(placed).fetchall() == [(1, 0, 2**40)], "numbers are those among all files"


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [[], [35], [8, 20, 39], [4, 5, 6, 7], [-1, 100]])
def test_places_are_right_where_row_groups_are_skipped(tmp_path: Path, cuts: list[int]) -> None:
    """Two files with ten row groups each, of which the ranges of time need one or a few."""
    whole, files = pa.schema([("t", pa.int64()), ("place", pa.int64())]), []
    for number in range(2):
        writer = RowsFile(tmp_path, "act", ["t"], is_durable=False, group_rows=4)
        for first in range(0, 40, 4):
            rows = [{"t": row + number, "place": number * 100 + row} for row in range(first, first + 4)]
            writer.write(pa.RecordBatch.from_pylist(rows, whole))
        path = str(tmp_path / writer.close().name)
        assert pq.ParquetFile(path).num_row_groups == 10
        files.append(DataFile(path, "s", 40, 1, 0))
    rows = FileRows(files, "place % 3 <> 1", [], False)
    expected = [place for number in range(2) for place in range(number * 100, number * 100 + 40) if place % 3 != 1]
    found = []
    with worker_database() as database:
        for part in TimeRange("t").divided_at(cuts):
            placed = rows.restricted(part.condition).select_placed(f"place, {FILE}, {ROW}", files)
            found += database.execute(placed).fetchall()
    assert sorted(place for place, _, _ in found) == expected
    assert all(place == file * 100 + row for place, file, row in found)


@pytest.mark.slow
def test_paths_with_the_characters_of_patterns(tmp_path: Path) -> None:
    for name in ("a*b", "a?b", "a[1]b", "a\\b", "a\\b*c", "it's [!x]{1}**"):
        files = []
        for folder in (name, "a1b", "axb"):
            (tmp_path / folder).mkdir(exist_ok=True)
            pq.write_table(pa.table({"a": [folder]}), tmp_path / folder / "f.parquet")
            files.append(DataFile(str(tmp_path / folder / "f.parquet"), "s", 1, 1, 0))
        rows = FileRows(files, "TRUE", [], False)
        with worker_database() as database:
            assert database.execute(rows.select_placed(f"a, {FILE}", files[:1])).fetchall() == [(name, 0)]


def test_memory_of_a_task() -> None:
    found = [memory_of_task(*given) for given in (("2g", 2), ("8g", 2), ("1024m", 2), ("512", 2), ("1g", 99), ("?", 2))]
    assert [size >> 20 for size in found] == [1024, 1024, 512, 256, 64, 1024]


@pytest.mark.slow
def test_each_task_spills_to_a_folder_of_its_own(tmp_path: Path) -> None:
    limits = TaskLimits(16 << 20, tmp_path / "spill", 1 << 30)
    with worker_database(limits) as one:
        with worker_database(limits) as other:
            assert len(list((tmp_path / "spill").iterdir())) == 2
            other.execute(_LONG)
        assert len(list((tmp_path / "spill").iterdir())) == 1
        one.execute(_LONG)
    assert list((tmp_path / "spill").iterdir()) == []


@pytest.mark.slow
def test_a_task_that_runs_out_of_space_says_so(tmp_path: Path) -> None:
    limits = TaskLimits(16 << 20, tmp_path / "spill", 1 << 20)
    with worker_database(limits) as database, pytest.raises(Exception) as raised:
        database.execute(_LONG)
    assert (error := machine_error(raised.value, tmp_path)) is not None and "is full" in str(error)
    assert list((tmp_path / "spill").iterdir()) == []
