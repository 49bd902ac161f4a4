"""Rows that are laid anew beside the stream: what comes meanwhile is there afterwards, each row once."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hybrid.config.table_config import Half
from hybrid.query.cache import cached_rows as rows
from hybrid.query.cache import table_snapshot as generation
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import TailMessage
from hybrid.table.boundary import TopicPartition
from tests.query import halves
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.stepped import ListStream, PacedFold, SteppedCache

NOW_MS = 1_632_700_000_000
ALL = "select order_id, customer, amount, ts from orders order by order_id, ts limit 1000"
NEXT = KEY._replace(partition=KEY.partition + 1)


FIVE_ROWS = CacheTuning(rebuild_rows_min=5)


@pytest.fixture(autouse=True)
def paced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BackgroundRebuild", PacedFold)


class Table:
    """A table whose stream a test fills, asked by its cache and by its files."""

    def __init__(self, folder: Path, tuning: CacheTuning = FIVE_ROWS, **spec: Any) -> None:
        self.halves = Halves.create(folder, orders_spec(**spec))
        self.tail = ListTail()
        self.cache = SteppedCache(self.halves, NOW_MS, self.tail, waits=False, tuning=tuning)
        self._ends = {KEY: 0}
        self._others = set(threading.enumerate())
        self.halves.commit_realtime([], offsets={KEY: 0})
        self.cache.step()

    @property
    def threads(self) -> set[threading.Thread]:
        return set(threading.enumerate()) - self._others

    def send(self, *of: int, key: TopicPartition = KEY, customer: str = "a", **more: Any) -> None:
        """Events of these orders, each a millisecond later than the one before; `more` are values of all of them."""
        for order in of:
            offset = self._ends.get(key, 0)
            self._ends[key] = offset + 1
            ts = sum(self._ends.values())
            values = {"order_id": order, "customer": customer, "amount": float(ts), "ts": ts, **more}
            self.tail.messages = [*self.tail.messages, TailMessage(key, offset, 0, json.dumps(values).encode())]

    @property
    def folding(self) -> bool:
        return self.cache.rows._fold is not None

    @property
    def room(self) -> str:
        return self.cache.rows._laid.room

    def begin_to_fold(self) -> None:
        """Steps until a fold waits for its first look."""
        self.send(*range(6))
        self.cache.step()
        assert self.folding

    def fold(self) -> None:
        """Steps until the fold has ended."""
        for _ in range(200):
            if not self.folding:
                return
            self.cache.step()
        raise AssertionError("the fold goes on")

    def check(self) -> None:
        """The cache has the rows that the files and the stream have."""
        found = self.cache.ask(ALL)
        expected = run(ALL, self.halves, QueryOptions(tail=self.tail, now_ms=lambda: NOW_MS))
        assert found is not None and found.rows == expected.rows
        assert self.cache.rows._laid.rows == len(found.rows)


@pytest.mark.slow
@pytest.mark.parametrize("upsert", [False, True])
def test_rows_that_come_while_it_goes_on(tmp_path: Path, upsert: bool) -> None:
    table = Table(tmp_path, upsert=upsert)
    table.begin_to_fold()
    before = table.room
    for number in range(3):  # before the first reading, before the second, before the last round
        table.send(number, 3, 10 + number)
        table.send(20 + number, key=NEXT)  # of a partition that the fold has not met
        table.check()
    table.fold()
    assert table.room != before and table.cache.rooms == [table.room.strip('"')]
    table.check()
    table.send(3, 30)
    table.check()


@pytest.mark.slow
def test_keys_that_go_and_come_back_while_it_goes_on(tmp_path: Path) -> None:
    table = Table(tmp_path, upsert=True, deletes=True)
    table.begin_to_fold()
    before = table.room
    for number in range(3):
        table.send(number, 4, gone=True)
        table.check()
        table.send(4, gone=number == 2)
        table.check()
    table.send(0)
    table.fold()
    assert table.room != before
    table.check()
    table.send(1, ts=1)  # late: the marker that was brought over still beats it
    table.check()


@pytest.mark.slow
def test_late_rows_lose_while_it_goes_on(tmp_path: Path) -> None:
    """A row of a higher offset and a lower time than the one that is there: the fold brings the one that is there."""
    table = Table(tmp_path, upsert=True)
    table.begin_to_fold()
    for _ in range(3):
        table.send(2, 3, ts=0)
        table.send(3)
        table.check()
    table.fold()
    table.check()


@pytest.mark.slow
def test_commits_of_ingestion_go_on_beside_it(tmp_path: Path) -> None:
    """Also of rows that the stream did not bring."""
    table = Table(tmp_path)
    table.begin_to_fold()
    before = table.room
    values = {"order_id": 50, "customer": "b", "amount": 1.0, "ts": 60}
    table.halves.commit_realtime([Row(values, 60, 6)], offsets={KEY: 7})
    table._ends[KEY] = 7
    assert table.cache.followed.follower._follow()
    assert table.cache.rows.positions == {KEY: 7} and table.folding
    table.send(51)
    table.fold()
    assert table.room != before
    found = table.cache.ask("select order_id from orders where order_id >= 50 order by order_id")
    assert found is not None and found.rows == [(50,), (51,)]


@pytest.mark.slow
def test_an_offline_commit_ends_it(tmp_path: Path) -> None:
    table = Table(tmp_path)
    for lost in range(1, 4):
        if not table.folding:
            table.send(1)
            table.cache.step()
            if not table.folding:
                table.begin_to_fold()
        values = {"order_id": 100 + lost, "customer": "b", "amount": 1.0, "ts": lost}
        table.halves.commit_offline([Row(values, lost, lost, segment=f"orders_{lost}")])
        assert table.cache.followed.follower._follow()
        assert not table.folding and table.cache.rows._folds_lost == lost
        assert table.cache.rooms == [table.room.strip('"')]
        assert not table.threads
    before = table.room
    table.cache.step()  # now the stream waits for one, so that a table of many commits is folded too
    assert table.room != before and not table.folding and table.cache.rows._folds_lost == 0
    found = table.cache.ask("select count(*) from orders where order_id > 100")
    assert found is not None and found.rows == [(3,)]


@pytest.mark.parametrize("end", ["forget", "close", "build"])
def test_nothing_of_it_is_left(tmp_path: Path, end: str) -> None:
    table = Table(tmp_path)
    table.begin_to_fold()
    table.cache.step()  # it has begun to read
    if end == "build":
        table.cache.followed.follower.start()
        assert len(table.cache.rooms) == 1
    else:
        getattr(table.cache.rows, end)()
        assert table.cache.rooms == []
    assert not table.folding and not table.threads


@pytest.mark.slow
def test_texts_that_it_does_not_know(tmp_path: Path) -> None:
    """A column that becomes an ENUM of the texts that it reads, while another one comes: the stream waits then."""
    table = Table(tmp_path, replace(FIVE_ROWS, enum_rows_min=1))
    table.begin_to_fold()
    table.cache.step()
    table.cache.step()
    table.send(70, customer="new")
    before = table.room
    table.fold()
    assert table.room == before
    table.cache.step()
    assert table.room != before and table.cache.rows._laid.enums == {"customer": frozenset({"a", "new"})}
    table.check()


@pytest.mark.slow
@pytest.mark.parametrize("upsert", [False, True])
def test_one_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upsert: bool) -> None:
    """As where there is no room in memory for it: the rows that are there are kept, and the stream waits for a fold."""
    table = Table(tmp_path, upsert=upsert)
    table.begin_to_fold()
    before = table.room
    with monkeypatch.context() as broken:
        broken.setattr(generation, "indexed_columns", lambda *_: 1 / 0)
        table.send(80)
        table.fold()
    assert table.room == before and table.cache.rooms == [before.strip('"')]
    table.check()
    assert table.room != before
    table.check()


@pytest.mark.slow
def test_one_that_finds_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that are there go on, and it is tried again when as many have come."""
    table = Table(tmp_path)
    table.begin_to_fold()
    before = table.room

    def no_room(*_: object) -> None:
        raise duckdb.OutOfMemoryException("no room")

    with monkeypatch.context() as broken:
        broken.setattr(generation, "indexed_columns", no_room)
        table.fold()
    table.check()
    assert table.room == before and not table.folding and table.cache.rooms == [before.strip('"')]
    table.send(*range(6))
    table.cache.step()
    table.fold()
    assert table.room != before
    table.check()


