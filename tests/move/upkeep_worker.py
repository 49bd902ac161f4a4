"""A process that does upkeep of a table, to be killed: `upkeep_worker.py retention|merges FOLDER NOW`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from hybrid.config.table_config import Half, MergeLevel, TableSpec
from hybrid.jvm.jars import spark_jars
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.layout import TableLayout
from hybrid.lake.spark import SparkSettings
from hybrid.lake.table_context import TableContext
from hybrid.move.merging.run import run_merges
from hybrid.move.retention.run import run_retention
from hybrid.progress import Silent
from tests.move.clocked import DAY
from tests.query.halves import orders_spec
from tests.shared_jvm import session_of_dying

RUNS = {"retention": run_retention, "merges": run_merges}


def worker_spec() -> TableSpec:
    """The orders table, which keeps eight days of each half, and whose days are merged."""
    levels = (MergeLevel(bucket_ms=DAY, buffer_ms=0, name="1day"),)
    return replace(orders_spec(), retention={half: 8 * DAY for half in Half}, merge_levels=levels)


def main() -> None:
    run, folder, now = RUNS[sys.argv[1]], Path(sys.argv[2]), int(sys.argv[3])
    settings = SparkSettings(spark_jars(), folder / "logs", driver_memory="600m")
    bench = CommitContext(session_of_dying(settings), lambda: now, Silent(), lock_timeout_s=120.0)
    sys.stdout.write(run(TableContext(bench, worker_spec(), TableLayout(folder / "orders"))).sentence)


if __name__ == "__main__":
    main()
