"""A process that merges segments of a table, to be killed: `merge_worker.py FOLDER NOW`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from hybrid.jvm.jars import spark_jars
from hybrid.lake.layout import TableLayout
from hybrid.lake.spark import SparkSettings
from hybrid.lake.workbench import Workbench
from hybrid.move.merging.run import run_merges
from hybrid.progress import Silent
from hybrid.spec.table_config import MergeLevel, TableSpec
from tests.lent import session_of_dying
from tests.query.halves import orders_spec

DAY = 86_400_000


def merging_spec() -> TableSpec:
    """The orders table, whose days are merged."""
    return replace(orders_spec(), merge_levels=(MergeLevel(bucket_ms=DAY, buffer_ms=0, name="1day"),))


def main() -> None:
    folder, now = Path(sys.argv[1]), int(sys.argv[2])
    settings = SparkSettings(spark_jars(), folder / "logs", driver_memory="600m")
    bench = Workbench(session_of_dying(settings), lambda: now, Silent(), lock_timeout_s=120.0)
    sys.stdout.write(run_merges(bench, merging_spec(), TableLayout(folder / "orders")).sentence)


if __name__ == "__main__":
    main()
