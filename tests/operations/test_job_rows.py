"""Rows of a job's statement: written in batches, bounded in a server, the same as before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.errors import DataError, MachineError, QueryError, UsageError
from hybrid.operations.job_rows import ParquetSpool
from hybrid.query.engine import QueryOptions
from hybrid.query.result import QueryResult
from hybrid.query.tail import NoTail
from hybrid.runtime import disk
from tests.serve.app import App, lay_orders

TYPES = ("LONG", "STRING", "BIG_DECIMAL", "TIMESTAMP", "LONG_ARRAY", "BYTES")
ROW = (1, "a", Decimal("1.5"), datetime(2021, 9, 24), [1, 2], b"x")


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    made = App(tmp_path / "home")
    lay_orders(made.home)
    yield made
    made.close()


def begin(spool: ParquetSpool, names: Sequence[str], types: Sequence[str]) -> None:
    spool.begin(QueryResult(names, types, ()).arrow().schema, "", [])


def take(spool: ParquetSpool, rows: list[Any], names: Sequence[str], types: Sequence[str]) -> None:
    for batch in QueryResult(names, types, rows).arrow().to_batches():
        spool.take(batch)


def test_batches_become_one_file(tmp_path: Path) -> None:
    spool = ParquetSpool(tmp_path / "a.parquet", group_rows=10)
    begin(spool, ["old"], ["LONG"])
    take(spool, [(1,)] * 20, ["old"], ["LONG"])
    names = [f"c{place}" for place in range(6)]
    begin(spool, names, TYPES)  # the statement was run again
    for _ in range(7):
        take(spool, [ROW] * 4, names, TYPES)
    take(spool, [(None,) * 6], names, TYPES)
    spool.close()
    found = pq.read_table(tmp_path / "a.parquet")
    assert found.num_rows == 29 and found.num_columns == 6
    assert list(found.slice(0, 1).to_pylist()[0].values()) == list(ROW)


def test_no_rows_are_a_file_with_columns(tmp_path: Path) -> None:
    spool = ParquetSpool(tmp_path / "a.parquet")
    begin(spool, ["a"], ["LONG"])
    spool.close()
    assert pq.read_table(tmp_path / "a.parquet").column_names == ["a"]


def test_what_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = ParquetSpool(tmp_path / "a.parquet")
    with pytest.raises(UsageError, match="gives column 'a' twice"):
        begin(spool, ["a", "a"], ["LONG", "LONG"])
    spool.begin(pa.schema([("a", pa.decimal128(38, 0))]), "", [])
    spool.take(pa.RecordBatch.from_pydict({"a": pa.array([Decimal(1)], pa.decimal128(38, 0))}))
    spool.take(pa.RecordBatch.from_pydict({"a": pa.array([Decimal("9" * 37)], pa.decimal128(38, 0))}))
    with pytest.raises(DataError, match="more digits"):
        spool.close()
    disk.keep_free(tmp_path, 2**62)
    begin(spool, ["a"], ["LONG"])
    take(spool, [(1,)], ["a"], ["LONG"])
    with pytest.raises(MachineError, match="would fill the disk"):
        spool.close()


@pytest.mark.slow
def test_a_statement_gives_its_rows_to_the_sink_and_is_bounded(app: App, tmp_path: Path) -> None:
    spool = ParquetSpool(tmp_path / "a.parquet")
    options = QueryOptions(whole=True, tail=NoTail(), sink=spool)
    result = app.home.query("select order_id, amount, customer from orders order by order_id", options=options)
    spool.close()
    assert result.rows == [] and result.revision.tables
    assert [row["order_id"] for row in pq.read_table(tmp_path / "a.parquet").to_pylist()] == [1, 2, 3, 4]
    bounded = QueryOptions(whole=True, tail=NoTail(), sink=ParquetSpool(tmp_path / "b.parquet"), rows_max=3)
    with pytest.raises(QueryError, match="more than 3 rows"):
        app.home.query("select order_id from orders", options=bounded)
    slow = QueryOptions(whole=True, tail=NoTail(), sink=ParquetSpool(tmp_path / "c.parquet"), timeout_ms=300)
    many = "select a.order_id, repeat(a.customer, 1000) x from orders a, orders b" + "".join(
        f", orders c{place}" for place in range(14)
    )
    with pytest.raises(QueryError):
        app.home.query(many, options=slow)
