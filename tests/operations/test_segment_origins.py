"""Where a segment's rows come from, read from the log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from deltalake import write_deltalake

from hybrid.config.table_config import Half
from hybrid.lake.log import open_half
from hybrid.operations.segment_origins import origins_of
from tests.query.halves import Halves, Row, orders_spec


def _row(offset: int, segment: str) -> Row:
    values = {"order_id": offset, "customer": "a", "amount": 1.0, "ts": offset}
    return Row(values, offset, offset, segment=segment)


def test_the_acts_that_wrote_to_a_segment_newest_first(tmp_path: Path) -> None:
    halves = Halves.create(tmp_path, orders_spec())
    halves.commit_offline([_row(5, "a"), _row(8, "a"), _row(6, "b")])
    halves.commit_offline([_row(20, "c")])
    halves.commit_offline([_row(3, "a")], kind="history")
    path = halves.layout.half(Half.OFFLINE)
    found = origins_of(open_half(path), "a")
    assert [(one.kind, one.version, one.rows, one.offsets) for one in found] == [
        ("history", 3, 1, None), ("move", 1, 2, (5, 9)),
    ]  # fmt: skip
    assert found[1].act == "move-1" and found[1].at is not None


def test_a_foreign_commit_has_no_act(tmp_path: Path) -> None:
    halves = Halves.create(tmp_path, orders_spec())
    halves.commit_offline([_row(5, "a")])
    path = halves.layout.half(Half.OFFLINE)
    import pyarrow.parquet as pq

    table = pq.ParquetFile(open_half(path).files[0].path).read().append_column("_hy_segment", [["a"]])
    write_deltalake(str(path), table, mode="append", partition_by=["_hy_segment"])
    newest = origins_of(open_half(path), "a")[0]
    assert (newest.act, newest.kind, newest.rows) == (None, "foreign", 1)
    assert replace(newest, rows=0).offsets is None
