"""Statements to the serving cache: templates let no value change its meaning, what is wrong fails as it does on files,
and what is gone is left to the files."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import QueryError
from hybrid.query.cache import cache_reader as answers
from hybrid.query.cache import cached_rows as rows
from hybrid.query.cache.cached_rows import CachedRows
from hybrid.query.cache.database import CacheDatabase
from hybrid.query.cache.table_snapshot import TableSnapshot
from hybrid.query.cache.template import cut
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.engine import QueryOptions, run
from hybrid.query.execution import Limits
from hybrid.query.tail import NoTail, TailMessage
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from tests.query.halves import KEY, Halves, Row, orders_spec
from tests.query.stepped import SteppedCache

NOW_MS = 1_632_700_000_000
NAMES = ["ada", "it's", "x' or '1'='1", "7710000000000001", "'hybrid mark 0'", "", "Ünï", "a%b", None, "ADA"]


# No statement runs in a transaction, or every one does.
OPTIMISTIC = CacheTuning(enum_rows_min=1, optimistic_s_max=math.inf, optimistic_gap_share=math.inf)
PINNED = CacheTuning(enum_rows_min=1, optimistic_s_max=-1.0)


@pytest.fixture
def cache(tmp_path: Path) -> SteppedCache:
    return cache_of_names(tmp_path, PINNED)


@pytest.fixture
def optimistic(tmp_path: Path) -> SteppedCache:
    return cache_of_names(tmp_path, OPTIMISTIC)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> SteppedCache:
    """For statements that change nothing."""
    return cache_of_names(tmp_path_factory.mktemp("names"), PINNED)


def cache_of_names(tmp_path: Path, tuning: CacheTuning) -> SteppedCache:
    at = FieldSpec("at", DataType.TIMESTAMP, FieldKind.DIMENSION)
    halves = Halves.create(tmp_path, orders_spec(upsert=True, extra=[at]))
    found = [
        Row({"order_id": n, "customer": name, "amount": n * 1.5, "ts": n * 100, "at": n * 1_000_000}, n * 100, n)
        for n, name in enumerate(NAMES)
    ]
    halves.commit_realtime(found, offsets={KEY: len(found)})
    return SteppedCache(halves, NOW_MS, tuning=tuning)


def told(ask: Callable[[], Any]) -> Any:
    """Rows and types, or code and sentence; None where there is no answer."""
    try:
        found = ask()
    except QueryError as error:
        # The place of a column is added above the cache.
        return error.pinot_code, re.sub(r" at line \d+, column \d+\.$", ".", str(error))
    return None if found is None else (found.column_names, found.column_types, sorted(map(repr, found.rows)))


def of_files(cache: SteppedCache, sql: str) -> Any:
    """What the files say."""
    return told(lambda: run(sql, cache.source, QueryOptions(tail=NoTail(), now_ms=lambda: NOW_MS)))


def both(cache: SteppedCache, sql: str) -> tuple[Any, Any]:
    """What the cache and what the files say."""
    return told(lambda: cache.ask(sql)), of_files(cache, sql)


STATEMENTS = [
    "select * from orders where customer = 'ada'",
    "select * from orders where customer = 'it''s'",
    "select * from orders where customer = 'x'' or ''1''=''1'",
    "select * from orders where customer = '7710000000000001' and order_id = 3",
    "select * from orders where customer = '''hybrid mark 0''' and order_id >= 0",
    "select * from orders where customer = '' or customer = 'nobody'",
    "select * from orders where customer in ('ada', 'ADA', 'it''s') and order_id < 5",
    "select * from orders where customer like 'a%' and ts between 0 and 10000",
    "select customer, count(*) from orders group by customer order by customer limit 100",
    "select customer from orders where customer > 'a' order by customer desc limit 100",
    "select upper(customer), length(customer) from orders order by 1 limit 100",
    "select distinct customer from orders limit 100",
    "select min(customer), max(customer) from orders",
    "select customer, count(*) from orders group by customer having customer = 'ada'",
    "select case when customer = 'ada' then 1 else 0 end, order_id from orders limit 100",
    "select a.customer, b.ts from orders a join orders b on a.order_id = b.order_id where a.customer = 'ada'",
    "select * from orders a left join orders b on a.order_id = b.order_id and b.order_id = 3 limit 100",
    "select * from orders where order_id = 3 or order_id = 4",
    "select * from orders where not order_id = 3 limit 100",
    "select * from orders where order_id = 3 and customer = '7710000000000001'",
    "select * from orders where order_id in (1, 2, 3) order by ts desc limit 2",
    "select count(*) from orders where order_id = 2.0",
    "select count(*) from orders where order_id = '2'",
    "select count(*) from orders where ORDER_ID = 2",
    "select * from orders where order_id = 99999999999999999999",
    "select * from orders where at > 3000000",
    "select * from orders where at = '1970-01-01 00:50:00'",
    "select * from orders where at between '3000000' and '4000000'",
    "select * from orders where ts > now() - 10000000000000 limit 100",
    "select * from orders where amount > 1.5 -- and amount < 2",
    "select * from orders where amount /* = 4 */ = 4.5",
    'select "order_id" from orders where "customer" = \'ada\'',
    "select order_id as customer from orders where order_id = 3",
    "select 'ada' as x, count(*) from orders where customer = 'ada' group by 1",
    "select x.n from (select order_id as n from orders where ts >= 300) x where x.n <= 5 limit 100",
    "with o as (select * from orders where order_id < 4) select count(*) from o where order_id > 1",
    "select order_id from orders where order_id < 3 union all select order_id from orders where order_id = 3",
    "select sum(amount) from orders where order_id = -1",
    "select count(*) from orders where order_id = 1e0",
    "select * from orders where nothing = 3",
    "select * from orders where order_id = = 3",
    "select nosuch(order_id) from orders where order_id = 3",
    "select customer + 1 from orders",
    "SET timeoutMs = 5000; select count(*) from orders where order_id = 3",
    "select count(*) from orders where order_id = 3 option(timeoutMs=4000)",
    "select customer as s, lag(s, 1, 'none') over (order by ts) from orders limit 100",
    "select customer as s, typeof(s) from orders limit 100",
    "select count(*) from ORDERS where order_id = 3",
    "select levenshtein(customer, 'adam'), jaccard('a', customer) from orders where order_id = 0",
    "select replace(customer, 'a', 'twelve signs') from orders where customer = 'ada'",
    "select levenshtein(customer || repeat('a', 2000), 'adam') from orders where order_id = 3",
    "select length(replace(repeat(customer, 9999), 'a', repeat('b', 9999))) from orders where order_id = 0",
    "select sum(order_id) over (partition by customer order by ts) from orders where ts <= 400 limit 100",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_cache_answers_as_the_files_do(lasting: SteppedCache, sql: str) -> None:
    expected = of_files(lasting, sql)
    for _ in range(2):  # the second time by its template
        found = told(lambda: lasting.ask(sql))
        assert found in (expected, None)
        assert found is not None or isinstance(expected[0], int), "only what fails may be left to the files"


@pytest.mark.slow
def test_a_template_serves_other_values(cache: SteppedCache) -> None:
    for number in range(len(NAMES)):
        found = cache.ask(f"select ts from orders where order_id = {number} and customer <> 'no{number}'")
        assert found is not None
        assert found.rows == ([] if NAMES[number] is None else [(number * 100,)])
    assert len(cache.answers._templates._known) == 1


@pytest.mark.slow
@pytest.mark.parametrize("call", ["distinctcountull", "distinctcounthllplus", "sumprecision", "distinctcountsmarthll"])
@pytest.mark.parametrize(
    "text",
    [
        'x" , (select string_agg(table_name) from information_schema.tables) as "y',
        'x" from _hy_rel_0; ROLLBACK; DROP TABLE "cache 0 1".main.live; BEGIN; select 1 as "y',
        'x", (select number from "cache 0 1".main.live) as "y',
    ],
)
def test_no_value_gets_out_of_its_place(cache: SteppedCache, call: str, text: str) -> None:
    """A call that keeps an argument in its column's name only once let a value close that name."""
    both(cache, f"select {call}(order_id, 1 = 'a') from orders")
    found, expected = both(cache, f"select {call}(order_id, 1 = '{text}') from orders")
    assert found in (expected, None)
    assert cache.ask("select count(*) from orders").rows == [(len(NAMES),)]  # type: ignore[union-attr]


