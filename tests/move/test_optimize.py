"""Optimize on a real REALTIME half: fewer files, the same answers, whatever happens to the segment afterwards."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable, Field, TableFeatures
from deltalake.schema import PrimitiveType

from hybrid.config.table_config import Half, MoveConfig, TableSpec
from hybrid.errors import ConflictError, SpecError
from hybrid.lake.commit import commit_columns
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.create import create_half, delta_fields
from hybrid.lake.layout import TableLayout, spark_columns
from hybrid.lake.lock import half_lock
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import DataFile
from hybrid.lake.table_context import TableContext
from hybrid.lake.transaction import LogTransaction
from hybrid.move.move import run_move
from hybrid.move.optimize import OptimizeTuning, _holds, _within, heaps, rewrite, run_optimize
from hybrid.move.plan import Reach
from hybrid.move.retention.run import run_retention
from hybrid.progress import Silent
from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import NoTail
from hybrid.table.columns import SEGMENT, rejected_segment
from hybrid.table.state import Act, Consuming, RealtimeState
from tests.every_type import every_type, values
from tests.lake.test_files import after, write
from tests.lake.test_files import row as stored_row
from tests.query.halves import KEY, Halves, Row, orders_spec
from tests.query.stepped import SteppedCache
from tests.records.test_decode import EVERY_TYPE, table

OFFLINE, REALTIME = Half.OFFLINE, Half.REALTIME
DAY = 86_400_000
NOW = 100 * DAY
FULL, OPEN = "orders__0__0__20210924T0602Z", "orders__0__1__20210924T0602Z"
ALL = "select order_id, customer, amount from orders order by order_id, amount limit 1000"


def rejected(offset: int) -> Row:
    return Row({}, None, offset, segment=rejected_segment("orders"), reason="no number", raw=b"x")


def built(folder: Path, **options: Any) -> Halves:
    """A sealed segment of six commits and a consuming one of five, rejected rows in each; nothing has moved."""
    spec = replace(
        orders_spec(**options), move=MoveConfig(bucket_ms=DAY, buffer_ms=DAY), retention={REALTIME: 30 * DAY}
    )
    halves = Halves.create(folder, spec)
    for number in range(11):
        values = {"order_id": number % 4, "customer": f"c{number}", "amount": float(number), "ts": number * DAY // 6}
        segment, row = (FULL if number < 6 else OPEN), Row(values, number * DAY // 6, 2 * number)
        consuming = {KEY: Consuming(OPEN, 1, 12, number - 5, 10, 0)} if number > 5 else {}
        halves.commit_realtime(
            [replace(row, segment=segment), rejected(2 * number + 1)],
            offsets={KEY: 2 * number + 2},
            consuming=consuming,
            sequences={KEY: 2},
            rejected=number + 1,
        )
    return halves


def bench_of(shared: CommitContext | None) -> CommitContext:
    def no_spark() -> Any:
        raise AssertionError("no JVM is needed")

    start = no_spark if shared is None else lambda: shared.spark
    return CommitContext(start, lambda: NOW, Silent(), lock_timeout_s=0.2)


def rows(halves: Halves) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in run(ALL, halves, QueryOptions(tail=NoTail(), now_ms=lambda: NOW)).rows]


def counts(halves: Halves) -> dict[str, int]:
    files = open_half(halves.layout.half(REALTIME)).files
    return {name: sum(file.segment == name for file in files) for name in {file.segment for file in files}}


def step(cache: SteppedCache) -> list[tuple[Any, ...]]:
    cache.followed.follower._logs_checked_at = 0.0
    answer = cache.ask(ALL)
    assert answer is not None
    return [tuple(row) for row in answer.rows]


@pytest.mark.spark
@pytest.mark.parametrize("upsert", [False, True])
def test_nothing_else_notices(workbench: CommitContext, tmp_path: Path, upsert: bool) -> None:
    halves = built(tmp_path, upsert=upsert)
    path = halves.layout.half(REALTIME)
    bench, cache = bench_of(workbench), SteppedCache(halves, NOW)
    shown, state, before = rows(halves), open_half(path).realtime, open_half(path).version
    assert step(cache) == shown and cache.built == 1
    dry = run_optimize(halves.context(bench_of(None)), dry_run=True)
    assert open_half(path).version == before and dry.sentence.startswith("Would write 6 small files (")

    report = run_optimize(halves.context(bench), run_id="optimize-1")
    assert vars(report) == {**vars(dry), "versions": (before + 1,), "sentence": report.sentence, "dry_run": False}
    assert (report.segments, report.files, report.files_after) == ((FULL,), 6, 1)
    assert counts(halves) == {FULL: 1, OPEN: 5, rejected_segment("orders"): 11}
    assert open_half(path).realtime == state and rows(halves) == shown
    assert step(cache) == shown and cache.built == 1, "the cache follows it"
    (file,) = (file for file in open_half(path).files if file.segment == FULL)
    assert file.rows == 6 and file.times == (0, 5 * DAY // 6)
    line = (path / "_delta_log" / f"{before + 1:020d}.json").read_text(encoding="utf-8").partition("\n")[0]
    info = json.loads(line)["commitInfo"]
    assert json.loads(info["userMetadata"]) == {"task": "OptimizeTask", "run": "optimize-1"}
    assert workbench.spark.conf.get("spark.databricks.delta.commitInfo.userMetadata", "none") == "none"
    again = run_optimize(halves.context(bench_of(None)))
    assert not again.versions and again.sentence.startswith("Nothing to optimize in 'orders': no sealed segment")

    late = Row({"order_id": 9, "customer": "late", "amount": 1.0, "ts": DAY}, DAY, 22, segment=OPEN)
    halves.realtime = open_half(path).realtime
    halves.commit_realtime([late], offsets={KEY: 23})
    shown = rows(halves)
    assert len(shown) == (5 if upsert else 12) and step(cache) == shown
    moved = run_move(halves.context(bench), reach=Reach(None))
    assert moved.moved and rows(halves) == shown == step(cache)
    dropped = run_retention(halves.context(bench))
    assert dropped.segments == {"REALTIME": (FULL,)} and rows(halves) == shown == step(cache)


@pytest.mark.spark
def test_it_goes_on_by_holds_and_waits_for_others(workbench: CommitContext, tmp_path: Path) -> None:
    halves = built(tmp_path)
    shown = rows(halves)
    (heap,) = heaps(halves.spec, open_half(halves.layout.half(REALTIME)))
    tuning = OptimizeTuning(hold_bytes=heap.bytes // 2 + 1, files_min=2)
    bench = bench_of(workbench)
    (part,) = heaps(halves.spec, open_half(halves.layout.half(REALTIME)), tuning)
    assert 2 <= len(part.files) < 6, "more than one hold can write"
    dry = run_optimize(halves.context(bench), dry_run=True, tuning=tuning)
    with bench.lock(halves.layout, OFFLINE):
        report = run_optimize(halves.context(bench), tuning=tuning)
    assert (report.files, report.files_after) == (dry.files, dry.files_after)
    assert counts(halves)[FULL] == 6 - report.files + report.files_after
    assert rows(halves) == shown

    # As another process does, which takes no turn among this one's threads.
    other = half_lock(halves.layout.lock(REALTIME), jvm_pid=None, timeout_s=1, waiting=print)
    with other, pytest.raises(ConflictError, match="Nothing was changed"):
        run_optimize(halves.context(bench), tuning=replace(tuning, hold_bytes=heap.bytes * 2))


def test_a_table_without_realtime_has_nothing_to_optimize(tmp_path: Path) -> None:
    halves = Halves.create(tmp_path, orders_spec(halves=[OFFLINE]))
    with pytest.raises(SpecError, match="no REALTIME half"):
        run_optimize(halves.context(bench_of(None)))


def test_what_others_have_made_of_the_half_is_left_to_them(tmp_path: Path) -> None:
    halves = built(tmp_path)
    half = DeltaTable(str(halves.layout.half(REALTIME)))
    half.alter.add_columns([Field("theirs", PrimitiveType("string"))])
    report = run_optimize(halves.context(bench_of(None)))
    assert report.sentence.endswith("REALTIME has columns that the table does not define (theirs).")
    half.alter.add_feature(TableFeatures.ChangeDataFeed, allow_protocol_versions_increase=True)
    report = run_optimize(halves.context(bench_of(None)))
    assert not report.versions and "has the Delta feature changeDataFeed. Use the OPTIMIZE" in report.sentence


@pytest.mark.spark
def test_values_of_every_type_stay(workbench: CommitContext, tmp_path: Path) -> None:
    """Also where a column came, or became wider, after some of the files."""
    layout, narrow = TableLayout(tmp_path / "t"), every_type()
    half = layout.half(REALTIME)
    create_half(half, narrow, REALTIME, RealtimeState(Act("create-0", 0, "create", "x")))

    def commit(spec: TableSpec, rows: list[tuple[object, ...]]) -> None:
        files = [write(half, spec, [one], f"i-{number}") for number, one in enumerate(rows)]
        LogTransaction(half).commit(after(half), files)

    nulls = dict.fromkeys(("i", "l", "f", "d", "n", "b", "t", "s", "j", "x", "m"))
    odd = {"f": math.nan, "d": -0.0, "t": datetime(9999, 12, 31, tzinfo=UTC), "m": []}
    commit(narrow, [stored_row(0), stored_row(1, **nulls), stored_row(2, **odd)])
    wide = table({**EVERY_TYPE, "i": "LONG", "late": "STRING"}, many=("m",), key=("s", "i"))
    fields = delta_fields(wide, REALTIME, {"i", "late"})
    commit_columns(half, after(half), fields, ["i"], lambda: workbench.spark)
    names = [field.name for field in wide.schema.fields]
    last = dict(zip([field.name for field in narrow.schema.fields], values(3, i=2**40), strict=True)) | {"late": "x"}
    commit(wide, [(*stored_row(3)[: -len(names) + 1], *(last[name] for name in names))])

    before = rows_in_files(half)
    assert len(before) == 4
    (heap,) = heaps(wide, open_half(half))
    rewrite(TableContext(bench_of(workbench), wide, layout), open_half(half), [heap], "")
    assert [file.rows for file in open_half(half).files] == [4]
    assert repr(rows_in_files(half)) == repr(before)


def rows_in_files(half: Path) -> list[tuple[Any, ...]]:
    """All stored values by offset. DuckDB gives a row's absent columns as null, and its numbers in the widest type."""
    paths = [file.path for file in open_half(half).files]
    columns = ", ".join(f'"{name}"' for name, _ in spark_columns(open_half(half).columns).items() if name != SEGMENT)
    read = f"read_parquet({paths}, union_by_name = true, hive_partitioning = false)"
    return duckdb.sql(f"SELECT {columns} FROM {read} ORDER BY _hy_offset").fetchall()


