"""A move writes what Python lists say: every row, or of each key in a bucket the one that wins, each once, in order.

HYBRID_SEEDS=20 plays more lives.
"""

from __future__ import annotations

import base64
import json
import math
import os
import random
import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.config.table_config import ARRIVED, Half, MergeType, MoveConfig, TableSpec, UpsertConfig
from hybrid.errors import DataError, OvertakenError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.delta_errors import is_missing_file
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.log_entries import DataFile
from hybrid.move import direct, latest, move
from hybrid.move.direct import is_direct
from hybrid.move.file_reader import FILE, ROW, FileRows, bucket_sql, worker_database
from hybrid.move.latest import slices
from hybrid.move.move import run_move
from hybrid.move.plan import Reach
from hybrid.move.task_splits import borders_of_all
from hybrid.move.time_ranges import TimeRange, groups
from hybrid.move.waiting_rows import waiting_rows
from hybrid.query.engine import QueryOptions, run
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from hybrid.table import columns
from hybrid.table.boundary import INFINITE, Boundary, PartitionKey
from hybrid.table.state import AS_STORED, READ_VERSION
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec

BUCKET, NOW = 1000, 20_000
KEYS = [KEY, PartitionKey("kafka", "orders", 0, 1), PartitionKey("kafka", "other", 1, 0)]
PRICE = FieldSpec("price", DataType.DOUBLE, FieldKind.METRIC)
REGION = FieldSpec("region", DataType.STRING, FieldKind.DIMENSION)


def spec_of(kind: str) -> TableSpec:
    plain = orders_spec(upsert=kind != "append", deletes=True, extra=(PRICE, REGION), time_column="ts")
    merge = MergeType.CONCAT if kind == "append" else MergeType.LATEST
    plain = replace(plain, move=MoveConfig(BUCKET, 0, merge, max_records_per_segment=50))
    if kind == "append":
        return replace(plain, upsert=None)
    if kind == "dedup":
        return replace(plain, upsert=UpsertConfig(ARRIVED, first_wins=True))
    if kind == "nulls":  # a comparison column with nulls and NaN, ties, and a key of several columns
        keys = replace(plain.schema, primary_key=("order_id", "region"))
        return replace(plain, schema=keys, upsert=UpsertConfig("price", "gone"))
    if kind == "floats":
        return replace(plain, schema=replace(plain.schema, primary_key=("price",)))
    if kind == "places":  # a column hides the place of a row from DuckDB
        place = FieldSpec("File_Row_Number", DataType.LONG, FieldKind.DIMENSION)
        return replace(plain, schema=replace(plain.schema, fields=(*plain.schema.fields, place)))
    if kind == "timeless":
        return replace(plain, time_column=None)
    return plain


class Life:
    """A table with random realtime rows; `stored` are all of them."""

    def __init__(self, folder: Path, kind: str, seed: int) -> None:
        self.dice = random.Random(f"{kind} {seed}")
        self.halves = Halves.create(folder, spec_of(kind))
        self.stored: list[Row] = []
        self.ends = dict.fromkeys(KEYS, 0)
        if self.spec.time_column is None:
            self.halves.commit_offline([], Boundary(INFINITE), "create")

    @property
    def spec(self) -> TableSpec:
        return self.halves.spec

    def ingest(self) -> None:
        """Commits some files of rows, times out of order, and rejected rows beside them."""
        rows = [self.row(self.dice.choice(KEYS)) for _ in range(self.dice.randrange(1, 40))]
        bad = replace(self.row(KEYS[0]), segment="orders__rejected", reason="bad", time_ms=None)
        self.stored += rows
        self.ends = {key: end + 1 for key, end in self.ends.items()}
        self.halves.commit_realtime([*rows, bad], offsets=dict(self.ends))

    def row(self, key: PartitionKey) -> Row:
        dice, time = self.dice, self.dice.randrange(-2 * BUCKET, 12 * BUCKET)
        step = dice.choice([1, 1, 2] if self.spec.upsert is not None else [0, 1, 2])  # 0: several rows of a message
        offset, self.ends[key] = self.ends[key], self.ends[key] + step
        values = {
            "order_id": dice.randrange(9),
            "customer": f"c'{dice.randrange(1000)}",
            "amount": dice.randrange(1000) / 4,
            "ts": time,
            "gone": dice.random() < 0.2,
            "price": dice.choice([None, math.nan, -0.0, 0.0, 1.5, 2.5]),
            "region": dice.choice([None, "", "é", "z"]),
        }
        values |= {name: dice.randrange(5) for name in self.spec.schema.column_names if name == "File_Row_Number"}
        op = columns.OP_DELETE if values["gone"] and self.spec.upsert is not None else columns.OP_ROW
        segment = f"orders__{key.partition}__{dice.randrange(3)}__x"
        has_time = self.spec.time_column is not None
        return Row(values, time if has_time else None, offset, key, dice.randrange(5), op, segment)

    def half(self, half: Half) -> HalfSnapshot:
        return open_half(self.halves.layout.half(half))

    @property
    def boundary(self) -> Boundary:
        return self.half(Half.OFFLINE).offline.boundary

    def covered(self, boundary: Boundary) -> list[Row]:
        return [row for row in self.stored if boundary.covers(row.time_ms, row.key or KEY, row.offset or 0)]

    def files(self) -> list[list[dict[str, Any]]]:
        return [pq.ParquetFile(file.path).read().to_pylist() for file in self.half(Half.OFFLINE).files]


