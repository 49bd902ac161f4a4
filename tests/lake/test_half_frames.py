"""A version's rows read as Parquet are the rows that Delta reads, and Delta reads what Parquet alone cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import Half
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.delta_errors import is_missing_file
from hybrid.lake.half_frames import rows_in, stored_rows
from hybrid.lake.log import HalfSnapshot, open_half
from tests.query.halves import KEY, Halves, Row, orders_spec

pytestmark = pytest.mark.spark

NAMES = ("orders_1", "orders (2)", "a=b c", "100%", "[x]{y}*?", "2021-09-26")


def row(number: int, segment: str, **values: object) -> Row:
    row_values = {"order_id": number, "customer": f"c'{number}", "amount": number / 3, "ts": 1000 + number, **values}
    return Row(row_values, 1000 + number, number, key=KEY, segment=segment)


def halves(folder: Path, names: Sequence[str] = NAMES) -> Halves:
    built = Halves.create(folder, orders_spec())
    rows = [[row(2 * n, name), row(2 * n + 1, name, customer=None)] for n, name in enumerate(names)]
    built.commit_offline(list(chain.from_iterable(rows)), kind="replace")
    return built


def offline(built: Halves, version: int | None = None) -> HalfSnapshot:
    return open_half(built.layout.half(Half.OFFLINE), version)


def by_delta(workbench: CommitContext, half: HalfSnapshot) -> Any:
    return workbench.spark.read.format("delta").option("versionAsOf", half.version).load(str(half.path))


def is_delta(frame: Any) -> bool:
    return "_delta_log" in str(frame._jdf.queryExecution().analyzed().toString()) or "Delta" in str(
        frame._jdf.queryExecution().executedPlan().toString()
    )


@pytest.mark.parametrize(("place", "more", "direct"), [("a, b", (), True), ("a{b}*?", (), False), ("a", ("é",), False)])
def test_rows_are_those_of_delta(
    tmp_path: Path, workbench: CommitContext, place: str, more: tuple[str, ...], direct: bool
) -> None:
    half = offline(halves(tmp_path / place, (*NAMES, *more)))
    read, expected = stored_rows(workbench, half), by_delta(workbench, half)
    assert read.schema == expected.schema and is_delta(read) != direct
    assert sorted(map(str, read.collect())) == sorted(map(str, expected.collect()))
    for name in NAMES:
        assert (
            sorted(one["order_id"] // 2 for one in rows_in(workbench, half, [name]).collect())
            == [NAMES.index(name)] * 2
        )
    assert rows_in(workbench, half, []).count() == 0


def test_rows_are_of_the_version(tmp_path: Path, workbench: CommitContext) -> None:
    built = halves(tmp_path, NAMES[:2])
    before = offline(built)
    built.commit_offline([row(9, NAMES[0])], kind="replace")
    assert stored_rows(workbench, before).count() == 4
    assert stored_rows(workbench, offline(built)).count() == 5
    assert [one["order_id"] for one in rows_in(workbench, offline(built), [NAMES[1]]).collect()] == [2, 3]


def test_many_files_are_listed_by_delta(tmp_path: Path, workbench: CommitContext) -> None:
    built = halves(tmp_path, [f"orders_{number}" for number in range(33)])
    half = offline(built)
    assert is_delta(stored_rows(workbench, half)) and stored_rows(workbench, half).count() == 66
    few = rows_in(workbench, half, ["orders_7", "orders_8"])
    assert not is_delta(few) and few.count() == 4


def test_rows_that_another_tool_marked_as_deleted_stay_away(tmp_path: Path, workbench: CommitContext) -> None:
    built = halves(tmp_path, NAMES[:2])
    table = f"delta.`{built.layout.half(Half.OFFLINE)}`"
    workbench.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    assert stored_rows(workbench, offline(built)).count() == 4
    workbench.spark.sql(f"DELETE FROM {table} WHERE order_id = 1")
    half = offline(built)
    assert half.has_deletion_vectors and stored_rows(workbench, half).count() == 3


def test_a_file_that_was_purged_meanwhile_is_named(tmp_path: Path, workbench: CommitContext) -> None:
    built = halves(tmp_path, NAMES[:1])
    half = offline(built)
    for file in half.files:
        Path(file.path).unlink()
    with pytest.raises(Exception) as failed:
        stored_rows(workbench, half).collect()
    assert is_missing_file(failed.value)
