"""Rows that workers write for a commit: in the order of the frame, a file for each segment of a task."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hybrid.config.table_config import Half
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.create import create_half
from hybrid.lake.layout import in_files, physical_ddl
from hybrid.lake.log import open_half
from hybrid.lake.worker_files import WorkerFiles
from hybrid.table.boundary import Boundary
from hybrid.table.columns import SEGMENT, TIME
from hybrid.table.state import Act, OfflineState, next_act
from tests.replace.tables import recipe_spec


@pytest.mark.spark
def test_each_segment_is_one_sorted_file(tmp_path: Path, workbench: CommitContext) -> None:
    spec, half = recipe_spec("orders"), tmp_path / "OFFLINE"
    state = OfflineState(Act("create-0", 0, "create", "x"), Boundary(None))
    create_half(half, spec, Half.OFFLINE, state)
    ddl = physical_ddl(spec, Half.OFFLINE)
    empty = workbench.spark.createDataFrame([], ddl)
    dice = random.Random(7)
    times = {(name, dice.randrange(10**6)) for name in ("a", "b") for _ in range(300)}
    given = {SEGMENT: 0, TIME: 1}
    rows = [tuple(row[given[name]] if name in given else None for name in empty.columns) for row in times]
    frame = workbench.spark.createDataFrame(rows, ddl)
    after = replace(state, act=next_act(state, "replace-1", "replace", "x", {}))
    commit_act(in_files(spec, frame.repartition(4)), WorkerFiles(half, False), after, planned=0)
    files = open_half(half).files
    assert [file.segment for file in sorted(files, key=lambda file: file.segment)] == ["a", "b"]
    for file in files:
        stored = pq.ParquetFile(file.path).read([TIME]).column(0).to_pylist()
        assert stored == sorted(time for name, time in times if name == file.segment)
