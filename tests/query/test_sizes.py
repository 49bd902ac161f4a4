"""A small statement makes no value of gigabytes and holds no thread for minutes; plain uses are answered as before."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import QueryError
from hybrid.sql.sizes import REPLACED_MAX
from tests.query.halves import Halves, Row, orders_spec
from tests.sql.test_sizes import NESTED_CTES, NESTED_SUBQUERIES

Ask = Callable[..., Any]
LONG = "x" * 100_000


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Halves:
    return table_of(tmp_path_factory.mktemp("sizes"), LONG)


def table_of(folder: Path, text: str) -> Halves:
    """Two short customers, and two that have this text."""
    built = Halves.create(folder, orders_spec())
    rows = [
        Row({"order_id": n, "customer": customer, "amount": 1.0, "ts": n}, n, n)
        for n, customer in enumerate(["kitten", "b,c", text, text])
    ]
    built.commit_realtime(rows)
    return built


@pytest.mark.parametrize(
    "sql",
    [
        "select length(replace(replace(repeat('a',10000),'a',repeat('b',10000)),'b',repeat('c',10)))",
        "select length(replace(replace(repeat('a',10000),'a',repeat('b',10000)),'b',repeat('c',35))) from orders",
        NESTED_SUBQUERIES.replace("select s from t", "select customer as s from orders"),
        NESTED_CTES.replace("select s from t", "select customer as s from orders") + " select length(s) from c30",
        "select max(levenshtein(customer, customer)) from orders",
        "select max(levenshtein(repeat(customer, 5000), repeat('ab', 5000))) from orders",
        "select damerau_levenshtein(upper(lower(upper(lower(customer)))) || customer || 'abc', 'abc') from orders",
        "select jaro_winkler_similarity('a', customer) from orders where jaccard(customer, customer) > 0",
        "select replace(customer, 'x', '" + "y" * 2000 + "') from orders",
        "with recursive r as (select 'ab' as x, 1 as n union all select x || x, n + 1 from r where n < 40) "
        "select max(length(x)) from r",
        "with recursive r(l) as (select [1] union all select list_concat(l, l) from r) select max(len(l)) from r",
        "select " + "lpad(" * 25 + "customer" + ", 5, 'x')" * 25 + " from orders",
    ],
)
def test_a_value_without_measure_is_refused_at_once(halves: Halves, ask: Ask, sql: str) -> None:
    started = time.monotonic()
    with pytest.raises(QueryError) as raised:
        ask(halves, sql)
    assert time.monotonic() - started < 5  # without a measure they would not end
    said = str(raised.value)
    assert "too long" in said or "may make a value" in said or "nested too deeply" in said, said
    assert raised.value.pinot_code in {200, 700} and "_hy_" not in said and "Error" not in said, said


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("levenshtein(customer, 'sitting')", 3),
        ("damerau_levenshtein(customer, 'kittne')", 1),
        ("jaccard(upper(lower(upper(lower(upper(customer))))), 'KITTEN')", 1.0),
        ("levenshtein(null, customer)", None),
        ("levenshtein(substr(customer, 0, 3), 'kit')", 0),
        ("replace(customer, 't', '<long text>')", "ki<long text><long text>en"),
        ("replace(customer, 't', customer)", "kikittenkittenen"),
        ("regexp_replace(customer, 't+', '0123456789')", "ki0123456789en"),
        ("customer || '-' || customer", "kitten-kitten"),
        ("length(repeat(customer, 10000))", 10002),
        ("lpad(rpad(customer, 8, '.'), 10, '_')", "__kitten.."),
        ("splitpart(splitpart(customer, 't', 0), 'i', 0)", "k"),
        ("array_to_string(list_transform(string_split(customer, 't'), x -> upper(x)), '+')", "KI++EN"),
        ("max(levenshtein(customer, 'kitt'))", 2),
    ],
)
def test_plain_uses_are_answered(halves: Halves, ask: Ask, expression: str, value: object) -> None:
    assert ask(halves, f"select {expression} from orders where order_id = 0").rows[0][0] == value


@pytest.mark.parametrize(
    "sql",
    [
        "select replace(customer, 'x', 'twelve signs') r, count(*) from orders where "
        "order_id < 2 group by r order by r",
        "select levenshtein(customer, 'b') d, count(*) from orders where order_id < 2 "
        "group by levenshtein(customer, 'b')",
        "select distinct replace(customer, 'x', 'twelve signs') from orders where order_id < 2 order by 1",
        "select customer from orders where order_id < 2 order by levenshtein(customer, 'b')",
        "select levenshtein(min(customer), max(customer)), count(*) from orders where order_id < 2 having count(*) > 1 "
        "union all select levenshtein(a.customer, b.customer), 1 from orders a join orders b using (order_id) "
        "where order_id = 1",
    ],
)
def test_checks_stand_in_every_clause(halves: Halves, ask: Ask, sql: str) -> None:
    assert len(ask(halves, sql).rows) == 2


def test_a_recursive_path_grows_as_long_as_it_is_short(halves: Halves, ask: Ask) -> None:
    sql = (
        "with recursive r as (select order_id as n, customer as p from orders where order_id = 0 "
        "union all select n + 1, p || '/' || n from r where n < 5) select p from r order by n desc limit 1"
    )
    assert ask(halves, sql).rows == [("kitten/0/1/2/3/4",)]


def test_our_check_is_not_a_function_of_users(halves: Halves, ask: Ask) -> None:
    with pytest.raises(QueryError, match="does not exist or is not allowed"):
        ask(halves, "select error('A text is too long: of mine') from orders")


@pytest.mark.parametrize("name", ["levenshtein", "jaccard"])
def test_a_wrong_type_is_an_error_of_the_function_that_was_written(halves: Halves, ask: Ask, name: str) -> None:
    with pytest.raises(QueryError) as raised:
        ask(halves, f"select {name}(order_id, customer) from orders")
    assert name in str(raised.value).lower() and "strlen" not in str(raised.value).lower()


@pytest.mark.parametrize(
    "call",
    [
        "string_agg(customer, ',') over ()",
        "array_agg(customer) over (partition by order_id order by ts)",
        "listagg(customer, ',') filter (where order_id > 0) over (rows unbounded preceding)",
        "list(customer) over (order by ts rows between 5 preceding and 5000 following)",
        "array_agg(customer) over w",
    ],
)
def test_texts_are_not_collected_over_windows_without_a_bound(halves: Halves, ask: Ask, call: str) -> None:
    """5: the square of the table."""
    with pytest.raises(QueryError, match="OVER a window that may hold all rows") as raised:
        ask(halves, f"select order_id, {call} from orders window w as (order by ts)")
    assert raised.value.pinot_code == 700


def test_windows_with_a_bound_collect(halves: Halves, ask: Ask) -> None:
    sql = (
        "select order_id, string_agg(cast(order_id as varchar), ',') over (order by order_id rows 1 preceding), "
        "sum(order_id) over () from orders order by order_id"
    )
    found = [tuple(row) for row in ask(halves, sql).rows]
    assert found == [(0, "0", 6), (1, "0,1", 6), (2, "1,2", 6), (3, "2,3", 6)]


@pytest.mark.slow
def test_long_columns_are_put_together_to_a_bound(tmp_path: Path, ask: Ask) -> None:
    """5: what columns really hold is known only when they are read."""
    halves = table_of(tmp_path, "x" * (REPLACED_MAX // 5 * 2))
    for sql in (
        "select customer || customer || customer from orders",
        "select length(concat(customer, '-', customer, customer)) from orders",
        "select count(*) from orders where upper(customer || customer || customer) || order_id || ts = 'x'",
    ):
        with pytest.raises(QueryError, match="columns are put together to at most 16,777,216 bytes"):
            ask(halves, sql)
    found = ask(halves, "select customer || customer, concat(customer, order_id) as c from orders where order_id < 2")
    assert list(found.column_names) == ["customer || customer", "c"] and len(found.rows) == 2
    grouped = "select customer || customer, count(*) from orders group by customer || customer order by 2 desc limit 1"
    assert [row[1] for row in ask(halves, grouped).rows] == [2]
