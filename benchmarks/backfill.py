"""A correction of many rows (`--update`) against a bare Spark read-modify-write of the same files.

    make bench    or    .venv/bin/python benchmarks/backfill.py [--rows 2000000] [--rounds 3]

Both run in one Spark session, in turn, on one table: the product plans (counts, stages) and runs (one commit for each
bucket, or all at once); bare Spark reads the Delta table, changes the rows and overwrites them. Prints medians, their
ratio, and the most memory that the JVM's heap held after the product's rounds.
"""

import argparse
import os
import platform
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from hybrid.clock import wall_clock_ms
from hybrid.config.overrides import load_json
from hybrid.config.table_config import Half, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.jvm.jars import spark_jars
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.create import create_half
from hybrid.lake.layout import TableLayout, physical_columns
from hybrid.lake.log import open_half
from hybrid.lake.spark import SparkSettings, spark_session
from hybrid.lake.table_context import TableContext
from hybrid.progress import Silent
from hybrid.replace.backfill.options import BackfillOptions
from hybrid.replace.backfill.plan_run import run_plan
from hybrid.replace.backfill.planning import plan_backfill
from hybrid.replace.backfill.request import ChangeKind, Request, window_of
from hybrid.sql.row_sql import row_assignments
from hybrid.table.plans import Plan
from hybrid.table.state import Act, OfflineState

DATA = Path(__file__).resolve().parent.parent / "data" / "orders"
BUCKETS = 10
BUCKET_MS = 7_200_000
START_MS = 1_632_441_600_000  # a bucket's start
MEMORY = "2g"


def offline_table() -> TableSpec:
    """The orders table's OFFLINE half alone."""
    schema, config = (load_json(DATA / name) for name in ("orders_schema.json", "orders_offline_table.json"))
    return parse_table(schema, "schema", [(config, "config")], None)


def fill(bench: CommitContext, spec: TableSpec, layout: TableLayout, rows: int) -> None:
    """`rows` orders in segments of one bucket each."""
    path = layout.half(Half.OFFLINE)
    act = Act("create-0", 0, "create", bench.now_iso())
    create_half(path, spec, Half.OFFLINE, OfflineState(act))
    each = rows // BUCKETS
    made = {
        "_hy_segment": f"concat('orders_', id div {each})",
        "_hy_connector": "'bench'", "_hy_topic": "'orders'", "_hy_epoch": "0", "_hy_partition": "0",
        "_hy_offset": "id", "_hy_timestamp": "id", "_hy_op": "'row'",
        "_hy_time": f"{START_MS} + (id div {each}) * {BUCKET_MS} + (id % {each}) * {BUCKET_MS} div {each}",
        "order_id": "id", "customer_id": "id % 5000", "amount": "(id % 10000) / 100",
        "order_status": "element_at(array('OPEN', 'IN_TRANSIT', 'COMPLETED', 'CANCELLED'), cast(id % 4 + 1 as int))",
    }  # fmt: skip
    made["ts"] = made["_hy_time"]
    frame = bench.spark.range(0, rows, 1, BUCKETS).selectExpr(
        *(f"cast({made[name]} as {kind}) as {name}" for name, kind in physical_columns(spec, Half.OFFLINE))
    )
    frame.sortWithinPartitions("_hy_segment", "ts").write.format("delta").mode("append").option(
        "userMetadata", _metadata(replace(act, id="fill", number=1, kind="move"))
    ).save(str(path))


def _metadata(act: Act) -> str:
    from hybrid.table.state import to_user_metadata

    return to_user_metadata(OfflineState(act))


def correct(bench: CommitContext, spec: TableSpec, layout: TableLayout, atomic: bool) -> tuple[float, float]:
    """Seconds that a plan and its run took."""
    offline = open_half(layout.half(Half.OFFLINE))
    window = window_of(spec, START_MS, START_MS + BUCKETS * BUCKET_MS)
    request = Request(ChangeKind.UPDATE, window, None, row_assignments("amount = amount * 1.2", spec, "--update"))
    blank = Plan(new_act_id("backfill"), spec.name, bench.now_iso(), "", {}, offline.table_id, offline.version, None,
                 "", "", (), ())  # fmt: skip
    started = time.perf_counter()
    plan = plan_backfill(TableContext(bench, spec, layout), (offline, None), request, blank)
    planned = time.perf_counter()
    report = run_plan(TableContext(bench, spec, layout), plan, BackfillOptions(atomic=atomic))
    assert report.buckets_done == report.buckets_total > 0, report
    return planned - started, time.perf_counter() - planned


def bare(bench: CommitContext, path: Path) -> float:
    """Seconds that Spark alone takes for the same: read, change, overwrite the table."""
    started = time.perf_counter()
    frame = bench.spark.read.format("delta").load(str(path))
    frame = frame.selectExpr(*("cast(amount * 1.2 as float) as amount" if c == "amount" else c for c in frame.columns))
    frame.write.format("delta").mode("overwrite").save(str(path))
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = SparkSettings(spark_jars(), Path(folder) / "log", driver_memory=MEMORY)
        bench = CommitContext(lambda: spark_session(settings), wall_clock_ms, Silent())
        spec, layout = offline_table(), TableLayout(Path(folder) / "orders")
        copy = Path(folder) / "bare"
        fill(bench, spec, layout, asked.rows)
        bench.spark.read.format("delta").load(str(layout.half(Half.OFFLINE))).write.format("delta").partitionBy(
            "_hy_segment"
        ).save(str(copy))
        for atomic in (False, True):
            rounds = [(correct(bench, spec, layout, atomic), bare(bench, copy)) for _ in range(asked.rounds + 1)][1:]
            plan, run, theirs = (
                statistics.median(times)
                for times in zip(*((one[0][0], one[0][1], one[1]) for one in rounds), strict=True)
            )
            report(asked.rows, "all at once" if atomic else f"{BUCKETS} commits", plan, run, theirs)
        runtime = bench.spark._jvm.java.lang.Runtime.getRuntime()
        used = (runtime.totalMemory() - runtime.freeMemory()) // 2**20
        print(f"heap in use at the end: {used} MiB of {MEMORY}")
        bench.spark.stop()


def report(rows: int, how: str, plan: float, run: float, theirs: float) -> None:
    print(f"{platform.machine()}, {os.cpu_count()} processors, {rows} rows, {how}")
    print(f"  hybrid: plan {plan:6.1f} s, run {run:6.1f} s      bare Spark {theirs:6.1f} s")
    print(f"  speed of hybrid against bare Spark: {theirs / (plan + run):.2f}")


if __name__ == "__main__":
    main()
