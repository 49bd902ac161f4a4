"""TIMESTAMP beside epoch milliseconds, fractions that are cut, and what else public reports asked of statements.

Each is asked of rows in files and of a server's cache.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from hybrid.errors import QueryError
from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import NoTail
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from tests.query.conftest import NOW_MS
from tests.query.halves import KEY, Halves, Row, orders_spec
from tests.query.stepped import SteppedCache

TS = 1_609_459_199_999  # 2020-12-31T23:59:59.999Z
DAY = 1_609_372_800_000
AT = datetime(2020, 12, 31, 23, 59, 59, 999_600)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> SteppedCache:
    extra = [
        FieldSpec("at", DataType.TIMESTAMP, FieldKind.DIMENSION),
        FieldSpec("doc", DataType.JSON, FieldKind.DIMENSION),
        FieldSpec("price", DataType.BIG_DECIMAL, FieldKind.METRIC),
        FieldSpec("half", DataType.DOUBLE, FieldKind.METRIC),
    ]
    halves = Halves.create(Path(tmp_path_factory.mktemp("times")), orders_spec(extra=extra))
    values = {
        "order_id": 1, "customer": "x_y", "amount": 2.5, "ts": TS, "at": AT.replace(tzinfo=UTC),
        "doc": '{"a": 7.9}', "price": Decimal("7.9"), "half": 7.9,
    }  # fmt: skip
    halves.commit_realtime([Row(values, TS, 0)], offsets={KEY: 1})
    return SteppedCache(halves, NOW_MS)


def ask(cache: SteppedCache, sql: str) -> object:
    """The one value that files and cache answer alike."""
    found = run(sql, cache.source, QueryOptions(tail=NoTail(), now_ms=lambda: NOW_MS))
    cached = cache.ask(sql)
    assert cached is None or (cached.rows, cached.column_types) == (found.rows, found.column_types)
    assert len(found.rows) == 1
    return found.rows[0][0]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("DATETRUNC('day', ts/1000, 'SECONDS')", DAY // 1000),
        ("CAST(CASE WHEN order_id = 1 THEN 7.9 ELSE 1 END AS INT)", 7),
        ("CAST(CASE WHEN order_id = 1 THEN half END AS LONG)", 7),
        ("CAST(-half AS INT)", -7),
        ("CAST(GREATEST(half, 1) AS INT)", 7),
        ("CAST(IF(order_id = 1, half, 0) AS INT)", 7),
        ("CAST(LIST_EXTRACT([half, half], 1) AS INT)", 7),
        ("CAST(price AS INT)", 7),
        ("CAST('7.9' AS INT)", 7),
        ("JSON_EXTRACT_SCALAR(doc, '$.a', 'INT')", 7),
        ("JSONPATHLONG(doc, '$.a')", 7),
        ("FROMEPOCHSECONDS(half)", 7000),
        ("TIMECONVERT(half, 'SECONDS', 'MILLISECONDS')", 7000),
        ("ROUND(half, 5)", 5),
        ("TOEPOCHDAYS(ts / 1000 * 1000)", 18_627),
        ("TOEPOCHDAYS(at)", 18_627),
        ("FROMTIMESTAMP(at)", TS),
        ("CAST(at AS LONG)", TS),
        ("CAST(at AS DOUBLE)", float(TS)),
        ("CAST(MAX(at) AS LONG)", TS),
        ("FIRSTWITHTIME(half, ts, 'INT')", 7),
    ],
)
def test_fractions_are_cut(cache: SteppedCache, expression: str, value: object) -> None:
    """S3, X8."""
    assert ask(cache, f"select {expression} from orders limit 1") == value


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("select CAST(v AS INT) from (select half v from orders)", 7),
        ("with t as (select half * 1 as ts from orders) select CAST(ts AS LONG) from t", 7),
        ("select CAST(ts AS TIMESTAMP) from (select at as ts from orders)", AT),
        ("select TOEPOCHDAYS(ts) from (select at as ts from orders) x", 18_627),
        ("select x.at + 1000 from (select ts as at from orders) x", TS + 1000),
        ("select CAST(d AS TIMESTAMP) from (select DATETRUNC('day', ts) d from orders) x", datetime(2020, 12, 31)),
        ("select count(*) from (select max(at) as m, max(ts) as n from orders) x where m > n", 1),
    ],
)
def test_columns_of_subqueries_have_their_own_types(cache: SteppedCache, sql: str, value: object) -> None:
    """S3, S7."""
    assert ask(cache, sql) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("CAST(DATETRUNC('day', ts) AS TIMESTAMP)", datetime(2020, 12, 31)),
        ("CAST(CASE WHEN order_id = 1 THEN ts ELSE 0 END AS TIMESTAMP)", datetime(2020, 12, 31, 23, 59, 59, 999_000)),
        ("CAST(ts / 1 AS TIMESTAMP)", datetime(2020, 12, 31, 23, 59, 59, 999_000)),
        ("CAST(LIST_EXTRACT([ts], 1) AS TIMESTAMP)", datetime(2020, 12, 31, 23, 59, 59, 999_000)),
        ("at + 1000", TS + 1000),
        ("at - ts", 0),
        ("at + interval 1 day", datetime(2021, 1, 1, 23, 59, 59, 999_600)),
        ("CASE WHEN order_id = 1 THEN ts ELSE at END", datetime(2020, 12, 31, 23, 59, 59, 999_000)),
        ("CAST(DATE_TRUNC('day', CAST(at AS TIMESTAMP)) AS TIMESTAMP)", datetime(2020, 12, 31)),
        ("CAST(ROUND(DATE_TRUNC('minute', CAST(ts AS TIMESTAMP)), 300000) AS TIMESTAMP)",
         datetime(2020, 12, 31, 23, 55)),
        ("CAST(ROUND(DATE_TRUNC('minute', CAST(at AS TIMESTAMP)), 1800000) AS TIMESTAMP)",
         datetime(2020, 12, 31, 23, 30)),
    ],
)  # fmt: skip
def test_timestamps_and_epoch_milliseconds_mix(cache: SteppedCache, expression: str, value: object) -> None:
    """S7."""
    assert ask(cache, f"select {expression} from orders") == value


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("at > ts", 1),
        ("at = ts", 0),
        ("at > ts - 1", 1),
        ("at >= at + 1000", 0),
        (f"at > {TS}.5", 1),
        (f"at > {TS}.7", 0),
        (f"at between {TS} and {TS + 1}", 1),
        ("ts in (select FROMTIMESTAMP(at) from orders)", 1),
        ("at > (select min(ts) from orders)", 1),
        ("at > CASE WHEN order_id = 1 THEN ts ELSE 0 END", 1),
        (r"customer LIKE 'x\_y'", 1),
        (r"customer LIKE 'x\%y'", 0),
        (r"customer NOT LIKE 'x\_y'", 0),
        (r"customer ILIKE 'X\_Y'", 1),
        (r"customer LIKE 'x\__'", 1),
        (r"customer LIKE 'x\y'", 0),
    ],
)
def test_conditions(cache: SteppedCache, where: str, count: int) -> None:
    """S5, S7."""
    assert ask(cache, f"select count(*) from orders where {where}") == count


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ('select "default"."orders"."customer" from "default"."orders"', "x_y"),
        ("select default.orders.customer from default.orders where default.orders.order_id = 1", "x_y"),
        ('select "default"."o"."customer" from "default"."orders" o order by "default"."o"."ts"', "x_y"),
        ('select max("default".orders.ts) from orders group by "default".orders.customer', TS),
        ("select order_id from orders; SET timeoutMs=10000", 1),
        ("SET timeoutMs=10000; select order_id from orders; SET asOfX='a'; -- behind", 1),
        ("select order_id from orders option(timeoutMs=10000) option(skipUpsert=false) -- and a comment", 1),
        ("select order_id from orders /* a; b */;", 1),
        ("select fromUtf8(fromBase64('YQ')) from orders", "a"),
        ("select fromUtf8(fromBase64('YWI=')) from orders", "ab"),
        ("select DATETRUNC(LOWER('DAY'), ts) from orders", DAY),
        ("select DATETRUNC(CONCAT('d', 'y', 'a'), ts) from orders", DAY),
        ("select DATETRUNC('d' || 'ay', ts) from orders", DAY),
        ("select TOEPOCHMINUTESBUCKET(ts, 5 * 3) from orders", TS // 900_000),
        ("select DATETIMECONVERT(ts, 'EPOCH|MILLISECONDS', 'EPOCH|DAYS', '1:DAYS') from orders", 18_627),
        ("select DATETIMECONVERT(at, 'TIMESTAMP', '1:MILLISECONDS:TIMESTAMP', '1:DAYS') from orders",
         datetime(2020, 12, 31)),
        ("select DATETIMECONVERT(ts, 'EPOCH|MILLISECONDS|1', 'SIMPLE_DATE_FORMAT|yyyy-MM-dd|Asia/Tokyo', '1:DAYS') "
         "from orders", "2021-01-01"),
        ("select DATETIMECONVERT(1699137000000, '1:MILLISECONDS:EPOCH', "
         "'1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd tz(Asia/Tokyo)', '1:DAYS') from orders", "2023-11-05"),
        ("select DATETRUNC('MINUTE', 1699173600000, 'MILLISECONDS', 'US/Pacific') from orders", 1_699_173_600_000),
        ("select FROMDATETIME('2023-11-05 01:30:00', 'yyyy-MM-dd HH:mm:ss', 'US/Pacific') from orders",
         1_699_173_000_000),
        ("select FROMDATETIME('2023-03-12 02:30:00', 'yyyy-MM-dd HH:mm:ss', 'US/Pacific') from orders",
         1_678_617_000_000),
        ("select DATETRUNC('DAY', 1699158600000, 'MILLISECONDS', 'America/Havana') from orders", 1_699_156_800_000),
        ("select FROMDATETIME('2020-12-31T23:59:59Z', 'yyyy-MM-dd''T''HH:mm:ssZ') from orders", TS // 1000 * 1000),
        ("select FROMDATETIME('10:30', 'HH:mm') from orders", 37_800_000),
    ],
)  # fmt: skip
def test_statements(cache: SteppedCache, sql: str, value: object) -> None:
    """S1, S2, S6, S8, S9, S12, S14, X9."""
    assert ask(cache, sql) == value


@pytest.mark.parametrize(
    "word", ["CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "current_timestamp"]
)
def test_clocks_without_parentheses(cache: SteppedCache, word: str) -> None:
    """DuckDB would take the word in SELECT for the output column that has its name."""
    for sql in (f"select {word} from orders", f"select count(*), {word} from orders group by {word}"):
        found = run(sql, cache.source, QueryOptions(tail=NoTail()))
        assert found.column_names[-1].upper() == word.upper() and found.rows[0][-1] is not None
    assert ask(cache, f"select count({word}) from orders where {word} is not null") == 1


def test_timestamps_are_compared_with_the_clock(cache: SteppedCache) -> None:
    for clock in ("CURRENT_TIMESTAMP", "CURRENT_DATE", "current_date()", "LOCALTIMESTAMP"):
        assert ask(cache, f"select count(*) from orders where ts < {clock} and at < {clock}") == 1


def test_a_date_without_quotes_is_refused(cache: SteppedCache) -> None:
    """S10: it would be a difference of numbers."""
    for where in ("at >= 2023-08-02", "customer >= 2023-08-02", "ts > 2023-10-09"):
        with pytest.raises(QueryError, match=re.escape("without quotes")):
            ask(cache, f"select count(*) from orders where {where}")


def test_an_argument_that_must_be_constant(cache: SteppedCache) -> None:
    """S8: the error has no words but the user's."""
    with pytest.raises(QueryError, match="'customer' must be a quoted constant"):
        ask(cache, "select DATETRUNC(customer, ts) from orders")
