"""Pinot's functions and types, as DuckDB computes them over a table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from tests.query.conftest import NOW_MS
from tests.query.halves import KEY, Halves, Row, orders_spec

Ask = Callable[..., Any]
DAY = 86_400_000


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Halves:
    extra = [
        FieldSpec("doc", DataType.JSON, FieldKind.DIMENSION),
        FieldSpec("at", DataType.TIMESTAMP, FieldKind.DIMENSION),
        FieldSpec("price", DataType.BIG_DECIMAL, FieldKind.METRIC),
        FieldSpec("tags", DataType.STRING, FieldKind.DIMENSION, single_value=False),
        FieldSpec("raw", DataType.BYTES, FieldKind.DIMENSION),
    ]
    built = Halves.create(Path(tmp_path_factory.mktemp("functions")), orders_spec(extra=extra))
    rows = []
    for number in range(14):
        ts = 1_632_463_351_000 + number * 3_600_000
        values = {
            "order_id": number, "customer": f"c{number % 3}", "amount": 15.948, "ts": ts,
            "doc": f'{{"a": {{"b": "{number}"}}}}', "at": datetime.fromisoformat("2021-09-24T06:02:31+00:00"),
            "price": Decimal("12.50"), "tags": ["x", "y"], "raw": b"\x01\xff",
        }  # fmt: skip
        rows.append(Row(values, ts, number))
    built.commit_realtime(rows, offsets={KEY: 14})
    return built


@pytest.mark.parametrize(
    ("expression", "kind", "value"),
    [
        ("DISTINCTCOUNT(customer)", "INT", 3),
        ("distinct_count(customer)", "INT", 3),
        ("DistinctCountHLL(customer)", "LONG", 3),
        ("count(distinct customer)", "INT", 3),
        ("sum(order_id)", "DOUBLE", 91.0),
        ("sum(amount)", "DOUBLE", pytest.approx(14 * 15.948, rel=1e-6)),
        ("max(amount)", "FLOAT", 15.948),
        ("sum(price)", "DOUBLE", 175.0),
        ("sum(distinct price)", "DOUBLE", 12.5),
        ("sum(price) filter (where order_id < 2)", "DOUBLE", 25.0),
        ("sum(price) / 2", "DOUBLE", 87.5),
        ("sum(price * 2)", "DOUBLE", 350.0),
        ("sum(case when order_id > 12 then price else 0 end)", "DOUBLE", 12.5),
        ("min(price)", "DOUBLE", 12.5),
        ("max(price) over ()", "DOUBLE", 12.5),
        ("max(price) + 1", "DOUBLE", 13.5),
        ("avg(price)", "DOUBLE", 12.5),
        ("mode(price)", "DOUBLE", 12.5),
        ("minmaxrange(price)", "DOUBLE", 0.0),
        ("distinctsum(price)", "DOUBLE", 12.5),
        ("distinctavg(price)", "DOUBLE", 12.5),
        ("sumprecision(price)", "BIG_DECIMAL", Decimal("175")),
        ("any_value(price)", "BIG_DECIMAL", Decimal("12.5")),
        ("count(price)", "LONG", 14),
        ("distinctcount(price)", "INT", 1),
        ("percentile(price, 50)", "DOUBLE", 12.5),
        ("stddevpop(price)", "DOUBLE", 0.0),
        ("(select count(*) from orders where price = (select max(price) from orders))", "LONG", 14),
        ("(select sum(t.total) from (select sum(price) as total from orders group by customer) t)", "DOUBLE", 175.0),
        ("percentile(order_id, 50)", "DOUBLE", 7.0),
        ("percentile95(order_id)", "DOUBLE", 13.0),
        ("PERCENTILE(order_id, 100)", "DOUBLE", 13.0),
        ("PERCENTILETDIGEST(order_id, 50)", "DOUBLE", pytest.approx(6.5, abs=0.6)),
        ("minmaxrange(order_id)", "LONG", 13),
        ("FIRSTWITHTIME(order_id, ts, 'INT')", "INT", 0),
        ("lastWithTime(customer, ts, 'STRING')", "STRING", "c1"),
        ("min(DATETRUNC('DAY', ts))", "LONG", 1_632_441_600_000),
        ("min(DATETRUNC('hour', ts, 'MILLISECONDS', 'UTC', 'HOURS'))", "LONG", 453_462),
        ("min(datetrunc('day', ts, 'MILLISECONDS', 'Asia/Tokyo'))", "LONG", 1_632_409_200_000),
        ("min(datetrunc('day', at))", "LONG", 1_632_441_600_000),
        ("min(TODATETIME(ts, 'yyyy-MM-dd HH:mm:ss'))", "STRING", "2021-09-24 06:02:31"),
        ("min(todatetime(ts, 'yyyyMMdd''T''HH', 'Asia/Tokyo'))", "STRING", "20210924T15"),
        ("FROMDATETIME('2021-09-24 06:02:31', 'yyyy-MM-dd HH:mm:ss')", "LONG", 1_632_463_351_000),
        ("DATETIMECONVERT(min(ts), '1:MILLISECONDS:EPOCH', '1:HOURS:EPOCH', '1:HOURS')", "LONG", 453_462),
        ("min(YEAR(ts))", "INT", 2021),
        ("min(hour(ts, 'Asia/Tokyo'))", "INT", 0),
        ("toEpochDays(min(ts))", "LONG", 18_894),
        ("now()", "LONG", NOW_MS),
        ("AGO('P1D')", "LONG", NOW_MS - DAY),
        ("min(JSON_EXTRACT_SCALAR(doc, '$.a.b', 'INT'))", "INT", 0),
        ("min(jsonextractscalar(doc, '$.x', 'LONG', -1))", "LONG", -1),
        ("sum(case when REGEXP_LIKE(customer, '1$') then 1 else 0 end)", "DOUBLE", 5.0),
        ("min(substr(customer, 0, 1))", "STRING", "c"),
        ("max(at)", "TIMESTAMP", datetime(2021, 9, 24, 6, 2, 31)),
        ("any_value(tags)", "STRING_ARRAY", ["x", "y"]),
        ("any_value(raw)", "BYTES", b"\x01\xff"),
        ("count(*) > 3", "BOOLEAN", True),
        ("cast('2021-09-24' as date)", "STRING", "2021-09-24"),
    ],
)
def test_values_and_types(halves: Halves, ask: Ask, expression: str, kind: str, value: object) -> None:
    found = ask(halves, f"select {expression} from orders limit 1")
    assert (found.rows[0][0], found.column_types[0]) == (value, kind)


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("at = 1632463351000", 14),
        ("at >= '2021-09-24 06:02:31' and at < 1632463351001", 14),
        ("at > now() - 1000", 0),
        ("at between 1632463351000 and 1632463351000", 14),
        ("ts > ago('P30D')", 14),
        ("amount = 15.948", 14),
        ("price = 12.5", 14),
        ("json_extract_scalar(doc, '$.a.b', 'STRING') = '7'", 1),
    ],
)
def test_conditions(halves: Halves, ask: Ask, where: str, count: int) -> None:
    assert ask(halves, f"select count(*) from orders where {where}").rows == [(count,)]


def test_names_and_types_of_a_star(halves: Halves, ask: Ask) -> None:
    found = ask(halves, "select * from orders limit 1")
    assert dict(zip(found.column_names, found.column_types, strict=True)) == {
        "amount": "FLOAT", "at": "TIMESTAMP", "customer": "STRING", "doc": "JSON", "order_id": "INT",
        "price": "BIG_DECIMAL", "raw": "BYTES", "tags": "STRING_ARRAY", "ts": "LONG",
    }  # fmt: skip
    assert list(found.column_names) == sorted(found.column_names)


def test_names_of_results(halves: Halves, ask: Ask) -> None:
    found = ask(halves, "select COUNT(*), SUM(amount), customer c, PERCENTILE(ts, 95) from orders group by customer")
    assert list(found.column_names) == ["count(*)", "sum(amount)", "c", "percentile(ts, 95.0)"]


def test_data_frames(halves: Halves, ask: Ask) -> None:
    found = ask(halves, "select * from orders order by order_id limit 2")
    assert found.arrow().num_rows == 2
    assert list(found.df()["order_id"]) == [0, 1]
    assert ask(halves, "select * from orders where order_id < 0").df().empty


def test_a_multi_value_column_is_unnested(halves: Halves, ask: Ask) -> None:
    found = ask(halves, "select tag, count(*) from orders, unnest(tags) u(tag) group by tag order by tag")
    assert found.rows == [("x", 14), ("y", 14)]


def test_a_step_that_looks_like_decimals_gets_a_warning(halves: Halves, ask: Ask) -> None:
    """The values are Pinot's; the warning names the function that rounds to decimals."""
    result = ask(halves, "SELECT ROUND(amount, 2), ROUND_DECIMAL(amount, 2) FROM orders LIMIT 1")
    assert [list(row) for row in result.rows] == [[14.0, 15.95]]
    assert list(result.warnings) == [
        "ROUND(amount, 2) rounds to a multiple of 2, as in Pinot. ROUND_DECIMAL(amount, 2) rounds to 2 decimals."
    ]
    assert not ask(halves, "SELECT ROUND(ts, 3600000) FROM orders LIMIT 1").warnings