@pytest.mark.slow
def test_more_rows_than_allowed_are_refused(cache: SteppedCache) -> None:
    sql = "select order_id from orders limit 100"
    cache.step()
    for ask in (
        lambda: cache.answers.answer(sql, NOW_MS, Limits(rows_max=3), lambda interrupt: None),
        lambda: run(sql, cache.source, QueryOptions(rows_max=3, tail=NoTail())),
    ):
        with pytest.raises(QueryError, match="more than 3 rows"):
            ask()
    assert len(run(sql, cache.source, QueryOptions(rows_max=len(NAMES), tail=NoTail())).rows) == len(NAMES)


def test_values_are_cut_where_they_are_compared() -> None:
    name, values, kinds = cut("select a, 5 from t where b = 5 and c in ('x') and d>='y' limit 7 -- = 8")
    assert (values, kinds) == (["5", "'y'"], ["whole", "text"])
    assert "limit 7" in name and "('x')" in name
    assert cut("select * from t where a = 'it''s'")[1] == []
    assert cut("select j->>'n', j -> 'm' from t where a = 5")[1] == ["5"]
    assert cut("select '= 5', \"= 6\" from t where x = 1.5")[1] == ["1.5"]
    assert cut("select * from t where x = ٣")[1] == [], "digits of other scripts are no number of SQL"


