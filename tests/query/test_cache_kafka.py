"""The serving cache follows a real Kafka: visible as they come, read committed, new partitions, another topic."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from hybrid.config.table_config import Half, StreamConfig
from hybrid.errors import StreamError
from hybrid.lake.log import open_half
from hybrid.query.cache.cache import Cache
from hybrid.query.cache.cache_reader import CachedAnswers
from hybrid.query.cache.stream import KafkaStream
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.engine import QueryOptions, QueryResult, run
from hybrid.query.execution import Limits
from hybrid.table.boundary import Boundary, PartitionKey
from tests.query.halves import Halves, Row, orders_spec
from tests.query.test_tail import SHOW, produce, value

pytestmark = pytest.mark.kafka
WAIT_S = 20.0


class Source(Halves):
    """A table whose definition can be compared."""

    stamped: Hashable = 1

    def stamp(self, name: str) -> Hashable | None:
        return self.stamped if name == self.spec.name else None


@pytest.fixture
def table(tmp_path: Path, broker: str, topic: str) -> Source:
    spec = replace(orders_spec(), stream=StreamConfig((topic,), "127.0.0.1:1"))
    halves = Source.create(tmp_path, spec)
    assert isinstance(halves, Source)
    halves.brokers = broker
    return halves


@pytest.fixture
def cache(table: Source, tmp_path: Path) -> Iterator[Cache]:
    with_threads = Cache(table, tmp_path)
    yield with_threads
    with_threads.close()


def answer(cache: Cache, sql: str) -> QueryResult | None:
    return CachedAnswers(cache).answer(sql, 0, Limits(), lambda interrupt: None)


def shown(cache: Cache, sql: str = SHOW) -> list[Any] | None:
    found = answer(cache, sql)
    return None if found is None else [row[0] for row in found.rows]


def awaited(look: Callable[[], Any], expected: Any) -> None:
    """Waits until a look gives what is expected."""
    deadline = time.monotonic() + WAIT_S
    while (seen := look()) != expected:
        assert time.monotonic() < deadline, (seen, expected)
        time.sleep(0.01)


def test_rows_are_visible_as_they_come_and_stay_when_they_are_committed_and_moved(
    table: Source, cache: Cache, broker: str, topic: str
) -> None:
    key = PartitionKey("kafka", topic, 0, 0)
    awaited(lambda: shown(cache), [])
    produce(broker, topic, value(1), value(2), b"broken", value(3))
    awaited(lambda: shown(cache), [1, 2, 3])
    stored = [
        Row({"order_id": n, "customer": "k", "amount": 15.948, "ts": n * 10}, n * 10, n - 1, key=key) for n in (1, 2)
    ]
    version = table.commit_realtime(stored, offsets={key: 3})
    awaited(lambda: answer(cache, SHOW).revision.tables[0].realtime, version)  # type: ignore[union-attr]
    assert shown(cache) == [1, 2, 3]
    table.commit_offline([replace(row, segment="o") for row in stored], Boundary(1000, {key: 3}))
    awaited(lambda: shown(cache), [1, 2, 3])
    found = answer(cache, "select count(*), sum(amount) from orders")
    assert found is not None and found.rows[0][0] == 3
    assert found.revision.tables[0].tail == {key: 4}


def test_who_writes_and_then_asks_finds_what_was_written(table: Source, cache: Cache, broker: str, topic: str) -> None:
    awaited(lambda: shown(cache), [])
    for number in range(1, 6):
        time.sleep(0.15)
        produce(broker, topic, value(number))
        assert shown(cache) == list(range(1, number + 1))


def test_rows_that_are_looked_up_as_they_come_need_not_be_laid(
    table: Source, tmp_path: Path, broker: str, topic: str
) -> None:
    """Each is seen once, whether it waits to be laid or not; a scan has all of them laid, and sees as many."""
    cache = Cache(table, tmp_path, tuning=CacheTuning(unbuffered_s=0.0))
    try:
        _look_up_as_they_come(cache, broker, topic)
    finally:
        cache.close()


def _look_up_as_they_come(cache: Cache, broker: str, topic: str) -> None:
    awaited(lambda: shown(cache), [])
    followed = cache.if_followed("orders")
    assert followed is not None
    waited = 0
    with closing(KafkaProducer(bootstrap_servers=broker)) as producer:
        for number in range(1, 61):
            producer.send(topic, value(number), partition=0)
            producer.flush()
            awaited(lambda number=number: shown(cache, f"select count(*) from orders where order_id = {number}"), [1])
            waited += followed.follower.rows.is_waiting
            assert shown(cache, f"select count(*) from orders where order_id = {(number + 1) // 2}") == [1]
            if number % 20 == 0:
                assert shown(cache, "select count(*) from orders") == [number]
    assert waited > 0


def test_a_backlog_is_not_taken_for_the_end(table: Source, tmp_path: Path, broker: str, topic: str) -> None:
    """An answer of the fetch's first part would be short of what the files show."""
    count, padding = 9000, "x" * 2000
    body = [json.dumps({"order_id": n, "customer": padding, "amount": 1, "ts": n}).encode() for n in range(count)]
    produce(broker, topic, *body)
    cache, seen = Cache(table, tmp_path), set()
    try:
        deadline = time.monotonic() + 60
        while seen != {count}:
            seen |= set(shown(cache, "select count(*) from orders") or ())
            assert seen <= {count} and time.monotonic() < deadline, seen
            time.sleep(0.01)
    finally:
        cache.close()


