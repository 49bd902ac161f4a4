"""The design's cases that a query must survive, one by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import QueryError
from hybrid.query import revision
from hybrid.query.revision import pin_halves
from hybrid.query.tail import TailMessage
from hybrid.table.boundary import INFINITE, Boundary, PartitionKey
from hybrid.table.state import Consuming
from tests.query.halves import KEY, Halves, ListTail, Row

Ask = Callable[..., Any]
Make = Callable[..., Halves]


def row(number: int, ts: int, offset: int, customer: str = "a", **more: Any) -> Row:
    extra = more.pop("values", {})
    values = {"order_id": number, "customer": customer, "amount": number * 1.5, "ts": ts, **extra}
    return Row(values, ts, offset, **more)


def message(number: int, ts: int, offset: int, customer: str = "a", **extra: Any) -> TailMessage:
    body = {"order_id": number, "customer": customer, "amount": number * 1.5, "ts": ts, **extra}
    return TailMessage(KEY, offset, 0, json.dumps(body).encode())


def ids(result: Any) -> list[int]:
    return sorted(found[0] for found in result.rows)


ALL = "select order_id from {} limit 1000"


def test_history_and_live_rows_from_offset_42_are_all_visible_once(make: Make, ask: Ask) -> None:
    halves = make()
    halves.commit_offline([row(1, 50, 0), row(2, 100, 1)], Boundary(None, {KEY: 42}))
    halves.commit_realtime([row(3, 60, 42), row(4, 200, 43)], offsets={KEY: 44})
    assert ids(ask(halves, ALL.format("orders"))) == [1, 2, 3, 4]
    halves.commit_offline([row(3, 60, 42)], Boundary(100, {KEY: 44}))
    assert ids(ask(halves, ALL.format("orders"))) == [1, 2, 3, 4]


def test_a_late_row_is_visible_at_once_and_once(make: Make, ask: Ask) -> None:
    halves = make()
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    halves.commit_offline([row(1, 10, 0, segment="o")], Boundary(100, {KEY: 1}))
    halves.commit_realtime([row(2, 5, 1)], offsets={KEY: 2})
    tail = ListTail([message(3, 7, 2)])
    assert ids(ask(halves, ALL.format("orders"), tail)) == [1, 2, 3]
    assert ids(ask(halves, ALL.format("orders_REALTIME"), tail)) == [1, 2, 3]
    assert ids(ask(halves, ALL.format("orders_OFFLINE"), tail)) == [1]


def test_a_table_without_a_time_column_goes_by_the_frontier_alone(make: Make, ask: Ask) -> None:
    halves = make(time_column=None)
    rows = [Row({"order_id": n, "customer": "a", "amount": 1.0, "ts": 9}, None, n) for n in range(4)]
    halves.commit_realtime(rows, offsets={KEY: 4})
    halves.commit_offline([Row({**rows[0].values}, None, 0, segment="o")], Boundary(INFINITE, {KEY: 1}))
    assert ids(ask(halves, ALL.format("orders"))) == [0, 1, 2, 3]


@pytest.mark.slow
def test_the_dead_row_of_a_key_is_not_shown_by_a_filter_that_its_winner_fails(make: Make, ask: Ask) -> None:
    halves = make(upsert=True)
    halves.commit_realtime([row(1, 100, 0, "old"), row(1, 5000, 1, "new", segment="orders__0__1__x")], offsets={KEY: 2})
    halves.commit_offline([row(1, 100, 0, "old", segment="o")], Boundary(1000, {KEY: 2}))
    assert ids(ask(halves, "select order_id from orders where ts < 1000")) == []
    assert ids(ask(halves, "select order_id from orders where customer = 'old'")) == []
    assert ask(halves, "select count(*), max(customer) from orders").rows == [(1, "new")]
    by_key = "select customer from orders where order_id = 1 and ts > 0"
    assert ask(halves, by_key).rows == [("new",)]


@pytest.mark.slow
def test_a_moved_delete_marker_keeps_its_key_away(make: Make, ask: Ask) -> None:
    halves = make(upsert=True, deletes=True)
    live, gone = {"values": {"gone": False}}, {"values": {"gone": True}, "op": "delete"}
    halves.commit_realtime([row(1, 10, 0, **live), row(1, 20, 1, **gone)], offsets={KEY: 2})
    assert ids(ask(halves, ALL.format("orders"))) == []
    halves.commit_offline(
        [row(1, 10, 0, segment="o", **live), row(1, 20, 1, segment="o", **gone)], Boundary(100, {KEY: 2})
    )
    assert ids(ask(halves, ALL.format("orders"))) == []
    assert ids(ask(halves, ALL.format("orders_REALTIME"))) == []
    assert ids(ask(halves, ALL.format("orders_OFFLINE"))) == [1]
    tail = ListTail([message(1, 30, 2, gone=False)])
    assert ids(ask(halves, ALL.format("orders"), tail)) == [1]
    assert ids(ask(halves, ALL.format("orders"), ListTail([message(1, 15, 2, gone=False)]))) == []


def test_rejected_rows_never_show(make: Make, ask: Ask) -> None:
    halves = make()
    bad = Row({}, None, 1, segment="orders__rejected", reason="no JSON")
    halves.commit_realtime([row(1, 10, 0), bad], offsets={KEY: 2})
    tail = ListTail([TailMessage(KEY, 2, 0, b"{"), message(3, 30, 3)])
    assert ids(ask(halves, ALL.format("orders_REALTIME"), tail)) == [1, 3]
    assert ask(halves, "select count(*) from orders").stats.total_docs == 1


def test_a_query_pinned_while_a_move_and_retention_commit(
    make: Make, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After OFFLINE is pinned, a move brings row 1 and retention drops it from REALTIME: R4 pins again."""
    halves = make()
    halves.commit_realtime([row(1, 10, 0), row(2, 500, 1, segment="orders__0__1__x")], offsets={KEY: 2})
    opened: list[Half] = []
    original = revision.open_half

    def open_and_interfere(path: Any, version: int | None = None) -> Any:
        snapshot = original(path, version)
        opened.append(Half(path.name))
        if len(opened) == 1:
            from deltalake import DeltaTable

            halves.commit_offline([row(1, 10, 0, segment="o")], Boundary(100, {KEY: 2}))
            DeltaTable(str(halves.layout.half(Half.REALTIME))).delete("_hy_offset = 0")
        return snapshot

    monkeypatch.setattr(revision, "open_half", open_and_interfere)
    result = ask(halves, ALL.format("orders"))
    assert ids(result) == [1, 2]
    assert opened == [Half.OFFLINE, Half.REALTIME, Half.OFFLINE, Half.REALTIME]
    assert result.revision.tables[0].offline == 1


