"""The newest rows are read at once and latest first, and are the same rows as from the files, however many."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hybrid.errors import QueryError
from hybrid.query.cache.first_rows import has_row_ids, latest_first, newest_at_once
from hybrid.query.cache.relations import BoundStatement
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.engine import QueryOptions, run
from hybrid.query.execution import Limits
from hybrid.query.rewrite import resolve, rewrite
from hybrid.query.tail import NoTail, TailMessage
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from hybrid.sql.statement import parse_statement
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.stepped import SMALL_TABLES, SteppedCache

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
    connection = duckdb.connect()
    connection.execute("create table rows as select -range as ts, range as a, range as b from range(300000)")

    def plan(limit: int) -> str:
        sql = f"explain select ts, a, b from rows where ts < -5 order by ts desc limit {limit}"
        return str(connection.execute(sql).fetchall()[0][1]).lower()

    assert "join" in plan(50) and "join" not in plan(51)


LATEST_FIRST = [
    "select * from orders order by ts desc, order_id limit 10",
    "select order_id, ts from orders order by ts desc, order_id limit 100",
    "select order_id, ts from orders where ts < 9000 order by ts desc, order_id limit 7 offset 3",
    "select order_id, ts from orders where customer = 'c1' and ts > 4000 order by ts desc, order_id limit 5",
    "select o.order_id + 1, upper(customer) from orders o where amount > 100.0 order by o.ts desc, order_id limit 5",
]
AS_STORED = [
    "select order_id, ts from orders where order_id = 17 order by ts desc limit 5",  # the key has an index
    "select order_id, ts from orders order by ts, order_id limit 10",
    "select ts, count(*) from orders where ts > (select min(ts) from orders) group by ts order by ts desc limit 5",
    "select a.ts from orders a join orders b on a.order_id = b.order_id order by a.ts desc limit 3",
]


class Streamed:
    """A table of sixty stored rows; the others come by the stream, in turn later and earlier than the stored ones."""

    def __init__(self, folder: Path, *, upsert: bool, tuning: CacheTuning = SMALL_TABLES, **spec: Any) -> None:
        self.halves = Halves.create(folder, orders_spec(upsert=upsert, **spec))
        self.tail = ListTail()
        self.halves.commit_realtime([self._row(n) for n in range(60)], offsets={KEY: 60})
        self.cache = SteppedCache(self.halves, NOW_MS, self.tail, waits=False, tuning=tuning)
        self.cache.step()
        self._sent = 60

    @staticmethod
    def _values(n: int) -> dict[str, object]:
        ts = 100 * (n if n % 3 else 60 - n)
        return {"order_id": n % 90, "customer": f"c{n % 5}", "amount": n * 1.5, "ts": ts}

    def _row(self, n: int) -> Row:
        values = self._values(n)
        return Row(values, int(str(values["ts"])), n)

    def send(self, count: int) -> None:
        for _ in range(count):
            message = TailMessage(KEY, self._sent, 0, json.dumps(self._values(self._sent)).encode())
            self.tail.messages = [*self.tail.messages, message]
            self._sent += 1

    def check(self, sql: str) -> None:
        expected = run(sql, self.halves, QueryOptions(tail=self.tail, now_ms=lambda: NOW_MS))
        found = self.cache.ask(sql)
        assert found is not None and found.source == "cache"
        assert found.rows == expected.rows, sql

    def is_latest_first(self, sql: str) -> bool:
        """Whether the statement, as it last ran, reads the rows inserted last before the others."""
        rewritten = rewrite(resolve(parse_statement(sql), self.cache.source), NOW_MS)
        view = self.cache.rows.current
        assert view is not None
        bound = BoundStatement(rewritten, {"orders": view}, self.cache.tuning)
        found = bound.along({"orders": view}, lambda constant: constant, lambda select, values: [])
        return "rowid" in bound.sql(found)


@pytest.mark.slow
@pytest.mark.parametrize("upsert", [False, True])
def test_rows_of_the_stream_are_read_latest_first(tmp_path: Path, upsert: bool) -> None:
    tuning = replace(SMALL_TABLES, rebuild_rows_min=1000, latest_rows=8, latest_first_changes_min=20)
    table = Streamed(tmp_path, upsert=upsert, tuning=tuning)
    asked = [sql for sql in [*LATEST_FIRST, *AS_STORED] if upsert or "order_id = 17" not in sql]
    assert not any(map(table.is_latest_first, asked))  # before the stream brings rows, all lie newest first
    for _ in range(3):
        table.send(25)
        for sql in asked:
            table.check(sql)
    assert [sql for sql in asked if table.is_latest_first(sql)] == LATEST_FIRST


@pytest.mark.slow
def test_a_statement_with_buffered_rows_is_read_latest_first(tmp_path: Path) -> None:
    table = Streamed(tmp_path, upsert=False, tuning=replace(SMALL_TABLES, rebuild_rows_min=1000, unbuffered_s=0.0))
    table.send(25)
    table.cache.step()
    del table.cache.rows.waiting.has_room  # from here on rows wait
    table.send(4)
    sql = "select order_id, ts from orders where customer = 'c1' order by ts desc, order_id limit 5"
    table.check(sql)
    assert table.cache.rows.is_waiting and table.is_latest_first(sql)


@pytest.mark.slow
def test_a_column_named_rowid_hides_no_row(tmp_path: Path) -> None:
    extra = [FieldSpec("rowId", DataType.LONG, FieldKind.DIMENSION)]
    table = Streamed(tmp_path, upsert=False, extra=extra)
    table.send(25)
    table.check(LATEST_FIRST[0])
    assert not has_row_ids(table.halves.spec)


@pytest.mark.slow
def test_duckdb_ranks_few_rows_once_the_latest_are_known() -> None:
    """When this fails, DuckDB orders its work otherwise, and the form may be superfluous."""
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    connection.execute("create table rows as select -range as ts, range as a from range(200000)")
    for begin in range(0, 100_000, 10_000):
        connection.execute("insert into rows select range as ts, range as a from range(?, ?)", [begin, begin + 10_000])

    def ranking_s(relation: str, *values: int) -> float:
        """Seconds in which DuckDB ranked the rows that its scans handed on, the least of several times."""
        return min(_top_n_s(connection, relation, values) for _ in range(5))

    select = "select ts, a from rows"
    assert ranking_s(latest_first(select, 1), 300_000 - 2048) < ranking_s(select) / 4


def _top_n_s(connection: duckdb.DuckDBPyConnection, relation: str, values: Sequence[int]) -> float:
    connection.execute("pragma enable_profiling = 'no_output'")
    connection.execute(f"select ts, a from ({relation}) order by ts desc limit 51", list(values)).fetchall()
    (root,) = json.loads(connection.get_profiling_information())["operator"]
    connection.execute("pragma disable_profiling")
    (top_n,) = root["children"]
    assert top_n["type"] == "TOP_N"
    return float(top_n["timing"])
