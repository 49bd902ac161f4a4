"""Time travel: what a revision answered is answered again, whatever was committed since; and what is refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable

from hybrid.config.table_config import BoundaryMode, Half
from hybrid.errors import QueryError
from hybrid.lake.log_entries import read_commit
from hybrid.query import time_travel
from hybrid.query.engine import QueryOptions, explain
from hybrid.query.tail import NoTail
from hybrid.query.time_travel import NamedVersions, QueriedMoment
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.state import Act
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.test_cases import ALL, ids, message, row

Ask = Callable[..., Any]
Make = Callable[..., Halves]
OTHER = PartitionKey("kafka", "orders", 0, 1)


def told(ask: Ask, halves: Any, as_of: object, sql: str = "select * from orders limit 1000", tail: Any = None) -> Any:
    found = ask(halves, sql, tail, as_of=str(as_of))
    return sorted(found.rows, key=repr), str(found.revision)


def both(ask: Ask, halves: Any, tail: Any = None, sql: str = "select * from orders limit 1000") -> Any:
    found = ask(halves, sql, tail)
    return sorted(found.rows, key=repr), str(found.revision)


def refused(ask: Ask, halves: Any, as_of: object, sql: str = "select * from orders", **options: Any) -> str:
    with pytest.raises(QueryError) as caught:
        ask(halves, sql, as_of=str(as_of), **options)
    return f"{caught.value} {caught.value.hint or ''}"


def stamp(halves: Halves, half: Half, version: int, time_ms: int | None) -> None:
    """Gives a commit another time, or none."""
    entry = halves.layout.half(half) / "_delta_log" / f"{version:020d}.json"
    text = entry.read_text()
    before = text.partition('"timestamp":')[2].partition(",")[0]
    now = f'"timestamp":{time_ms},' if time_ms is not None else ""
    entry.write_text(text.replace(f'"timestamp":{before},', now, 1))


@pytest.mark.slow
@pytest.mark.parametrize("upsert", [False, True])
def test_a_revision_answers_the_same_through_acts_and_ingestion(make: Make, ask: Ask, upsert: bool) -> None:
    halves = make(upsert=upsert, deletes=upsert)
    gone = {"gone": False} if upsert else {}
    rows = [row(n, n * 100, n - 1, values=gone) for n in range(1, 6)]
    kafka, seen = ListTail(), []

    def look(*messages: Any) -> None:
        kafka.messages += messages
        seen.append(both(ask, halves, kafka))

    def again() -> None:
        for rows_then, revision in seen:
            assert told(ask, halves, revision, tail=kafka) == (rows_then, revision)

    look()
    halves.commit_realtime(rows[:3], offsets={KEY: 3})
    look()
    look(message(4, 400, 3, **gone), message(5, 500, 4, **gone))
    halves.commit_realtime(rows[3:4], offsets={KEY: 4})
    look(message(1, 600, 5, "newer", **gone))
    again()
    halves.commit_offline([replace(one, segment="o") for one in rows[:3]], Boundary(350, {KEY: 4}))
    look()
    # A late row, on the upsert table a delete marker.
    late = row(2, 250, 6, values=gone, op="delete" if upsert else "row")
    halves.commit_realtime([rows[4], row(1, 600, 5, "newer", values=gone), late], offsets={KEY: 7})
    look()
    halves.commit_offline([replace(one, segment="o2") for one in [rows[3], late]], Boundary(450, {KEY: 7}))
    look()
    for half in Half:
        DeltaTable(str(halves.layout.half(half))).optimize.compact()
    look()
    offline = DeltaTable(str(halves.layout.half(Half.OFFLINE)))
    offline.delete("_hy_segment = 'o'")  # a replacement, as far as files go
    look()
    halves.commit_offline([], replace(halves.offline.boundary, override_ms=300))
    look()
    again()
    assert len({repr(rows_then) for rows_then, _ in seen}) >= 5, "the acts changed what is seen"


@pytest.mark.slow
def test_the_tail_is_answered_from_the_commits_that_brought_it_up_to_its_end(make: Make, ask: Ask) -> None:
    halves = make()
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    pinned = both(ask, halves, ListTail([message(2, 20, 1), message(3, 30, 2)]))
    assert pinned[1].endswith("tail={kafka/orders/0/0@3}]")
    # The next commits bring one more row, rejected rows, another partition, and the rows of a replay.
    bad = Row({}, None, 2, segment="orders__rejected", reason="bad")
    halves.commit_realtime([row(2, 20, 1), bad, row(9, 90, 0, key=OTHER)], offsets={KEY: 2, OTHER: 1})
    replayed = row(8, 5, 0, key=KEY._replace(connector="replay/kafka"))
    halves.commit_realtime([replayed], offsets={KEY: 2, OTHER: 1, replayed.key: 1})
    halves.commit_realtime([row(3, 30, 2), row(4, 40, 3)], offsets={KEY: 4, OTHER: 1})
    assert told(ask, halves, pinned[1]) == pinned, "no tail is asked"
    assert ids(ask(halves, ALL.format("orders"))) == [1, 2, 3, 4, 8, 9]
    with_name = ask(halves, "select order_id, $offset from orders_REALTIME where order_id > 1", as_of=pinned[1])
    assert sorted(with_name.rows) == [(2, 1), (3, 2)]
    assert ask(halves, "select count(*) from orders_OFFLINE", as_of=pinned[1]).rows == [(0,)]
    # A commit that lays all rows anew brings nothing.
    DeltaTable(str(halves.layout.half(Half.REALTIME))).optimize.compact()
    assert told(ask, halves, pinned[1]) == pinned
    # A boundary that covers them since has no say.
    halves.commit_offline([row(n, n * 10, n - 1, segment="o") for n in (1, 2, 3)], Boundary(100, {KEY: 4}))
    assert told(ask, halves, pinned[1]) == pinned


@pytest.mark.slow
def test_what_is_neither_committed_nor_in_the_tail_is_refused(make: Make, ask: Ask, monkeypatch: Any) -> None:
    seconds = count()  # each look at the clock finds it a second later
    monkeypatch.setattr(time_travel, "time", SimpleNamespace(monotonic=lambda: next(seconds), sleep=lambda _: None))
    halves = make()
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    pinned = both(ask, halves, ListTail([message(2, 20, 1), message(3, 30, 2)]))
    halves.commit_realtime([row(2, 20, 1)], offsets={KEY: 2})
    text = refused(ask, halves, pinned[1], tail=ListTail([], ["Kafka at x does not answer."]))
    assert "neither committed nor in Kafka now: kafka/orders/0/0 below 3. Kafka at x does not answer." in text
    assert "hybrid ingest orders" in text
    longer = ListTail([message(3, 30, 2), message(4, 40, 3)])
    assert told(ask, halves, pinned[1], tail=longer) == pinned, "one row from a commit, one from the tail"
    assert told(ask, halves, pinned[1], "select count(*) from orders_OFFLINE")[0] == [(0,)], "no tail is needed"


@pytest.mark.slow
def test_deletes_that_the_tail_brought_take_equal_rows_away(tmp_path: Path, ask: Ask) -> None:
    from tests.query.test_net_deletes import LIVE, STARTED, keyless, stored
    from tests.query.test_net_deletes import message as change

    halves = Halves.create(tmp_path, keyless())
    halves.commit_realtime([stored("row", 1, "a", 0), stored("row", 2, None, 1)], offsets={LIVE: 2}, **STARTED)
    pinned = both(ask, halves, ListTail([change("delete", 1, "a", 2)]))
    assert [one[2] for one in pinned[0]] == [2]
    halves.commit_realtime([stored("delete", 1, "a", 2), stored("row", 1, "a", 3)], offsets={LIVE: 4}, deletes=1)
    assert told(ask, halves, pinned[1]) == pinned


@pytest.mark.slow
def test_mode_pinot_an_override_and_a_floor_as_they_were(tmp_path: Path, ask: Ask) -> None:
    halves = Halves.create(tmp_path, replace(orders_spec(), boundary_lag_ms=100), BoundaryMode.PINOT)
    halves.commit_realtime([row(n, n * 100, n, "live") for n in range(1, 6)], offsets={KEY: 6})
    halves.commit_offline([row(n, n * 100, n, "pushed", segment="o") for n in (1, 2, 3)])
    first = both(ask, halves)
    assert "pinot limit=" in first[1]
    halves.commit_offline([], replace(halves.offline.boundary, override_ms=150, floor_ms=120))
    second = both(ask, halves)
    halves.commit_offline([row(n, n * 100, n, "pushed", segment="o2") for n in (4, 5)])
    assert first[0] != second[0]
    assert told(ask, halves, first[1]) == first and told(ask, halves, second[1]) == second


@pytest.mark.slow
def test_versions_alone_explain_set_and_option(make: Make, ask: Ask) -> None:
    halves = make()
    halves.commit_realtime([row(1, 10, 0), row(2, 20, 1)], offsets={KEY: 2})
    halves.commit_realtime([row(3, 30, 2)], offsets={KEY: 3})
    rows, full = told(ask, halves, " orders[REALTIME=1  OFFLINE=0] ")
    assert full == "orders[OFFLINE=0 REALTIME=1 boundary=none{}]" and len(rows) == 2
    for sql in (
        f"SET asOf = '{full}'; select * from orders",
        f"select * from orders OPTION(timeoutMs=5000, asOf='{full}')",
    ):
        assert str(ask(halves, sql, as_of="orders[OFFLINE=0 REALTIME=2]").revision) == full, "the statement's own wins"
    tail = ListTail([message(4, 40, 3), message(5, 50, 4)])
    revision = str(ask(halves, "select * from orders", tail).revision)
    sql = f"select count(*) from orders OPTION(asOf='{revision}')"
    assert ask(halves, sql, tail).rows == [(5,)], "commas and signs within the quotes"
    found = explain("select * from orders", halves, QueryOptions(tail=tail, as_of=revision))
    assert found.revision == revision and found.tables[0].tail_rows == 2
    plan = ask(halves, f"SET asOf = '{full}'; EXPLAIN PLAN FOR select * from orders").rows
    assert plan[0] == ("revision", full)


@pytest.mark.slow
def test_a_time_is_what_was_committed_up_to_it(make: Make, ask: Ask) -> None:
    halves = make()
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    halves.commit_offline([row(1, 10, 0, "moved", segment="o")], Boundary(100, {KEY: 1}))
    halves.commit_realtime([row(2, 200, 1)], offsets={KEY: 2})
    base = 1_632_000_000_000
    for half, times in {Half.OFFLINE: (0, 2000), Half.REALTIME: (1000, 1500, 3000)}.items():
        for version, at in enumerate(times):
            stamp(halves, half, version, base + at)
    tail = ListTail([message(3, 300, 2)])

    def at(offset_ms: int) -> tuple[list[tuple[int, str]], str]:
        found = ask(halves, "select order_id, customer from orders", tail, as_of=str(base + offset_ms))
        assert told(ask, halves, found.revision, "select order_id, customer from orders")[0] == sorted(found.rows)
        return sorted(found.rows), str(found.revision)

    assert at(500) == ([], "orders[OFFLINE=0]"), "before the other half was there"
    assert at(1499)[0] == []
    assert at(1500)[0] == [(1, "a")]
    assert at(2000) == ([(1, "moved")], f"orders[OFFLINE=1 REALTIME=1 boundary=1970-01-01T00:00:00.100Z{{{KEY}@1}}]")
    assert at(3000)[0] == [(1, "moved"), (2, "a")], "no tail"
    iso = ask(halves, "select count(*) from orders", as_of="2021-09-18T21:20:01.500Z")
    assert iso.rows == [(1,)] and str(iso.revision).startswith("orders[OFFLINE=0 REALTIME=1")
    assert "did not exist at 2021-09-18T21:19:59.999Z: it was created at 2021-09-18T21:20:00Z" in refused(
        ask, halves, base - 1
    )
    assert "had no REALTIME half then" in refused(ask, halves, base + 500, "select * from orders_REALTIME")
    assert "names no version of REALTIME of 'orders'" in refused(ask, halves, "orders[OFFLINE=1]")
    # The clock jumps back: what is committed then counts as committed at the latest time before.
    halves.commit_realtime([row(4, 400, 2)], offsets={KEY: 3})
    stamp(halves, Half.REALTIME, 3, base + 1200)
    assert at(1500)[0] == [(1, "a")] and at(2999)[0] == [(1, "moved")]
    assert at(3000)[0] == [(1, "moved"), (2, "a"), (4, "a")]
    # It was ahead for one commit: what stood until then cannot be told by time.
    stamp(halves, Half.REALTIME, 2, base + 10**9)
    assert "version 2 of REALTIME of 'orders' was committed by a clock that was ahead" in refused(
        ask, halves, base + 2000
    )
    stamp(halves, Half.REALTIME, 2, base + 3000)
    # A commit of another tool without a time: its file's.
    halves.commit_realtime([row(5, 500, 3)], offsets={KEY: 4})
    stamp(halves, Half.REALTIME, 4, None)
    assert at(3000)[0] == [(1, "moved"), (2, "a"), (4, "a")]


@pytest.mark.parametrize(
    ("as_of", "part"),
    [
        ("yesterday", "'yesterday' is no revision, and as a time it is no time. Write it like"),
        ("2021-09-24T08:00:00", "as a time it has no zone"),
        ("", "'' is no revision"),
        ("2999-01-01T00:00:00Z", "2999-01-01T00:00:00Z is in the future"),
        ("orders[OFFLINE=0 REALTIME=1", "cannot be read at 'orders[OFFLINE=0 REALTIME=1'"),
        ("orders[OFFLINE=0 REALTIME=x]", "'x' is no version of 'orders'"),
        ("orders[OFFLINE=0 REALTIME=0 rows=3]", "'rows=3' cannot be used in the revision"),
        ("orders[OFFLINE=0 OFFLINE=0 REALTIME=0]", "'OFFLINE=0' cannot be used"),
        ("orders[boundary=none{}]", "names no version"),
        ("orders[OFFLINE=0 REALTIME=0] orders[OFFLINE=0 REALTIME=0]", "names a table twice"),
        ("orders[OFFLINE=0 REALTIME=0 tail={x@y}]", "'{x@y}' is no tail"),
        ("orders[OFFLINE=0 REALTIME=0 tail={kafka/orders/0/0@-3}]", "is no tail"),
        ("orders[OFFLINE=0 REALTIME=0 tail={coding:utf-7;/t/0/0@0}]", "reads nothing from 'coding:utf-7;/t/0/0'"),
        ("orders[OFFLINE=0 REALTIME=0 tail={kafka/t\\/0/0@0}]", "reads nothing from"),
        ("orders[OFFLINE=0 REALTIME=0 plan=p-1]", "as backfill plan 'p-1' would make it"),
        ("events[OFFLINE=0]", "the revision is of 'events'; the statement reads table 'orders' too"),
        ("orders[OFFLINE=0 REALTIME=9]", "REALTIME of 'orders' has no version 9: its newest is 0"),
        ("orders[REALTIME=0]", "names no version of OFFLINE of 'orders'"),
        ("orders[OFFLINE=0 REALTIME=0 boundary=none{kafka/orders/0/0@3}]", "another table of that name"),
    ],
)
def test_what_is_no_state_of_the_table(make: Make, ask: Ask, as_of: str, part: str) -> None:
    halves = make()
    for half in Half:  # delta-rs lays one after the other
        stamp(halves, half, 0, 1_600_000_000_000)
    assert part in refused(ask, halves, as_of)


def test_a_staged_plan_and_a_revision_do_not_go_together(make: Make, ask: Ask) -> None:
    from tests.query.test_staged import ID, publish

    halves = make()
    publish(halves)
    assert "SET plan and asOf do not go together" in refused(
        ask, halves, "orders[OFFLINE=0 REALTIME=0]", f"SET plan='{ID}'; select * from orders"
    )


def test_the_text_of_any_revision_is_read_back() -> None:
    replay = PartitionKey("replay/kafka", "a.b-c_d", 1_000_000, 3)
    text = (
        f"t[OFFLINE=3 REALTIME=7 boundary=infinite{{{replay}@4,{KEY}@5}} exact override=1970-01-01T00:00:00.001Z "
        f"tail={{{KEY}@12,{OTHER}@9}}] u[REALTIME=2 tail={{}}]"
    )
    boundary = f"boundary=infinite{{{replay}@4,{KEY}@5}} exact override=1970-01-01T00:00:00.001Z"
    assert QueriedMoment.parse(text, 0).tables == (
        NamedVersions("t", 3, 7, boundary, {KEY: 12, OTHER: 9}),
        NamedVersions("u", None, 2),
    )


@pytest.mark.slow
def test_files_and_log_entries_that_are_gone(make: Make, ask: Ask) -> None:
    halves = make()
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    pinned = both(ask, halves)
    tail = both(ask, halves, ListTail([message(2, 20, 1)]))
    halves.commit_realtime([row(2, 20, 1)], offsets={KEY: 2})
    halves.commit_realtime([row(3, 30, 2)], offsets={KEY: 3})
    path = halves.layout.half(Half.REALTIME)
    commit = read_commit(path, 2)
    assert commit is not None
    brought = commit.added[0].path
    DeltaTable(str(path)).optimize.compact()
    newest = both(ask, halves)
    aside = Path(brought).rename(path / "aside")
    assert told(ask, halves, pinned[1]) == pinned
    told_why = refused(ask, halves, tail[1])
    assert "no longer retained: file " in told_why and "VACUUM or a purge" in told_why
    assert "no longer retained" in refused(ask, halves, tail[1], "EXPLAIN PLAN FOR select * from orders")
    only_first = "select * from orders where ts < 15 limit 1000"
    assert told(ask, halves, "orders[OFFLINE=0 REALTIME=2]", only_first)[0] == pinned[0], "that file is not read"
    aside.rename(brought)
    assert told(ask, halves, tail[1]) == tail
    DeltaTable(str(path)).create_checkpoint()
    for version in (0, 1, 2):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    assert "Version 1 of REALTIME of 'orders' is no longer in its log." in refused(ask, halves, pinned[1])
    assert told(ask, halves, newest[1]) == newest
    assert "The log of REALTIME of 'orders' reaches back to version 3 only" in refused(ask, halves, 1_600_000_000_000)


def test_a_log_that_was_cleaned_between_a_revision_and_its_tail(make: Make, ask: Ask) -> None:
    halves = make()
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    pinned = both(ask, halves, ListTail([message(2, 20, 1)]))
    halves.commit_realtime([row(2, 20, 1)], offsets={KEY: 2})
    path = halves.layout.half(Half.REALTIME)
    DeltaTable(str(path)).create_checkpoint()
    (path / "_delta_log" / f"{2:020d}.json").rename(path / "aside")
    assert "version 2 of REALTIME of 'orders' is not in the log" in refused(ask, halves, pinned[1])


@pytest.mark.slow
def test_halves_that_never_stood_together(make: Make, ask: Ask) -> None:
    halves = make()
    rows = [row(n, n * 100, n) for n in range(4)]
    halves.commit_realtime(rows, offsets={KEY: 4})
    halves.commit_offline([replace(one, segment="o") for one in rows[:2]], Boundary(200, {KEY: 4}))
    whole = both(ask, halves)
    halves.commit_offline([], Boundary(200, {KEY: 4}, floor_ms=101))
    dropping = Act(
        "retention-9", halves.realtime.act.number + 1, "retention", halves.realtime.act.at, {"offline_version": 2}
    )
    halves.realtime = replace(halves.realtime, act=dropping)
    halves._append(Half.REALTIME, [])
    assert told(ask, halves, whole[1]) == whole
    assert both(ask, halves)[0] == whole[0]
    assert "and not OFFLINE=0: the two never stood together" in refused(ask, halves, "orders[OFFLINE=0 REALTIME=2]")
    assert ids(ask(halves, ALL.format("orders"), as_of="orders[OFFLINE=2 REALTIME=2]")) == [0, 1, 2, 3]
    assert ids(ask(halves, ALL.format("orders"), as_of="orders[OFFLINE=0 REALTIME=1]")) == [0, 1, 2, 3]


@pytest.mark.slow
def test_a_half_that_came_later(tmp_path: Path, ask: Ask) -> None:
    alone = Halves.create(tmp_path, orders_spec(halves=[Half.REALTIME]))
    alone.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    pinned = both(ask, alone)
    assert pinned[1] == "orders[REALTIME=1]"
    time.sleep(0.002)
    from hybrid.lake.create import create_half

    spec = orders_spec()
    create_half(alone.layout.half(Half.OFFLINE), spec, Half.OFFLINE, alone.offline)
    alone.spec = spec
    alone.commit_offline([row(1, 10, 0, segment="o")], Boundary(100, {KEY: 1}))
    assert told(ask, alone, pinned[1]) == pinned
    alone.commit_realtime([row(2, 20, 1)], offsets={KEY: 2})
    assert "names no version of OFFLINE" in refused(ask, alone, "orders[REALTIME=2]")


def test_a_column_that_was_added_since_shows_its_default(make: Make, ask: Ask) -> None:
    halves = make()
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    revision = both(ask, halves)[1]
    colour = FieldSpec("colour", DataType.STRING, FieldKind.DIMENSION, default_null="none")
    halves.spec = orders_spec(extra=[colour])
    assert told(ask, halves, revision)[0] == [(1.5, "none", "a", 1, 10)]


@pytest.mark.slow
def test_two_tables(tmp_path: Path, ask: Ask) -> None:
    from hybrid.query.query_table import QueryTable

    class Two:
        def __init__(self) -> None:
            self.tables = {name: Halves.create(tmp_path, replace(orders_spec(), name=name)) for name in ("one", "two")}

        def names(self) -> list[str]:
            return list(self.tables)

        def open(self, name: str) -> QueryTable:
            return self.tables[name].open(name)

    both_tables = Two()
    for name, halves in both_tables.tables.items():
        halves.commit_realtime([row(1, 10, 0, name)], offsets={KEY: 1})
    sql = "select one.customer, two.customer from one join two on one.order_id = two.order_id"
    pinned = both(ask, both_tables, NoTail(), sql)
    for name, halves in both_tables.tables.items():
        halves.commit_realtime([row(1, 20, 1, f"{name} again")], offsets={KEY: 2})
    assert told(ask, both_tables, pinned[1], sql) == pinned
    only_one = pinned[1].split(" two")[0]
    assert "the revision is of 'one'; the statement reads table 'two' too" in refused(ask, both_tables, only_one, sql)
    assert told(ask, both_tables, pinned[1], "select customer from one") == ([("one",)], only_one)