def test_rows_of_open_and_aborted_transactions_are_not_shown(
    table: Source, cache: Cache, broker: str, topic: str
) -> None:
    awaited(lambda: shown(cache), [])
    aborted = produce(broker, topic, value(2), transaction=f"x-{topic}", commit=False)
    aborted.abort_transaction()
    aborted.close()
    produce(broker, topic, value(3), transaction=f"y-{topic}")
    awaited(lambda: shown(cache), [3])
    waiting = produce(broker, topic, value(4), transaction=f"z-{topic}", commit=False)
    time.sleep(0.3)
    assert shown(cache) == [3]
    waiting.commit_transaction()
    waiting.close()
    awaited(lambda: shown(cache), [3, 4])


@pytest.mark.parametrize("upsert", [False, True])
def test_rows_are_laid_anew_again_and_again_while_they_come(
    tmp_path: Path, broker: str, topic: str, upsert: bool
) -> None:
    """Every answer meanwhile is that of some moment of the stream, and no later one is of an earlier moment."""
    tuning = CacheTuning(
        rebuild_rows_min=50, rebuild_share=0.0, optimistic_gap_share=math.inf, optimistic_s_max=math.inf
    )
    keys, count = 100, 6_000
    spec = replace(orders_spec(upsert=upsert), stream=StreamConfig((topic,), "127.0.0.1:1"))
    table = Source.create(tmp_path, spec)
    table.brokers = broker
    cache = Cache(table, tmp_path, tuning=tuning)

    def send() -> None:
        producer = KafkaProducer(bootstrap_servers=broker)
        for n in range(count):
            values = {"order_id": n % keys if upsert else n, "customer": "k", "amount": 1.0, "ts": n}
            producer.send(topic, json.dumps(values).encode(), partition=0)
            if n % 20 == 0:
                time.sleep(0.005)
        producer.close()

    def expected(newest: int) -> list[Any]:
        live = range(max(0, newest - keys + 1) if upsert else 0, newest + 1)
        return [len(live), newest, sum(live)]

    def read() -> int:
        found, newest = 0, -1
        deadline = time.monotonic() + 6 * WAIT_S
        while newest < count - 1:
            assert time.monotonic() < deadline, newest
            result = answer(cache, "select count(*), max(ts), sum(ts) from orders")
            if result is None or result.rows[0][0] == 0:
                continue
            shown = [int(one) for one in result.rows[0]]
            assert shown == expected(shown[1]) and shown[1] >= newest, newest
            found, newest = found + 1, shown[1]
        return found

    try:
        awaited(lambda: shown(cache), [])
        with ThreadPoolExecutor(3) as pool:
            sent, *readers = pool.submit(send), pool.submit(read), pool.submit(read)
            assert min(one.result() for one in readers) > 20
            sent.result()
        followed = cache.table("orders")
        assert followed is not None
        assert next(followed.follower.rows._rooms) > 5
    finally:
        cache.close()