def winners(spec: TableSpec, rows: Sequence[Row]) -> list[Row]:
    """Of each key in a bucket the row that wins, by Python's comparison."""
    if spec.upsert is None:
        return list(rows)
    upsert = spec.upsert

    def order(row: Row) -> tuple[Any, ...]:
        value = row.stored()[upsert.comparison_column]
        rank = (0, 0) if value is None else (2, 0) if value != value else (1, value)
        key = row.key or KEY
        return (rank, row.timestamp_ms, key.connector, key.topic, key.epoch, key.partition, row.offset)

    def same(row: Row) -> tuple[Any, ...]:
        bucket = None if row.time_ms is None else row.time_ms // BUCKET
        return (bucket, *(shown(row.values[name]) for name in spec.primary_key))

    choose = min if upsert.first_wins else max
    return [choose(group, key=order) for _, group in groupby(sorted(rows, key=lambda row: repr(same(row))), key=same)]


def shown(value: object) -> str:
    """A value as text: NaN is NaN, and zeros of both signs are one key."""
    return repr(0.0 if isinstance(value, float) and value == 0 else value)


def exact(row: dict[str, Any]) -> str:
    hidden = ("_hy_segment", columns.REASON, columns.RAW)
    return repr(sorted((name, value) for name, value in row.items() if name not in hidden))


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows make several tasks, and several slices of keys."""
    monkeypatch.setattr(move, "rows_per_task", lambda rows_max: 12)
    monkeypatch.setattr(move, "borders_of_all", partial(borders_of_all, rows_per_task=12))
    monkeypatch.setattr(direct, "slices", partial(slices, rows_of_few=8))


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["append", "upsert", "dedup", "nulls", "floats", "places", "timeless"])
@pytest.mark.parametrize("seed", range(1 + int(os.environ.get("HYBRID_SEEDS", 0))))
def test_a_move_writes_what_lists_say(workbench: CommitContext, tmp_path: Path, kind: str, seed: int) -> None:
    life, now = Life(tmp_path, kind, seed), 0
    bench = CommitContext(lambda: workbench.spark, lambda: now, workbench.progress)
    expected: list[Row] = []
    moved = 0
    for turn in range(5):
        for _ in range(life.dice.randrange(1, 4)):
            life.ingest()
        now = life.dice.randrange(0, 13 * BUCKET) if turn < 4 else NOW
        before = life.boundary
        report = run_move(life.halves.context(bench), reach=Reach(life.dice.choice([1, 2, None])))
        known = {id(row) for row in life.covered(before)}
        fresh = [row for row in life.covered(life.boundary) if id(row) not in known]
        assert (report.rows_read, report.moved) == (len(fresh), bool(fresh))
        kept = winners(life.spec, fresh)
        assert report.rows_written == len(kept)
        moved += len(fresh)
        expected += kept
    files = life.files()
    names = {name for file in files for row in file for name in row}
    wanted = [{name: row.stored().get(name) for name in names} for row in expected]
    assert sorted(exact(row) for file in files for row in file) == sorted(exact(row) for row in wanted)
    assert moved > 50
    for file in files:
        order = [(row[columns.TIME] or 0, *(row[name] for name in columns.ARRIVAL)) for row in file]
        assert order == sorted(order), "rows of a file are in the order of time and arrival"
        assert len({row[columns.TIME] // BUCKET for row in file if row[columns.TIME] is not None}) <= 1


@pytest.mark.spark
@pytest.mark.parametrize("rows", [1, 60])
def test_tasks_share_a_bucket_and_its_losers(workbench: CommitContext, tmp_path: Path, rows: int) -> None:
    """Of equal rows but for the offset the last one stays, wherever ranges and slices end."""
    halves = Halves.create(tmp_path, spec_of("upsert"))
    values = {"customer": "c", "amount": 1.0, "gone": False}
    stored = [
        Row(
            {**values, "order_id": number % 7, "ts": number % 5 * 100},
            number % 5 * 100,
            number,
            segment="orders__0__0__x",
        )
        for number in range(rows)
    ]
    for at in range(0, rows, 25):
        halves.commit_realtime(stored[at : at + 25], offsets={KEY: rows})
    bench = CommitContext(lambda: workbench.spark, lambda: NOW, workbench.progress)
    report = run_move(halves.context(bench))
    newest = {
        row.values["order_id"]: row for row in sorted(stored, key=lambda row: (row.time_ms or 0, row.offset or 0))
    }
    found = [
        (row["order_id"], row[columns.OFFSET])
        for file in open_half(halves.layout.half(Half.OFFLINE)).files
        for row in pq.ParquetFile(file.path).read().to_pylist()
    ]
    assert sorted(found) == sorted((key, row.offset) for key, row in newest.items())
    assert (report.rows_read, report.rows_written) == (rows, len(newest))


@pytest.mark.spark
def test_the_commit_says_whether_rows_are_as_they_were_stored(workbench: CommitContext, tmp_path: Path) -> None:
    for name, config, said in (
        ("concat", MoveConfig(BUCKET, 0), True),
        ("rounded", MoveConfig(BUCKET, 0, round_ms=100), False),
        ("dedup", MoveConfig(BUCKET, 0, MergeType.DEDUP), False),
    ):
        halves = Halves.create(tmp_path / name, replace(spec_of("append"), move=config))
        values = {"order_id": 1, "customer": "c", "amount": 1.0, "ts": 150, "gone": False}
        halves.commit_realtime([Row(values, 150, 0)], offsets={KEY: 1})
        bench = CommitContext(lambda: workbench.spark, lambda: NOW, workbench.progress)
        assert run_move(halves.context(bench)).moved
        detail = open_half(halves.layout.half(Half.OFFLINE)).offline.act.detail
        assert detail[AS_STORED] is said is is_direct(config, halves.spec)
        assert detail[READ_VERSION] == open_half(halves.layout.half(Half.REALTIME)).version


@pytest.mark.spark
def test_rows_that_are_missing_are_noticed(
    workbench: CommitContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row less than was counted, and one more left out than was found, change nothing."""
    life = Life(tmp_path, "upsert", 7)
    life.ingest()
    bench = CommitContext(lambda: workbench.spark, lambda: NOW, workbench.progress)
    honest = direct.write_directly

    def lossy(*args: Any) -> direct.DirectResult:
        result = honest(*args)
        return replace(result, left_out=result.left_out + 1)

    monkeypatch.setattr(move, "write_directly", lossy)
    with pytest.raises(DataError, match="Nothing was changed"):
        run_move(life.halves.context(bench), reach=Reach(None))
    assert life.files() == []