def test_a_text_full_of_open_comments_is_cut_in_one_pass() -> None:
    """Each comment that never ends was looked for to the end of the text: 0.4 s for 20,000 characters."""

    def seconds(size: int) -> float:
        text = "select 1 " + "/* " * size
        started = time.thread_time()
        for _ in range(20):
            cut(text)
        return time.thread_time() - started

    seconds(100)
    assert min(seconds(3200) for _ in range(3)) < 100 * min(seconds(100) for _ in range(3))


_SOME = [0, 1, 7, 16_777_216, 16_777_217, 2**31 - 1, 2**31, 2**53 + 1, 10**17 + 1]
_KINDS = {
    "i": (DataType.INT, [n for n in _SOME if n < 2**31]),
    "n": (DataType.LONG, _SOME),
    "f": (DataType.FLOAT, [float(n) for n in _SOME]),
    "d": (DataType.DOUBLE, [n + 0.5 for n in _SOME]),
    "b": (DataType.BIG_DECIMAL, [Decimal(n) + Decimal("1e-18") * k for k in (0, 1) for n in _SOME]),
    "flag": (DataType.BOOLEAN, [True, False]),
    "s": (DataType.STRING, [str(n) for n in _SOME]),
}


@pytest.fixture
def numbers(tmp_path: Path) -> SteppedCache:
    """A table with columns of all kinds, some of their values null."""
    extra = [FieldSpec(name, kind, FieldKind.DIMENSION) for name, (kind, _) in _KINDS.items()]
    halves = Halves.create(tmp_path, orders_spec(upsert=False, extra=extra))
    found = []
    for n in range(2 * len(_SOME)):
        given = {name: values[n] if n < len(values) else None for name, (_, values) in _KINDS.items()}
        found.append(Row({"order_id": n, "customer": "ada", "amount": 1.0, "ts": n * 100, **given}, n * 100, n))
    halves.commit_realtime(found, offsets={KEY: len(found)})
    return SteppedCache(halves, NOW_MS, tuning=CacheTuning(enum_rows_min=1))


@pytest.mark.slow
def test_a_number_is_compared_as_it_is_written(numbers: SteppedCache) -> None:
    """Numbers reach DuckDB as parameters, whose types are not those of literals: each answer is that of the files."""
    statements = [
        f"select count(*), sum(order_id) from orders where {name} {sign} {number}"
        for name in (*_KINDS, "n + i", "f * 2", "length(s)")
        for sign, number in zip(("=", "<>", "<", ">=", "=", ">", "<="), [*_SOME[:6], 10**17 + 1], strict=True)
    ]
    more = [
        "select n > 5, count(*) from orders where n >= 5 group by n > 5",
        "select n > 5, count(*) from orders where n >= 5 group by n > 7",
        "select i, count(*) from orders where n between 7 and 2147483648 group by i having max(i) < 7",
        "select n, i from orders where n = 007 or i = 16777217",
        "select case when n = 7 then 1 when n = 1 then 7 else 7 end from orders where i <> 1",
        "select a.n from orders a join orders b on a.n = b.n and b.i = 7 where a.n >= 7",
        "select m from (select n + 1 as m from orders) where m = 8",
        "select order_id from orders where order_id = 3 and n = 16777216",
        "select order_id from orders where b = 7 or b >= 100000000000000001",
    ]
    numbers.step()
    for sql in [*statements, *more]:
        of_cache, of_files = both(numbers, sql)
        assert of_cache is not None, sql
        if isinstance(of_files[0], int):  # a wrong statement; which kind of number it says may differ
            assert of_cache[0] == of_files[0], sql
        else:
            assert of_cache == of_files, sql


