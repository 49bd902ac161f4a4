"""Rollups on real halves: what rows become; queries add up to the same whatever has moved."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from hybrid.config.table_config import (
    Aggregation,
    Half,
    MergeType,
    MoveConfig,
)
from hybrid.errors import DataError, SpecError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log import ADDED
from hybrid.move.merging.run import run_merges
from hybrid.move.move import run_move
from hybrid.replace.lineage import list_replacements
from hybrid.replace.revert import revert
from hybrid.schema.schema import Schema
from tests.move.clocked import DAY
from tests.move.rolled import HOUR, MINUTE, Rolling, daily, make, rolling, sale, sales_spec
from tests.query.halves import Halves

__all__ = ["make"]  # a fixture
pytestmark = pytest.mark.spark


def test_rows_of_an_hour_become_one_with_their_metrics_combined(make: Callable[..., Rolling]) -> None:
    table = make(sales_spec(rolling()))
    table.live(
        sale("a", 10, 0, whole=2, long=5, half=0.5, broken=0.25, exact=Decimal("0.1"), low=7, high=1.0,
             price=2.0, price_sum=2.0, price_count=1),
        sale("a", HOUR - 1, 2, whole=3, long=-9, half=1.5, broken=0.5, exact=Decimal("0.2"), low=-7, high=-1.0,
             rows=None, price=5.0, price_sum=10.0, price_count=2),
        sale("a", 20, 1, low=None, price_count=None),
        sale("a", HOUR, 3), sale("b", 30, 4), sale(None, 40, 5), sale(None, 50, 6), sale("a", 60, 7, labels=["b", "a"]),
        sale("a", 70, 8, weight=0.75), sale("a", 9 * DAY, 9),
    )  # fmt: skip
    dry = table.move(dry_run=True)
    assert dry.sentence.startswith("Would move 9 rows in 1 bucket of 'orders', to be rolled up; the boundary is then")
    report = table.move()
    assert report.sentence.startswith(
        "Moved 9 rows in 1 bucket of 'orders', merged to 6 (rollup) into orders_0_3600000_0; the boundary is now"
    )
    plain = ("a", 0.5, ["a", "b"])
    first, *others = [row for row in table.rows() if (row["shop"], row["weight"], row["labels"]) == plain]
    assert first == {
        "shop": "a", "weight": 0.5, "labels": ["a", "b"], "ts": 0, "whole": 5, "long": -3, "half": 2.0,
        "broken": 0.75, "exact": Decimal("0.3"), "low": -7, "high": 1.0, "rows": 2,
        "price": 4.0, "price_sum": 12.0, "price_count": 3,
    }  # fmt: skip
    assert [row["ts"] for row in others] == [HOUR]
    assert others[0]["whole"] is None, "all of them are null"
    (nobody,) = [row for row in table.rows() if row["shop"] is None]
    assert (nobody["rows"], nobody["ts"]) == (2, 0)
    assert table.ask("select max($offset) from orders_OFFLINE where shop = 'a' and ts = 0") == [(8,)]
    assert table.half().offline.boundary.step_ms == HOUR
    assert table.ask("select sum(rows), count(*) from orders") == [(9, 7)]


def test_late_rows_come_beside_and_a_merge_rolls_them_up_until_it_is_reverted(make: Callable[..., Rolling]) -> None:
    table = make(sales_spec(rolling(), daily()))
    table.live(*(sale("a", 10 + at, at, price=float(at), price_sum=float(at)) for at in range(4)), sale("b", DAY, 4))
    table.move()
    table.live(*(sale("a", 500 + at, 5 + at, price=10.0, price_sum=10.0) for at in range(2)))
    before = table.sums()
    assert table.move().sentence.startswith("Moved 2 late rows of 'orders', merged to 1 (rollup) into orders_0_0_1")
    assert table.sums() == before
    found = [(row["ts"], row["rows"], row["price"]) for row in table.rows()]
    assert sorted(found, key=str) == [(0, 2, 10.0), (0, 4, 1.5), (DAY, 1, None)]
    dry = table.merge(dry_run=True)
    assert dry.sentence == "Would merge 2 segments of 1 bucket with 2 rows of 'orders', 2 rows to be rolled up."
    report = table.merge()
    assert report.sentence == "Merged 2 segments of 1 bucket with 2 rows of 'orders' into 1, 2 rows rolled up to 1."
    assert list_replacements(table.halves.layout)[0].result == (
        "Merged 2 segments with 2 rows into 1 (1day, rollup), 2 rows rolled up to 1."
    )
    (rolled, _) = table.rows()
    assert (rolled["rows"], rolled["long"], rolled["price"]) == (6, 6, 26 / 6)
    assert table.sums() == before
    assert not table.merge().committed
    revert(table.context, report.merged[0].act)
    assert sorted(row["rows"] for row in table.rows()) == [1, 2, 4]
    assert table.sums() == before


@pytest.mark.parametrize("merge", [MergeType.ROLLUP, MergeType.DEDUP])
def test_rows_from_before_a_column_have_its_default(workbench: CommitContext, tmp_path: Path, merge: MergeType) -> None:
    """As queries show them: so they are told apart by it, and combined."""
    how: dict[str, Any] = {"merge_type": merge, **({"aggregations": ()} if merge is MergeType.DEDUP else {})}
    spec = sales_spec(rolling(**how), daily(**how))
    fields = [replace(one, default_null="none") if one.name == "shop" else one for one in spec.schema.fields]
    spec = replace(spec, schema=Schema("orders", tuple(fields)))
    table = Rolling(Halves.create(tmp_path, spec), workbench)
    for half in Half:
        properties = {ADDED: json.dumps(["shop", "low", "whole"])}
        place = DeltaTable(str(table.halves.layout.half(half)))
        place.alter.set_table_properties(properties, raise_if_not_exists=False)
    low = 7 if merge is MergeType.ROLLUP else 0
    table.live(sale("none", 5, 0, low=low, whole=0), sale(None, 6, 1, low=None, whole=None), sale("a", 7, 2))
    table.move()
    table.add(sale(None, 0, 3, low=None, whole=None))
    before = table.ask("select shop, min(low), sum(whole) from orders group by 1 order by 1")
    table.merge()
    assert table.ask("select shop, low, whole from orders_OFFLINE order by shop") == [("a", 1, 0), ("none", 0, 0)]
    assert table.ask("select shop, min(low), sum(whole) from orders group by 1 order by 1") == before


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("whole", [2**31 - 1, 1], "the sum of 'whole' (INT), 2147483648, is more than its column holds"),
        ("whole", [-(2**31), -1], "-2147483649"),
        ("long", [2**63 - 1, 2**63 - 1], "the sum of 'long' (LONG), 18446744073709551614,"),
        ("half", [3e38, 3e38], "the sum of 'half' (FLOAT)"),
        ("exact", [Decimal("9e19"), Decimal("9e19")], "the sum of 'exact' (BIG_DECIMAL) is more"),
        ("price", [0.0, 5.0], "the average of 'price' has values that nobody counted"),
    ],
)
def test_a_sum_that_does_not_fit_is_refused_and_nothing_is_lost(
    make: Callable[..., Rolling], column: str, values: list[Any], words: str
) -> None:
    table = make(sales_spec(rolling()))
    table.live(*(sale("a", at, at, price_count=0, **{column: value}) for at, value in enumerate(values)))
    with pytest.raises(DataError, match=r"Rows of 'orders' cannot be rolled up") as caught:
        table.move()
    assert words in str(caught.value)
    assert ("Fill the metrics" if column == "price" else "LONG or DOUBLE") in str(caught.value.hint)
    assert len(table.rows("orders")) == 2
    assert table.half().offline.boundary.time_ms is None


@pytest.mark.parametrize("count", [None, 0])
def test_a_value_that_only_others_of_its_hour_are_counted_for_is_not_lost(
    make: Callable[..., Rolling], count: int | None
) -> None:
    table = make(sales_spec(rolling()))
    counted = sale("a", 1, 0, price=4.0, price_sum=8.0, price_count=2)
    table.live(counted, sale("a", 2, 1, price=0.0, price_count=count), sale("a", 3, 2, price=5.0, price_count=count))
    with pytest.raises(DataError, match="the average of 'price' has values that nobody counted"):
        table.move()
    assert len(table.rows("orders")) == 3


def test_averages_that_a_connect_server_computes_otherwise_are_refused(make: Callable[..., Rolling]) -> None:
    how = {"aggregations": (("exact", Aggregation.AVG),)}
    table = make(sales_spec(rolling(**how), daily(**how)))
    there = replace(table.context, bench=replace(table.bench, has_jvm=False, has_shared_files=False))
    for work in (run_move, run_merges):
        with pytest.raises(SpecError, match="the average of 'exact', a BIG_DECIMAL, which a Spark Connect"):
            work(there)


def test_sums_at_the_edge_are_exact_in_any_order(make: Callable[..., Rolling]) -> None:
    table = make(sales_spec(rolling()))
    huge = 2**63 - 1
    values = [(huge, 2**31 - 1), (5, -1), (-5, -1)]
    table.live(*(sale("a", at, at, long=long, whole=whole) for at, (long, whole) in enumerate(values)))
    table.move()
    (row,) = table.rows()
    assert (row["long"], row["whole"]) == (huge, 2**31 - 3)


def test_one_bucket_with_too_large_a_sum_holds_up_no_other(make: Callable[..., Rolling]) -> None:
    table = make(sales_spec(MoveConfig(DAY, DAY, max_records_per_segment=1), daily()))
    days = [(0, 1), (0, 1), (DAY, 2**31 - 1), (DAY, 1), (2 * DAY, 1), (2 * DAY, 1)]
    table.live(*(sale("a", time, at, whole=whole) for at, (time, whole) in enumerate(days)))
    table.move()
    with pytest.raises(DataError, match=r"the sum of 'whole' \(INT\), 2147483648"):
        table.merge()
    found = sorted((row["ts"], row["whole"]) for row in table.rows())
    assert found == [(0, 2), (DAY, 1), (DAY, 2**31 - 1), (2 * DAY, 2)]


def test_a_task_that_takes_a_part_of_a_bucket_divides_no_hour(make: Callable[..., Rolling]) -> None:
    table = make(sales_spec(rolling(max_records_per_task=5, round_ms=HOUR)))
    times = [0, 10 * MINUTE, 59 * MINUTE, HOUR, HOUR + 1, 2 * HOUR - 1, 2 * HOUR, 5 * HOUR]
    table.live(*(sale("a", time, at) for at, time in enumerate(times)))
    before = table.sums()
    seen = []
    while (report := table.move()).moved:
        seen.append((report.rows_read, report.boundary.time_ms))
        assert table.sums() == before
        offline = {row["ts"] for row in table.rows()}
        assert not offline & {row["ts"] // HOUR * HOUR for row in table.rows("orders") if row["ts"] not in offline}
    assert seen == [(3, HOUR), (5, DAY)]
    assert [(row["ts"], row["rows"]) for row in table.rows()] == [(0, 3), (HOUR, 3), (2 * HOUR, 1), (5 * HOUR, 1)]
