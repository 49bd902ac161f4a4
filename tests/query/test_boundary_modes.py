"""What the boundary's modes and overrides let a query see; each rule with rows of both halves and of the tail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import BoundaryMode, Half
from hybrid.query.engine import QueryOptions, explain
from hybrid.query.tail import NoTail
from hybrid.table.boundary import INFINITE, Boundary
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.test_cases import ALL, ids, message, row

Ask = Callable[..., Any]
PINOT = BoundaryMode.PINOT
LAG = 100


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Halves]:
    """Halves in a mode; mode pinot stays 100 ms behind the last offline time."""

    def made(mode: BoundaryMode = PINOT, **options: Any) -> Halves:
        return Halves.create(tmp_path, replace(orders_spec(**options), boundary_lag_ms=LAG), mode)

    return made


def seen(ask: Ask, halves: Halves, tail: Any = None, table: str = "orders") -> list[tuple[int, str]]:
    """(order_id, customer) of every row; customers tell the copies of a row apart."""
    result = ask(halves, f"select order_id, customer from {table} limit 1000", tail)
    return sorted((found[0], found[1]) for found in result.rows)


def set_to(halves: Halves, time_ms: int | None) -> None:
    halves.commit_offline([], replace(halves.offline.boundary, override_ms=time_ms))


def moved(halves: Halves) -> None:
    """Rows 1 to 3 at 100, 200, 300 in REALTIME and, moved by (1000, 3), in OFFLINE; row 4 at 1500 in REALTIME only."""
    rows = [(1, 100, 0), (2, 200, 1), (3, 300, 2), (4, 1500, 3)]
    halves.commit_realtime([row(*one, "live") for one in rows], offsets={KEY: 4})
    boundary = replace(halves.offline.boundary, time_ms=1000, frontier={KEY: 4})
    halves.commit_offline([row(*one, "moved", segment="o") for one in rows[:3]], boundary)


@pytest.mark.slow
def test_mode_pinot_shows_offline_rows_up_to_the_last_time_less_a_lag(make: Callable[..., Halves], ask: Ask) -> None:
    halves = make()
    moved(halves)
    assert seen(ask, halves) == [(1, "moved"), (2, "moved"), (3, "live"), (4, "live")]
    late = ListTail([message(5, 150, 4, "tail"), message(6, 2000, 5, "tail")])
    assert seen(ask, halves, late)[4:] == [(5, "tail"), (6, "tail")], "beyond the frontier, whatever the time"
    assert seen(ask, halves, table="orders_OFFLINE") == [(1, "moved"), (2, "moved"), (3, "moved")]
    assert seen(ask, halves, table="orders_REALTIME") == [(1, "live"), (2, "live"), (3, "live"), (4, "live")]


@pytest.mark.slow
def test_mode_pinot_goes_by_time_alone_where_outside_jobs_push(make: Callable[..., Halves], ask: Ask) -> None:
    halves = make()
    halves.commit_realtime([row(1, 100, 0, "live"), row(2, 300, 1, "live")], offsets={KEY: 2})
    assert seen(ask, halves) == [(1, "live"), (2, "live")], "no offline rows: no boundary"
    halves.commit_offline([row(1, 100, 0, "pushed", segment="o"), row(2, 300, 1, "pushed", segment="o")])
    assert seen(ask, halves) == [(1, "pushed"), (2, "live")]
    tail = ListTail([message(3, 150, 2, "tail"), message(4, 250, 3, "tail")])
    assert seen(ask, halves, tail) == [(1, "pushed"), (2, "live"), (4, "tail")], "a late row is not seen, as in Pinot"
    halves.commit_offline([row(5, 400, 4, "pushed", segment="p")])
    assert seen(ask, halves) == [(1, "pushed"), (2, "pushed")], "row 5 is seen when the boundary passes it"
    set_to(halves, 401)
    assert seen(ask, halves) == [(1, "pushed"), (2, "pushed"), (5, "pushed")]


@pytest.mark.slow
@pytest.mark.parametrize("mode", BoundaryMode)
def test_an_override_divides_both_halves_until_it_is_lifted(
    make: Callable[..., Halves], ask: Ask, mode: BoundaryMode
) -> None:
    halves = make(mode)
    moved(halves)
    before = seen(ask, halves)
    for limit, shown in ((200, 1), (301, 3), (100, 0), (250, 2)):
        set_to(halves, limit)
        expected = [(number, "moved" if number <= shown else "live") for number in range(1, 5)]
        assert seen(ask, halves) == expected, limit
    halves.commit_realtime([row(5, 50, 4, "late")], offsets={KEY: 5})
    halves.commit_offline(
        [row(5, 50, 4, "late, moved", segment="p"), row(4, 1500, 3, "moved", segment="p")],
        halves.offline.boundary.advance(2000, {KEY: 5}),
    )
    shown = [(1, "moved"), (2, "moved"), (3, "live"), (4, "live"), (5, "late, moved")]
    assert seen(ask, halves) == shown, "a move keeps it"
    set_to(halves, None)
    if mode is PINOT:
        shown = [(number, "moved") for number in (1, 2, 3)] + [(4, "live"), (5, "late, moved")]
        assert seen(ask, halves) == shown, "1500 less 100"
    else:
        assert seen(ask, halves) == [(number, "moved") for number in (1, 2, 3, 4)] + [(5, "late, moved")]
    assert len(before) == 4


@pytest.mark.slow
@pytest.mark.parametrize("mode", BoundaryMode)
def test_upsert_is_over_the_rows_that_the_boundary_leaves(
    make: Callable[..., Halves], ask: Ask, mode: BoundaryMode
) -> None:
    halves = make(mode, upsert=True, deletes=True)
    live, gone = {"values": {"gone": False}}, {"values": {"gone": True}, "op": "delete"}
    versions = [(1, 100, 0, "old"), (1, 300, 1, "new"), (2, 100, 2, "kept"), (2, 300, 3, "dead")]
    rows = [row(*one, **(gone if one[3] == "dead" else live)) for one in versions]
    halves.commit_realtime(rows, offsets={KEY: 4})
    corrected = [
        replace(one, segment="o", values={**one.values, "customer": f"{one.values['customer']}!"}) for one in rows
    ]
    halves.commit_offline(corrected, replace(halves.offline.boundary, time_ms=1000, frontier={KEY: 4}))
    shown = {PINOT: [(1, "new")], BoundaryMode.EXACT: [(1, "new!")]}
    assert seen(ask, halves) == shown[mode], "key 2 is deleted by the marker of either half"
    set_to(halves, 200)
    assert seen(ask, halves) == [(1, "new")]
    assert ask(halves, "select order_id from orders where customer = 'old!'").rows == [], "liveness before filters"
    set_to(halves, 301)
    assert seen(ask, halves) == [(1, "new!")]
    tail = ListTail([message(2, 400, 4, "again", gone=False)])
    assert seen(ask, halves, tail) == [(1, "new!"), (2, "again")]


@pytest.mark.slow
def test_files_past_the_limit_and_files_before_it_are_not_read(make: Callable[..., Halves]) -> None:
    halves = make()
    halves.commit_realtime([row(1, 100, 0, segment="orders__0__0__x")], offsets={KEY: 1})
    halves.commit_realtime([row(2, 600, 1, segment="orders__0__1__x")], offsets={KEY: 2})
    halves.commit_realtime([row(3, 50, 2, segment="orders__0__2__x")], offsets={KEY: 3})
    for number, ts in ((1, 100), (2, 600)):
        halves.commit_offline([row(number, ts, number, segment=f"o{number}")])
    told = explain("select * from orders", halves, QueryOptions(tail=NoTail())).tables[0]
    assert [(half.half, half.files, dict(half.pruned)) for half in told.halves] == [
        ("OFFLINE", 1, {"past the boundary": 1}),
        ("REALTIME", 1, {"covered by the boundary": 2}),
    ]
    halves.commit_offline([], replace(halves.offline.boundary, time_ms=600, frontier={KEY: 2}))
    told = explain("select * from orders", halves, QueryOptions(tail=NoTail())).tables[0]
    assert told.halves[1].files == 2, "row 3 lies beyond the frontier"
    stored = explain("select * from orders_OFFLINE", halves, QueryOptions(tail=NoTail())).tables[0]
    assert (stored.halves[0].files, stored.boundary_mode, stored.limit_time) == (2, None, None)


@pytest.mark.slow
def test_a_query_says_mode_limit_and_override(make: Callable[..., Halves], ask: Ask) -> None:
    halves = make()
    moved(halves)
    sql = "select count(*) from orders"
    told = explain(sql, halves, QueryOptions(tail=NoTail())).tables[0]
    assert (told.boundary_mode, told.limit_time, told.limit_time_ms) == ("pinot", "1970-01-01T00:00:00.201Z", 201)
    assert (told.boundary_time_ms, told.override_time_ms) == (1000, None)
    lines = {line for _, line in ask(halves, f"explain plan for {sql}").rows}
    assert "1970-01-01T00:00:00.201Z (201), by mode pinot" in lines
    assert "pinot limit=1970-01-01T00:00:00.201Z" in str(ask(halves, sql).revision)
    set_to(halves, 250)
    told = explain(sql, halves, QueryOptions(tail=NoTail())).tables[0]
    assert (told.boundary_mode, told.limit_time_ms, told.override_time_ms) == ("pinot", 250, 250)
    assert "1970-01-01T00:00:00.250Z (250), by an override" in {
        line for _, line in ask(halves, f"explain plan for {sql}").rows
    }
    assert "pinot override=1970-01-01T00:00:00.250Z" in str(ask(halves, sql).revision)


def test_mode_exact_says_no_more_than_it_did(make: Callable[..., Halves], ask: Ask) -> None:
    halves = make(BoundaryMode.EXACT)
    moved(halves)
    revision = str(ask(halves, "select count(*) from orders").revision)
    assert "boundary=1970-01-01T00:00:01Z{kafka/orders/0/0@4}]" in revision


def test_mode_pinot_without_a_time_column_is_as_exact(tmp_path: Path, ask: Ask) -> None:
    halves = Halves.create(tmp_path, orders_spec(time_column=None), PINOT)
    rows = [Row({"order_id": n, "customer": "live", "amount": 1.0, "ts": 9}, None, n) for n in range(3)]
    halves.commit_realtime(rows, offsets={KEY: 3})
    one = Row({**rows[0].values, "customer": "moved"}, None, 0, segment="o")
    halves.commit_offline([one], Boundary(INFINITE, {KEY: 1}, PINOT))
    assert seen(ask, halves) == [(0, "moved"), (1, "live"), (2, "live")]


def test_a_table_with_one_half_has_no_boundary_in_any_mode(make: Callable[..., Halves], ask: Ask) -> None:
    halves = make(halves=[Half.OFFLINE])
    halves.commit_offline([row(1, 100, 0, segment="o"), row(2, 300, 1, segment="o")])
    assert ids(ask(halves, ALL.format("orders"))) == [1, 2]
    assert "boundary" not in str(ask(halves, ALL.format("orders")).revision)


def test_a_boundary_that_is_set_while_a_query_pins_is_seen_whole_or_not_at_all(
    make: Callable[..., Halves], ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hybrid.query import revision

    halves = make(BoundaryMode.EXACT)
    moved(halves)
    real, opened = revision.open_half, []

    def open_and_set(path: Path, version: int | None = None) -> Any:
        opened.append(path.name)
        if opened == ["OFFLINE", "REALTIME"]:
            set_to(halves, 150)
        return real(path, version)

    monkeypatch.setattr(revision, "open_half", open_and_set)
    assert seen(ask, halves) == [(1, "moved"), (2, "live"), (3, "live"), (4, "live")]
    assert opened == ["OFFLINE", "REALTIME"] * 2, "pinned again"