class Fake:
    """A half with these files, none consuming."""

    path = "/half"

    class realtime:
        @staticmethod
        def consuming_names() -> frozenset[str]:
            return frozenset()

    def __init__(self, files: Sequence[tuple[str, int]]) -> None:
        self.files = [DataFile(f"/half/{name}/{number}", name, 1, size, 0) for number, (name, size) in enumerate(files)]


def test_what_one_hold_and_one_run_take() -> None:
    tuning = OptimizeTuning(hold_bytes=100, small_bytes=40)
    files = [("few", 1)] * 3 + [("a", 10)] * 5 + [("a", 40)] + [("b", 10)] * 5 + [("c", 10)] * 4 + [("d", 39)] * 9
    files += [("e", 20)] * 3 + [("e", 5)] * 4 + [("e", 39)] * 3
    found = heaps(orders_spec(), Fake(files), tuning)  # type: ignore[arg-type]
    told = [(one.segment, len(one.files), one.bytes) for one in found]
    assert told == [("a", 5, 50), ("b", 5, 50), ("c", 4, 40), ("d", 2, 78), ("e", 7, 80)]
    holds = [[one.segment for one in group] for group in _holds(found, tuning)]
    assert holds == [["a", "b"], ["c"], ["d"], ["e"]]
    assert [len(one.files) for one in heaps(orders_spec(), Fake([("f", 39)] * 4), OptimizeTuning(hold_bytes=9))] == [2]  # type: ignore[arg-type]
    now, left = _within(found, 110)
    assert [one.segment for one in now] == ["a", "b"] and [one.segment for one in left] == ["c", "d", "e"]
    assert [one.segment for one in _within(found[:1], 1)[0]] == ["a"], "a run takes at least one"


@pytest.mark.slow
def test_a_follower_that_missed_what_was_cleaned_builds_anew(tmp_path: Path) -> None:
    halves = built(tmp_path)
    path = halves.layout.half(REALTIME)
    cache = SteppedCache(halves, NOW)
    step(cache)
    seen = open_half(path).version
    for number in range(2):
        row = Row({"order_id": 50 + number, "customer": "x", "amount": 0.0, "ts": 0}, 0, 30 + number, segment=OPEN)
        halves.commit_realtime([row], offsets={KEY: 31 + number})
    DeltaTable(str(path)).create_checkpoint()
    for version in range(seen + 2):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    assert step(cache) == rows(halves) and cache.built == 2
