"""Rejected rows are read in bounded memory: the messages of those that are asked for, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.errors import QueryError
from hybrid.operations.rejected_rows import Bounds, read_rejected
from hybrid.table import columns


def _file(path: Path, offsets: list[int], mark: str = columns.OP_ROW) -> str:
    rows: dict[str, Any] = {
        columns.TOPIC: ["t"] * len(offsets),
        columns.PARTITION: [0] * len(offsets),
        columns.OFFSET: offsets,
        columns.REASON: ["no"] * len(offsets),
        columns.RAW: [f"m{offset}".encode() for offset in offsets],
        columns.OP: [mark] * len(offsets),
    }
    pq.write_table(pa.table(rows), path)
    return str(path)


def test_rows_of_several_files_come_in_order_with_their_own_messages(tmp_path: Path) -> None:
    bounds = Bounds(batch_rows=3)
    files = [_file(tmp_path / "a", [9, 1, 5, 7]), _file(tmp_path / "b", [2, 8, 4]), _file(tmp_path / "c", [3], "X")]
    found = read_rejected(files, 3, 1, bounds=bounds)
    assert [(row["offset"], row["value"]) for row in found] == [(2, "m2"), (4, "m4"), (5, "m5")]
    assert [row["offset"] for row in read_rejected(files, 100, bounds=bounds)] == [1, 2, 4, 5, 7, 8, 9]
    assert [row["offset"] for row in read_rejected(files, 3, everything=True)] == [1, 2, 3]
    assert read_rejected(files, 3, 100) == [] == read_rejected(files, 0)


def test_an_answer_shows_the_beginning_of_long_messages_and_ends_in_time(tmp_path: Path) -> None:
    """14 and 4: a rejected message is kept whole; an answer of a server is bounded."""
    path = _file(tmp_path / "a", [1])
    table = pq.read_table(path).set_column(4, columns.RAW, pa.array([b"x" * 1_000_000]))
    pq.write_table(table, path)
    assert len(read_rejected([path], 1)[0]["value"]) == 1_000_000
    cut = read_rejected([path], 1, bounds=Bounds(value_max=10))[0]["value"]
    assert cut == "xxxxxxxxxx... (1000000 characters)"
    with pytest.raises(QueryError, match="took longer") as caught:
        read_rejected([path], 1, bounds=Bounds(until=0.0))
    assert caught.value.pinot_code == 250
