"""Many tables over a real Kafka share their connections: none costs a thread of its own, or another one's rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.kafka_security import KafkaSecurity
from hybrid.config.table_config import Half, StreamConfig
from hybrid.errors import StreamError
from hybrid.kafka.broker_clients import BrokerClients
from hybrid.kafka.readers import DEFAULT_READERS, DedicatedConsumer, ReaderTuning, Subscription
from hybrid.kafka.topics import create_topic
from hybrid.lake.log import open_half
from hybrid.query.cache import stream_pace
from hybrid.query.cache.stream import KafkaStream
from hybrid.table.boundary import PartitionKey
from tests.query.halves import Halves, orders_spec
from tests.query.test_tail import produce, value

pytestmark = pytest.mark.kafka
WAIT_S = 20.0


def table_on(folder: Path, broker: str, topic: str, name: str = "orders") -> Halves:
    spec = replace(orders_spec(), name=name, stream=StreamConfig((topic,), "127.0.0.1:1"))
    halves = Halves.create(folder, spec)
    halves.brokers = broker
    return halves


@pytest.fixture
def clients(request: pytest.FixtureRequest) -> Iterator[BrokerClients]:
    """Clients that a test may tune by its parameter."""
    made = BrokerClients(getattr(request, "param", DEFAULT_READERS))
    yield made
    assert all(entry.client is None for entry in made._entries.values()), "each stream was closed"


class Read:
    """A stream, and the offsets that it has returned, by partition, in order."""

    def __init__(self, table: Halves, clients: BrokerClients) -> None:
        assert table.brokers is not None
        state = open_half(table.layout.half(Half.REALTIME)).realtime
        self.stream = KafkaStream(table.spec, state, table.brokers, clients)
        self.offsets: dict[int, list[int]] = {}
        self.complete_at: float | None = None

    def __enter__(self) -> Read:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()

    def poll(self) -> None:
        polled = self.stream.poll(0.05)
        for message in polled.messages:
            self.offsets.setdefault(message.key.partition, []).append(message.offset)
        self.complete_at = polled.complete_at

    def until(self, is_enough: Callable[[Read], bool], wait_s: float = WAIT_S) -> None:
        deadline = time.monotonic() + wait_s
        while not is_enough(self):
            self.poll()
            assert time.monotonic() < deadline, {part: len(found) for part, found in self.offsets.items()}

    def count(self) -> int:
        return sum(map(len, self.offsets.values()))

    def is_whole(self, start: int = 0) -> bool:
        """Whether nothing was lost or returned twice."""
        return all(found == list(range(start, start + len(found))) for found in self.offsets.values())

    @property
    def is_dedicated(self) -> bool:
        return isinstance(self.stream._reader, DedicatedConsumer) and self.stream._successor is None


def values(first: int, last: int) -> list[bytes]:
    return [value(number) for number in range(first, last)]


def test_streams_of_one_topic_begin_anywhere(tmp_path: Path, broker: str, topic: str, clients: BrokerClients) -> None:
    key = PartitionKey("kafka", topic, 0, 0)
    produce(broker, topic, *values(0, 40))
    first, second = table_on(tmp_path, broker, topic, "first"), table_on(tmp_path, broker, topic, "second")
    first.commit_realtime([], offsets={key: 30})
    with Read(first, clients) as ahead:
        ahead.until(lambda read: read.count() == 10)
        with Read(second, clients) as behind:
            behind.until(lambda read: read.count() == 40 and read.complete_at is not None)
            produce(broker, topic, *values(40, 50))
            behind.until(lambda read: read.count() == 50)
            ahead.until(lambda read: read.count() == 20)
            assert behind.is_whole() and ahead.is_whole(30)
            with Read(second, clients) as third:
                third.stream.move_to({key: 50})
                third.until(lambda read: read.complete_at is not None)
                assert third.count() == 0, "at the end already, which Kafka does not report again"
        produce(broker, topic, *values(50, 60))
        ahead.until(lambda read: read.count() == 30)
        assert ahead.is_whole(30)


# Streams are busy after a second, and quiet after another.
HASTY = pytest.mark.parametrize("clients", [ReaderTuning(busy_s=1, quiet_s=1.0)], indirect=True)


class Sender(threading.Thread):
    """Produces to some topics until it is stopped; `sent` by topic."""

    def __init__(self, broker: str, topics: Sequence[str], pause_s: float) -> None:
        super().__init__()
        self._broker, self.sent, self._pause_s = broker, dict.fromkeys(topics, 0), pause_s
        self.end = threading.Event()

    def run(self) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=self._broker)
        while not self.end.wait(self._pause_s):
            for topic in self.sent:
                producer.send(topic, value(self.sent[topic]), partition=0)
                self.sent[topic] += 1
        producer.close()


@HASTY
def test_a_busy_stream_gets_a_consumer_of_its_own_and_gives_it_back(
    tmp_path: Path, broker: str, topic: str, clients: BrokerClients
) -> None:
    sender = Sender(broker, [topic], 0.005)
    with Read(table_on(tmp_path, broker, topic), clients) as read:
        for _ in range(2):
            assert not read.is_dedicated
            sender.start()
            read.until(lambda read: read.is_dedicated)
            sender.end.set()
            sender.join()
            read.until(lambda read: not read.is_dedicated and read.stream._successor is None)
            sent = sender.sent[topic]
            read.until(lambda read, sent=sent: read.count() == sent)
            assert read.is_whole()
            sender = Sender(broker, [topic], 0.005)
            sender.sent[topic] = read.count()


@HASTY
def test_streams_that_come_and_go_disturb_no_other(
    tmp_path: Path, broker: str, topic: str, clients: BrokerClients
) -> None:
    topics = [f"{topic}-{number}" for number in range(4)]
    for name in topics:
        create_topic(broker, name)
    tables = [table_on(tmp_path, broker, name, f"t{number}") for number, name in enumerate(topics)]
    sender = Sender(broker, topics, 0.002)
    sender.start()
    failures: list[BaseException] = []

    def come_and_go(number: int) -> None:
        try:
            while not sender.end.is_set():
                with Read(tables[number], clients) as read:
                    until = time.monotonic() + 0.7
                    while time.monotonic() < until:
                        read.poll()
                    assert read.is_whole()
        except BaseException as error:
            failures.append(error)

    guests = [threading.Thread(target=come_and_go, args=(number,)) for number in (1, 1, 2)]
    with Read(tables[0], clients) as alone, Read(tables[1], clients) as beside:
        for guest in guests:
            guest.start()
        until = time.monotonic() + 8
        while time.monotonic() < until:
            alone.poll()
            beside.poll()
        sender.end.set()
        sender.join()
        for guest in guests:
            guest.join()
        for read, name in ((alone, topics[0]), (beside, topics[1])):
            read.until(lambda read, name=name: read.count() == sender.sent[name])
            assert read.is_whole()
    assert not failures


@pytest.mark.parametrize("clients", [ReaderTuning(dedicated_max=0, waiting_max=3000)], indirect=True)
def test_a_backlog_beside_an_idle_table(tmp_path: Path, broker: str, topic: str, clients: BrokerClients) -> None:
    """A stream that is not polled waits without memory, also where no consumer of its own is free."""
    other = f"{topic}-idle"
    create_topic(broker, other)
    with (
        Read(table_on(tmp_path, broker, topic, "slow"), clients) as slow,
        Read(table_on(tmp_path, broker, other, "idle"), clients) as idle,
    ):
        slow.until(lambda read: read.complete_at is not None)
        produce(broker, topic, *values(0, 60_000))
        produce(broker, other, value(1))
        idle.until(lambda read: read.count() == 1)
        subscription = slow.stream._reader
        assert isinstance(subscription, Subscription)
        deadline = time.monotonic() + WAIT_S
        while not subscription.is_cut:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        slow.until(lambda read: read.count() == 60_000 and read.complete_at is not None, 60.0)
        assert slow.is_whole() and idle.is_whole()


def test_a_stream_with_a_backlog_begins_with_a_consumer_of_its_own(
    tmp_path: Path, broker: str, topic: str, clients: BrokerClients
) -> None:
    produce(broker, topic, *values(0, stream_pace._BACKLOG + 1))
    with Read(table_on(tmp_path, broker, topic), clients) as read:
        assert read.is_dedicated
        read.until(lambda read: read.complete_at is not None)
        assert read.count() == stream_pace._BACKLOG + 1 and read.is_whole()


def test_a_partition_is_added_while_others_are_read(
    tmp_path: Path, broker: str, topic: str, clients: BrokerClients
) -> None:
    from kafka import KafkaAdminClient, KafkaProducer

    other = f"{topic}-other"
    create_topic(broker, other)
    produce(broker, topic, *values(0, 5))
    with (
        Read(table_on(tmp_path, broker, topic, "grows"), clients) as grows,
        Read(table_on(tmp_path, broker, other, "other"), clients) as beside,
    ):
        grows.until(lambda read: read.count() == 5)
        admin = KafkaAdminClient(bootstrap_servers=broker)
        admin.create_partitions({topic: 3})
        admin.close()
        producer = KafkaProducer(bootstrap_servers=broker)
        for number in range(20):
            producer.send(topic, value(number), partition=number % 3).get(10)
            producer.send(other, value(number), partition=0).get(10)
        producer.close()
        grows.until(lambda read: read.count() == 25 and read.complete_at is not None)
        beside.until(lambda read: read.count() == 20)
        assert grows.is_whole() and beside.is_whole()


def test_a_recreated_topic_is_read_from_its_start_by_the_same_client(
    tmp_path: Path, broker: str, topic: str, clients: BrokerClients
) -> None:
    from kafka import KafkaAdminClient

    other = f"{topic}-other"
    create_topic(broker, other)
    produce(broker, topic, *values(0, 5))
    table = table_on(tmp_path, broker, topic, "recreated")
    with Read(table_on(tmp_path, broker, other, "other"), clients) as beside:
        client = beside.stream._client
        admin = KafkaAdminClient(bootstrap_servers=broker)
        with Read(table, clients) as read:
            read.until(lambda read: read.count() == 5)
            admin.delete_topics([topic])
            deadline = time.monotonic() + WAIT_S
            with pytest.raises(StreamError, match=r"is not there|recreated|heard"):
                while time.monotonic() < deadline:
                    read.poll()
                    produce(broker, other, value(1))
                    beside.poll()
        _until_it_is_created(broker, topic)
        admin.close()
        produce(broker, topic, *values(0, 3))
        with _opened(table, clients) as again:
            assert again.stream._client is client
            again.until(lambda read: read.count() == 3 and read.complete_at is not None)
            assert again.is_whole()
            produce(broker, topic, *values(3, 6))
            again.until(lambda read: read.count() == 6)
            assert again.is_whole()
        beside.until(lambda read: read.complete_at is not None)
        assert beside.is_whole() and beside.stream._watched is not None and beside.stream._watched.failures == 0


def _until_it_is_created(broker: str, topic: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            create_topic(broker, topic)
            return
        except Exception:  # it is still being deleted
            assert time.monotonic() < deadline
            time.sleep(0.2)


def _opened(table: Halves, clients: BrokerClients) -> Read:
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return Read(table, clients)
        except StreamError:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def test_another_security_is_another_client(tmp_path: Path, broker: str, topic: str, clients: BrokerClients) -> None:
    produce(broker, topic, value(0))
    table, other = table_on(tmp_path, broker, topic, "plain"), table_on(tmp_path, broker, topic, "secured")
    assert other.spec.stream is not None
    security = KafkaSecurity(check_hostname=False)
    other.spec = replace(other.spec, stream=replace(other.spec.stream, security=security))
    with Read(table, clients) as plain, Read(other, clients) as secured:
        assert plain.stream._client is not secured.stream._client
        for read in (plain, secured):
            read.until(lambda read: read.count() == 1)
        assert {type(entry.client).__name__ for entry in clients._entries.values()} == {"BrokerClient"}
        assert len(clients._entries) == 2


def test_one_failed_answer_is_no_silence_and_three_are(
    tmp_path: Path, broker: str, topic: str, clients: BrokerClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Read(table_on(tmp_path, broker, topic), clients) as read:
        read.until(lambda read: read.complete_at is not None)
        watch, watched = read.stream._client.watch, read.stream._watched
        assert watched is not None
        answers, failing = watch._client.end_offsets, [1]

        def end_offsets(places: Any, timeout_ms: int) -> Any:
            if failing[0]:
                failing[0] -= 1
                raise OSError("late")
            return answers(places, timeout_ms=timeout_ms)

        monkeypatch.setattr(watch._client, "end_offsets", end_offsets)
        before = read.complete_at
        read.until(lambda read: not failing[0] and (read.complete_at or 0) > (before or 0))
        failing[0] = 1_000_000
        with pytest.raises(StreamError, match="does not answer"):
            read.until(lambda read: False)
        assert watched.failures >= 3


def test_a_stream_is_closed_while_statements_ask(
    tmp_path: Path, broker: str, topic: str, clients: BrokerClients
) -> None:
    table = table_on(tmp_path, broker, topic)
    for _ in range(5):
        read = Read(table, clients)
        ended, failures = threading.Event(), list[BaseException]()

        def ask(read: Read = read, ended: threading.Event = ended, failures: list[BaseException] = failures) -> None:
            while not ended.is_set():
                try:
                    read.stream.ends()
                except StreamError:
                    continue
                except BaseException as error:
                    failures.append(error)

        asking = [threading.Thread(target=ask) for _ in range(3)]
        for thread in asking:
            thread.start()
        time.sleep(0.2)
        read.stream.close()
        time.sleep(0.1)
        ended.set()
        for thread in asking:
            thread.join(WAIT_S)
            assert not thread.is_alive()
        assert not failures
