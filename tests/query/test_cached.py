"""The serving cache shows what the files show: the seeded lives of tables, asked both ways after every few acts."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.query.cache import cached_rows as rows
from hybrid.query.engine import QueryOptions, QueryResult, run
from hybrid.query.tail import TailMessage
from hybrid.table.boundary import TopicPartition
from tests.examples import seeds
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.stepped import SMALL_TABLES, PacedFold, SteppedCache
from tests.query.test_simulation import KINDS, live

NOW_MS = 1_632_700_000_000
Ask = Callable[..., QueryResult]


class BothWays:
    """Asks the cache and the files; they agree, and the cache has an answer wherever it should.

    Dice decide when the cache leaves rows to commits, and when it reads the stream.
    """

    def __init__(self) -> None:
        self.cache: SteppedCache | None = None
        self.cached = self.behind = 0
        self._dice = random.Random(7)

    def __call__(self, halves: Halves, sql: str, tail: Any = None, **options: Any) -> QueryResult:
        tail = tail or ListTail()
        everything = run(sql, halves, QueryOptions(tail=tail, now_ms=lambda: NOW_MS, **options))
        if self.cache is None:
            self.cache = SteppedCache(halves, NOW_MS, tail, tuning=replace(SMALL_TABLES, tail_offsets_min=1))
            self.cache.followed.follower.mode.decoded(1000, 1000.0)
        self.cache.tail.messages = tail.messages
        self._turn(self.cache)
        may_be_behind = self.cache.followed.follower.mode.is_awaiting  # until the end of the step
        found = self.cache.ask(sql)
        if "_OFFLINE" in sql or "_REALTIME" in sql:
            assert found is None
            return everything
        assert found is not None
        self.cached += 1
        # While it awaits commits, the cache is at the revision of its positions.
        shown = self.cache.rows.shown
        read = [message for message in tail.messages if message.offset < shown.get(message.key, 0)]
        expected = everything
        if read != tail.messages:
            expected = run(sql, halves, QueryOptions(tail=ListTail(read), now_ms=lambda: NOW_MS, **options))
        assert may_be_behind or _read_on(expected) == _read_on(everything)
        self.behind += _read_on(expected) != _read_on(everything)
        assert sorted(map(repr, found.rows)) == sorted(map(repr, expected.rows)), (
            sql,
            str(found.revision),
            str(expected.revision),
        )
        assert (found.column_names, found.column_types) == (expected.column_names, expected.column_types)
        assert _read_on(found) == _read_on(expected)
        return everything if may_be_behind else found

    def _turn(self, cache: SteppedCache) -> None:
        """Changes the mode, or moves the stream behind the commits, whatever is unread."""
        if cache.stream is None or self._dice.random() < 0.4:
            return
        follower = cache.followed.follower
        if follower.mode.is_awaiting:
            follower.mode.decide(math.inf, 0, may_await=False)
            cache.stream.move_to(cache.rows.positions)
        elif self._dice.random() < 0.3:
            cache.stream.move_to(cache.rows.positions)
        else:
            follower.mode._turn(True, 0.0)
            cache.stream.suspend()


def _read_on(result: QueryResult) -> str:
    """The revision without partitions of which nothing was read: a list does not know of them."""
    return re.sub(r"kafka/orders/\d/\d@0,?", "", str(result.revision)).replace(",}", "}").replace(" tail={}", "")


@pytest.fixture(autouse=True)
def paced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Background rebuilds read when they are looked at."""
    monkeypatch.setattr(rows, "BackgroundRebuild", PacedFold)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_cache_shows_what_the_files_show(tmp_path: Path, kind: str) -> None:
    behind = 0
    for seed in seeds(103, 3):
        both = BothWays()
        live(tmp_path / str(seed), both, kind, seed)
        assert both.cached > 0, seed
        behind += both.behind
    assert behind > 0


@pytest.mark.slow
def test_a_pause_holds_the_stream_and_no_row_comes_twice(tmp_path: Path, ask: Ask) -> None:
    """Rows before the pause are in the stream yet when the cache is built; then they are committed."""
    halves = Halves.create(tmp_path, orders_spec())
    row = [{"order_id": number, "customer": "a", "amount": 1.0, "ts": 1000 + number} for number in range(8)]
    halves.commit_realtime([Row(row[n], 1000 + n, n) for n in range(2)], offsets={KEY: 2})
    held = _Held(halves, {KEY.place: 4})
    tail = ListTail([TailMessage(KEY, n, 0, json.dumps(row[n]).encode()) for n in range(2, 8)])
    cache, sql = (
        SteppedCache(held, NOW_MS, tail, tuning=SMALL_TABLES),
        "select order_id from orders order by order_id limit 100",
    )
    for committed in (2, 4):
        if committed == 4:
            halves.commit_realtime([Row(row[n], 1000 + n, n) for n in (2, 3)], offsets={KEY: 4})
        found = cache.ask(sql)
        assert found is not None and [one[0] for one in found.rows] == [0, 1, 2, 3]
        assert [one[0] for one in ask(held, sql, tail).rows] == [0, 1, 2, 3]
    assert cache.followed.follower.rows.shown == {KEY: 4}