@pytest.mark.slow
@pytest.mark.parametrize("upsert", [False, True])
@pytest.mark.parametrize("place", [(KEY._replace(connector="spark"), 3), (KEY, 10**9), (None, None)])
def test_rows_that_somebody_else_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upsert: bool, place: tuple[TopicPartition | None, int | None]
) -> None:
    """They lie where no offset that was read says: the numbers differ, and the stream waits for a fold."""
    table = Table(tmp_path, upsert=upsert)
    key, offset = place
    values = {"order_id": 500, "customer": "f", "amount": 1.0, "ts": 1}
    with monkeypatch.context() as foreign:
        foreign.setattr(halves, "to_user_metadata", lambda state: "{}")
        table.halves._append(Half.REALTIME, [Row(values, 1, offset, key=key)])
    table.cache.step()
    table.begin_to_fold()
    before = table.room
    table.send(1)
    table.fold()
    table.check()
    table.check()
    assert table.room != before


@pytest.mark.slow
def test_it_ends_behind_a_flood_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or what is left for the stream to wait for would be as long as the flood."""
    table = Table(tmp_path)
    table.begin_to_fold()
    before, real = table.room, ListStream.poll
    monkeypatch.setattr(ListStream, "poll", lambda self, wait_s: replace(real(self, wait_s), complete_at=None))
    table.send(1)
    table.fold()
    assert table.room != before
    table.send(*range(30))
    table.cache.step()
    assert not table.folding, "and none begins"


@pytest.mark.slow
def test_many_rounds(tmp_path: Path) -> None:
    """While a flood goes on it reads again and again, and what is left for the stream to wait for is little."""
    table = Table(tmp_path, replace(FIVE_ROWS, last_round_rows=0))
    table.begin_to_fold()
    before = table.room
    for number in range(5):
        table.send(90 + number)
        table.check()
        assert table.folding
    table.fold()
    assert table.room != before
    table.check()
