"""What is read of a long tail before DuckDB has anything to do: so many bytes, and half of the statement's time."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition as Part

from hybrid.query import tail
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.engine import QueryOptions, _bounded_tail, run
from hybrid.query.execution import Limits
from hybrid.query.query_table import QueryTable
from hybrid.query.tail import KafkaTail, NoTail, Tail, TailLimit, _Reader
from hybrid.sql.statement import parse_statement
from hybrid.table.boundary import Offsets, PartitionKey
from hybrid.table.state import RealtimeState
from tests.query.halves import Halves, ListTail, act, orders_spec
from tests.query.stepped import SteppedCache
from tests.query.test_cache_flood import NOW_MS, message

KEY = PartitionKey("kafka", "orders", 0, 0)
OTHER = KEY._replace(partition=1)
BIG = 1_000_000


class Endless:
    """A partition whose messages have a megabyte each; `pause_s` before each ten of them."""

    def __init__(self, pause_s: float = 0.0) -> None:
        self._next, self._pause_s = 0, pause_s

    def assign(self, _: object) -> None:
        pass

    def seek(self, _: object, offset: int) -> None:
        self._next = offset

    def poll(self, **_: object) -> dict[Part, list[Any]]:
        time.sleep(self._pause_s)
        start, self._next = self._next, self._next + 10
        return {
            Part("orders", 0): [
                SimpleNamespace(offset=offset, timestamp=offset, value=b"x" * BIG)
                for offset in range(start, self._next)
            ]
        }

    def position(self, _: object) -> int:
        return self._next

    def pause(self, _: object) -> None:
        pass

    def close(self, **_: object) -> None:
        pass


def read(monkeypatch: pytest.MonkeyPatch, consumer: Endless, bytes_max: int, seconds: float) -> tail.Tail:
    monkeypatch.setattr(tail, "_consumer", lambda *_: consumer)
    reader = _Reader({KEY: (0, 10**9)}, 10**9, bytes_max, time.monotonic() + seconds, with_headers=False)
    return reader.read("b:1", SimpleNamespace())  # type: ignore[arg-type]


def test_a_long_tail_is_read_up_to_a_bound_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """21: two million messages may be of any size."""
    found = read(monkeypatch, Endless(), 50 * BIG, 60)
    assert 50 <= len(found.messages) <= 60
    assert "The tail is too long for one query" in found.warnings[0]
    assert found.positions == {KEY: len(found.messages)}, "the revision says how far"


def test_a_slow_tail_is_read_up_to_its_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    started = time.monotonic()
    found = read(monkeypatch, Endless(0.05), 10**12, 0.3)
    assert time.monotonic() - started < 1 and found.messages and "left out" in found.warnings[0]


def test_the_tail_has_half_of_the_statements_time() -> None:
    """21 and 4: also of one that is only explained."""
    started = time.monotonic()
    statement = parse_statement("SET timeoutMs = 4000; select 1 from orders")
    for options, ends in ((QueryOptions(timeout_ms=10_000), 2.0), (QueryOptions(timeout_max_ms=1000), 0.5)):
        bounded = _bounded_tail(statement, options, started)
        assert isinstance(bounded, KafkaTail) and bounded._until == pytest.approx(started + ends)
    unbounded = QueryOptions()
    assert _bounded_tail(parse_statement("select 1 from orders"), unbounded, started) is unbounded.tail
    other = NoTail()
    assert _bounded_tail(statement, QueryOptions(tail=other), started) is other


@pytest.fixture
def table(tmp_path: Path) -> QueryTable:
    return Halves.create(tmp_path, orders_spec()).open("orders")


def test_a_tail_that_the_server_nearly_has_is_read_to_its_end(table: QueryTable) -> None:
    ranges = {KEY: (10, 500), OTHER: (0, 20)}
    assert TailLimit(100, {KEY: 420}, table).ends(ranges) is None, "80 and 20 lie beyond"
    assert TailLimit(99, {KEY: 420}, table).ends(ranges) == {KEY: 420, OTHER: 0}


def test_a_capped_tail_lacks_nothing_that_was_committed_or_shown(table: QueryTable) -> None:
    ranges = {KEY: (10, 10_000), OTHER: (7, 5)}
    assert TailLimit(100, {}, table).ends(ranges) == {KEY: 10, OTHER: 5}, "a lost end is still a warning"
    assert TailLimit(100, {KEY: 3}, table).ends(ranges) == {KEY: 10, OTHER: 5}
    assert TailLimit(100, {KEY: 40}, table).ends(ranges) == {KEY: 40, OTHER: 5}


def test_what_a_pause_holds_back_does_not_count_as_behind(table: QueryTable) -> None:
    paused = replace(table, pause_offsets={KEY.place: 60})
    assert TailLimit(100, {}, paused).ends({KEY: (10, 10_000)}) is None
    assert TailLimit(49, {}, paused).ends({KEY: (10, 10_000)}) == {KEY: 10}


def test_a_limit_that_is_passed_already_needs_no_kafka(table: QueryTable) -> None:
    stream, state = table.spec.stream, RealtimeState(act("ingest", 1), {KEY: 40, OTHER: 7})
    assert stream is not None

    def known(offsets_max: float, shown: Offsets, ends: Offsets | None, table: QueryTable = table) -> Tail | None:
        return TailLimit(offsets_max, shown, table, ends).without_kafka(stream, state)

    ends = {KEY: 100, OTHER: 8}
    found = known(60, {}, ends)
    assert found is not None and found.is_capped and not found.messages and len(found.warnings) == 1
    assert found.positions == {KEY: 40, OTHER: 7}
    assert known(61, {}, ends) is None, "then rows that were acknowledged before the statement are in its answer"
    assert known(0, {}, {KEY: 39, OTHER: 8}) == found, "commits have come since the ends were asked for"
    assert known(0, {KEY: 41}, ends) is None, "what was shown is read"
    assert known(0, {KEY: 40}, ends) == found
    assert known(0, {}, None) is None, "the stream is not followed, or was not asked for long"
    assert known(0, {}, {KEY._replace(epoch=1): 100}) is None, "the stream was reset, and the ends are another topic's"
    assert known(0, {}, ends, replace(table, pause_offsets={KEY.place: 40, OTHER.place: 7})) is None


@pytest.mark.slow
def test_statements_over_files_do_not_ask_kafka_what_the_server_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = CacheTuning(unmeasured_tail_offsets=3, tail_offsets_min=2)
    tail_source = ListTail([message(offset) for offset in range(20)])
    cache = SteppedCache(Halves.create(tmp_path, orders_spec()), NOW_MS, tail_source, tuning=tuning, poll_max=2)
    asked: list[str] = []
    monkeypatch.setattr(tail, "broker_answers", lambda address: bool(asked.append(address)))
    options = QueryOptions(tail=KafkaTail(), cache=cache.answers, now_ms=lambda: NOW_MS)

    def warnings() -> str:
        return str(run("select $offset from orders", cache.source, options).warnings)

    assert "does not answer" in warnings() and len(asked) == 1, "nothing is known yet"
    cache.step()
    assert cache.followed.follower.served == {KEY: 2}
    assert "does not answer" in warnings() and len(asked) == 2, "memory has shown two rows: they are read"
    cache.source.commit_realtime([], offsets={KEY: 2})
    assert "yet to take in" in warnings() and len(asked) == 2
    cache.followed.follower._fresh_s = 0.0
    assert "does not answer" in warnings() and len(asked) == 3, "the ends were asked for long ago"
    cache.followed.follower._fresh_s = 60.0
    assert "yet to take in" in warnings()
    cache.followed.follower.lose()
    assert "does not answer" in warnings() and len(asked) == 4


def test_only_the_newest_rows_of_a_server_are_limited(tmp_path: Path) -> None:
    cache = SteppedCache(Halves.create(tmp_path, orders_spec()), NOW_MS)
    limit_of = cache.answers.tail_limit

    def limited(sql: str, **options: Any) -> bool:
        bounded = _bounded_tail(parse_statement(sql), QueryOptions(cache=cache.answers, **options), 0.0)
        assert isinstance(bounded, KafkaTail)
        return bounded._limit_of == limit_of

    assert limited("select 1 from orders") and limited("select 1 from orders", timeout_ms=1000)
    assert not limited("select 1 from orders", as_of="orders[REALTIME=1]")
    assert not limited("SET asOf = 'orders[REALTIME=1]'; select 1 from orders")
    assert KafkaTail().limited_by(limit_of).ending_by(3.0)._limit_of == limit_of
    assert KafkaTail()._limit_of("orders") is None


@pytest.mark.slow
def test_the_limit_lasts_as_long_as_somebody_follows(tmp_path: Path) -> None:
    cache = SteppedCache(Halves.create(tmp_path, orders_spec()), NOW_MS, ListTail([message(0)]))
    follower = cache.followed.follower

    def shown() -> Any:
        limit = cache.answers.tail_limit("orders")
        return None if limit is None else limit.shown

    assert shown() == {}, "the first statement is not the one that reads everything"
    follower.start()
    assert shown() == {}
    cache.step()
    assert shown() == {KEY: 1}
    cache.answers.note(cache.opened, {KEY: 5})
    assert shown() == {KEY: 5}
    follower.lose(forget=True)
    assert shown() is None, "nobody else shows the tail now"
    follower.start()
    assert shown() == {KEY: 5}
    follower.close()
    assert shown() is None


@pytest.mark.slow
def test_an_answer_without_a_whole_tail_is_as_fresh_as_its_commits(tmp_path: Path) -> None:
    """The time of a commit is not the bound: rows that were produced while it was written are not in it."""
    halves = Halves.create(tmp_path, orders_spec())
    lost = ListTail([message(0)], ["up to 7 are left out"])

    def fresh_ms(source: Any, **options: Any) -> int:
        return run(
            "select 1 from orders", halves, QueryOptions(tail=source, now_ms=lambda: NOW_MS, **options)
        ).stats.fresh_ms

    assert fresh_ms(NoTail()) == fresh_ms(lost) == 0, "no batch was complete yet"
    halves.commit_realtime([], offsets={KEY: 0}, complete_ms=NOW_MS - 5000)
    then = run("select 1 from orders", halves, QueryOptions(tail=NoTail())).revision
    halves.commit_realtime([], offsets={KEY: 0}, complete_ms=NOW_MS - 3000)
    assert fresh_ms(NoTail()) == fresh_ms(lost) == NOW_MS - 3000
    assert fresh_ms(NoTail(), as_of=str(then)) == NOW_MS - 5000
    assert fresh_ms(ListTail([message(0)])) == NOW_MS


def test_a_capped_answer_does_not_say_that_it_is_fresh(tmp_path: Path) -> None:
    class Capped(ListTail):
        def read(self, *given: Any) -> Tail:
            return replace(super().read(*given), is_capped=True)

    halves = Halves.create(tmp_path, orders_spec())
    for source, fresh_ms in ((Capped([message(0)]), 0), (ListTail([message(0)]), NOW_MS)):
        found = run("select count(*) from orders", halves, QueryOptions(tail=source, now_ms=lambda: NOW_MS))
        assert found.stats.fresh_ms == fresh_ms and not found.warnings


def test_a_server_far_behind_does_not_read_kafka_for_a_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves = Halves.create(tmp_path, orders_spec())
    halves.realtime = replace(halves.realtime, topic_ids={"kafka/orders": "id"})
    halves.commit_realtime([], offsets={KEY: 7})
    halves.brokers = "b:1"
    cache = SteppedCache(halves, NOW_MS)
    monkeypatch.setattr(tail, "broker_answers", lambda _: True)
    monkeypatch.setattr(tail, "_view", lambda *_: ({"orders": "id"}, {KEY.place: 10**6}))
    monkeypatch.setattr(tail, "_consumer", lambda *_: pytest.fail("Kafka is read"))
    options = QueryOptions(tail=KafkaTail(), cache=cache.answers, now_ms=lambda: NOW_MS)
    found = run("select $offset from orders", halves, options)
    (warning,) = found.warnings
    assert "holds newer messages" in warning and found.stats.fresh_ms == 0
    assert found.revision.tables[0].tail == {KEY: 7}
    assert cache.answers.answer("select count(*) from orders", NOW_MS, Limits(), lambda interrupt: None) is None
