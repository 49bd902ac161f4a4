"""The files of a move hold the rows they were given, each once, in order, bucket by bucket."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hybrid.config.table_config import Half, MoveConfig, TableSpec
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.layout import physical_columns, physical_ddl
from hybrid.move.write import write_files, written_columns
from hybrid.table import columns
from tests.every_type import NOON, every_type, values
from tests.records.test_decode import EVERY_TYPE

BUCKET = 100


def row(offset: int, time: int | None, **others: Any) -> tuple[object, ...]:
    hidden = ("t__0__0__x", "kafka", "topic", 0, offset % 2, offset, 1000 + offset, "row", time)
    return (*hidden, *values(offset, **{"l": -(2**60), "s": f"é{offset}" * 20, "ts": time, **others}))


def written(
    bench: CommitContext, spec: TableSpec, rows: list[tuple[object, ...]], folder: Path, rows_max: int, cuts: list[int]
) -> list[list[dict[str, Any]]]:
    """The rows of each file, files in the order they were reported; statistics are checked on the way."""
    frame = bench.spark.createDataFrame(rows, physical_ddl(spec, Half.OFFLINE)).repartition(3)
    config = MoveConfig(BUCKET, 0, max_records_per_segment=rows_max)
    found = write_files(bench, frame, spec, config, folder, cuts)
    assert {file.name for file in found} == {path.name for path in folder.glob("*.parquet")}
    contents = [pq.read_table(folder / file.name).to_pylist() for file in found]
    for file, content in zip(found, contents, strict=True):
        statistics = json.loads(file.statistics)
        assert file.rows == statistics["numRecords"] == len(content)
        assert file.bytes == (folder / file.name).stat().st_size
        for name in (columns.TIME, columns.OFFSET, "i"):
            there = [one[name] for one in content if one[name] is not None]
            assert statistics["minValues"].get(name) == min(there, default=None)
            assert statistics["maxValues"].get(name) == max(there, default=None)
            assert statistics["nullCount"][name] == len(content) - len(there)
    return contents


def offsets(files: list[list[dict[str, Any]]]) -> list[list[int]]:
    return [[one[columns.OFFSET] for one in file] for file in files]


@pytest.mark.spark
def test_each_file_is_of_one_bucket_and_in_the_order_of_time(workbench: CommitContext, tmp_path: Path) -> None:
    spec = every_type()
    times = [250, -1, 0, 99, 100, 250, -150, 3, 199, 251]
    rows = [row(offset, time) for offset, time in enumerate(times)]
    found = written(workbench, spec, rows, tmp_path, 1_000, [])
    assert offsets(found) == [[6], [1], [2, 7, 3], [4, 8], [0, 5, 9]]
    cut = tmp_path / "cut"
    assert sorted(offsets(written(workbench, spec, rows, cut, 1_000, [0, 50, 100]))) == sorted(
        [[6], [1], [2, 7], [3], [4, 8], [0, 5, 9]]
    )


@pytest.mark.spark
def test_a_file_holds_no_more_rows_than_a_segment_may(workbench: CommitContext, tmp_path: Path) -> None:
    spec = every_type()
    rows = [row(offset, 7 if offset < 8 else 8) for offset in range(25_000)]
    found = written(workbench, spec, rows, tmp_path, 10_000, [])
    assert [len(file) for file in found] == [10_000, 10_000, 5_000]
    assert [one for file in offsets(found) for one in file] == list(range(25_000))


@pytest.mark.spark
def test_every_value_stays_as_it_was(workbench: CommitContext, tmp_path: Path) -> None:
    spec = every_type()
    nothing = dict.fromkeys(EVERY_TYPE)
    odd = {"f": math.nan, "d": -math.inf, "s": "", "j": '""', "x": b"", "m": [], "b": False, "n": Decimal(0)}
    rows = [row(0, 5), row(1, 6, **nothing), row(2, 7, **odd)]
    (found,) = written(workbench, spec, rows, tmp_path, 10, [])
    names = [name for name, _ in physical_columns(spec, Half.OFFLINE)]
    wanted = [dict(zip(names, one, strict=True)) for one in rows]
    wanted[0]["t"] = wanted[2]["t"] = NOON.replace(tzinfo=None)  # INT96 knows no zone
    for one, other in zip(found, wanted, strict=True):
        assert list(one) == [name for name, _ in written_columns(spec)]
        for name, value in one.items():
            both = (value, other[name])
            assert both[0] == both[1] or all(isinstance(each, float) and math.isnan(each) for each in both), name
    read = workbench.spark.read.schema(physical_ddl(spec, Half.OFFLINE)).parquet(str(tmp_path))
    assert [one["t"] for one in read.orderBy(columns.OFFSET).collect()][1] is None


@pytest.mark.spark
@pytest.mark.parametrize("name", ["i", "l", "f", "d", "n", "b", "t", "s", "j", "x"])
def test_rows_are_sorted_by_a_column_of_any_type(workbench: CommitContext, tmp_path: Path, name: str) -> None:
    spec = every_type(sort_columns=(name,))
    other = {
        "i": 0, "l": 2**62, "f": math.nan, "d": -math.inf, "n": Decimal(-1), "b": False, "t": NOON.replace(year=1969),
        "s": "", "j": "[]", "x": b"",
    }  # fmt: skip
    rows = [row(9, 5), row(8, 6, **{name: None}), row(7, 7, **{name: other[name]})]
    (found,) = offsets(written(workbench, spec, rows, tmp_path, 10, []))
    assert found[0] == 8
    assert found[1:] == ([9, 7] if name in ("l", "f") else [7, 9])


@pytest.mark.spark
def test_without_a_time_column_rows_stand_by_their_arrival(workbench: CommitContext, tmp_path: Path) -> None:
    spec = every_type(time_column=None)
    rows = [row(offset, None, ts=3) for offset in range(5, -1, -1)]
    assert offsets(written(workbench, spec, rows, tmp_path, 4, [])) == [[0, 1, 2, 3], [4, 5]]
    assert sorted(offsets(written(workbench, spec, rows, tmp_path / "cut", 4, [1003]))) == [[0, 1, 2], [3, 4, 5]]