def test_a_move_after_the_pin_changes_nothing(make: Make) -> None:
    halves = make()
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    pinned = pin_halves(halves.spec, halves.layout)
    halves.commit_offline([row(1, 10, 0, segment="o")], Boundary(100, {KEY: 1}))
    assert pinned.offline is not None
    assert pinned.offline.version == 0
    assert pinned.boundary == Boundary()


def test_two_partitions_and_connectors_have_frontiers_of_their_own(make: Make, ask: Ask) -> None:
    halves = make()
    other, history = PartitionKey("kafka", "orders", 0, 1), PartitionKey("history", "orders", 0, 0)
    halves.commit_realtime(
        [row(1, 10, 0), row(2, 10, 5), row(3, 10, 0, key=other), row(4, 10, 0, key=history)],
        offsets={KEY: 6, other: 1, history: 1},
    )
    halves.commit_offline([row(1, 10, 0, segment="o")], Boundary(100, {KEY: 5}))
    assert ids(ask(halves, ALL.format("orders"))) == [1, 2, 3, 4]


def test_the_tail_stands_in_the_consuming_segment_or_the_next_one(make: Make, ask: Ask) -> None:
    halves = make()
    other = PartitionKey("kafka", "orders", 0, 1)
    consuming = Consuming("orders__0__2__20210924T0602Z", 2, 0, 1, 10, 0)
    halves.commit_realtime(
        [row(1, 10, 0, segment=consuming.name)],
        offsets={KEY: 1, other: 0}, consuming={KEY: consuming}, sequences={KEY: 3, other: 7},
    )  # fmt: skip
    tail = ListTail([message(2, 20, 1), message(3, 20, 0)._replace(key=other)])
    found = ask(halves, "select $segmentName, $partition, $offset, order_id from orders order by order_id", tail)
    assert found.rows == [
        (consuming.name, 0, 0, 1), (consuming.name, 0, 1, 2), ("orders__1__7__20210926T2346Z", 1, 0, 3),
    ]  # fmt: skip
    assert found.stats.num_consuming_segments_queried == 2


def test_files_that_the_boundary_covers_and_files_that_where_rules_out_are_not_read(make: Make, ask: Ask) -> None:
    from hybrid.query.engine import QueryOptions, explain
    from hybrid.query.tail import NoTail

    halves = make()
    halves.commit_realtime([row(1, 10, 0, segment="orders__0__0__x")], offsets={KEY: 1})
    halves.commit_realtime([row(2, 500, 1, segment="orders__0__1__x")], offsets={KEY: 2})
    halves.commit_offline([row(1, 10, 0, segment="o")], Boundary(100, {KEY: 2}))
    told = explain("select * from orders where ts >= 400", halves, QueryOptions(tail=NoTail())).tables[0]
    assert [(half.half, half.files, dict(half.pruned)) for half in told.halves] == [
        ("OFFLINE", 0, {"ruled out by WHERE": 1}),
        ("REALTIME", 1, {"covered by the boundary": 1}),
    ]
    assert (told.boundary_time, told.boundary_time_ms) == ("1970-01-01T00:00:00.100Z", 100)
    assert told.frontier == {"kafka/orders/0/0": 2}
    assert ids(ask(halves, "select * exclude (amount, customer, ts) from orders where ts >= 400")) == [2]


