"""Files that workers write themselves are to every reader what Spark's own are."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import ConflictError, DataError, OvertakenError
from hybrid.lake.commit import FileAct, Written, commit_act, commit_files
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.create import arrow_schema, create_half, record_batch
from hybrid.lake.files import RowsFile, path_in_half
from hybrid.lake.layout import physical_columns, physical_ddl, statistics_columns
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import read_commit
from hybrid.lake.worker_files import WorkerFiles
from hybrid.lake.workers import error_from_json, error_to_json
from hybrid.table.columns import SEGMENT
from hybrid.table.state import Act, RealtimeState, next_act
from tests.every_type import every_type, values
from tests.unchecked_texts import LATIN1, unchecked


def row(offset: int, segment: str = "t__0__0__x", **others: Any) -> tuple[object, ...]:
    hidden = (segment, "kafka", "topic", 0, 0, offset, 1000 + offset, "row", offset, None, None)
    return (*hidden, *values(offset, **others))


def write(
    half: Path, spec: TableSpec, rows: list[tuple[object, ...]], act_id: str = "ingest-1", **group: int
) -> dict[str, object]:
    segment = str(rows[0][0])
    file = RowsFile(half / path_in_half(segment, ""), act_id, statistics_columns(spec, Half.REALTIME), **group)
    schema = arrow_schema(spec, Half.REALTIME)
    for one in rows:
        file.write(record_batch(schema, [one]).drop_columns([SEGMENT]))
    return file.close().entry(segment)


@pytest.fixture
def half(tmp_path: Path) -> Path:
    create_half(tmp_path / "REALTIME", every_type(), Half.REALTIME, RealtimeState(Act("create-0", 0, "create", "x")))
    return tmp_path / "REALTIME"


def after(half: Path, kind: str = "ingest") -> RealtimeState:
    state = open_half(half).realtime
    return RealtimeState(next_act(state, f"{kind}-1", kind, "x", {}))


def act(half: Path, act_id: str = "ingest-1") -> FileAct:
    return FileAct(half, "ingest", act_id, physical_columns(every_type(), Half.REALTIME))


def files_in(half: Path) -> set[str]:
    return {path.name for path in half.glob("*/*.parquet")}


def test_a_text_that_is_not_utf8_is_never_written(tmp_path: Path) -> None:
    """No query could read the file."""
    file = RowsFile(tmp_path, "ingest-1", [])
    file.write(pa.RecordBatch.from_arrays([unchecked([b"a"])], names=["s"]))
    with pytest.raises(DataError, match="Column 's' has a text that is not UTF-8: byte 0xe9 at place 4") as caught:
        file.write(pa.RecordBatch.from_arrays([unchecked([b"a", LATIN1])], names=["s"]))
    told = error_from_json(error_to_json(caught.value))
    assert isinstance(told, DataError) and str(told) == str(caught.value)


@pytest.mark.spark
def test_every_reader_finds_the_same_rows_as_in_sparks_files(half: Path, workbench: CommitContext) -> None:
    spec, spark = every_type(), workbench.spark
    rows = [row(0), row(1, i=None, l=None, f=None, d=None, n=None, b=None, t=None, s=None, j=None, x=None, m=None)]
    commit_files(spark, act(half), lambda: Written([write(half, spec, rows)], after(half)))
    theirs = [(one[0].replace("x", "y"), *one[1:]) for one in rows]
    state = after(half)
    commit_act(
        spark.createDataFrame(theirs, physical_ddl(spec, Half.REALTIME)), WorkerFiles(half, True), state, planned=1
    )
    wanted = ", ".join(f'"{name}"' for name, _ in physical_columns(spec, Half.REALTIME) if name != SEGMENT)
    files: dict[str, list[str]] = {}
    for file in open_half(half).files:  # Spark's rows are in two, whose names are random
        files.setdefault(file.segment, []).append(str(file.path))
    by_segment = {
        segment: duckdb.sql(f"SELECT {wanted} FROM read_parquet({paths}) ORDER BY _hy_offset").fetchall()
        for segment, paths in files.items()
    }
    assert by_segment["t__0__0__x"] == by_segment["t__0__0__y"]
    read = spark.read.format("delta").load(str(half))
    named = [name for name, _ in physical_columns(spec, Half.REALTIME) if name != SEGMENT]
    both = [
        [tuple(one) for one in read.where(f"{SEGMENT} = '{name}'").select(*named).orderBy("_hy_offset").collect()]
        for name in ("t__0__0__x", "t__0__0__y")
    ]
    assert both[0] == both[1] and len(both[0]) == 2
    # Pruned by the log's statistics, in Spark too.
    assert read.where("_hy_offset = 1").count() == 2 and read.where("i > 5").count() == 0


@pytest.mark.spark
def test_the_log_says_the_same_of_both(half: Path, workbench: CommitContext) -> None:
    spec, spark = every_type(), workbench.spark
    rows = [row(0, s="é" * 50), row(1, s="z" * 50), row(2, i=None)]
    commit_files(spark, act(half), lambda: Written([write(half, spec, rows)], after(half)))
    theirs = [(one[0].replace("x", "y"), *one[1:]) for one in rows]
    commit_act(
        spark.createDataFrame(theirs, physical_ddl(spec, Half.REALTIME)).coalesce(1),
        WorkerFiles(half, True),
        after(half),
        planned=1,
    )
    mine, other = (_log(half, version) for version in (1, 2))
    assert mine["commitInfo"]["operation"] == other["commitInfo"]["operation"] == "WRITE"
    assert mine["commitInfo"]["operationParameters"] == other["commitInfo"]["operationParameters"]
    assert mine["txn"]["appId"] == other["txn"]["appId"] and mine["txn"]["version"] + 1 == other["txn"]["version"]
    ours, spark_has = json.loads(mine["add"]["stats"]), json.loads(other["add"]["stats"])
    assert ours["numRecords"] == spark_has["numRecords"] and ours["minValues"] == spark_has["minValues"]
    assert ours["nullCount"] == {name: spark_has["nullCount"][name] for name in ours["nullCount"]}
    text, bound = ours["maxValues"].pop("s"), spark_has["maxValues"].pop("s")
    assert ours["maxValues"] == spark_has["maxValues"] and text >= "é" * 50 and bound >= "é" * 50
    commit = read_commit(half, 1)
    assert commit is not None and [file.rows for file in commit.added] == [3]


@pytest.mark.spark
def test_an_act_that_was_overtaken_leaves_nothing(half: Path, workbench: CommitContext) -> None:
    spec, spark, stale = every_type(), workbench.spark, after(half)
    commit_files(spark, act(half), lambda: Written([write(half, spec, [row(0)])], stale))
    there = files_in(half)
    with pytest.raises(OvertakenError):
        commit_files(spark, act(half, "other"), lambda: Written([write(half, spec, [row(1)], "other")], stale))
    assert open_half(half).version == 1 and files_in(half) == there

    def fails() -> Written:
        write(half, spec, [row(2)], "third")
        raise ValueError("while it writes")

    with pytest.raises(ValueError, match="while it writes"):
        commit_files(spark, act(half, "third"), fails)
    assert open_half(half).version == 1 and files_in(half) == there
    commit_files(spark, act(half, "fourth"), lambda: Written([], after(half)))
    assert open_half(half).version == 2, "an act without rows leaves its commit"


@pytest.mark.spark
def test_a_table_that_somebody_else_has_changed_is_not_written_to(half: Path, workbench: CommitContext) -> None:
    spark, spec = workbench.spark, every_type()

    def not_asked() -> Written:
        raise AssertionError("nothing is written")

    other = FileAct(half, "ingest", "x", [*physical_columns(spec, Half.REALTIME), ("more", "bigint")])
    with pytest.raises(ConflictError, match="column 'more' is not as the table's definition has it"):
        commit_files(spark, other, not_asked)
    spark.sql(f"ALTER TABLE delta.`{half}` ADD CONSTRAINT small CHECK (i < 5)")
    with pytest.raises(ConflictError, match=r"has delta\.constraints\.small"):
        commit_files(spark, act(half), not_asked)

    def constrained_meanwhile() -> Written:
        spark.sql(f"ALTER TABLE delta.`{half}` ADD CONSTRAINT large CHECK (i > 1)")
        return Written([write(half, spec, [row(1)], "late")], after(half))

    spark.sql(f"ALTER TABLE delta.`{half}` DROP CONSTRAINT small")
    with pytest.raises(OvertakenError):
        commit_files(spark, act(half, "late"), constrained_meanwhile)
    assert files_in(half) == set()


def test_nan_is_found(half: Path) -> None:
    rows = [row(n, d=value, f=value) for n, value in enumerate([1.0, math.nan, 3.0])]
    entry = write(half, every_type(), rows)["add"]
    assert isinstance(entry, dict)
    path = half / entry["path"]
    for name in ("d", "f"):
        ((greater, highest),) = duckdb.execute(
            f"SELECT count(*) FILTER ({name} > 5), max({name}) FROM '{path}'"
        ).fetchall()
        assert greater == 1 and math.isnan(highest)
        assert duckdb.execute(f"SELECT count(*) FROM '{path}' WHERE {name} > 5").fetchall() == [(1,)]


def test_large_rows_are_not_kept_in_memory(half: Path) -> None:
    import pyarrow.parquet as pq

    entry = write(half, every_type(), [row(n, s="x" * 3000) for n in range(9)], group_bytes=10_000)["add"]
    assert isinstance(entry, dict)
    found = pq.ParquetFile(half / entry["path"]).metadata
    assert [found.row_group(n).num_rows for n in range(found.num_row_groups)] == [4, 4, 1]


def test_large_files_are_written_in_groups(half: Path) -> None:
    import pyarrow.parquet as pq

    entry = write(half, every_type(), [row(n) for n in range(25)], group_rows=10)["add"]
    assert isinstance(entry, dict)
    found = pq.ParquetFile(half / entry["path"])
    assert found.metadata.num_row_groups == 3 and found.metadata.num_rows == 25
    assert json.loads(entry["stats"])["maxValues"]["_hy_offset"] == 24
    assert SEGMENT not in found.schema_arrow.names and pa.types.is_string(found.schema_arrow.field("s").type)


def _log(half: Path, version: int) -> dict[str, Any]:
    lines = (half / "_delta_log" / f"{version:020}.json").read_text().split("\n")
    return {key: value for line in lines if line for key, value in json.loads(line).items()}