def test_new_partitions_are_followed(table: Source, cache: Cache, broker: str, topic: str) -> None:
    from kafka import KafkaAdminClient, KafkaProducer

    awaited(lambda: shown(cache), [])
    admin = KafkaAdminClient(bootstrap_servers=broker)
    admin.create_partitions({topic: 3})
    admin.close()
    producer = KafkaProducer(bootstrap_servers=broker)
    producer.send(topic, value(7), partition=2).get(10)
    producer.close()
    awaited(lambda: shown(cache), [7])


def test_another_topic_of_the_same_name_is_left_to_the_files(
    table: Source, cache: Cache, broker: str, topic: str
) -> None:
    awaited(lambda: shown(cache), [])
    table.commit_realtime([], offsets={}, topic_ids={f"kafka/{topic}": "another-id"})
    awaited(lambda: shown(cache), None)
    time.sleep(1.0)
    assert shown(cache) is None


def test_rows_of_the_tail_leave_when_the_stream_is_reset(table: Source, cache: Cache, broker: str, topic: str) -> None:
    key = PartitionKey("kafka", topic, 0, 0)
    produce(broker, topic, value(1), value(2), value(3))
    awaited(lambda: shown(cache), [1, 2, 3])
    table.commit_realtime([], offsets={key: 1, key._replace(epoch=1): 2}, kind="reset")
    awaited(lambda: shown(cache), [3])
    produce(broker, topic, value(4))
    awaited(lambda: shown(cache), [3, 4])
    found = answer(cache, SHOW)
    assert found is not None and found.revision.tables[0].tail[key._replace(epoch=1)] == 4


def test_a_table_whose_broker_is_away_is_left_to_the_files(table: Source, tmp_path: Path) -> None:
    table.brokers = "127.0.0.1:1"
    cache = Cache(table, tmp_path)
    try:
        for _ in range(3):
            assert shown(cache) is None
            time.sleep(0.2)
        options = QueryOptions(cache=CachedAnswers(cache))
        assert "does not answer" in run("select count(*) from orders", table, options).warnings[0]
    finally:
        cache.close()


def test_a_changed_definition_is_taken_up_and_a_dropped_table_is_gone(
    table: Source, cache: Cache, broker: str, topic: str
) -> None:
    produce(broker, topic, value(1))
    awaited(lambda: shown(cache), [1])
    before = cache.table("orders")
    table.stamped = 2
    awaited(lambda: shown(cache), [1])
    assert cache.table("orders") is not before
    table.stamped = None
    assert shown(cache) is None


def test_after_a_pause_nothing_is_answered_at_once(cache: Cache, table: Source, broker: str, topic: str) -> None:
    """Kafka has to be asked then, which takes a while."""
    answers_of = CachedAnswers(cache)

    def at_once() -> list[Any] | None:
        found = answers_of.at_once(SHOW, Limits())
        return None if found is None else [row[0] for row in found.rows]

    def answered() -> list[Any] | None:
        found = answers_of.answer(SHOW, 0, Limits(), lambda interrupt: None)
        return None if found is None else [row[0] for row in found.rows]

    produce(broker, topic, value(1))
    awaited(answered, [1])
    awaited(lambda: answered() and at_once(), [1])
    time.sleep(0.15)
    assert at_once() is None
    produce(broker, topic, value(2))
    assert answered() == [1, 2]
    table.stamped = 2
    assert at_once() is None


def stream_of(table: Source, broker: str) -> KafkaStream:
    return KafkaStream(table.spec, open_half(table.layout.half(Half.REALTIME)).realtime, broker)


def polled_until(stream: KafkaStream, is_enough: Callable[[list[int]], bool]) -> list[int]:
    """The offsets of polled messages."""
    offsets: list[int] = []
    deadline = time.monotonic() + WAIT_S
    while not is_enough(offsets):
        offsets += [message.offset for message in stream.poll(0.05).messages]
        assert time.monotonic() < deadline, offsets
    return offsets


