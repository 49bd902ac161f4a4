"""deletedKeysTTL: a delete marker that is old enough goes when nothing that it hides can come to light any more."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import CompactionConfig, Half, UpsertConfig
from hybrid.lake import pushes
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.lake.pushes import PushState
from hybrid.move.compaction import run_compaction
from hybrid.move.merging.report import MergeReport
from hybrid.move.retention.run import run_retention
from hybrid.replace.opening import open_replacement
from hybrid.schema.types import DataType
from hybrid.table.boundary import Boundary
from tests.move.clocked import DAY
from tests.move.test_merging import Merging, row
from tests.query.halves import KEY, Halves, orders_spec

pytestmark = pytest.mark.spark

FAR = 10_000_000_000_000
LIVE = "orders__0__0__x"
Make = Callable[..., Merging]


@pytest.fixture
def make(workbench: CommitContext, tmp_path: Path) -> Make:
    """An upsert table by `amount`, whose markers expire 10 below its highest one; each segment is compacted."""

    def made(**changes: Any) -> Merging:
        spec = replace(
            orders_spec(upsert=True, deletes=True),
            upsert=UpsertConfig("amount", "gone", deleted_keys_ttl=10),
            compaction=CompactionConfig(0, 0, 1),
        )
        return Merging(Halves.create(tmp_path, replace(spec, **changes)), workbench, now=FAR)

    return made


def compact(table: Merging, **options: Any) -> MergeReport:
    return run_compaction(table.halves.context(table.bench), **options)


def marker(key: int, offset: int, segment: str, amount: float, time: int = 5) -> Any:
    return row(key, time, offset, segment, amount, op="delete")


def marked(table: Merging) -> list[int]:
    """The keys that have delete markers in OFFLINE."""
    import pyarrow.parquet as pq

    found = [one for file in table.half().files for one in pq.ParquetFile(file.path).read().to_pylist()]
    return sorted(one["order_id"] for one in found if one["_hy_op"] == "delete")


def test_old_markers_that_hide_nothing_go(make: Make) -> None:
    """Key 1 has its marker alone, that of key 2 is young, 3 and 4 have an older row, in OFFLINE and in REALTIME."""
    table = make()
    table.add(*(marker(key, key, "m", 2.0 if key != 2 else 95.0) for key in (1, 2, 3, 4)))
    table.add(row(3, 6, 10, "old", 1.0, op="row"), row(9, 6, 11, "old", 100.0, op="row"))
    # It has moved, was superseded in its bucket, and is there yet.
    table.halves.commit_realtime([row(4, 5, 3, LIVE, 1.0, op="row"), marker(1, 1, LIVE, 2.0)], offsets={KEY: 5})
    before = table.ask()
    dry = compact(table, dry_run=True)
    assert dry.sentence.startswith("Would compact 2 segments of 'orders' with 6 rows: 2 rows left out (superseded rows")
    first = compact(table)
    assert marked(table) == [2, 3, 4] and table.ask() == before
    assert not compact(table).committed, "the old row of key 3 would come back by a revert, so its marker stays"

    copied = TableLayout(table.halves.layout.root.with_name("vacuumed"))
    shutil.copytree(table.halves.layout.root, copied.root)
    (old,) = [one for one in first.merged if one.segments == ("old",)]
    table.revert(str(old.act))
    assert table.ask() == before and marked(table) == [2, 3, 4], "reverted"

    vacuumed = Merging(replace(table.halves, layout=copied), table.shared, now=FAR)
    held = {file.path for file in vacuumed.half().files}
    for path in copied.half(Half.OFFLINE).rglob("*.parquet"):
        if str(path) not in held:
            path.unlink()
    assert compact(vacuumed).committed and marked(vacuumed) == [2, 4] and vacuumed.ask() == before, "vacuumed"


def test_rows_that_wait_or_come_meanwhile_keep_the_markers(make: Make) -> None:
    table = make()
    table.add(marker(1, 1, "m", 2.0), row(9, 6, 11, "m", 100.0, op="row"))
    entry = open_replacement(
        table.halves.spec, table.halves.layout, ([], ["n"]), created_at="2021-11-21T10:38:00.000+00:00"
    )
    assert not compact(table).committed and marked(table) == [1], "what was pushed may hold an older row"
    pushes.close(table.halves.layout, entry.id, PushState.REVERTED)

    def comes() -> None:
        table.halves.commit_realtime([row(1, 5, 1000, LIVE, 1.0, op="row")], offsets={KEY: 1001})

    table.meanwhile = comes
    assert not compact(table).committed
    assert marked(table) == [1] and [found[0] for found in table.ask()] == [9]
    assert sum("Looking" in said for said in table.said) == 3, "it was planned anew"


def test_other_rows_that_come_meanwhile_do_not_hinder(make: Make) -> None:
    table = make()
    table.add(marker(1, 1, "m", 2.0), row(9, 6, 11, "m", 100.0, op="row"))

    def comes() -> None:
        table.halves.commit_realtime([row(2, 5, 1000, LIVE, 1.0, op="row")], offsets={KEY: 1001})

    table.meanwhile = comes
    assert compact(table).committed and marked(table) == []
    assert [found[0] for found in table.ask()] == [2, 9]


def test_a_realtime_row_below_the_floor_keeps_no_marker(make: Make) -> None:
    table = make(retention={Half.REALTIME: DAY})
    table.now = 20 * DAY
    table.add(marker(1, 1, "m", 2.0, DAY), row(9, 8 * DAY, 11, "m", 100.0, op="row"))
    table.halves.commit_realtime([row(1, 5, 0, LIVE, 1.0, op="row")], offsets={KEY: 2})
    table.now = FAR
    assert not compact(table).committed
    run_retention(table.halves.context(table.bench))
    assert not open_half(table.halves.layout.half(Half.REALTIME)).files
    assert compact(table).committed and marked(table) == []


@pytest.mark.parametrize("kind", [DataType.TIMESTAMP, DataType.BIG_DECIMAL, DataType.DOUBLE])
def test_the_span_is_measured_in_the_columns_unit(make: Make, kind: DataType) -> None:
    from datetime import UTC, datetime
    from decimal import Decimal

    from hybrid.schema.schema import FieldKind, FieldSpec

    def at(number: float) -> object:
        if kind is DataType.TIMESTAMP:
            return datetime.fromtimestamp(number / 1000, UTC)
        return Decimal(number) if kind is DataType.BIG_DECIMAL else float(number)

    spec = orders_spec(upsert=True, deletes=True, extra=[FieldSpec("at", kind, FieldKind.DIMENSION)])
    table = make(schema=spec.schema, upsert=UpsertConfig("at", "gone", deleted_keys_ttl=10))

    def stored(key: int, number: float, op: str = "delete") -> Any:
        one = row(key, 5, key, "m", op=op)
        return replace(one, values={**one.values, "at": at(number)})

    endless = [stored(8, float("inf"), "row")] if kind is DataType.DOUBLE else []
    table.add(stored(1, 89), stored(2, 90), stored(3, 1), stored(9, 100, "row"), *endless)
    table.halves.spec = replace(table.halves.spec, boundary_mode=None)
    compact(table)
    assert marked(table) == [2]


def test_without_the_key_markers_stay(make: Make) -> None:
    table = make(upsert=UpsertConfig("amount", "gone"))
    table.halves.commit_offline(
        [marker(1, 1, "m", 2.0), row(9, 6, 11, "m", 100.0, op="row")], Boundary(9 * DAY, {KEY: 1000})
    )
    assert not compact(table).committed and marked(table) == [1]
