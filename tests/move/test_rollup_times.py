"""Rounded times on real halves: no limit, level or partition divides what became one time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hybrid.config.table_config import (
    BoundaryMode,
    Half,
    MergeLevel,
    MergeType,
    MoveConfig,
    PartitionedColumn,
    PartitionFunction,
)
from hybrid.errors import ConflictError
from hybrid.lake.commit_context import CommitContext
from hybrid.move.boundary_override import OverrideRequest, change_boundary
from hybrid.move.merging.merge_exclusions import DIVIDED, HIDDEN
from hybrid.move.plan import Reach
from hybrid.move.retention.run import run_retention
from hybrid.move.rounding import with_rounded_times
from hybrid.replace.lineage import list_replacements
from hybrid.schema.rounding import why_not_rounded
from hybrid.schema.schema import FieldKind, FieldSpec, Schema
from hybrid.schema.timeformat import TimeFormat
from hybrid.schema.types import DataType
from hybrid.table.boundary import INFINITE, Boundary
from hybrid.table.partitions import partition_of
from tests.move.clocked import DAY
from tests.move.rolled import HOUR, MINUTE, Rolling, daily, make, rolling, sale, sales_spec
from tests.query.halves import KEY, orders_spec

__all__ = ["make"]  # a fixture
pytestmark = pytest.mark.spark


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
