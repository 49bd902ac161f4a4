"""Rows of the stream that are seen before they are laid: look-ups take them along, all else has them laid first."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import QueryError
from hybrid.query.cache import cached_rows as rows
from hybrid.query.cache.relations import BoundStatement, Found
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.engine import QueryOptions, run
from hybrid.query.execution import Limits
from hybrid.query.result import QueryResult
from hybrid.query.rewrite import resolve, rewrite
from hybrid.query.tail import TailMessage
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from hybrid.sql.statement import parse_statement
from hybrid.table.boundary import Boundary, PartitionKey, TopicPartition
from tests.query import test_incoming as incoming
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.stepped import SteppedCache

NOW_MS, COUNT = 1_632_700_000_000, 12
NEXT = PartitionKey("kafka", "orders", 0, 1)
LOOK_UPS = (
    "select * from orders where order_id = {}",
    "select count(*), sum(amount) from orders where order_id = {}",
    "select customer, count(*) from orders where order_id in ({}, 3, 99) group by customer order by customer",
    "select order_id, ts from orders where order_id = {} and ts > 1005 order by ts desc",
    "select count(*) from orders where customer = 'c{}'",
    "select distinct customer from orders where customer in ('c{}', 'c3')",
    "select max(ts) from orders where order_id = {} having max(ts) > 0",
    "select a.order_id, b.ts from orders a join orders b on a.order_id = b.order_id "
    "where a.order_id = {0} and b.order_id = {0}",
    "select order_id from orders where order_id = {} union all select order_id from orders where order_id = 3",
    "select ts, row_number() over (order by ts) from orders where order_id = {}",
    "select order_id > 5, count(*) from orders where order_id = {} group by order_id > 5",
    "select count(*) from (select customer from orders where order_id = {}) x",
)
SCANS = (
    "select count(*), sum(amount) from orders",
    "select order_id from orders where order_id > 3 order by order_id limit 100",
    "select customer, count(*) from orders group by customer order by customer limit 100",
    "select order_id from orders where order_id = 3 or order_id = {} order by order_id",
    "select count(*) from orders where not order_id = {}",
    "select a.order_id from orders a left join orders b on a.order_id = b.order_id and b.order_id = {} "
    "order by a.order_id limit 100",
    "select order_id from orders where order_id = {} + 0",
    "select count(*) from orders where amount = {}",
    # Names of columns that are not the table's own.
    "select count(*) from orders as o(order_id, b, c, d) where o.order_id = 3",
    "select * from orders as o(c, b, a, order_id) where order_id = 1003 limit 100",
    "select b.order_id, (select count(*) from orders o anti join orders b on o.order_id = b.order_id "
    "where b.order_id = 3 and o.customer = 'c3') n from orders b where b.order_id = 3",
    "select b.order_id, (select count(*) from orders o semi join orders b on o.order_id = b.order_id "
    "where b.order_id = 3 and o.customer = 'c3') n from orders b where b.order_id = 3",
)


# Rows wait until something has them laid.
NEVER_DUE = CacheTuning(buffered_s_max=3600.0)
ENUMS = replace(NEVER_DUE, enum_rows_min=1)


class Table:
    """A table with rows in files, whose stream a test fills, asked by its cache and by its files."""

    def __init__(self, folder: Path, count: int = COUNT, tuning: CacheTuning = NEVER_DUE, **spec: Any) -> None:
        self.halves = Halves.create(folder, orders_spec(**spec))
        found = [Row(self.values(n), 1000 + n, n) for n in range(count)]
        self.halves.commit_realtime(found, offsets={KEY: count})
        self.tail, self.ends = ListTail(), {KEY: count}
        self.cache = SteppedCache(self.halves, NOW_MS, self.tail, tuning=tuning)
        self.cache.step()

    @staticmethod
    def values(order: int, **more: Any) -> dict[str, Any]:
        return {"order_id": order, "customer": f"c{order % 5}", "amount": order * 0.5, "ts": 1000 + order, **more}

    def send(self, *of: int, key: TopicPartition = KEY, **more: Any) -> None:
        """Rows of these orders come, and a step takes them in."""
        for order in of:
            offset = self.ends.get(key, 0)
            self.ends[key] = offset + 1
            sent = json.dumps(self.values(order, **more)).encode()
            self.tail.messages = [*self.tail.messages, TailMessage(key, offset, 0, sent)]
        self.cache.step()

    @property
    def waits(self) -> int:
        """How many rows wait, as readers see it."""
        served = self.cache.rows.current
        assert served is not None
        return served.waiting.count if served.waiting is not None else 0

    @property
    def laid(self) -> int:
        return self.cache.rows._laid.rows

    def ask(self, sql: str) -> QueryResult:
        """The answer without a step before, which is that of the files."""
        found = self.cache.answers.answer(sql, NOW_MS, Limits(), lambda interrupt: None)
        expected = run(sql, self.halves, QueryOptions(tail=self.tail, now_ms=lambda: NOW_MS))
        assert found is not None, sql
        assert sorted(map(repr, found.rows)) == sorted(map(repr, expected.rows)), sql
        assert (found.column_names, found.column_types) == (expected.column_names, expected.column_types)
        assert str(found.revision) == str(expected.revision)
        return found


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("indexed", "enums"),
    [
        (True, False),
        pytest.param(False, False, marks=pytest.mark.slow),
        pytest.param(False, True, marks=pytest.mark.slow),
        pytest.param(True, True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("sql", LOOK_UPS)
def test_look_ups_take_waiting_rows_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, indexed: bool, enums: bool
) -> None:
    monkeypatch.setattr("hybrid.query.cache.table_snapshot.indexed_columns", lambda *_: ["order_id"] if indexed else [])
    table = Table(tmp_path, tuning=ENUMS if enums else NEVER_DUE)
    for order in (3, 7, 40):
        table.send(order, key=NEXT if order == 7 else KEY)
        for asked in (order, 4, 77):
            table.ask(sql.format(asked))
    assert (table.waits, table.laid) == (3, COUNT)
    table.send(3, 3)
    table.ask(sql.format(3))
    assert (table.waits, table.laid) == (5, COUNT)


@pytest.mark.slow
@pytest.mark.parametrize("indexed", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("sql", SCANS)
def test_anything_else_has_them_laid_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, indexed: bool
) -> None:
    monkeypatch.setattr("hybrid.query.cache.table_snapshot.indexed_columns", lambda *_: ["order_id"] if indexed else [])
    table = Table(tmp_path)
    table.send(3, 40)
    assert table.waits == 2
    table.ask(sql.format(40))
    assert (table.waits, table.laid) == (0, COUNT + 2)
    table.ask(sql.format(40))


@pytest.mark.slow
def test_one_that_would_take_many_along_has_them_laid(table: Table) -> None:
    table.send(*[3] * NEVER_DUE.appended_rows_max)
    table.ask("select * from orders where order_id = 3 limit 100")
    assert table.waits == NEVER_DUE.appended_rows_max
    table.send(3)
    table.ask("select * from orders where order_id = 3 limit 100")
    assert table.waits == 0


@pytest.mark.slow
def test_one_whose_rows_are_wide_has_them_laid(tmp_path: Path) -> None:
    table = Table(tmp_path, tuning=replace(NEVER_DUE, appended_values_max=8))
    table.send(3, 3)
    table.ask("select * from orders where order_id = 3 limit 100")
    assert table.waits == 2
    table.send(3)
    table.ask("select * from orders where order_id = 3 limit 100")
    assert table.waits == 0


@pytest.mark.slow
def test_a_text_that_looks_like_a_mark_is_found_as_it_is(table: Table) -> None:
    for text in ("hybrid mark 0", "a''b", "7710000000000000", "$1", ""):
        table.send(50, customer=text.replace("''", "'"))
        table.ask(f"select count(*) from orders where customer = '{text}' and order_id < 99")
        table.ask(f"select customer from orders where order_id = 50 and customer <> '{text}' limit 100")
    assert table.waits == 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", DataType)
@pytest.mark.parametrize("single", [True, False], ids=["one", "many"])
def test_every_type_is_shown_as_when_it_is_laid(tmp_path: Path, kind: DataType, single: bool) -> None:
    spec = incoming.table(
        FieldSpec("k", DataType.LONG, FieldKind.DIMENSION),
        FieldSpec("c", kind, FieldKind.DIMENSION, single_value=single),
    )
    halves = Halves.create(tmp_path, spec)
    halves.commit_realtime([], offsets={incoming.KEY: 0})
    values = (
        incoming.VALUES[kind]
        if single
        else [[one] for one in incoming.VALUES[kind] if one is not None] + [incoming.VALUES[kind][:2], []]
    )
    sent = [json.dumps({"k": n, "c": one}).encode() for n, one in enumerate(values)]
    messages = [TailMessage(incoming.KEY, n, 0, one) for n, one in enumerate(sent)]
    cache = SteppedCache(halves, NOW_MS, ListTail(messages), tuning=NEVER_DUE)
    cache.step()
    found = []
    for _ in range(2):
        answers = [
            cache.answers.answer(f"select * from t where k = {n}", NOW_MS, Limits(), lambda interrupt: None)
            for n in range(len(values))
        ]
        found.append([(one.rows, one.column_types) for one in answers if one is not None])
        cache.rows.lay_waiting()
    assert len(found[0]) == len(values) and repr(found[0]) == repr(found[1])
    assert cache.rows._laid.rows == len(values)


@pytest.mark.slow
def test_rows_that_may_be_covered_do_not_wait(tmp_path: Path) -> None:
    table = Table(tmp_path / "covered")
    table.halves.commit_offline([], Boundary(2000, {KEY: COUNT + 3}))  # history up to there
    for _ in range(5):
        table.send(40)
        assert table.waits == max(0, table.ends[KEY] - COUNT - 3)
        table.ask("select count(*) from orders where order_id = 40")


@pytest.mark.slow
def test_a_text_that_no_enum_has_is_laid(tmp_path: Path) -> None:
    table = Table(tmp_path, tuning=ENUMS)
    table.send(40)
    assert table.waits == 1
    table.send(41, customer="new")
    assert table.waits == 0
    table.ask("select customer, count(*) from orders group by customer order by customer limit 100")


def test_many_are_laid(tmp_path: Path) -> None:
    """At half of the room, so that rows which come do not wait for the flush."""
    table = Table(tmp_path, tuning=replace(NEVER_DUE, buffered_rows_max=20))
    for _ in range(9):
        table.send(40)
    assert (table.waits, table.laid) == (9, COUNT)
    table.send(40)
    assert (table.waits, table.laid) == (0, COUNT + 10)
    table.send(40, 41)
    table.send(*range(19))  # too many for the room that is left
    assert (table.waits, table.laid) == (0, COUNT + 31)
    table.send(*range(21))
    assert (table.waits, table.laid) == (0, COUNT + 52)


@pytest.mark.slow
def test_few_rows_are_flushed_at_once_where_each_is_looked_up(tmp_path: Path) -> None:
    """A large table whose keys are found one by one: a flush would take long."""
    tuning = replace(NEVER_DUE, buffered_rows_max=20, scanned_rows_max=COUNT, looked_up_rows_max=3)
    table = Table(tmp_path, upsert=True, tuning=tuning)
    for order in range(10):
        table.send(40 + order)
    assert (table.waits, table.laid) == (0, COUNT + 10)  # so far the table was small
    for flushed in (12, 15):
        for order in range(3):
            assert table.waits == order
            table.send(40 + flushed + order)
        assert table.waits == 0


def test_they_are_laid_after_a_while_and_the_stream_is_waited_for_in_short_turns(table: Table) -> None:
    patience = table.cache.rows.waiting.patience_s
    table.send(40)
    assert table.cache.rows.waiting.patience_s < patience
    table.cache.step()
    assert table.waits == 1
    table.cache.rows.waiting._since = -math.inf
    table.cache.step()
    assert (table.waits, table.laid, table.cache.rows.waiting.patience_s) == (0, COUNT + 1, patience)


@pytest.mark.parametrize("unbuffered_s", [3600.0, 0.0])
def test_after_a_scan_rows_are_laid_as_they_come_for_a_while(tmp_path: Path, unbuffered_s: float) -> None:
    table = Table(tmp_path, tuning=replace(NEVER_DUE, unbuffered_s=unbuffered_s))
    table.cache.rows.waiting.lay_soon()
    table.send(40)
    assert (table.waits, table.laid) == ((0, COUNT + 1) if unbuffered_s else (1, COUNT))


def _commit(table: Table) -> None:
    table.halves.commit_realtime([Row(table.values(40), 1040, COUNT)], offsets={KEY: COUNT + 1})


def _commit_more(table: Table) -> None:
    """What the stream has not brought yet."""
    found = [Row(table.values(n), 1000 + n, COUNT + at) for at, n in enumerate((40, 3, 41))]
    table.halves.commit_realtime(found, offsets={KEY: COUNT + 3})
    table.ends[KEY] = COUNT + 3


def _move(table: Table) -> None:
    moved = [Row(table.values(n), 1000 + n, n, segment="moved") for n in range(3)]
    table.halves.commit_offline(moved, Boundary(1003, {KEY: COUNT}))


def _override(table: Table) -> None:
    table.halves.commit_offline([], replace(table.halves.offline.boundary, override_ms=1003))


def _purge(table: Table) -> None:
    table.halves.commit_offline([], kind="purge")


@pytest.mark.slow
@pytest.mark.parametrize("act", [_commit, _commit_more, _move, _override, _purge])
def test_commits_find_them_laid(table: Table, act: Any) -> None:
    table.send(40, 3)
    assert table.waits == 2
    act(table)
    table.cache.step()
    table.ask(
        "select order_id, count(*) from orders where order_id in (2, 3, 40, 41) group by order_id order by order_id"
    )
    table.send(2, 40)
    table.ask("select count(*) from orders where order_id = 40")
    table.ask("select order_id, customer, ts from orders order by order_id, ts limit 100")


@pytest.mark.slow
def test_rows_that_are_lost_and_laid_anew_come_once(table: Table) -> None:
    table.send(40, 3)
    table.cache.followed.follower.lose()
    table.cache.followed.follower.start()
    assert table.waits == 0
    table.cache.step()
    table.ask("select count(*) from orders where order_id = 3")
    table.cache.followed.follower.lose(forget=True)
    table.cache.followed.follower.start()
    table.cache.step()
    table.ask("select order_id from orders order by order_id limit 100")


@pytest.mark.slow
def test_what_is_answered_at_once(tmp_path: Path) -> None:
    table = Table(tmp_path, tuning=replace(NEVER_DUE, optimistic_s_max=math.inf, optimistic_gap_share=math.inf))
    sql, scan = "select count(*) from orders where order_id = 40", "select count(*) from orders"
    for one in (sql, scan):
        table.ask(one)
    table.send(40)
    found = table.cache.answers.at_once(sql, Limits())
    assert found is not None and found.rows == [(1,)]
    assert table.cache.answers.at_once(scan, Limits()) is None and table.waits == 1


@pytest.mark.slow
def test_a_statement_waits_for_their_writer(table: Table) -> None:
    """A real thread of its own."""
    follower = table.cache.followed.follower
    del follower.await_laid  # the stepped one
    over = threading.Event()

    def follow() -> None:
        while not over.wait(0.002):
            follower.step()

    table.send(40)
    thread = threading.Thread(target=follow)
    thread.start()
    try:
        for asked in range(20):
            table.ask("select count(*) from orders")
            table.cache.rows.waiting._laid_until = 0.0
            offset = table.ends[KEY]
            table.ends[KEY] += 1
            sent = TailMessage(KEY, offset, 0, json.dumps(table.values(asked)).encode())
            table.tail.messages = [*table.tail.messages, sent]
            until = time.monotonic() + 5
            while follower.rows.shown.get(KEY, 0) <= offset and time.monotonic() < until:
                time.sleep(0.001)
            table.ask(f"select count(*) from orders where order_id = {asked}")
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
def test_nobody_waits_long_for_a_writer_that_is_gone(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    del table.cache.followed.follower.await_laid  # nobody steps
    table.send(40)
    began = time.monotonic()
    sql = "select count(*) from orders"
    with pytest.raises(QueryError, match="stopped after 200 ms"):
        table.cache.answers.answer(sql, NOW_MS, Limits(timeout_ms=200), lambda interrupt: None)
    assert time.monotonic() - began < 1.9  # less than it may last without a limit
    table.cache.step()
    table.ask(sql)


@pytest.mark.parametrize("loss", [{}, {"forget": True}])
def test_a_loss_ends_the_wait(table: Table, loss: Any) -> None:
    follower = table.cache.followed.follower
    del follower.await_laid
    table.send(40)
    timer = threading.Timer(0.3, lambda: follower.lose(**loss))
    timer.start()
    began = time.monotonic()
    found = table.cache.answers.answer("select count(*) from orders", NOW_MS, Limits(), lambda interrupt: None)
    assert found is None and time.monotonic() - began < 1.5
    timer.join()


@pytest.mark.slow
def test_rows_that_were_laid_are_read_though_their_writer_goes_on(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit whose rows the stream has not brought is read from files, for long."""
    follower, real = table.cache.followed.follower, rows.CachedRows._stage
    del follower.await_laid
    goes_on, over = threading.Event(), threading.Event()

    def stage(*given: Any, **more: Any) -> int:
        goes_on.set()
        over.wait(10)
        return real(*given, **more)

    monkeypatch.setattr(rows.CachedRows, "_stage", stage)
    table.send(40, 3)
    _commit_more(table)
    thread = threading.Thread(target=follower.step)
    began = time.monotonic()
    thread.start()
    try:
        assert goes_on.wait(5)
        found = table.cache.answers.answer("select count(*) from orders", NOW_MS, Limits(), lambda interrupt: None)
        assert found is not None and found.rows == [(COUNT + 2,)] and time.monotonic() - began < 1.5
    finally:
        over.set()
        thread.join()
    table.ask("select count(*) from orders")


