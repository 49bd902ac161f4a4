"""Buffered rows of tables with a key: a look-up resolves them with the stored rows of the key, as the files do."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import ARRIVED, Partial, Strategy, TableSpec, UpsertConfig
from hybrid.query.cache import cached_rows as rows
from hybrid.query.cache.tuning import CacheTuning
from hybrid.table.boundary import Boundary
from tests.examples import seeds
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.stepped import PacedFold, SteppedCache
from tests.query.test_cache_waiting import COUNT, ENUMS, NEVER_DUE, NEXT, NOW_MS, Table

LOOK_UPS = (
    "select * from orders where order_id = {}",
    "select count(*), sum(amount) from orders where order_id = {}",
    "select count(*) from orders where order_id in ({}, 3, 99)",
    "select order_id, customer, ts from orders where order_id in (3, 4, {}) order by order_id",
    "select order_id, ts from orders where order_id = {} and ts > 1005 order by ts desc",
    # Filters that the stored row passes and the buffered one does not, and the reverse.
    "select order_id from orders where order_id = {} and customer = 'c3'",
    "select order_id from orders where order_id = {} and customer <> 'c3'",
    "select order_id, amount from orders where order_id = {} and amount < 2",
    "select customer, count(*) from orders where order_id in ({}, 3, 99) group by customer order by customer",
    "select a.order_id, b.ts from orders a join orders b on a.order_id = b.order_id "
    "where a.order_id = {0} and b.order_id = {0}",
    "select order_id from orders where order_id = {} union all select order_id from orders where order_id = 3",
    "select count(*) from (select customer from orders where order_id = {}) x",
)
OTHERS = (
    "select count(*), sum(amount) from orders",
    "select order_id from orders where customer = 'c{}' order by order_id limit 100",
    "select count(*) from orders where ts = 1003",
    "select order_id from orders where order_id > {} order by order_id limit 100",
    "select order_id from orders where order_id = 3 or customer = 'c1' order by order_id limit 100",
)
# What comes after the stored rows, whose comparison value is 1000 + order: a list of one row after the other.
HISTORIES: dict[str, Sequence[dict[str, Any]]] = {
    "newer": [{"ts": 2000, "customer": "new"}],
    "older": [{"ts": 500, "customer": "old"}],
    "equal": [{"ts": 1003, "customer": "same"}],
    "newer, then older": [{"ts": 2000, "customer": "new"}, {"ts": 1500, "customer": "late"}],
    "deleted": [{"ts": 2000, "gone": True}],
    "deleted too late": [{"ts": 900, "gone": True}],
    "deleted and back": [{"ts": 2000, "gone": True}, {"ts": 2001, "customer": "back"}],
    "deleted, and a late row": [{"ts": 2000, "gone": True}, {"ts": 1500, "customer": "late"}],
}


@pytest.mark.slow
@pytest.mark.parametrize("history", HISTORIES)
def test_look_ups_resolve_buffered_rows_with_stored_ones(tmp_path: Path, history: str) -> None:
    """All look-ups of the keys that have buffered rows; of other keys, and after a flush, a part in each history."""
    table, number = Table(tmp_path, upsert=True, deletes=True), list(HISTORIES).index(history)

    def look_up(*orders: int, waits: int, part: int = 1) -> None:
        for sql in LOOK_UPS[number % part :: part]:
            for order in orders:
                table.ask(sql.format(order))
                assert table.waits == waits, f"{sql.format(order)} has flushed the buffer"

    sent = 0
    for order in (3, 40):  # a stored key and a new one
        for row in HISTORIES[history]:  # what each begins with is one of the others
            table.send(order, **row)
            sent += 1
        look_up(order, waits=sent)
    look_up(4, 77, waits=sent, part=4)
    assert table.laid == COUNT
    table.cache.rows.lay_waiting()
    look_up(3, 40, waits=0, part=2)
    look_up(4, 77, waits=0, part=4)
    table.send(3, ts=3000, customer="newest", key=NEXT)  # now beside stored delete markers
    look_up(3, 40, waits=1, part=2)


@pytest.mark.slow
@pytest.mark.parametrize("sql", OTHERS)
def test_anything_but_a_look_up_of_keys_has_the_buffer_flushed(tmp_path: Path, sql: str) -> None:
    table = Table(tmp_path, upsert=True)
    table.send(3, 40, customer="c1", ts=1003)
    assert table.waits == 2
    table.ask(sql.format(3))
    assert (table.waits, table.laid) == (0, COUNT + 1)


@pytest.mark.slow
def test_a_column_with_an_index_that_is_no_key_has_the_buffer_flushed(tmp_path: Path) -> None:
    """A buffered row may replace the stored one that such a look-up finds."""
    table = Table(tmp_path, upsert=True, tuning=NEVER_DUE)
    view = table.cache.rows._served
    table.cache.rows._served = lambda: replace(view(), indexed=["customer", "order_id"])  # type: ignore[method-assign]
    table.send(3, customer="other", ts=2000)
    table.ask("select order_id from orders where customer = 'c3' and order_id = 3")
    assert table.waits == 1
    table.ask("select order_id from orders where customer = 'c3' order by order_id limit 100")
    assert table.waits == 0


@pytest.mark.slow
def test_versions_of_one_key_count_as_one_row(tmp_path: Path) -> None:
    table = Table(tmp_path, upsert=True)
    for number in range(5 * NEVER_DUE.appended_rows_max):
        table.send(3, ts=2000 + number * 7 % 11)
    table.ask("select * from orders where order_id = 3")
    assert table.waits == 5 * NEVER_DUE.appended_rows_max


@pytest.mark.slow
def test_versions_that_python_may_order_otherwise_are_left_to_duckdb(tmp_path: Path) -> None:
    """A NaN is greater than any number for DuckDB, and unordered for Python."""
    table = Table(tmp_path, upsert=True)
    spec = replace(table.halves.spec, upsert=UpsertConfig("amount"))
    table = _table(tmp_path / "floats", spec)
    for amount in (5.0, "NaN", 6.0):
        table.send(3, amount=amount)
        table.ask("select order_id, amount, ts from orders where order_id = 3")
    assert table.waits == 3
    table.send(*[3] * NEVER_DUE.appended_rows_max)
    table.ask("select order_id, amount, ts from orders where order_id = 3")
    assert table.waits == 0


def _table(folder: Path, spec: TableSpec, tuning: CacheTuning = NEVER_DUE) -> Table:
    """A table of this definition, with the rows of any other."""
    table = object.__new__(Table)
    table.halves = Halves.create(folder, spec)
    table.halves.commit_realtime([Row(table.values(n), 1000 + n, n) for n in range(COUNT)], offsets={KEY: COUNT})
    table.tail, table.ends = ListTail(), {KEY: COUNT}
    table.cache = SteppedCache(table.halves, NOW_MS, table.tail, tuning=tuning)
    table.cache.step()
    return table


def _specs() -> Iterator[tuple[str, TableSpec]]:
    upsert = orders_spec(upsert=True, deletes=True)
    schema = upsert.schema
    yield "upsert", upsert
    yield "dedup", replace(orders_spec(upsert=True), upsert=UpsertConfig(ARRIVED, first_wins=True))
    yield "two columns", replace(upsert, schema=replace(schema, primary_key=("order_id", "customer")))
    yield "by text", replace(upsert, schema=replace(schema, primary_key=("customer",)))
    partial = Partial(default=Strategy.OVERWRITE, strategies={"amount": Strategy.INCREMENT})
    yield "partial", replace(upsert, upsert=UpsertConfig("ts", "gone", partial=partial))
    yield "by amount", replace(upsert, upsert=UpsertConfig("amount", "gone"))


SPECS = dict(_specs())
STEPS = 24  # one rebuild or several, where rows are replaced
ASKED = (
    "select * from orders where order_id = {} order by customer limit 100",
    "select count(*), sum(amount) from orders where order_id in ({}, 2)",
    "select order_id, customer from orders where order_id = {} and customer = 'c{}' order by ts limit 100",
    "select order_id, ts from orders where customer = 'c{}' order by order_id, ts limit 100",
    "select customer, count(*) from orders where customer in ('c{}', 'c1') group by customer order by customer",
    "select max(ts) from orders where order_id = {} and amount < 3",
)


@pytest.mark.slow
@pytest.mark.parametrize("scanned", [0, 10_000], ids=["by index", "by scan"])
@pytest.mark.parametrize("kind", SPECS)
def test_random_rows_are_shown_as_the_files_show_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, scanned: int
) -> None:
    """Buffered, flushed and rebuilt at random, with commits and moves between. HYBRID_SEEDS=20 plays longer."""
    monkeypatch.setattr(rows, "BackgroundRebuild", PacedFold)
    dice = random.Random(f"{kind}-{scanned}")
    tuning = replace(ENUMS, scanned_rows_of_one=scanned, rebuild_rows_min=6, unbuffered_s=0.0, appended_values_max=1000)
    table, buffered = _table(tmp_path, SPECS[kind], tuning), 0
    for _ in seeds(0, STEPS):
        order, key = dice.randrange(6), dice.choice((KEY, NEXT))
        gone = {"gone": dice.random() < 0.2} if "gone" in SPECS[kind].schema.column_names else {}
        more = {"ts": 1000 + dice.randrange(8), "customer": f"c{dice.randrange(4)}", "amount": dice.randrange(6) * 0.5}
        table.send(*[order] * dice.choice((1, 1, 3)), key=key, **more, **gone)
        if dice.random() < 0.1:
            table.cache.rows.lay_waiting()
        if dice.random() < 0.03:
            table.ask("select order_id, customer, amount, ts from orders order by order_id, customer, ts limit 1000")
        if dice.random() < 0.05:
            table.halves.commit_realtime([], offsets={KEY: COUNT})
            table.cache.step()
        for sql in dice.sample(ASKED, 2):
            buffered += table.waits > 0
            table.ask(sql.format(order, dice.randrange(4)))
    assert buffered > 10
    table.ask("select order_id, customer, amount, ts from orders order by order_id, customer, ts limit 1000")


@pytest.mark.slow
@pytest.mark.parametrize("upsert", [False, True])
def test_rows_are_buffered_while_a_rebuild_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upsert: bool
) -> None:
    """It reads up to what was flushed, and its last round all."""
    monkeypatch.setattr(rows, "BackgroundRebuild", PacedFold)
    table = Table(tmp_path, tuning=replace(NEVER_DUE, rebuild_rows_min=5, unbuffered_s=0.0), upsert=upsert)
    table.send(*range(6 if upsert else 20), ts=2000)  # an upsert deletes a row, too
    table.cache.rows.lay_waiting()
    table.cache.step()
    assert table.cache.rows._fold is not None
    before = table.cache.rows._laid.room
    for number in range(200):
        if table.cache.rows._fold is None:
            break
        table.send(number % 8, 40 + number, ts=3000 + number)
        if number % 3 == 0 and table.cache.rows._fold is not None:
            assert table.waits > 0
            table.cache.rows.lay_waiting()
    assert table.cache.rows._fold is None and table.cache.rows._laid.room != before and number > 0
    table.send(3, 41, ts=9000)
    table.ask("select * from orders where order_id = 41 limit 100")
    table.ask("select order_id, customer, ts from orders order by order_id, ts limit 1000")


@pytest.mark.slow
def test_a_boundary_that_covers_rows_to_come_has_them_inserted(tmp_path: Path) -> None:
    table = Table(tmp_path, upsert=True)
    table.halves.commit_offline([], Boundary(2000, {KEY: COUNT + 2}))  # history up to there
    for _ in range(4):
        table.send(40, ts=1040)
        assert table.waits == max(0, table.ends[KEY] - COUNT - 2)
        table.ask("select count(*) from orders where order_id = 40")
