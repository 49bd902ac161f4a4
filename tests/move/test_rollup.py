"""Rollups and rounded times on real halves: what rows become; queries add up to the same whatever has moved."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from hybrid.config.table_config import (
    Aggregation,
    BoundaryMode,
    Half,
    MergeLevel,
    MergeType,
    MoveConfig,
    PartitionedColumn,
    PartitionFunction,
    TableSpec,
)
from hybrid.errors import ConflictError, DataError, SpecError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log import ADDED, open_half
from hybrid.lake.table_context import TableContext
from hybrid.move.boundary_override import OverrideRequest, change_boundary
from hybrid.move.merging.merge_exclusions import DIVIDED, HIDDEN
from hybrid.move.merging.run import run_merges
from hybrid.move.move import run_move
from hybrid.move.plan import Reach
from hybrid.move.retention.run import run_retention
from hybrid.move.rounding import with_rounded_times
from hybrid.replace.lineage import list_replacements
from hybrid.replace.revert import revert
from hybrid.schema.rounding import why_not_rounded
from hybrid.schema.schema import FieldKind, FieldSpec, Schema
from hybrid.schema.timeformat import TimeFormat
from hybrid.schema.types import DataType
from hybrid.table.boundary import INFINITE, Boundary
from hybrid.table.partitions import partition_of
from tests.move.clocked import DAY
from tests.move.test_merging import Merging
from tests.query.halves import KEY, MILLIS, Halves, Row, orders_spec

pytestmark = pytest.mark.spark

HOUR, MINUTE = 3_600_000, 60_000
METRICS = {
    "whole": (DataType.INT, Aggregation.SUM),
    "long": (DataType.LONG, Aggregation.SUM),
    "half": (DataType.FLOAT, Aggregation.SUM),
    "broken": (DataType.DOUBLE, Aggregation.SUM),
    "exact": (DataType.BIG_DECIMAL, Aggregation.SUM),
    "low": (DataType.LONG, Aggregation.MIN),
    "high": (DataType.DOUBLE, Aggregation.MAX),
    "rows": (DataType.LONG, Aggregation.COUNT),
    "price": (DataType.DOUBLE, Aggregation.AVG),
    "price_sum": (DataType.DOUBLE, Aggregation.SUM),
    "price_count": (DataType.LONG, Aggregation.SUM),
}
NULLS: dict[DataType, object] = {
    DataType.INT: 0, DataType.LONG: 0, DataType.FLOAT: 0.0, DataType.DOUBLE: 0.0, DataType.BIG_DECIMAL: Decimal(0),
}  # fmt: skip
MOVED = tuple((name, how) for name, (_, how) in METRICS.items())
MERGED = tuple((name, Aggregation.SUM if how is Aggregation.COUNT else how) for name, how in MOVED)


def sales_spec(move: MoveConfig, *levels: MergeLevel, time: FieldSpec | None = None, **changes: Any) -> TableSpec:
    """Sales by shop, article and labels, with a metric of every kind."""
    fields = [
        FieldSpec("shop", DataType.STRING, FieldKind.DIMENSION),
        FieldSpec("weight", DataType.DOUBLE, FieldKind.DIMENSION),
        FieldSpec("labels", DataType.STRING, FieldKind.DIMENSION, single_value=False),
        *(FieldSpec(name, kind, FieldKind.METRIC, default_null=NULLS[kind]) for name, (kind, _) in METRICS.items()),
        time or FieldSpec("ts", DataType.LONG, FieldKind.DATE_TIME, time_format=MILLIS),
    ]
    spec = replace(orders_spec(), schema=Schema("orders", tuple(fields)), move=move, merge_levels=levels)
    return replace(spec, **changes)


def sale(shop: str | None, time: int, offset: int, **values: Any) -> Row:
    metrics = {name: 1 if kind is DataType.LONG else None for name, (kind, _) in METRICS.items()}
    stored = {"shop": shop, "weight": 0.5, "labels": ["a", "b"], "ts": time, **metrics, **values}
    return Row(stored, time, offset, timestamp_ms=offset, segment="orders__0__0__x")


class Rolling(Merging):
    """A table that moves."""

    @property
    def context(self) -> TableContext:
        return TableContext(self.bench, self.spec, self.halves.layout)

    @property
    def spec(self) -> TableSpec:
        return self.halves.spec

    def live(self, *rows: Row) -> None:
        self.halves.realtime = open_half(self.halves.layout.half(Half.REALTIME)).realtime
        before = self.halves.realtime.offsets.get(KEY, 0)
        ends = [row.offset + 1 for row in rows if row.offset is not None]
        self.halves.commit_realtime(rows, offsets={KEY: max([before, *ends])})

    def move(self, **options: Any) -> Any:
        options = {"reach": Reach(None), **options}
        return run_move(self.context, **options)

    def merge(self, **options: Any) -> Any:
        return run_merges(self.context, **options)

    def rows(self, half: str = "orders_OFFLINE", what: str = "*") -> list[dict[str, Any]]:
        names = [field.name for field in self.spec.schema.fields] if what == "*" else what.split(", ")
        sql = f"SET enableNullHandling = true; select {', '.join(names)} from {half} order by ts, shop limit 10000"
        return [dict(zip(names, found, strict=True)) for found in self.ask(sql)]

    def sums(self) -> list[tuple[Any, ...]]:
        return self.ask("select shop, sum(long), sum(price_sum), sum(price_count) from orders group by 1 order by 1")


@pytest.fixture
def make(workbench: CommitContext, tmp_path: Path) -> Callable[..., Rolling]:
    def made(spec: TableSpec, mode: BoundaryMode | None = None) -> Rolling:
        return Rolling(Halves.create(tmp_path, replace(spec, null_handling=True), mode), workbench)

    return made


def rolling(**changes: Any) -> MoveConfig:
    settings = {"merge_type": MergeType.ROLLUP, "aggregations": MOVED, "round_ms": HOUR, **changes}
    return MoveConfig(DAY, DAY, **settings)


def daily(**changes: Any) -> MergeLevel:
    settings = {"merge_type": MergeType.ROLLUP, "aggregations": MERGED, "round_ms": HOUR, **changes}
    return MergeLevel(DAY, DAY, name="1day", **settings)


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


def test_a_boundary_inside_of_what_is_one_time_now_shows_each_row_once(make: Callable[..., Rolling]) -> None:
    """T was reached without rounding, and by parts: it lies at half past. Late rows stand before it, others behind."""
    table = make(sales_spec(MoveConfig(DAY, DAY, max_records_per_task=2)))
    table.live(*(sale("a", at * 15 * MINUTE, at) for at in range(6)))
    table.move()
    middle = table.half().offline.boundary.time_ms
    assert middle is not None and middle % HOUR
    table.halves.spec = replace(table.spec, move=rolling(max_records_per_task=3))
    table.live(sale("a", 1, 6), sale("a", 20 * MINUTE, 7))
    before = table.sums()
    while table.move().moved:
        assert table.sums() == before
    assert {row["ts"] for row in table.rows() if row["ts"] % HOUR} == {15 * MINUTE}


@pytest.mark.parametrize("mode", BoundaryMode)
def test_limits_in_effect_divide_no_hour(make: Callable[..., Rolling], mode: BoundaryMode) -> None:
    """In mode pinot the limit goes by the last offline time, a day behind; and a limit may be set by hand."""
    table = make(replace(sales_spec(rolling()), boundary_lag_ms=3 * HOUR), mode)
    table.live(*(sale("a", at * 20 * MINUTE, at) for at in range(20)))
    before = table.sums()
    table.move()
    assert table.sums() == before
    assert 0 < len(table.rows("orders")) < 20
    for limit in (2 * HOUR, 4 * HOUR, 0):
        change_boundary(table.context, OverrideRequest(limit, accepted=True))
        assert table.sums() == before
    with pytest.raises(ConflictError, match="times of its OFFLINE half are rounded") as caught:
        change_boundary(table.context, OverrideRequest(2 * HOUR + 1))
    assert caught.value.hint == "Set it to 1970-01-01T02:00:00Z or 1970-01-01T03:00:00Z."
    if mode is BoundaryMode.PINOT:
        change_boundary(table.context, OverrideRequest())
        assert table.half().offline.boundary.override_ms == 7 * HOUR
        assert table.sums() == before
    change_boundary(table.context, OverrideRequest(clear=True))
    assert table.sums() == before


def test_a_level_that_rounds_more_waits_for_the_boundary_and_takes_single_segments(
    make: Callable[..., Rolling],
) -> None:
    table = make(sales_spec(MoveConfig(HOUR, 0), daily(round_ms=DAY)))
    table.live(*(sale("a", at * HOUR + 5, at) for at in range(26)))
    before = table.sums()
    table.move(reach=Reach(20))
    report = table.merge()
    assert not report.committed and report.sentence.endswith(f"20 segments stay as they are: {DIVIDED}.")
    table.move()
    assert table.merge().committed
    waiting = [(DAY + 5, 1), (DAY + HOUR + 5, 1)]  # of their day more is to come
    assert [(row["ts"], row["long"]) for row in table.rows()] == [(0, 24), *waiting]
    assert not table.merge().committed
    table.live(sale("a", 7, 30))
    table.move()
    assert table.merge().rows_read == 2
    assert [(row["ts"], row["long"]) for row in table.rows()] == [(0, 25), *waiting]
    assert table.sums() == [("a", 27, None, 27)] != before


def test_a_level_that_has_changed_takes_what_it_made_before(make: Callable[..., Rolling]) -> None:
    """Moves roll up, too, so that single segments of theirs stay: but not what was only put together."""
    table = make(sales_spec(rolling(), MergeLevel(DAY, DAY, name="1day")))
    table.live(sale("a", 5, 0), sale("a", DAY, 1))
    table.move()
    table.live(sale("a", 6, 2))
    table.move()
    assert table.merge().rows_written == 2 and not table.merge().committed
    table.halves.spec = replace(table.spec, merge_levels=(daily(),))
    report = table.merge()
    assert (report.rows_read, report.rows_written) == (2, 1)
    assert [(row["ts"], row["long"]) for row in table.rows()] == [(0, 2), (DAY, 1)]
    assert not table.merge().committed
    change = str(list_replacements(table.halves.layout)[0].lineage.change)
    assert change.startswith("mergeType=rollup roundBucketTimePeriod=3600000ms whole.aggregationType=sum")


def test_where_rows_are_pushed_a_rounding_hides_nothing_that_was_not_pushed(make: Callable[..., Rolling]) -> None:
    """A step is longer than the lag: of the last day more is to be pushed, and realtime rows answer for it."""
    spec = replace(sales_spec(MoveConfig(), daily(round_ms=DAY)), move=None, boundary_lag_ms=HOUR)
    table = make(replace(spec, retention={Half.REALTIME: DAY}), BoundaryMode.PINOT)
    sales = [sale("a", at * HOUR, at) for at in range(40)]
    table.live(*sales)
    table.halves.commit_offline([replace(one, segment=f"pushed_{at}") for at, one in enumerate(sales[:36])])
    before = table.sums()
    change_boundary(table.context, OverrideRequest(35 * HOUR + 1))  # all that was pushed
    assert table.merge().sentence.endswith(f"12 segments stay as they are: {HIDDEN}.")
    assert [row["long"] for row in table.rows() if row["ts"] < DAY] == [24]
    assert (table.sums(), table.half().effective_boundary(HOUR).limit_ms) == (before, DAY)
    with pytest.raises(ConflictError, match="covers times before 1970-01-02T00:00:00Z"):
        change_boundary(table.context, OverrideRequest(2 * DAY))
    change_boundary(table.context, OverrideRequest(clear=True))
    assert (table.sums(), table.half().effective_boundary(HOUR).limit_ms) == (before, DAY)
    run_retention(table.context)
    assert table.sums() == before


def test_flows_keep_rows_of_their_own(make: Callable[..., Rolling]) -> None:
    table = make(sales_spec(MoveConfig(), daily(), by_flows=True))
    other = KEY._replace(connector="other")
    refreshed = KEY._replace(epoch=1)
    more = [replace(sale("a", 7 + at, 0), key=key) for at, key in enumerate((other, refreshed))]
    table.add(sale("a", 5, 0), sale("a", 6, 1), *more)
    assert table.merge().rows_written == 3
    assert sorted(row["long"] for row in table.rows()) == [1, 1, 2]


def test_retention_waits_for_the_end_of_what_became_one_time(make: Callable[..., Rolling]) -> None:
    table = make(sales_spec(rolling(round_ms=DAY), retention={Half.OFFLINE: 5 * DAY}))
    table.live(sale("a", DAY - 1, 0), sale("a", DAY, 1))
    table.move()
    for now, left in ((6 * DAY - 1, 2), (6 * DAY, 1)):
        table.now = now
        run_retention(table.context)
        assert len(table.rows("orders")) == left


def test_without_a_rounding_rows_of_one_instant_are_rolled_up(make: Callable[..., Rolling]) -> None:
    table = make(sales_spec(rolling(round_ms=None)))
    table.live(sale("a", 5, 0), sale("a", 5, 1), sale("a", 6, 2))
    table.move()
    assert [(row["ts"], row["rows"]) for row in table.rows()] == [(5, 2), (6, 1)]
    assert table.half().offline.boundary.step_ms == 1


def test_without_a_time_column_rows_are_rolled_up_by_their_dimensions(make: Callable[..., Rolling]) -> None:
    table = make(replace(sales_spec(rolling(round_ms=None)), time_column=None))
    table.live(*(replace(sale("a", 5, at), time_ms=None) for at in range(3)))
    table.halves.commit_offline([], Boundary(INFINITE))
    assert "merged to 1 (rollup) into orders_0" in table.move().sentence
    assert table.rows()[0]["rows"] == 3


@pytest.mark.parametrize("merge", [MergeType.CONCAT, MergeType.DEDUP])
def test_times_are_rounded_without_a_rollup_too(make: Callable[..., Rolling], merge: MergeType) -> None:
    table = make(sales_spec(MoveConfig(DAY, DAY, merge, round_ms=MINUTE, name_prefix="web-sales", name_postfix="v2")))
    table.live(sale("a", 5, 0), sale("a", 6, 1), sale("a", MINUTE + 5, 2), sale("a", -1, 3))
    names = table.move().segments
    assert names == ("web-sales_-60000_-60000_v2_0", "web-sales_0_60000_v2_0")
    times = [row["ts"] for row in table.rows()]
    assert times == ([-MINUTE, 0, 0, MINUTE] if merge is MergeType.CONCAT else [-MINUTE, 0, MINUTE])


AT = datetime(2021, 9, 24, 13, 47, 11, 500_000, tzinfo=UTC)


FORMATS = [
    (DataType.INT, "1:SECONDS:EPOCH", 1632491231, 1632488400),
    (DataType.LONG, "1:NANOSECONDS:EPOCH", 1632491231500000007, 1632488400000000000),
    (DataType.STRING, "EPOCH|MINUTES|15", "1813879", "1813876"),
    (DataType.INT, "1:DAYS:EPOCH", 18894, 18894),
    (DataType.INT, "1:SECONDS:EPOCH", -1, -3600),
    (DataType.LONG, "1:HOURS:EPOCH", -5, -5),
    (DataType.TIMESTAMP, "TIMESTAMP", AT, AT.replace(minute=0, second=0, microsecond=0)),
    (DataType.LONG, "1:MILLISECONDS:TIMESTAMP", 1632491231500, 1632488400000),
    (DataType.STRING, "SIMPLE_DATE_FORMAT|yyyy-MM-dd HH:mm", "2021-09-24 13:47", "2021-09-24 13:00"),
    (DataType.INT, "1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd", 20210924, 20210924),
]


def test_the_stored_time_is_rounded_in_its_own_format(workbench: CommitContext) -> None:
    for kind, form, stored, rounded in FORMATS:
        time_format = TimeFormat.parse(form, "s", "format", kind)
        assert why_not_rounded(time_format, HOUR) is None
        field = FieldSpec("a.ts", kind, FieldKind.DATE_TIME, time_format=time_format)
        spec = replace(orders_spec(), schema=Schema("orders", (field,)), time_column="a.ts")
        row = (stored, time_format.to_millis(stored), "x")
        rows = workbench.spark.createDataFrame([row], f"`a.ts` {field.spark_type}, _hy_time bigint, other string")
        found = with_rounded_times(rows, spec, MoveConfig(round_ms=HOUR)).toArrow()
        assert found.schema.names == rows.columns
        (value, time, other) = (column[0].as_py() for column in found.columns)
        assert (value, time, other) == (rounded, time_format.to_millis(rounded), "x"), form


def test_a_segment_holds_one_partition_of_values(make: Callable[..., Rolling]) -> None:
    by_shop = PartitionedColumn("shop", PartitionFunction.MURMUR, 3, "null")
    by_long = PartitionedColumn("long", PartitionFunction.MODULO, 2, "0")
    level = MergeLevel(DAY, DAY, name="1day")
    table = make(sales_spec(MoveConfig(DAY, DAY), level, partitions=(by_shop, by_long)))
    shops = [None, "a", "b", "c", "d", "é"]
    rows = [sale(shops[at % 6], at % 2 * DAY + at, at, long=None if at == 7 else at % 5 - 2) for at in range(24)]
    table.live(*rows[:18])
    before = table.ask("select count(*), sum(long) from orders")

    def check() -> int:
        found: dict[str, set[tuple[int, int]]] = {}
        sql = "select $segmentName, shop, long from orders_OFFLINE limit 100"
        for name, shop, value in table.ask(f"SET enableNullHandling = true; {sql}"):
            place = (
                partition_of(by_shop.function, "null" if shop is None else shop, 3),
                partition_of(by_long.function, str(value or 0), 2),
            )
            found.setdefault(name, set()).add(place)
        assert all(len(places) == 1 for places in found.values()), found
        return len(found)

    assert table.move().rows_written == 18
    first = check()
    assert first > 4 and table.ask("select count(*), sum(long) from orders") == before
    table.live(*rows[18:])
    table.move()
    before = table.ask("select count(*), sum(long) from orders")
    assert check() > first
    assert table.merge().committed
    assert check() <= 12 and table.ask("select count(*), sum(long) from orders") == before
    assert not table.merge().committed
