"""The tail from a real Kafka: positions not counts, read committed, another topic, no Kafka."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from kafka.errors import CorruptRecordError

from hybrid.config.kafka_security import KafkaSecurity
from hybrid.config.table_config import StreamConfig
from hybrid.errors import StreamError
from hybrid.kafka.clients import fetching_consumer, producer
from hybrid.kafka.streams import unreachable
from hybrid.query.cache.stream import _headers
from hybrid.query.tail import KafkaTail
from hybrid.table.boundary import PartitionKey
from tests.query.halves import Halves, Row, orders_spec

Ask = Callable[..., Any]


@pytest.fixture
def table(tmp_path: Path, broker: str, topic: str) -> Halves:
    spec = replace(orders_spec(), stream=StreamConfig((topic,), "127.0.0.1:1"))
    halves = Halves.create(tmp_path, spec)
    halves.brokers = broker
    return halves


def value(number: int) -> bytes:
    return json.dumps({"order_id": number, "customer": "k", "amount": 15.948, "ts": number * 10}).encode()


def produce(broker: str, topic: str, *values: bytes, transaction: str | None = None, commit: bool = True) -> Any:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=broker, transactional_id=transaction)
    if transaction:
        producer.init_transactions()
        producer.begin_transaction()
    for body in values:
        producer.send(topic, body, partition=0)
    producer.flush()
    if transaction and not commit:
        return producer
    if transaction:
        producer.commit_transaction()
    producer.close()
    return None


SHOW = "select order_id from orders order by 1 limit 100"


@pytest.mark.kafka
def test_rows_beyond_the_commit_are_shown_and_rejected_ones_are_not(
    table: Halves, ask: Ask, broker: str, topic: str
) -> None:
    key = PartitionKey("kafka", topic, 0, 0)
    produce(broker, topic, value(1), value(2), b"broken", value(3))
    found = ask(table, SHOW, KafkaTail())
    assert ([row[0] for row in found.rows], found.warnings) == ([1, 2, 3], [])
    assert found.revision.tables[0].tail == {key: 4}
    stored = {"order_id": 1, "customer": "k", "amount": 15.948, "ts": 10}
    table.commit_realtime([Row(stored, 10, 0, key=key)], offsets={key: 2})
    assert [row[0] for row in ask(table, SHOW, KafkaTail()).rows] == [1, 3]
    assert ask(table, "select amount from orders where order_id = 3", KafkaTail()).rows == [(15.948,)]


@pytest.mark.kafka
def test_transactions_leave_holes_and_open_or_aborted_rows_are_not_shown(
    table: Halves, ask: Ask, broker: str, topic: str
) -> None:
    produce(broker, topic, value(1), transaction=f"a-{topic}")
    aborted = produce(broker, topic, value(2), transaction=f"b-{topic}", commit=False)
    aborted.abort_transaction()
    aborted.close()
    produce(broker, topic, value(3), transaction=f"c-{topic}")
    assert [row[0] for row in ask(table, SHOW, KafkaTail()).rows] == [1, 3]
    key = PartitionKey("kafka", topic, 0, 0)
    assert ask(table, SHOW, KafkaTail()).revision.tables[0].tail == {key: 6}
    waiting = produce(broker, topic, value(4), transaction=f"d-{topic}", commit=False)
    produce(broker, topic, value(5))
    assert [row[0] for row in ask(table, SHOW, KafkaTail()).rows] == [1, 3]
    waiting.commit_transaction()
    waiting.close()
    assert [row[0] for row in ask(table, SHOW, KafkaTail()).rows] == [1, 3, 4, 5]


@pytest.mark.kafka
def test_a_long_tail_is_cut_and_says_so(table: Halves, ask: Ask, broker: str, topic: str) -> None:
    produce(broker, topic, *(value(number) for number in range(50)))
    found = ask(table, "select count(*) from orders", KafkaTail(rows_max=1))
    assert found.rows[0][0] < 51
    assert found.rows[0][0] == 50 or "too long" in found.warnings[0]


@pytest.mark.kafka
def test_another_topic_of_the_same_name_is_not_read(table: Halves, ask: Ask, broker: str, topic: str) -> None:
    produce(broker, topic, value(1))
    table.commit_realtime([], offsets={}, topic_ids={f"kafka/{topic}": "another-id"})
    found = ask(table, SHOW, KafkaTail())
    assert found.rows == []
    assert "was recreated" in found.warnings[0]


@pytest.mark.kafka
def test_a_topic_that_is_not_there_yet_is_no_warning(table: Halves, ask: Ask, broker: str) -> None:
    table.spec = replace(table.spec, stream=StreamConfig(("not-there",), broker))
    assert ask(table, SHOW, KafkaTail()).warnings == []
    table.commit_realtime([], topic_ids={"kafka/not-there": "some-id"})
    assert "does not exist any more" in ask(table, SHOW, KafkaTail()).warnings[0]


class _Latin1(str):
    """The name of a header, which kafka-python's producer encodes."""

    def encode(self, *_: object) -> bytes:
        return b"h\xe9"


@pytest.mark.kafka
def test_a_header_whose_name_is_not_utf8_is_named(table: Halves, ask: Ask, broker: str, topic: str) -> None:
    """Neither client for Python can read it; Kafka's own, by which Spark ingests, does."""
    with producer(broker) as client:
        client.send(topic, value=value(1), headers=[(_Latin1("h"), b"x")]).get(10)
    found = ask(table, SHOW, KafkaTail())
    assert found.rows == []
    words = "the name of a header is not UTF-8"
    assert found.warnings == [f"A message at {broker} cannot be read: {words}. Answered from committed rows only."]
    assert str(unreachable(broker, CorruptRecordError("it ends early."))) == (
        f"A message at {broker} cannot be read: it ends early."
    )
    reader = fetching_consumer(broker, KafkaSecurity())
    try:
        reader.assign([TopicPartition(topic, 0, 0)])
        message = reader.poll(10)
        assert message is not None and message.error() is None
        with pytest.raises(StreamError, match=f"Message 0 of partition 0 of topic '{topic}' has a header whose name"):
            _headers(message)
    finally:
        reader.close()


@pytest.mark.slow
def test_a_broker_that_refuses_or_is_silent_costs_little(tmp_path: Path, ask: Ask) -> None:
    halves = Halves.create(tmp_path, orders_spec())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for address in ("127.0.0.1:1", f"127.0.0.1:{silent.getsockname()[1]}", "no-such-host.invalid:9092"):
            halves.brokers = address
            started = time.monotonic()
            found = ask(halves, "select count(*) from orders", KafkaTail())
            assert found.rows == [(0,)]
            assert found.warnings == [f"Kafka at {address} does not answer: answered from committed rows only."]
            assert time.monotonic() - started < 4