@pytest.mark.spark
def test_a_file_that_was_purged_meanwhile_is_told_from_other_errors(workbench: CommitContext, tmp_path: Path) -> None:
    life = Life(tmp_path, "upsert", 8)
    life.ingest()
    for file in life.half(Half.REALTIME).files:
        Path(file.path).unlink()
    bench = CommitContext(lambda: workbench.spark, lambda: NOW, workbench.progress)
    with pytest.raises(Exception) as raised:
        run_move(life.halves.context(bench), reach=Reach(None))
    assert is_missing_file(raised.value) and not isinstance(raised.value, OvertakenError)


# Without a JVM


def test_mapped_columns_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path, "append", 9)
    life.ingest()
    for mode, refused in (("none", False), ("name", True)):
        monkeypatch.setattr(HalfSnapshot, "properties", {"delta.columnMapping.mode": mode})
        if refused:
            with pytest.raises(DataError, match="mapped columns, which another tool turned on") as raised:
                waiting_rows(life.spec, life.half(Half.REALTIME), life.boundary)
            assert "ALTER TABLE delta.`" in str(raised.value.hint)
        else:
            assert waiting_rows(life.spec, life.half(Half.REALTIME), life.boundary).files


def test_deletion_vectors_are_refused_but_not_the_feature_alone(tmp_path: Path) -> None:
    life = Life(tmp_path, "append", 9)
    life.ingest()
    half = life.halves.layout.half(Half.REALTIME)
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "appendOnly", "invariants"],
    }
    add_entry(half, {"protocol": protocol})
    assert waiting_rows(life.spec, life.half(Half.REALTIME), life.boundary).files
    entries = [json.loads(line) for path in half.glob("_delta_log/*.json") for line in path.read_text().splitlines()]
    add = next(entry["add"] for entry in entries if "add" in entry)
    # Delta's bitmap of one row, the first, in the entry itself: "Deletion Vector Format" of its protocol.
    bitmap = struct.pack("<IQIIIHHIHxx", 1681511377, 1, 0, 12346, 1, 0, 0, 16, 0)
    text = base64.b85encode(bitmap).translate(bytes.maketrans(_BASE85, _Z85)).decode()
    vector = {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": 34, "cardinality": 1}
    removed = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}
    add_entry(half, {"remove": removed}, {"add": {**add, "deletionVector": vector}})
    with pytest.raises(DataError, match="deletion vectors, which another tool turned on") as raised:
        waiting_rows(life.spec, life.half(Half.REALTIME), life.boundary)
    assert "APPLY (PURGE)" in str(raised.value.hint) and "DROP FEATURE deletionVectors" in str(raised.value.hint)


