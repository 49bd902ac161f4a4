"""Time series without gaps: Pinot's documented GAPFILL examples, and series of numbers in FROM."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import QueryError
from hybrid.query.result import QueryResult
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from hybrid.sql.statement import parse_statement
from tests.query.halves import KEY, Halves, Row, orders_spec
from tests.query.stepped import SteppedCache

Ask = Callable[..., QueryResult]
# The rows of docs.pinot.apache.org, "GapFill Function For Time-Series Dataset": lot, time, is occupied.
EVENTS = """
P1 09:01 1, P2 09:17 1, P1 09:33 0, P1 09:47 1, P3 10:05 1, P2 10:06 0, P2 10:16 1, P2 10:31 0, P3 11:17 0, P1 11:54 0
"""
FORMAT = "'1:MILLISECONDS:SIMPLE_DATE_FORMAT:yyyy-MM-dd HH:mm:ss.SSS'"
BUCKET = f"DATETIMECONVERT(ts, '1:MILLISECONDS:EPOCH', {FORMAT}, '30:MINUTES')"
SPAN = f"{FORMAT}, '2021-10-01 09:00:00.000', '2021-10-01 12:00:00.000', '30:MINUTES'"
WHERE = "WHERE ts >= 1633078800000 AND ts <= 1633089600000"
LAST = f"""SELECT {BUCKET} AS time_col, customer AS lotId, lastWithTime(order_id, ts, 'INT') AS status
    FROM orders {WHERE} GROUP BY 1, 2 ORDER BY 1 LIMIT 100"""
FILLED = """
    09:00 P1 1, 09:00 P2 1, 09:00 P3 0, 09:30 P1 1, 09:30 P2 1, 09:30 P3 0, 10:00 P1 1, 10:00 P2 1, 10:00 P3 1,
    10:30 P1 1, 10:30 P2 0, 10:30 P3 1, 11:00 P1 1, 11:00 P2 0, 11:00 P3 0, 11:30 P1 0, 11:30 P2 0, 11:30 P3 0
"""
FILLED_ROWS = """
    09:00 P1 1, 09:00 P2 1, 09:00 P3 0, 09:30 P1 0, 09:30 P1 1, 09:30 P2 1, 09:30 P3 0, 10:00 P1 1, 10:00 P2 0,
    10:00 P2 1, 10:00 P3 1, 10:30 P1 1, 10:30 P2 0, 10:30 P3 1, 11:00 P1 1, 11:00 P2 0, 11:00 P3 0, 11:30 P1 0,
    11:30 P2 0, 11:30 P3 0