def test_a_key_that_is_a_parameter_is_found_by_its_index(tmp_path: Path) -> None:
    database = CacheDatabase(tmp_path)
    rows = database.cursor()
    rows.execute("create table memory.main.many as select range as key from range(100000)")
    rows.execute("create index keys on memory.main.many (key)")
    few = "with few as materialized (select * from memory.main.many where key in ($1)) select key from few"
    (plan,) = rows.execute(database.parsed(f"explain analyze {few}"), [3]).fetchall()
    assert "Index Scan" in plan[1]
    assert rows.execute(database.parsed(few), [3]).fetchall() == [(3,)]
    database.close()


@pytest.mark.slow
def test_rows_are_laid_anew_beside_those_that_are_read(cache: SteppedCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing many rows down takes seconds: whoever asks meanwhile is answered from those that were there."""
    cache.step()
    count, real, seen = "select count(*) from orders", rows.build_snapshot, []

    def lay(*given: Any, **more: Any) -> TableSnapshot:
        laid = real(*given, **more)
        with ThreadPoolExecutor(1) as other:
            seen.append(other.submit(cache.answers.answer, count, NOW_MS, Limits(), lambda interrupt: None).result())
        seen.append(cache.rooms)
        return laid

    monkeypatch.setattr(rows, "build_snapshot", lay)
    pinned = cache.database.pinned_reader(lambda: [cache.rows.current])
    with pinned as (reader, (before,)):
        assert before is not None
        cache.rows._relay({})
        assert cache.rows.current is not None and cache.rows.current.relation != before.relation
        assert reader.execute(f"select count(*) from {before.relation}").fetchall() == [(len(NAMES),)]
    answer, rooms = seen
    assert answer is not None and answer.rows == [(len(NAMES),)] and rooms == ["cache 0 1", "cache 0 2"]
    assert cache.rooms == ["cache 0 2"], "the memory of the rows before is given back"
    assert cache.ask(count).rows == [(len(NAMES),)]  # type: ignore[union-attr]


@pytest.mark.slow
def test_rows_that_cannot_be_laid_anew_stay(cache: SteppedCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.step()
    with monkeypatch.context() as broken:
        broken.setattr(CachedRows, "_served", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            cache.rows._relay({})
    assert cache.rooms == ["cache 0 1"]
    assert cache.ask("select count(*) from orders").rows == [(len(NAMES),)]  # type: ignore[union-attr]
    cache.rows._relay({})
    assert cache.rooms == ["cache 0 3"]
    cache.rows.close()
    assert cache.rooms == []


@pytest.mark.slow
def test_threads_run_one_parsed_statement_at_once(tmp_path: Path) -> None:
    database = CacheDatabase(tmp_path)
    database.cursor().execute("create table memory.main.many as select range as key from range(5000)")

    def ask(number: int) -> list[tuple[int]]:
        with database.reader() as reader:
            statement = database.parsed("select key + $1 from memory.main.many where key >= $1 limit 1")
            return reader.execute(statement, [number]).fetchall()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(2000))) == [[(2 * number,)] for number in range(2000)]
    database.close()


@pytest.mark.slow
def test_what_is_gone_is_left_to_the_files(cache: SteppedCache) -> None:
    assert cache.ask("select count(*) from orders") is not None
    cache.rows.forget()
    assert cache.answers.answer("select count(*) from orders", NOW_MS, Limits(), lambda interrupt: None) is None
    cache.followed.follower.lose()
    cache.built = 0
    assert cache.ask("select count(*) from orders") is not None


@pytest.mark.parametrize(
    "sql",
    ['delete from "cache 0 1".main.live', 'select * from "cache 0 1".main.live', 'detach "cache 0 1"', "checkpoint"],
)
def test_the_relations_of_the_cache_are_out_of_reach(cache: SteppedCache, sql: str) -> None:
    cache.step()
    with pytest.raises(QueryError):
        cache.ask(sql)


@pytest.mark.slow
def test_a_reader_cannot_write(cache: SteppedCache) -> None:
    import duckdb

    cache.step()
    pinned = cache.database.pinned_reader(lambda: [cache.rows.current])
    with pytest.raises(duckdb.Error, match="read-only"), pinned as (reader, (seen,)):
        assert seen is not None
        reader.execute(f"delete from {seen.relation}")
    assert cache.ask("select count(*) from orders").rows == [(len(NAMES),)]  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_commit_that_comes_between_has_the_statement_run_again(
    optimistic: SteppedCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By itself a statement cannot tell of which revision its rows are; in a transaction it can."""
    cache = optimistic
    sql, count = "select count(*) from orders", len(NAMES)
    assert cache.ask(sql).revision.tables[0].tail == {KEY: count}  # type: ignore[union-attr]
    real, ran = answers.fetch, []

    def fetch(*given: Any) -> Any:
        ran.append(given)
        if len(ran) == 1:  # between the label and the rows
            row = {"order_id": 77, "customer": "eve", "amount": 1.0, "ts": 7, "at": 7}
            cache.tail.messages = [TailMessage(KEY, count, 7, json.dumps(row).encode())]
            cache.followed.follower.step()
        return real(*given)

    monkeypatch.setattr(answers, "fetch", fetch)
    found = cache.answers.answer(sql, NOW_MS, Limits(), lambda interrupt: None)
    assert found is not None and len(ran) == 2
    assert found.rows == [(count + 1,)] and found.revision.tables[0].tail == {KEY: count + 1}


@pytest.mark.slow
@pytest.mark.parametrize("upsert", [False, True])
@pytest.mark.parametrize("part", ["_served", "_insert"])
def test_a_commit_that_fails_leaves_rows_and_label_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upsert: bool, part: str
) -> None:
    halves = Halves.create(tmp_path, orders_spec(upsert=upsert))
    halves.commit_realtime([Row({"order_id": 1, "customer": "ada", "amount": 1.0, "ts": 1}, 1, 0)], offsets={KEY: 1})
    cache = SteppedCache(halves, NOW_MS, waits=False, tuning=CacheTuning(optimistic_gap_share=math.inf))
    cache.step()
    before = cache.rows.settled(0.0)
    monkeypatch.setattr(CachedRows, part, lambda *_, **__: 1 / 0)
    row = {"order_id": 77, "customer": "eve", "amount": 1.0, "ts": 7}
    cache.tail.messages = [TailMessage(KEY, 1, 7, json.dumps(row).encode())]
    with pytest.raises(ZeroDivisionError):
        cache.followed.follower.step()
    monkeypatch.undo()
    after = cache.rows.settled(0.0)
    assert cache.rows._laid.rows == 1 and before is not None
    is_begun = part == "_insert" and not upsert  # where the one statement is the commit
    assert after is None or after == (before[0] + 2 * is_begun, before[1])
    found = cache.answers.answer("select count(*) from orders", NOW_MS, Limits(), lambda interrupt: None)
    assert found is not None and found.rows == [(1,)]


@pytest.mark.slow
def test_a_statement_waits_for_the_commit_that_goes_on(
    optimistic: SteppedCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction of its own would take longer."""
    cache, sql = optimistic, "select count(*) from orders"
    cache.ask(sql)
    monkeypatch.setattr(CacheDatabase, "pinned_reader", lambda *_: 1 / 0)
    pace = cache.rows._pace
    with ThreadPoolExecutor(1) as other:
        with cache.database.commits:
            pace.begins()
            asked = other.submit(cache.answers.answer, sql, NOW_MS, Limits(), lambda interrupt: None)
            assert not wait([asked], 0.2).done
            pace.ended()
        found = asked.result()
    assert found is not None and found.rows == [(len(NAMES),)]


def test_other_revisions_are_left_to_the_files(cache: SteppedCache) -> None:
    sql = "select count(*) from orders"
    assert cache.ask(sql) is not None
    assert cache.ask(f"SET asOf = 'orders[OFFLINE=0 REALTIME=0]'; {sql}") is None
    assert cache.ask(f"{sql} OPTION(asOf='1632700000000')") is None