_BASE85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def add_entry(half: Path, *actions: dict[str, Any]) -> None:
    """Another tool's commit."""
    info = {"commitInfo": {"timestamp": 1, "operation": "OTHER"}}
    path = half / "_delta_log" / f"{open_half(half).version + 1:020d}.json"
    path.write_text("".join(json.dumps(action) + "\n" for action in (info, *actions)))


def test_a_column_of_the_definition_may_be_missing_in_the_half(tmp_path: Path) -> None:
    life = Life(tmp_path, "append", 9)
    life.ingest()
    newer = replace(life.spec.schema, fields=(*life.spec.schema.fields, FieldSpec("new", DataType.LONG, PRICE.kind)))
    half = life.half(Half.REALTIME)
    assert not waiting_rows(life.spec, half, life.boundary).grown
    rows = waiting_rows(replace(life.spec, schema=newer), half, life.boundary)
    with worker_database() as database:
        assert set(database.execute(rows.select("new")).fetchall()) == {(None,)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["upsert", "dedup"])
def test_of_equal_rows_the_first_one_stays(tmp_path: Path, kind: str) -> None:
    """Rows of one message may be equal in time and arrival. Queries and the move show the same one."""
    halves, spec = Halves.create(tmp_path, spec_of(kind)), spec_of(kind)
    values = [
        {"order_id": number % 3, "customer": f"c{number}", "amount": 1.0, "ts": 5, "gone": False}
        for number in range(300)
    ]
    halves.commit_realtime([Row(one, 5, 0, segment="orders__0__0__x") for one in values], offsets={KEY: 1})
    rows = waiting_rows(spec, open_half(halves.layout.half(Half.REALTIME)), Boundary())
    assert spec.move is not None
    with worker_database() as database:
        lost = database.execute(latest.losers_sql(rows, spec, spec.move, latest.KeySlice(TimeRange(columns.TIME))))
        places = {row[2] for row in lost.fetchall()}
    assert set(range(300)) - places == {0, 1, 2}
    shown = run("select customer from orders order by order_id", halves, QueryOptions(tail=ListTail())).rows
    assert shown == [("c0",), ("c1",), ("c2",)]


