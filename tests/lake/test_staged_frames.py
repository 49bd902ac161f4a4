"""Rows that workers read from the store and stage there, and what may go wrong (ADR 71).

The workers of this process's session stand for others: they are given the store alone. Real ones, which see no home,
are in tests/lake/test_spark_elsewhere.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.config.table_config import Half
from hybrid.errors import DataError, SpecError, StoreError
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.delta_errors import is_missing_file
from hybrid.lake.file_frames import FrameFile, file_rows
from hybrid.lake.half_frames import no_rows, rows_in, stored_rows
from hybrid.lake.layout import TableLayout, physical_ddl
from hybrid.lake.log import open_half
from hybrid.lake.staged_frames import StagedPlace, remove_staged_files, stage_files, stage_frame, stage_segments
from hybrid.lake.store_keys import store_key
from hybrid.lake.table_context import TableContext
from hybrid.lake.worker_files import WorkerFiles
from hybrid.lake.worker_inputs import WorkerInputs
from hybrid.lake.workers import listed_rows, raised_by_worker
from hybrid.replace.backfill.inputs import inspect_input
from hybrid.replace.backfill.staging import written_segments
from hybrid.replace.pushing import stage_push
from hybrid.replace.refresh_guard import _stale_then
from hybrid.replace.stage import FILE, StagedFile, StagedRows, stage
from hybrid.replace.targets import Target
from hybrid.store.plan_files import ROWS
from hybrid.table.columns import OFFSET, SEGMENT
from tests.every_type import every_type
from tests.lake.test_files import row
from tests.lake.test_store_log import environment, proxy, url, writer
from tests.lake.test_transaction import after
from tests.mirrors import Writer
from tests.query.halves import orders_spec
from tests.s3_server import needs_s3
from tests.store.store_proxy import StoreProxy, pass_on, refuse
from tests.store_servers import StoreServer, store_server

__all__ = ["environment", "proxy", "url", "writer"]  # fixtures
pytestmark = [pytest.mark.spark, needs_s3]

DDL = physical_ddl(every_type(), Half.REALTIME)
NAMES = ("a", "b c", "é=%", "[x]{y}*?")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    """Workers read and write S3 stores only."""
    with store_server("s3", tmp_path_factory.mktemp("s3")) as found:
        yield found


@pytest.fixture
def bench(workbench: CommitContext) -> CommitContext:
    return replace(workbench, start_spark=lambda: workbench.session, has_shared_files=False)


@pytest.fixture
def staging(writer: Writer) -> Path:
    return TableLayout(writer.half.parent).staging("replace-1")


def keys(writer: Writer) -> list[str]:
    """What is staged on the store, without random parts."""
    found = (item.key for item in writer.mirror.client.list_below("t") if ".plans/" in item.key)
    return sorted(key.partition(".plans/")[2].partition("part-")[0] for key in found)


def commit(bench: CommitContext, writer: Writer) -> None:
    rows = [(name, *row(number)[1:]) for number, name in enumerate(NAMES * 2)]
    frame = bench.session.createDataFrame(rows, DDL).repartition(2).sortWithinPartitions(SEGMENT)
    commit_act(frame, WorkerFiles.of(bench, writer.half), after(writer.half), planned=open_half(writer.half).version)


def test_rows_of_every_type_go_to_the_store_and_come_from_there(
    bench: CommitContext, workbench: CommitContext, writer: Writer, staging: Path
) -> None:
    commit(bench, writer)
    half = open_half(writer.half)
    by_spark = stored_rows(workbench, half)
    expected = sorted(map(str, by_spark.collect()))
    assert len(expected) == 8 and {file.segment for file in half.files} == {*NAMES}
    assert all(file.low[OFFSET] == file.high[OFFSET] or file.rows > 1 for file in half.files), "the log has statistics"
    for path in writer.half.glob("*/*.parquet"):
        path.rename(path.with_suffix(".away"))  # workers do not see it
    found = stored_rows(bench, half)
    assert found.schema == by_spark.schema
    assert sorted(map(str, found.collect())) == expected
    staged = stage_frame(bench, found.where(f"{OFFSET} > 0"), staging / "rows of it")
    assert staged.count() == staged.where(f"{OFFSET} > 0").count() == 7 and not staging.exists()
    assert {key.rpartition("/")[0] for key in keys(writer)} == {"replace-1/staged/rows of it"}
    remove_staged_files(staging)
    assert keys(writer) == [] and no_rows(bench, half).collect() == []


def test_what_the_home_needs_is_brought(bench: CommitContext, writer: Writer, staging: Path) -> None:
    rows = [(name, *row(number)[1:]) for number, name in enumerate(NAMES)]
    frame = bench.session.createDataFrame(rows, DDL).coalesce(1).sortWithinPartitions(SEGMENT)
    stage_segments(bench, frame, staging / ROWS)
    paths = sorted((staging / ROWS).glob("*/*.parquet"))
    assert [pq.read_metadata(path).num_rows for path in paths] == [1] * 4
    assert {key.rpartition("/")[0].partition("/")[2] for key in keys(writer)} == {
        f"{ROWS}/{path.parent.name}" for path in paths
    }, "where a plan has them"
    assert written_segments(staging / ROWS, NAMES, frozenset()).keys() == {*NAMES}
    read = file_rows(bench, DDL, [FrameFile(str(path), NAMES[0]) for path in paths], staging / ROWS)
    assert {one[0] for one in read.select(SEGMENT).collect()} == {NAMES[0]} and read.count() == 4
    stage_files(bench, frame.select(OFFSET), staging / "claims")
    (claims,) = (staging / "claims").glob("*.parquet")
    assert pq.read_table(claims).column(OFFSET).to_pylist() == sorted(range(4), key=lambda n: NAMES[n])


def test_thousands_of_files_leave_no_key_on_disk(bench: CommitContext, server: StoreServer, staging: Path) -> None:
    files = [FrameFile(str(staging / ROWS / f"{number:0200}.parquet"), "a") for number in range(4_000)]
    file_rows(bench, DDL, files, staging / ROWS)
    secret = server.environment["AWS_SECRET_ACCESS_KEY"].encode()
    written = Path(bench.session.sparkContext._temp_dir).rglob("*")
    assert not [path for path in written if path.is_file() and secret in path.read_bytes()]


def test_a_push_has_few_files(bench: CommitContext, writer: Writer, staging: Path) -> None:
    rows = [(number % 2, *row(number)[1:]) for number in range(20)]
    frame = bench.session.createDataFrame(rows, DDL.replace(f"`{SEGMENT}` string", f"{FILE} int")).coalesce(1)
    files = tuple(StagedFile(staging / name, 10, 0, 1, 2) for name in "ab")
    table = TableContext(bench, every_type(), TableLayout(writer.half.parent))
    targets = [Target(name, (number,), 10, 1, 2) for number, name in enumerate("ab")]
    stage_push(table, StagedRows(frame, files, ()), targets, staging)
    assert [path.parent.name for path in sorted((staging / ROWS).glob("*/*"))] == [f"{SEGMENT}={name}" for name in "ab"]


def test_one_segment_is_read_without_the_others(bench: CommitContext, writer: Writer) -> None:
    commit(bench, writer)
    half = open_half(writer.half)
    for file in half.files:
        if file.segment != "b c":
            writer.mirror.client.delete(store_key(writer.mirror, Path(file.path)))
    assert rows_in(bench, half, ["b c"]).count() == 2


def test_files_of_older_columns_have_the_types_of_the_half(bench: CommitContext, writer: Writer, staging: Path) -> None:
    folder = staging / "older"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"n": pa.array([1, 2], pa.int32()), "gone": [1, 2]}), folder / "f.parquet")
    writer.mirror.client.upload_file(f"{StagedPlace.of(bench, folder).key}/f.parquet", folder / "f.parquet")
    read = file_rows(bench, "n bigint, at timestamp, many array<string>", [FrameFile(str(folder / "f.parquet"))])
    assert [tuple(one) for one in read.collect()] == [(1, None, None), (2, None, None)]


def test_a_store_that_refuses_is_told_and_nothing_is_committed(
    bench: CommitContext, writer: Writer, proxy: StoreProxy, staging: Path
) -> None:
    commit(bench, writer)
    version, files = open_half(writer.half).version, set(writer.half.rglob("*.parquet"))
    proxy.always = refuse(403, "AccessDenied")
    refused = "The store does not permit it"
    with pytest.raises(StoreError, match=refused):
        commit(bench, writer)
    with pytest.raises(StoreError, match=refused):
        stage_frame(bench, bench.session.range(3).toDF("n"), staging / "rows")
    with pytest.raises(StoreError, match=refused), raised_by_worker():
        stored_rows(bench, open_half(writer.half)).count()
    older: Any = SimpleNamespace(id="replace-0", lineage=SimpleNamespace(version_before=version))
    with pytest.raises(StoreError, match=refused):  # not the conflict of rows that are gone
        _stale_then(bench, open_half(writer.half), older, {NAMES[0]}, {"flow": 1})
    proxy.always = pass_on
    assert (open_half(writer.half).version, set(writer.half.rglob("*.parquet"))) == (version, files)


def test_a_file_that_was_purged_is_told_as_one(bench: CommitContext, writer: Writer) -> None:
    commit(bench, writer)
    frame = stored_rows(bench, open_half(writer.half))
    for item in writer.mirror.client.list_below(writer.mirror.key_of(writer.half)):
        if item.key.endswith(".parquet"):
            writer.mirror.client.delete(item.key)
    with pytest.raises(Exception, match="No such file or directory") as raised:
        frame.count()
    assert is_missing_file(raised.value), "so the operation is planned again"


def test_inputs_are_fetched_one_at_a_time(bench: CommitContext, writer: Writer, staging: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.json", "b.json")]
    for path in paths:
        path.write_text(path.name)
    inputs = WorkerInputs.of(bench, [paths[0], paths[0], paths[1]], staging / "files")
    assert len(keys(writer)) == 2
    keys_of = [inputs.keys[path] for path in paths]
    with inputs.reader.opened() as path_of:
        first = path_of(paths[0], keys_of[0])
        assert first.read_text() == "a.json" and path_of(paths[0], keys_of[0]) == first
        assert path_of(paths[1], keys_of[1]).read_text() == "b.json" and not first.exists()
        remove_staged_files(staging)
        with pytest.raises(StoreError, match=r"a copy of .*a\.json, is not there any more"):
            path_of(paths[0], keys_of[0])


def test_what_a_failed_plan_staged_goes_unless_another_home_writes(
    bench: CommitContext, writer: Writer, staging: Path
) -> None:
    stage_files(bench, bench.session.range(3).toDF("n"), staging / ROWS)
    stage_frame(bench, bench.session.range(3).toDF("n"), staging / "winners")
    before = keys(writer)
    assert set(before) == {f"replace-1/{ROWS}/", "replace-1/staged/winners/"}
    claim = writer.mirror.ownership.look()
    assert claim is not None
    other = Writer.at(writer.folder.parent.parent / "b" / "warehouse", writer.url, "b")
    other.mirror.ownership.take_over(claim)
    remove_staged_files(staging)
    assert keys(writer) == before, "the other home may do the same"
    taken = other.mirror.ownership.look()
    assert taken is not None
    writer.mirror.ownership.take_over(taken)
    (TableLayout(writer.half.parent).plan("replace-1")).mkdir(parents=True)
    remove_staged_files(staging)
    assert set(keys(writer)) == {f"replace-1/{ROWS}/"}, "the rows of a plan stay"
    (TableLayout(writer.half.parent).plan("replace-1")).rmdir()
    remove_staged_files(staging)
    assert keys(writer) == []


def test_a_job_reads_its_files_in_their_order(
    bench: CommitContext, writer: Writer, staging: Path, tmp_path: Path
) -> None:
    paths = [tmp_path / name for name in ("a.json", "b.json", "c.json")]
    for number, path in enumerate(paths):
        path.write_text("".join(f'{{"order_id": {10 * number + n}, "ts": 1}}\n' for n in range(2)))
    inspected = [inspect_input(orders_spec(), path) for path in paths]
    staged = stage(bench, orders_spec(), [file for (file,), _ in inspected], inspected[0][1], staging / "input")
    assert [one[0] for one in staged.frame.orderBy(OFFSET).select("order_id").collect()] == [0, 1, 10, 11, 20, 21]
    assert [file.rows for file in staged.files] == [2, 2, 2]
    listed = listed_rows(bench.session, [(n,) for n in range(9)], "n int", 4)
    assert [[one.n for one in rows] for rows in listed.rdd.glom().collect()] == [[0, 1, 2], [3, 4], [5, 6], [7, 8]]


def test_a_home_without_a_store_is_refused(bench: CommitContext, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="is for a warehouse on an object store"):
        stage_frame(bench, bench.session.range(1).toDF("n"), tmp_path / "t" / "staging" / "x" / "rows")


def test_rows_outside_of_what_is_replaced_are_refused(bench: CommitContext, writer: Writer) -> None:
    frame = bench.session.createDataFrame([("b", *row(1)[1:])], DDL)
    files, version = WorkerFiles.of(bench, writer.half), open_half(writer.half).version
    with pytest.raises(DataError, match="segment 'b', which is not replaced"):
        commit_act(frame, files, after(writer.half), planned=version, replacing=["a"])
    assert open_half(writer.half).version == version
