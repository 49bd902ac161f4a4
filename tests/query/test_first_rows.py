"""The newest rows are read without a join on row ids, and are the same rows as from the files, however many."""

from __future__ import annotations

import pytest

from hybrid.errors import QueryError
from hybrid.query.cache.first_rows import newest_at_once
from hybrid.query.engine import QueryOptions, run
from hybrid.query.execution import Limits
from hybrid.query.plan import resolve, rewrite
from hybrid.query.tail import NoTail
from hybrid.sql.statement import parse_statement
from tests.query.halves import KEY, Halves, Row, orders_spec
from tests.query.stepped import SteppedCache

NOW_MS = 1_632_700_000_000
ROWS = 120


@pytest.fixture(scope="module", params=["append", "upsert"])
def cache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SteppedCache:
    """Each time occurs twice, and rows arrive in another order than that of their times."""
    halves = Halves.create(tmp_path_factory.mktemp("orders"), orders_spec(upsert=request.param == "upsert"))
    numbers = sorted(range(ROWS), key=lambda n: (n * 7) % ROWS)
    rows = [
        Row({"order_id": n % 90, "customer": f"c{n % 5}", "amount": n * 1.5, "ts": n // 2 * 100}, n // 2 * 100, offset)
        for offset, n in enumerate(numbers)
    ]
    halves.commit_realtime(rows, offsets={KEY: ROWS})
    return SteppedCache(halves, NOW_MS)


RAISED = [
    "select * from orders order by ts desc, order_id limit 10",
    "select order_id, ts from orders where ts < 4000 order by ts desc, order_id limit 7",
    "select order_id, ts from orders where ts < 4000 order by ts desc, order_id limit 7 offset 3",
    "select order_id, ts from orders where ts < 500 order by ts desc, order_id limit 50",
    "select order_id from orders o where o.customer = 'c1' order by o.ts desc, order_id limit 4",
    "select order_id, ts from orders where ts < -1 order by ts desc, order_id limit 10",
    "select order_id from orders order by ts desc, order_id limit 0",
    "select * from orders order by ts desc, order_id",
    "select amount as ts, order_id from orders order by ts desc, order_id limit 5",
    "select order_id, rank() over (order by ts) from orders order by ts desc, order_id limit 5",
    "select ts, count(*) from orders group by ts order by ts desc limit 5",
    "select distinct ts from orders order by ts desc limit 5",
    "select ts from orders where ts > (select min(ts) from orders) order by ts desc limit 3",
]
UNCHANGED = [
    "select order_id, ts from orders order by ts, order_id limit 10",
    "select order_id, ts from orders order by amount desc limit 10",
    "select order_id, ts from orders order by ts desc, order_id limit 51",
    "select order_id, ts from orders order by ts desc, order_id limit 100",
    "select min(order_id) from orders limit 10",
    "with o as (select * from orders) select order_id from o order by ts desc, order_id limit 5",
    "select * from (select ts from orders order by ts desc limit 5) x order by ts",
    "select a.ts from orders a join orders b on a.ts = b.ts order by a.ts desc limit 3",
    "select ts from orders where ts < 900 union all select ts from orders order by ts desc limit 5",
]


def is_raised(cache: SteppedCache, sql: str) -> bool:
    rewritten = rewrite(resolve(parse_statement(sql), cache.source), NOW_MS)
    first = newest_at_once(rewritten)
    assert (first.rows is not None) == (first.rewritten.body != rewritten.body)
    return first.rows is not None


@pytest.mark.parametrize("sql", [*RAISED, *UNCHANGED])
def test_the_newest_rows_are_those_of_the_files(cache: SteppedCache, sql: str) -> None:
    of_files = run(sql, cache.source, QueryOptions(tail=NoTail(), now_ms=lambda: NOW_MS))
    for _ in range(2):  # the second time from a template
        of_cache = cache.ask(sql)
        assert of_cache is not None
        assert of_cache.rows == of_files.rows
        assert of_cache.warnings == of_files.warnings


def test_only_statements_for_few_of_the_newest_rows_are_changed(cache: SteppedCache) -> None:
    subquery = RAISED[-1]
    assert [sql for sql in RAISED if not is_raised(cache, sql)] == [subquery]
    plain = [sql for sql in UNCHANGED if is_raised(cache, sql)]
    assert plain == []


def test_a_bound_of_rows_counts_what_the_statement_asks_for(cache: SteppedCache) -> None:
    def ask(limit: int) -> int:
        sql = f"select * from orders order by ts desc, order_id limit {limit}"
        found = cache.answers.answer(sql, NOW_MS, Limits(rows_max=5, bytes_max=10_000), lambda interrupt: None)
        assert found is not None
        return len(found.rows)

    cache.step()
    assert (ask(3), ask(5)) == (3, 5)
    with pytest.raises(QueryError, match="more than 5 rows"):
        ask(6)


def test_a_bound_of_bytes_counts_only_the_rows_of_the_answer(cache: SteppedCache) -> None:
    sql = "select * from orders order by ts desc, order_id limit 2"
    cache.step()
    found = cache.answers.answer(sql, NOW_MS, Limits(bytes_max=400), lambda interrupt: None)
    assert found is not None and len(found.rows) == 2


def test_duckdb_fetches_few_rows_by_a_join_unless_more_are_asked_for() -> None:
    """When this fails, DuckDB has another plan or default, and the module may be superfluous."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("create table rows as select -range as ts, range as a, range as b from range(300000)")

    def plan(limit: int) -> str:
        sql = f"explain select ts, a, b from rows where ts < -5 order by ts desc limit {limit}"
        return str(connection.execute(sql).fetchall()[0][1]).lower()

    assert "join" in plan(50) and "join" not in plan(51)