def test_a_moved_stream_goes_on_there_and_never_goes_back(table: Source, broker: str, topic: str) -> None:
    key = PartitionKey("kafka", topic, 0, 0)
    produce(broker, topic, *(value(n) for n in range(1, 11)))
    stream = stream_of(table, broker)
    try:
        assert polled_until(stream, lambda seen: len(seen) >= 10) == list(range(10))
        stream.move_to({key: 4})
        produce(broker, topic, *(value(n) for n in range(11, 21)))
        assert polled_until(stream, lambda seen: len(seen) >= 10) == list(range(10, 20))
        produce(broker, topic, *(value(n) for n in range(21, 31)))
        stream.move_to({key: 25})
        assert polled_until(stream, lambda seen: len(seen) >= 5) == list(range(25, 30))
        awaited(lambda: stream.poll(0.05).newest.ends[key], 30)
    finally:
        stream.close()


def test_a_suspended_stream_fetches_nothing_but_asks_for_the_end(table: Source, broker: str, topic: str) -> None:
    key = PartitionKey("kafka", topic, 0, 0)
    stream = stream_of(table, broker)
    try:
        awaited(lambda: stream.poll(0.05).complete_at is not None, True)
        stream.suspend()
        produce(broker, topic, *(value(n) for n in range(1, 6)))

        def suspended() -> int:
            polled = stream.poll(0.05)
            assert not polled.messages and polled.complete_at is None and polled.positions[key] == 0
            return polled.newest.ends[key]

        awaited(suspended, 5)
        stream.move_to({key: 3})
        assert polled_until(stream, lambda seen: len(seen) >= 2) == [3, 4]
        awaited(lambda: stream.poll(0.05).complete_at is not None, True)
    finally:
        stream.close()


def test_a_stream_moves_onto_the_marker_of_a_transaction(table: Source, broker: str, topic: str) -> None:
    key = PartitionKey("kafka", topic, 0, 0)
    produce(broker, topic, value(1), value(2), transaction=f"m-{topic}")  # offsets 0 and 1, the marker is 2
    stream = stream_of(table, broker)
    try:
        stream.suspend()
        stream.move_to({key: 2})
        awaited(lambda: stream.poll(0.05).positions[key], 3)
        produce(broker, topic, value(3))
        assert polled_until(stream, lambda seen: len(seen) >= 1) == [3]
    finally:
        stream.close()


def test_partitions_that_appear_while_the_stream_is_suspended_are_read(table: Source, broker: str, topic: str) -> None:
    from kafka import KafkaAdminClient, KafkaProducer

    new = PartitionKey("kafka", topic, 0, 2)
    stream = stream_of(table, broker)
    try:
        stream.suspend()
        admin = KafkaAdminClient(bootstrap_servers=broker)
        admin.create_partitions({topic: 3})
        admin.close()
        awaited(lambda: new in stream.poll(0.05).newest.ends, True)
        producer = KafkaProducer(bootstrap_servers=broker)
        for number in (7, 8):
            producer.send(topic, value(number), partition=2).get(10)
        producer.close()
        stream.move_to({new: 1})
        assert polled_until(stream, lambda seen: len(seen) >= 1) == [1]
    finally:
        stream.close()


def test_a_topic_recreated_while_the_stream_is_suspended_is_another_stream(
    table: Source, broker: str, topic: str
) -> None:
    from kafka import KafkaAdminClient

    produce(broker, topic, value(1))
    stream = stream_of(table, broker)
    admin = KafkaAdminClient(bootstrap_servers=broker)
    try:
        stream.suspend()
        admin.delete_topics([topic])
        deadline = time.monotonic() + WAIT_S
        with pytest.raises(StreamError, match=r"is not there|recreated"):
            while time.monotonic() < deadline:
                stream.poll(0.1)
        with pytest.raises(StreamError, match=r"is not there|recreated"):
            stream.move_to({})
    finally:
        admin.close()
        stream.close()