def test_an_empty_table_answers_with_its_types(make: Make, ask: Ask) -> None:
    found = ask(make(), "select * from orders")
    assert (list(found.column_names), list(found.column_types), found.rows) == (
        ["amount", "customer", "order_id", "ts"], ["FLOAT", "STRING", "INT", "LONG"], [],
    )  # fmt: skip


def test_a_table_with_one_half_only(make: Make, ask: Ask) -> None:
    halves = make(halves=[Half.REALTIME])
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    assert ids(ask(halves, ALL.format("orders"))) == [1]
    assert ids(ask(halves, ALL.format("orders_REALTIME"))) == [1]
    with pytest.raises(QueryError, match="no OFFLINE half") as raised:
        ask(halves, ALL.format("orders_OFFLINE"))
    assert raised.value.pinot_code == 190


def test_warnings_of_the_tail_come_with_the_answer(make: Make, ask: Ask) -> None:
    found = ask(make(), "select count(*) from orders", ListTail(warnings=["Kafka at x does not answer."]))
    assert found.warnings == ["Kafka at x does not answer."]


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        (
            "select oder_id from orders",
            710,
            "Column 'oder_id' does not exist at line 1, column 8. Did you mean 'order_id'?",
        ),
        ("select o.oder_id from orders o", 710, "Did you mean 'order_id'?"),
        ("select x.order_id from orders o", 710, "'x'"),
        ("select cast(customer as int) from orders", 200, "is no number"),
        ("select nofun(1) from orders", 700, "Function 'nofun' does not exist"),
        ("select text_match(customer, 'x') from orders", 700, "REGEXP_LIKE"),
        ("select percentile(amount) from orders", 700, "PERCENTILE"),
        ("select order_id, count(*) from orders", 200, "GROUP BY"),
        ("set timeoutMs = x; select 1", 700, "timeoutMs"),
    ],
)
def test_errors_name_what_is_wrong(make: Make, ask: Ask, sql: str, code: int, message: str) -> None:
    halves = make()
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    with pytest.raises(QueryError) as raised:
        ask(halves, sql)
    assert raised.value.pinot_code == code
    assert message in str(raised.value)
    assert "_hy_" not in str(raised.value)


def test_a_query_that_takes_too_long_is_stopped(make: Make, ask: Ask) -> None:
    halves = make()
    halves.commit_realtime([row(n, n, n) for n in range(60)], offsets={KEY: 60})
    many = ", ".join(f"orders t{n}" for n in range(8))
    with pytest.raises(QueryError, match="stopped after 50 ms") as raised:
        ask(halves, f"select count(*) from {many}", timeout_ms=50)
    assert raised.value.pinot_code == 250


@pytest.mark.slow
def test_the_default_limit_says_when_there_is_more(make: Make, ask: Ask) -> None:
    halves = make()
    halves.commit_realtime([row(n, n, n) for n in range(20)], offsets={KEY: 20})
    first = ask(halves, "select order_id from orders")
    assert len(first.rows) == 10
    assert "LIMIT" in first.warnings[0]
    assert len(ask(halves, "select order_id, count(*) from orders group by 1").rows) == 10
    assert ask(halves, "select order_id from orders where order_id < 10").warnings == []
    assert len(ask(halves, "select order_id from orders limit 15").rows) == 15
    assert ask(halves, "select count(*), sum(amount) + 1 from orders").warnings == []


def test_a_column_that_was_added_later_has_its_default_in_older_files(make: Make, ask: Ask) -> None:
    from dataclasses import replace

    from hybrid.schema.schema import FieldKind, FieldSpec, Schema
    from hybrid.schema.types import DataType

    halves = make()
    halves.commit_realtime([row(1, 10, 0)], offsets={KEY: 1})
    added = FieldSpec("note", DataType.STRING, FieldKind.DIMENSION, default_null="null")
    schema = Schema("orders", (*halves.spec.schema.fields, added))
    halves.spec = replace(halves.spec, schema=schema)
    assert ask(halves, "select order_id, note from orders").rows == [(1, "null")]
    halves.spec = replace(halves.spec, null_handling=True)
    assert ask(halves, "select order_id, note from orders").rows == [(1, None)]
    tail = ListTail([message(2, 20, 1, note="new")])
    assert ask(halves, "select order_id, note from orders order by 1", tail).rows == [(1, None), (2, "new")]