class _Held:
    """The tables of `halves`, whose stream a pause holds at some offsets."""

    def __init__(self, halves: Halves, pause_offsets: dict[TopicPartition, int]) -> None:
        self._halves, self._stop_at = halves, pause_offsets
        self.spec, self.layout = halves.spec, halves.layout

    def names(self) -> list[str]:
        return self._halves.names()

    def open(self, name: str) -> Any:
        return replace(self._halves.open(name), pause_offsets=self._stop_at)


@pytest.mark.slow
def test_a_purge_has_the_rows_laid_anew(tmp_path: Path) -> None:
    """A row that was taken out may still lie in blocks and dictionaries, so none of them is kept."""
    halves = Halves.create(tmp_path, orders_spec())
    values = {"order_id": 1, "customer": "a", "amount": 1.0, "ts": 1000}
    halves.commit_offline([Row(values, 1000, 0, segment="orders_0")])
    cache, sql = SteppedCache(halves, NOW_MS, ListTail(), tuning=SMALL_TABLES), "select order_id from orders"
    assert cache.ask(sql) is not None
    built = cache.built
    halves.commit_offline([], kind="boundary")
    assert cache.ask(sql) is not None and cache.built == built
    halves.commit_offline([], kind="purge")
    found = cache.ask(sql)
    assert found is not None and found.rows == [(1,)] and cache.built == built + 1


@pytest.mark.slow
def test_a_commit_that_only_removes_is_followed(tmp_path: Path, ask: Ask) -> None:
    """As retention drops segments: from OFFLINE by the difference, from REALTIME by building the rows anew."""
    from deltalake import CommitProperties, DeltaTable

    from hybrid.config.table_config import Half
    from hybrid.lake.log import open_half
    from hybrid.table.boundary import Boundary
    from hybrid.table.state import to_user_metadata
    from tests.query.halves import act

    halves = Halves.create(tmp_path, orders_spec())

    def row(number: int, segment: str) -> Row:
        values = {"order_id": number, "customer": "a", "amount": 1.0, "ts": 1000 + number}
        return Row(values, 1000 + number, number, segment=segment)

    def drop(half: Half, segment: str, boundary: Boundary) -> None:
        newest = open_half(halves.layout.half(half)).state
        changed = {"boundary": boundary} if half is Half.OFFLINE else {}
        state = replace(newest, act=act("retention", newest.act.number + 1, segments=[segment]), **changed)
        told = CommitProperties(custom_metadata={"userMetadata": to_user_metadata(state)})
        DeltaTable(str(halves.layout.half(half))).delete(f"_hy_segment = '{segment}'", commit_properties=told)

    for number in range(3):
        halves.commit_realtime([row(number, f"orders__0__{number}__x")], offsets={KEY: number + 1})
    boundary = Boundary(1002, {KEY: 3})
    halves.commit_offline([row(number, f"o{number}") for number in range(2)], boundary)
    cache, sql = (
        SteppedCache(halves, NOW_MS, ListTail(), tuning=SMALL_TABLES),
        "select order_id from orders order by order_id limit 100",
    )
    found = cache.ask(sql)
    assert found is not None and found.rows == [(0,), (1,), (2,)]
    built = cache.built
    drop(Half.OFFLINE, "o0", replace(boundary, floor_ms=1001))
    found, expected = cache.ask(sql), ask(halves, sql, ListTail())
    assert found is not None and found.rows == expected.rows == [(1,), (2,)] and cache.built == built
    assert found.stats.total_docs == expected.stats.total_docs == 4
    assert _read_on(found) == _read_on(expected)
    drop(Half.REALTIME, "orders__0__0__x", boundary)
    found, expected = cache.ask(sql), ask(halves, sql, ListTail())
    assert found is not None and found.rows == expected.rows == [(1,), (2,)] and cache.built == built + 1
    assert found.stats.total_docs == expected.stats.total_docs == 3