"""


def instant(clock: str) -> int:
    return int(datetime.fromisoformat(f"2021-10-01T{clock}").replace(tzinfo=UTC).timestamp() * 1000)


def rows_of(text: str) -> list[tuple[Any, ...]]:
    """Rows like `09:00 P1 1`, with the time as the statements write it."""
    parts = [row.split() for row in text.replace("\n", " ").split(",")]
    return [(f"2021-10-01 {clock}:00.000", *(int(v) if v.isdigit() else v for v in rest)) for clock, *rest in parts]


@pytest.fixture(scope="module")
def parking(tmp_path_factory: pytest.TempPathFactory) -> Halves:
    extra = [
        FieldSpec("note", DataType.STRING, FieldKind.DIMENSION),
        FieldSpec("at", DataType.TIMESTAMP, FieldKind.DIMENSION),
        FieldSpec("ok", DataType.BOOLEAN, FieldKind.DIMENSION),
    ]
    halves = Halves.create(Path(tmp_path_factory.mktemp("parking")), orders_spec(extra=extra))
    rows = []
    for offset, (lot, clock, occupied) in enumerate(event.split() for event in EVENTS.split(",")):
        moment = instant(clock)
        values = {
            "order_id": int(occupied), "customer": lot, "amount": 1.5, "ts": moment, "note": f"n{offset}", "ok": True,
            "at": moment * 1000,
        }  # fmt: skip
        rows.append(Row(values, moment, offset))
    halves.commit_realtime(rows, offsets={KEY: len(rows)})
    return halves


@pytest.mark.slow
def test_aggregate_gapfill_aggregate(ask: Ask, parking: Halves) -> None:
    sql = f"""SELECT time_col, SUM(status) AS occupied FROM (
        SELECT GAPFILL(time_col, {SPAN}, FILL(status, 'FILL_PREVIOUS_VALUE'), TIMESERIESON(lotId)), lotId, status
        FROM ({LAST}) LIMIT 100) GROUP BY 1 ORDER BY 1 LIMIT 100"""
    found = ask(parking, sql)
    assert found.column_names == ["time_col", "occupied"]
    assert [(time[11:16], int(total)) for time, total in found.rows] == [
        ("09:00", 2), ("09:30", 2), ("10:00", 3), ("10:30", 2), ("11:00", 1), ("11:30", 0),
    ]  # fmt: skip


def test_aggregate_gapfill(ask: Ask, parking: Halves) -> None:
    sql = f"""SELECT GAPFILL(time_col, {SPAN}, FILL(status, 'FILL_PREVIOUS_VALUE'), TIMESERIESON(lotId)), lotId, status
        FROM ({LAST}) ORDER BY 1, 2 LIMIT 100"""
    found = ask(parking, sql)
    assert found.column_names == ["time_col", "lotId", "status"] and found.column_types == ["STRING", "STRING", "INT"]
    assert found.rows == rows_of(FILLED)


@pytest.mark.slow
def test_select_gapfill(ask: Ask, parking: Halves) -> None:
    sql = f"""SELECT GAP_FILL({BUCKET}, {SPAN}, FILL(order_id, 'FILL_PREVIOUS_VALUE'), TIMESERIESON(customer))
        AS time_col, customer, order_id FROM orders {WHERE} ORDER BY 1, 2, 3 LIMIT 100"""
    assert ask(parking, sql).rows == rows_of(FILLED_ROWS)
    assert len(ask(parking, sql.replace("LIMIT 100", "")).rows) == 10


@pytest.mark.slow
def test_gapfill_aggregate(ask: Ask, parking: Halves) -> None:
    sql = f"""SELECT time_col, SUM(order_id) AS n FROM (
        SELECT GAPFILL({BUCKET}, {SPAN}, FILL(order_id, 'FILL_PREVIOUS_VALUE'), TIMESERIESON(customer)) AS time_col,
        customer, order_id FROM orders {WHERE} LIMIT 100) GROUP BY 1 ORDER BY 1 LIMIT 100"""
    totals: dict[str, int] = {}
    for time, _, value in rows_of(FILLED_ROWS):
        totals[time] = totals.get(time, 0) + value
    assert [(time, int(total)) for time, total in ask(parking, sql).rows] == sorted(totals.items())


@pytest.mark.slow
def test_defaults_by_type_and_epochs(ask: Ask, parking: Halves) -> None:
    hour = 3_600_000
    span = f"'1:MILLISECONDS:EPOCH', '{instant('08:00')}', '{instant('10:00')}', '1:HOURS'"
    fills = "FILL(ok, 'FILL_DEFAULT_VALUE'), FILL(note, 'FILL_PREVIOUS_VALUE')"
    sql = f"""SELECT GAPFILL(DATETRUNC('HOUR', ts), {span}, {fills}, TIMESERIESON(customer)) AS t, order_id,
        amount, note, ok, at FROM orders WHERE customer = :lot and ts < {instant("10:00")} ORDER BY 1, note"""
    found = ask(parking, sql, params={"lot": "P2"})
    assert found.column_types == ["LONG", "INT", "FLOAT", "STRING", "BOOLEAN", "TIMESTAMP"]
    first, second = found.rows
    assert first[:5] == (instant("09:00") - hour, 0, 0.0, "", False) and str(first[5]).startswith("1970-01-01")
    assert second[:5] == (instant("09:00"), 1, 1.5, "n1", True)


def test_what_came_before_the_start_is_previous(ask: Ask, parking: Halves) -> None:
    span = f"'1:MILLISECONDS:EPOCH', '{instant('11:00')}', '{instant('11:30')}', '30:MINUTES'"
    sql = f"""SELECT GAPFILL(DATETRUNC('MINUTE', ts), {span}, FILL(order_id, 'FILL_PREVIOUS_VALUE'),
        TIMESERIESON(customer)) AS t, customer, order_id FROM orders WHERE ts < {instant("11:00")} ORDER BY 2"""
    assert [row[1:] for row in ask(parking, sql).rows] == [("P1", 1), ("P2", 0), ("P3", 1)]


@pytest.mark.slow
def test_memory_answers_as_the_files_do(ask: Ask, parking: Halves) -> None:
    cache = SteppedCache(parking, 1_632_700_000_000)
    for sql in (
        f"""SELECT GAPFILL(time_col, {SPAN}, FILL(status, 'FILL_PREVIOUS_VALUE'), TIMESERIESON(lotId)), lotId, status
        FROM ({LAST}) ORDER BY 1, 2 LIMIT 100""",
        """select b.bucket, count(o.ts) as n from generate_series(1633078800000, 1633089000000, 1800000) as b(bucket)
        left join orders o on o.ts >= b.bucket and o.ts < b.bucket + 1800000 group by 1 order by 1 limit 100""",
    ):
        expected = ask(parking, sql)
        for _ in range(2):
            found = cache.ask(sql)
            assert found is not None and found.source == "cache"
            assert (found.rows, found.column_types) == (expected.rows, expected.column_types)


def at_hours(*hours: int) -> list[datetime]:
    return [datetime(2021, 10, 1, hour) for hour in hours]


@pytest.mark.parametrize("form", ["TIMESTAMP", "1:MILLISECONDS:EPOCH"])
@pytest.mark.parametrize(
    "span",
    [
        "'2021-10-01 08:00', '2021-10-01 13:00'", "'2021-10-01T10:00:00+02:00', '2021-10-01T13:00:00Z'",
        f"'{instant('08:00')}', '2021-10-01 13:00:00.000'", f"{instant('08:00')}, {instant('13:00')}", ":first, :last",
    ],
)  # fmt: skip
def test_times_of_a_timestamp_column(ask: Ask, parking: Halves, form: str, span: str) -> None:
    """Starts and ends are ISO 8601 as well, and added rows have TIMESTAMP values as the others do."""
    sql = f"""SELECT GAPFILL(hour, '{form}', {span}, '1:HOURS', FILL(n, 'FILL_DEFAULT_VALUE')) AS hour, n
        FROM (SELECT DATETRUNC('HOUR', CAST(at AS TIMESTAMP)) AS hour, COUNT(*) AS n FROM orders GROUP BY 1)
        ORDER BY 1 LIMIT 100"""
    params = {"first": at_hours(8)[0], "last": at_hours(13)[0]} if span.startswith(":") else None
    found = ask(parking, sql, params=params)
    assert found.column_types == ["TIMESTAMP", "LONG"]
    assert found.rows == list(zip(at_hours(8, 9, 10, 11, 12), (0, 4, 4, 2, 0), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("time", ["ts", "at"])
def test_the_format_timestamp_gives_back_timestamps(ask: Ask, parking: Halves, time: str) -> None:
    """DATETRUNC of a column gives epoch milliseconds, as in Pinot."""
    sql = f"""SELECT GAPFILL(b, 'TIMESTAMP', '2021-10-01 09:00', '2021-10-01 12:00', '1:HOURS',
        FILL(n, 'FILL_PREVIOUS_VALUE'), TIMESERIESON(customer)) AS b, customer, n FROM (
        SELECT DATETRUNC('HOUR', {time}) AS b, customer, COUNT(*) AS n FROM orders WHERE customer = 'P3' GROUP BY 1, 2)
        ORDER BY 1 LIMIT 100"""
    assert ask(parking, sql).rows == list(zip(at_hours(9, 10, 11), 3 * ["P3"], (0, 1, 1), strict=True))
    again = ask(parking, f"SELECT b, n FROM ({sql}) WHERE b >= '2021-10-01 11:00'")
    assert (again.rows, again.column_types) == ([(at_hours(11)[0], 1)], ["TIMESTAMP", "LONG"])


def test_one_series_is_filled_without_any_row(ask: Ask, parking: Halves) -> None:
    sql = """SELECT GAPFILL(at, 'TIMESTAMP', '2020-01-01', '2020-01-03', '1:DAYS', FILL(note, 'FILL_PREVIOUS_VALUE')),
        note FROM orders WHERE at < '2020-01-02' ORDER BY 1"""
    assert ask(parking, sql).rows == [(datetime(2020, 1, day), "") for day in (1, 2)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("GAPFILL(ts, 'TIMESTAMP', '1', '2')", "it is written GAPFILL(time, 'format'"),
        (f"GAPFILL(ts, {SPAN})", "TIMESERIESON names the columns of an entity, and without it FILL names 'customer'"),
        (f"GAPFILL(ts, {SPAN}, FILL(order_id, 'FILL_PREVIOUS_VALUE'))", "FILL names 'customer' as well"),
        (f"GAPFILL(ts, {SPAN}, TIMESERIESON(1))", "'TIMESERIESON(1)' cannot be read"),
        (f"GAPFILL(ts, {SPAN}, FILL(order_id, 'SOMEHOW'), TIMESERIESON(customer))", "'FILL_PREVIOUS_VALUE' or"),
        (f"GAPFILL(ts, {SPAN}, FILL(amount, 'FILL_PREVIOUS_VALUE'), TIMESERIESON(customer))", "none of the results"),
        ("GAPFILL(ts, 'x', '1', '2', '1:HOURS', TIMESERIESON(customer))", "'x' is not a time format"),
        ("GAPFILL(ts, '1:MILLISECONDS:EPOCH', 'x', '2', '1:HOURS', TIMESERIESON(customer))", "'x' is not a time in"),
        ("GAPFILL(ts, '1:MILLISECONDS:EPOCH', '3', '2', '1:HOURS', TIMESERIESON(customer))", "the start lies before"),
        ("GAPFILL(ts, '1:MILLISECONDS:EPOCH', '1', '2', 'often', TIMESERIESON(customer))", "is not a"),
        ("GAPFILL(ts, '1:MILLISECONDS:EPOCH', ts, '2', '1:HOURS', TIMESERIESON(customer))", "are constants, such as"),
        ("GAPFILL(ts, '1:MILLISECONDS:EPOCH', '0', '9000000000000', '1:MILLISECONDS', TIMESERIESON(customer))",
         "more than 100000"),
    ],
)  # fmt: skip
def test_what_gapfill_refuses(call: str, words: str) -> None:
    with pytest.raises(QueryError, match="GAPFILL") as raised:
        parse_statement(f"select {call}, customer, order_id from orders")
    assert words in str(raised.value) and raised.value.pinot_code == 700


@pytest.mark.slow
def test_gapfill_of_gapfill_and_of_a_cte(ask: Ask, parking: Halves) -> None:
    inner = f"""SELECT GAPFILL({BUCKET}, {SPAN}, FILL(order_id, 'FILL_PREVIOUS_VALUE'), TIMESERIESON(customer)) AS t,
        customer, order_id FROM orders {WHERE} AND customer = 'P3'"""
    outer = f"SELECT GAPFILL(t, {SPAN}, FILL(order_id, 'FILL_DEFAULT_VALUE'), TIMESERIESON(customer)) AS t, order_id"
    expected = [row[2] for row in rows_of(FILLED) if row[1] == "P3"]
    for sql in (f"{outer} FROM ({inner})", f"WITH i AS ({inner}) {outer} FROM i"):
        assert [value for _, value in ask(parking, f"{sql} ORDER BY 1 LIMIT 100").rows] == expected


def test_gapfill_beside_groups_and_stars() -> None:
    call = f"GAPFILL(ts, {SPAN}, TIMESERIESON(customer))"
    for sql in (f"select {call}, customer from orders group by 1, 2", f"select distinct {call}, customer from orders"):
        with pytest.raises(QueryError, match="GROUP BY and DISTINCT stand in a query inside"):
            parse_statement(sql)
    with pytest.raises(QueryError, match="the other results beside GAPFILL"):
        parse_statement(f"select {call}, * from orders")


# Series


@pytest.mark.parametrize(
    ("series", "numbers"),
    [
        ("generate_series(1, 3)", [1, 2, 3]), ("range(3)", [0, 1, 2]), ("range(1, 6, 2)", [1, 3, 5]),
        ("generate_series(3, -3, -3)", [3, 0, -3]), ("generate_series(5, 1)", []),
        ("generate_series(1, 2 * 2 - 1)", [1, 2, 3]),
        ("generate_series(-1, 1)", [-1, 0, 1]),
        ("range(CAST('1970-01-01 00:00:01' AS TIMESTAMP), 2001, 500)", [1000, 1500, 2000]),
    ],
)  # fmt: skip
def test_series(ask: Ask, parking: Halves, series: str, numbers: list[int]) -> None:
    assert ask(parking, f"select n from {series} as s(n) order by n desc limit 100").rows == [
        (number,) for number in sorted(numbers, reverse=True)
    ]


def test_a_series_fills_gaps_by_a_join(ask: Ask, parking: Halves) -> None:
    sql = """select b.bucket, count(o.ts) as n from generate_series(:first, :last, 1800000) as b(bucket)
        left join orders o on o.ts >= b.bucket and o.ts < b.bucket + 1800000 group by 1 order by 1 limit 100"""
    params = {"first": datetime(2021, 10, 1, 8, 30, tzinfo=UTC), "last": instant("11:30")}
    assert [n for _, n in ask(parking, sql, params=params).rows] == [0, 2, 2, 3, 1, 1, 1]
    filled = """select bucket, last_value(s ignore nulls) over (order by bucket) as s from (
        select b.bucket, max(o.order_id) as s from range(0, 4) as b(bucket)
        left join (select ts % 2 as bucket, order_id from orders) o on o.bucket = b.bucket group by 1) order by 1"""
    assert [value for _, value in ask(parking, filled).rows] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("generate_series(1, 100001)", "these are 100001 numbers, more than 100000"),
        ("range(0, 9000000000000, 1)", "more than 100000"),
        ("generate_series(1, 5, 0)", "the step is 0"),
        ("generate_series(1, ts)", "takes a start, a stop and a step, which are whole numbers"),
        ("range(1.5)", "whole numbers"), ("range('a')", "whole numbers"), ("range(1, 2, 3, 4)", "whole numbers"),
        ("range()", "whole numbers"), ("range(99999999999999999999)", "whole numbers"),
        ("generate_series(1, (select max(order_id) from orders))", "whole numbers"),
        ("read_csv('/etc/passwd')", "Only tables can be used in FROM"),
    ],
)  # fmt: skip
def test_other_functions_in_from_are_refused(ask: Ask, parking: Halves, source: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        ask(parking, f"select * from {source}")


@pytest.mark.parametrize(
    "sql", ["select generate_series(1, 5)", "select range(5) from orders", "select unnest(range(3))"]
)
def test_a_series_is_no_scalar_function(ask: Ask, parking: Halves, sql: str) -> None:
    with pytest.raises(QueryError, match="is not allowed"):
        ask(parking, sql)
