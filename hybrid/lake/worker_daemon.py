"""The parent of a local master's Python workers: it imports what their tasks need, and each worker is a fork of it.

Spark starts a worker for each task that runs beside others, and ends it when it was idle for a minute. Spark's own
daemon lets each import pandas, Arrow and our package anew, which takes longer than most tasks (docs/adr/0074).
"""

from __future__ import annotations

import gc
import os

# The threads that these packages start are those of their allocator and of OpenBLAS: both are made to be forked.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import duckdb  # noqa: F401
import pandas as pd  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import hybrid.lake.worker_output  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # a worker collects garbage after each task: it need not look through, and copy, all that is imported
    manager()
