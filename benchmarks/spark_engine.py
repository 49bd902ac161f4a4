"""Time of one statement on DuckDB and on Spark, over the same files, in one process.

    .venv/bin/python -m benchmarks.spark_engine --rows 10000000

Writes the table's files directly. Each statement runs once on each engine before it is timed; the figure is the best of
`--times`. On one machine Spark has nothing that DuckDB lacks: the figure says what asking it costs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.export import lay_events
from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.progress import Silent

STATEMENTS = (
    "select count(*) from events",
    "select word, count(*), sum(price), avg(small), max(ts) from events group by word order by 2 desc, 1 limit 10",
    "select datetrunc('HOUR', ts) as h, flag, distinctcount(word) from events group by 1, 2 order by 1, 2 limit 10",
)


def seconds(hy: Hybrid, sql: str, times: int) -> tuple[float, list[tuple[object, ...]]]:
    """The best time of a statement, and its rows."""
    rows = list(hy.query(sql).rows)  # files are in the page cache, and Spark's code is compiled
    best = float("inf")
    for _ in range(times):
        began = time.monotonic()
        hy.query(sql)
        best = min(best, time.monotonic() - began)
    return best, rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        lay_events(home, given.rows)
        hy = Hybrid(load_settings(home=home), Silent())
        began = time.monotonic()
        hy.query("set engine = 'spark'; select 1")
        print(f"Spark's start and a first statement: {time.monotonic() - began:.1f} s")
        for sql in STATEMENTS:
            by_duckdb, ours = seconds(hy, sql, given.times)
            by_spark, theirs = seconds(hy, f"set engine = 'spark'; {sql}", given.times)
            same = [str(row) for row in ours] == [str(row) for row in theirs]
            print(f"{by_duckdb:.2f} s by DuckDB, {by_spark:.2f} s by Spark, the same text: {same}: {sql}")
        hy.close()


if __name__ == "__main__":
    main()