def test_columns_that_hide_places(tmp_path: Path) -> None:
    config = MoveConfig(BUCKET, 0, MergeType.LATEST)
    assert is_direct(config, spec_of("upsert")) and not is_direct(config, spec_of("places"))
    assert is_direct(replace(config, merge_type=MergeType.CONCAT), spec_of("places"))


@pytest.mark.parametrize("places", [[(0, 1), (0, 1)], [(0, 1), (0, None)], [(None, 1), (1, 1)]])
def test_places_that_are_missing_or_not_distinct_are_noticed(
    tmp_path: Path, places: list[tuple[int | None, int | None]]
) -> None:
    path = tmp_path / "lost.parquet"
    found = [{latest.AT: 5, FILE: file, ROW: row} for file, row in places]
    whole = pa.schema([(latest.AT, pa.int64()), (FILE, pa.int32()), (ROW, pa.int64())])
    pq.write_table(pa.Table.from_pylist(found, whole), path)
    spec, task = spec_of("upsert"), direct._WriteTask(TimeRange(columns.TIME), [str(path)])
    assert spec.move is not None
    with worker_database() as database, pytest.raises(DataError, match="a place of their own"):
        direct._find_losers(database, FileRows([], "TRUE", [], False), spec, spec.move, task)


def test_batches_of_long_rows_are_short() -> None:
    def size(rows: int, size: int) -> int:
        return direct.batch_rows([DataFile("f", "s", rows, size, 0)])

    assert size(1_000_000, 20_000_000) == 65_536
    assert size(1000, 200_000) == (16 << 20) // (200 * 8)
    assert (size(10, 100_000_000), size(0, 0)) == (256, 256)


def test_ranges_follow_each_other_and_groups_share_no_bucket() -> None:
    found = groups("t", [-5, 0, 3, 7, 10, 20, 25], 10)
    edges = [[(part.low, part.high) for part in group] for group in found]
    assert edges == [
        [(None, -5), (-5, 0)],
        [(0, 3), (3, 7), (7, 10)],
        [(10, 20)],
        [(20, 25), (25, None)],
    ]
    assert groups("t", [], 10) == [[TimeRange("t")]]
    (timeless,) = groups("t", [10, 20], None)
    assert [(part.low, part.high) for part in timeless] == [(None, 10), (10, 20), (20, None)]


def test_each_time_is_in_one_range() -> None:
    parts = [part for group in groups("t", [0, 3, 10], 10) for part in group]
    with worker_database() as database:
        for value in ("-4", "0", "2", "3", "9", "10", "99", "NULL"):
            hits = [
                database.execute(
                    f"SELECT coalesce({part.condition}, FALSE) FROM (SELECT {value}::BIGINT AS t)"
                ).fetchone()
                for part in parts
            ]
            assert [hit and hit[0] for hit in hits].count(True) == 1, value


def test_a_range_leaves_out_files_by_their_statistics_only() -> None:
    def file(low: object, high: object) -> DataFile:
        return DataFile("f", "s", 1, 1, 0, {"t": low}, {"t": high})

    part = TimeRange("t", 10, 20)
    assert [part.may_hold(file(*times)) for times in ((0, 9), (0, 10), (19, 30), (20, 30), (None, None))] == [
        False, True, True, False, True,
    ]  # fmt: skip
    assert TimeRange("t").may_hold(file(0, 9)) and not TimeRange("t", None, 0).may_hold(file(0, 9))


def test_buckets_of_negative_times() -> None:
    with worker_database() as database:
        for time in (-1001, -1000, -1, 0, 999, 1000):
            found = database.execute(f"SELECT {bucket_sql(f'({time})', 1000)}").fetchone()
            assert found == (time // 1000 * 1000,)
