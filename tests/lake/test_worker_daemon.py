"""Workers of a local master are forks of a process that has imported what they need, and has no threads of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.lake.commit_context import CommitContext
from hybrid.lake.spark import SparkSettings, _configuration
from hybrid.lake.workers import map_in_arrow

_THREADS = """
import os
import hybrid.lake.worker_daemon
for thread in os.listdir("/proc/self/task"):
    if int(thread) != os.getpid():
        print(open(f"/proc/self/task/{thread}/comm").read().strip())
"""


def look(batches: Any) -> Iterator[Any]:
    """What a worker has imported before its task needs it, and whose child it is."""
    import os

    import pyarrow as pa

    imported = "duckdb" in sys.modules and "pandas" in sys.modules
    parent = Path(f"/proc/{os.getppid()}/cmdline").read_text()
    for _ in batches:
        yield pa.RecordBatch.from_pylist([{"text": f"{imported} {parent.split(chr(0))[2]}"}])


@pytest.mark.spark
def test_a_worker_has_what_tasks_need(workbench: CommitContext) -> None:
    rows = map_in_arrow(workbench.spark.range(0, 2, 1, 2), look, "text string").collect()
    assert {row.text for row in rows} == {"True hybrid.lake.worker_daemon"}


@pytest.mark.process
def test_only_an_allocator_has_threads_when_workers_are_forked() -> None:
    """It stops and starts them around a fork. Those of another package would be missing in a worker."""
    done = subprocess.run([sys.executable, "-c", _THREADS], capture_output=True, text=True, timeout=60, check=True)
    assert {*done.stdout.split()} <= {"jemalloc_bg_thd"}


@pytest.mark.parametrize(("master", "python"), [("local[2]", "/another/python"), ("yarn", None)])
def test_others_have_sparks_own(tmp_path: Path, master: str, python: str | None) -> None:
    settings = SparkSettings([], tmp_path, master=master, worker_python=python)
    assert "spark.python.daemon.module" not in _configuration(settings)