# Plans

BY_INDEX = (
    "select count(*) from orders where order_id = 7",
    "select * from orders where order_id = 7",
    "select * from orders where order_id in (7, 9) limit 5",
    "select customer, sum(amount) from orders where order_id = 7 group by customer order by 2 desc limit 3",
    "select * from orders where order_id = 7 order by ts desc limit 10",
    "select count(*) from orders where order_id = 7 and ts > 5",
    "select distinct customer from orders where order_id = 7",
)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    table = Table(tmp_path_factory.mktemp("large"), 5000)
    yield table
    table.cache.followed.follower.close()


@pytest.mark.parametrize("along", [0, 2])
@pytest.mark.parametrize("sql", BY_INDEX)
def test_duckdb_looks_up_by_the_index(large: Table, monkeypatch: pytest.MonkeyPatch, sql: str, along: int) -> None:
    """However the rows are asked for, alone or with others, sorted or not."""
    cache = large.cache
    cursor = cache.database.cursor()
    cursor.execute("CREATE TEMP TABLE kept AS SELECT * FROM " + cache.rows._laid.relation)
    served = cache.rows.current
    assert served is not None
    cursor.execute("CREATE INDEX by_id ON kept (order_id)")
    served = replace(served, relation="temp.main.kept", indexed=["order_id"])
    rewritten = rewrite(resolve(parse_statement(sql), cache.source), NOW_MS)
    over = BoundStatement(rewritten, {"orders": served}, NEVER_DUE)
    values = {name: [large.values(7)[name]] * along for name in ("order_id", "customer", "amount", "ts")}
    columns = over._parts[0].columns
    plan = over.sql([Found([[values[name][n] for name in columns] for n in range(along)])])
    parameters = [values[name][n] for n in range(along) for name in columns]
    ((_, shown),) = cursor.execute(f"EXPLAIN ANALYZE {plan}", parameters).fetchall()
    assert "Index Scan" in shown, shown
    cursor.close()
