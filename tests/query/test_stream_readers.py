"""The readers of a shared Kafka client, over a scripted consumer: what is routed, left, read again and cut."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import KafkaError

from hybrid.config.kafka_security import PLAINTEXT
from hybrid.errors import StreamError
from hybrid.kafka import broker_clients, readers
from hybrid.kafka.broker_clients import BrokerClients
from hybrid.kafka.broker_watch import BrokerWatch, PartitionEnds, WatchedStream
from hybrid.kafka.readers import DEFAULT_READERS, FetchedMessages, ReaderTuning, SharedConsumer, Subscription
from hybrid.query.cache.stream_pace import StreamPace
from hybrid.table.boundary import TopicPartition

PLACE, OTHER = TopicPartition("orders", 0), TopicPartition("other", 0)
WAIT_S = 10.0


@dataclass
class Failure:
    """An error as librdkafka reports it."""

    number: int

    _PARTITION_EOF = KafkaError._PARTITION_EOF

    def code(self) -> int:
        return self.number

    def retriable(self) -> bool:
        return False

    def str(self) -> str:
        return "failed"


@dataclass
class Sent:
    """A message of librdkafka."""

    place: TopicPartition | None
    at: int = 0
    failure: Failure | None = None
    size: int = 10

    def topic(self) -> str | None:
        return self.place.topic if self.place else None

    def partition(self) -> int | None:
        return self.place.partition if self.place else None

    def offset(self) -> int:
        return self.at

    def error(self) -> Failure | None:
        return self.failure

    def __len__(self) -> int:
        return self.size


def end(place: TopicPartition, at: int) -> Sent:
    return Sent(place, at, Failure(KafkaError._PARTITION_EOF))


class Scripted:
    """A consumer that returns what a test sends, and remembers how it was assigned."""

    def __init__(self) -> None:
        self.sent: queue.Queue[Sent | Exception] = queue.Queue()
        self.calls: list[tuple[str, list[tuple[TopicPartition, int]]]] = []
        self.is_closed = False

    def poll(self, wait_s: float) -> Sent | None:
        try:
            sent = self.sent.get(timeout=wait_s)
        except queue.Empty:
            return None
        if isinstance(sent, Exception):
            raise sent
        return sent

    def consume(self, count: int, wait_s: float) -> list[Sent]:
        return []

    def incremental_assign(self, places: list[Any]) -> None:
        self.calls.append(("assign", [(TopicPartition(one.topic, one.partition), one.offset) for one in places]))

    def incremental_unassign(self, places: list[Any]) -> None:
        self.calls.append(("unassign", [(TopicPartition(one.topic, one.partition), 0) for one in places]))

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    made = Scripted()
    monkeypatch.setattr(readers, "fetching_consumer", lambda brokers, security: made)
    return made


@pytest.fixture
def shared(scripted: Scripted) -> Iterator[SharedConsumer]:
    consumer = SharedConsumer("nowhere", PLAINTEXT)
    yield consumer
    consumer.close()
    assert scripted.is_closed


def awaited(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def fetched(subscription: Subscription, count: int = 1) -> FetchedMessages:
    """So many messages and ends."""
    found = FetchedMessages()
    deadline = time.monotonic() + WAIT_S
    while len(found.messages) + len(found.ends) < count:
        more = subscription.poll(0.05)
        found.messages += more.messages
        found.ends |= more.ends
        assert time.monotonic() < deadline, found
    return found


def offsets(found: FetchedMessages) -> list[int]:
    return [message.offset() or 0 for message in found.messages]


def test_each_subscription_gets_its_partitions(shared: SharedConsumer, scripted: Scripted) -> None:
    orders, other = shared.subscribe({PLACE: 5}), shared.subscribe({OTHER: 7})
    awaited(lambda: len(scripted.calls) == 2)
    for message in (Sent(PLACE, 5), Sent(OTHER, 7), end(PLACE, 6), Sent(TopicPartition("left", 0), 1), end(OTHER, 9)):
        scripted.sent.put(message)
    found = fetched(other, 2)
    assert offsets(found) == [7] and found.ends == {OTHER: 9}, "a transaction's marker is at 8"
    assert offsets(fetched(orders)) == [5]
    assert fetched_nothing(orders), "an end behind a message says nothing new"


def fetched_nothing(subscription: Subscription) -> bool:
    found = subscription.poll(0.15)
    return not found.messages and not found.ends


def test_who_begins_earlier_has_a_partition_read_again(shared: SharedConsumer, scripted: Scripted) -> None:
    ahead = shared.subscribe({PLACE: 5})
    awaited(lambda: len(scripted.calls) == 1)
    scripted.sent.put(Sent(PLACE, 5))
    assert offsets(fetched(ahead)) == [5]
    behind = shared.subscribe({PLACE: 3, OTHER: 1})
    awaited(lambda: len(scripted.calls) == 3)
    assert scripted.calls[1:] == [("unassign", [(PLACE, 0)]), ("assign", [(PLACE, 3), (OTHER, 1)])] or (
        scripted.calls[1][1][0][0] == PLACE and scripted.calls[2] == ("assign", [(PLACE, 3), (OTHER, 1)])
    )
    for at in (3, 4, 5, 6):
        scripted.sent.put(Sent(PLACE, at))
    assert offsets(fetched(behind, 4)) == offsets(fetched(ahead, 4)) == [3, 4, 5, 6]


def test_who_joins_at_the_end_hears_of_it(shared: SharedConsumer, scripted: Scripted) -> None:
    """librdkafka reports an end once."""
    first = shared.subscribe({PLACE: 5})
    awaited(lambda: len(scripted.calls) == 1)
    scripted.sent.put(end(PLACE, 5))
    assert fetched(first).ends == {PLACE: 5}
    second = shared.subscribe({PLACE: 5})
    assert fetched(second).ends == {PLACE: 5}
    assert len(scripted.calls) == 1, "it was not fetched again"


def test_who_joins_between_a_message_and_its_end_hears_of_the_end(shared: SharedConsumer, scripted: Scripted) -> None:
    first = shared.subscribe({PLACE: 5})
    awaited(lambda: len(scripted.calls) == 1)
    scripted.sent.put(Sent(PLACE, 5))
    fetched(first)
    second = shared.subscribe({PLACE: 6})
    awaited(lambda: not shared._commands)
    scripted.sent.put(end(PLACE, 6))
    assert fetched(second).ends == {PLACE: 6}


def test_a_partition_is_left_with_its_last_reader(shared: SharedConsumer, scripted: Scripted) -> None:
    first, second = shared.subscribe({PLACE: 0}), shared.subscribe({PLACE: 0})
    awaited(lambda: not shared._commands)
    first.close()
    awaited(lambda: not shared._commands)
    assert [call[0] for call in scripted.calls] == ["assign"]
    second.close()
    awaited(lambda: [call[0] for call in scripted.calls] == ["assign", "unassign"])
    second.close()
    third = shared.subscribe({PLACE: 0})
    awaited(lambda: len(scripted.calls) == 3)
    scripted.sent.put(Sent(PLACE, 0))
    assert offsets(fetched(third)) == [0] and fetched_nothing(first) and fetched_nothing(second)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "size"), [(DEFAULT_READERS.waiting_max + 1, 1), (3, DEFAULT_READERS.waiting_bytes_max // 2)]
)
def test_who_does_not_take_is_cut_and_others_go_on(
    shared: SharedConsumer, scripted: Scripted, count: int, size: int
) -> None:
    slow, quick = shared.subscribe({PLACE: 0}), shared.subscribe({OTHER: 0})
    awaited(lambda: len(scripted.calls) == 2)
    for at in range(count + 5):
        scripted.sent.put(Sent(PLACE, at, size=size))
    scripted.sent.put(Sent(OTHER, 0))
    assert offsets(fetched(quick)) == [0]
    assert slow.is_cut
    taken = offsets(slow.poll(0))
    assert taken == list(range(len(taken))) and len(taken) <= count, "an unbroken run"
    assert scripted.calls[-1] == ("unassign", scripted.calls[-1][1]) and scripted.calls[-1][1][0][0] == PLACE
    assert fetched_nothing(slow), "and nothing after it"


def test_an_error_reaches_those_whom_it_concerns(shared: SharedConsumer, scripted: Scripted) -> None:
    orders, other = shared.subscribe({PLACE: 0}), shared.subscribe({OTHER: 0})
    awaited(lambda: len(scripted.calls) == 2)
    scripted.sent.put(Sent(PLACE, 0))
    scripted.sent.put(Sent(PLACE, 0, Failure(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    awaited(lambda: orders._error is not None)
    assert offsets(fetched(orders)) == [0], "what came before is not lost"
    with pytest.raises(StreamError, match="failed"):
        orders.poll(0)
    assert fetched_nothing(other)
    scripted.sent.put(Sent(None, 0, Failure(KafkaError._AUTHENTICATION)))
    awaited(lambda: other._error is not None)


def test_a_thread_that_fails_tells_all(scripted: Scripted) -> None:
    shared = SharedConsumer("nowhere", PLAINTEXT)
    before = shared.subscribe({PLACE: 0})
    awaited(lambda: len(scripted.calls) == 1)
    scripted.sent.put(RuntimeError("it fell"))
    awaited(lambda: shared.is_broken)
    after = shared.subscribe({PLACE: 0})
    for subscription in (before, after):
        with pytest.raises(StreamError, match="it fell"):
            subscription.poll(WAIT_S)
    shared.close()


def test_a_poll_is_woken(shared: SharedConsumer) -> None:
    subscription = shared.subscribe({PLACE: 0})
    subscription.wake()
    started = time.monotonic()
    subscription.poll(WAIT_S)
    assert time.monotonic() - started < WAIT_S / 2
    assert fetched_nothing(subscription), "once"


def test_a_client_whose_shared_consumer_is_broken_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    class Watch:
        def __init__(self, brokers: str, security: object) -> None:
            self.is_closed = False

        def close(self) -> None:
            self.is_closed = True

    scripts: list[Scripted] = []
    monkeypatch.setattr(broker_clients, "broker_answers", lambda brokers: True)
    monkeypatch.setattr(broker_clients, "BrokerWatch", Watch)
    monkeypatch.setattr(readers, "fetching_consumer", lambda *of: scripts.append(Scripted()) or scripts[-1])
    clients = BrokerClients()
    first = clients.acquire("nowhere", PLAINTEXT)
    assert clients.acquire("nowhere", PLAINTEXT) is first
    first.subscribe({PLACE: 0})
    scripts[0].sent.put(RuntimeError("it fell"))
    awaited(lambda: first.is_broken)
    second = clients.acquire("nowhere", PLAINTEXT)
    assert second is not first and not second.is_broken
    clients.release("nowhere", PLAINTEXT, first)
    assert not first.watch.is_closed, "one stream still uses it"
    clients.release("nowhere", PLAINTEXT, first)
    assert first.watch.is_closed and not second.watch.is_closed
    clients.release("nowhere", PLAINTEXT, second)
    assert second.watch.is_closed


def test_only_so_many_streams_have_a_consumer_of_their_own(monkeypatch: pytest.MonkeyPatch, scripted: Scripted) -> None:
    monkeypatch.setattr(broker_clients, "broker_answers", lambda brokers: True)
    monkeypatch.setattr(broker_clients, "BrokerWatch", lambda brokers, security: None)
    scripted.assign = lambda places: None  # type: ignore[attr-defined]
    client = broker_clients.BrokerClient("nowhere", PLAINTEXT, ReaderTuning(dedicated_max=1))
    first = client.dedicate({PLACE: 0}, lambda place, at: False)
    assert first is not None and client.dedicate({OTHER: 0}, lambda place, at: False) is None
    first.close()
    assert client.dedicate({OTHER: 0}, lambda place, at: False) is not None


def test_an_answer_without_a_partition_is_a_failure_and_changes_nothing() -> None:
    """A partition without a leader is left out: that all others were reached says nothing of it."""
    watched = WatchedStream(["orders", "other"], 1.0, places=(PLACE, OTHER))
    watched.offer(PartitionEnds(1.0, {PLACE: 5, OTHER: 6}))
    watched.offer(PartitionEnds(2.0, {PLACE: 7}))
    assert watched.newest == PartitionEnds(1.0, {PLACE: 5, OTHER: 6}) and watched.failures == 1
    watched.offer(PartitionEnds(3.0, {PLACE: 7, OTHER: 6}))
    assert watched.newest.at == 3.0 and watched.failures == 0
    watched.offer(PartitionEnds(2.5, {PLACE: 7, OTHER: 6}))
    assert watched.newest.at == 3.0, "an answer that was asked for before is late"


def watch_of(answer: Callable[[list[TopicPartition]], dict[TopicPartition, int]]) -> BrokerWatch:
    """A watch without a thread, whose requests a test answers."""
    watch = object.__new__(BrokerWatch)
    watch._brokers, watch._is_closing = "nowhere", readers.threading.Event()
    watch.partitions = lambda topic: (0,)  # type: ignore[method-assign]

    def end_offsets(places: Any, timeout_ms: int = 0) -> PartitionEnds:
        return PartitionEnds(time.monotonic(), answer(list(places)))

    watch.end_offsets = end_offsets  # type: ignore[method-assign]
    return watch


def test_a_topic_without_an_answer_costs_the_others_nothing() -> None:
    asked: list[int] = []

    def answer(places: list[TopicPartition]) -> dict[TopicPartition, int]:
        asked.append(len(places))
        if OTHER in places:
            raise StreamError("nobody leads it")
        return dict.fromkeys(places, 3)

    good, bad = WatchedStream(["orders"], 1.0, places=(PLACE,)), WatchedStream(["other"], 1.0, places=(OTHER,))
    watch_of(answer)._ask([bad, good])
    assert (good.failures, bad.failures, good.newest.ends) == (0, 1, {PLACE: 3}) and asked == [2, 1, 1]


def test_a_silent_broker_is_not_asked_for_each_stream() -> None:
    asked: list[int] = []

    def answer(places: list[TopicPartition]) -> dict[TopicPartition, int]:
        asked.append(len(places))
        raise StreamError("nobody answers")

    streams = [WatchedStream([f"t{n}"], 1.0, places=(TopicPartition(f"t{n}", 0),)) for n in range(50)]
    watch_of(answer)._ask(streams)
    assert len(asked) == 4 and {stream.failures for stream in streams} == {1}


def test_a_stream_is_busy_after_some_seconds_and_quiet_after_more() -> None:
    pace = StreamPace(0.0)
    for second in range(1, 3):
        pace.read(second, 10, 0)
    assert not pace.is_busy
    pace.read(3, 10, 0)
    assert pace.is_busy
    for second in range(4, 13):
        pace.read(second, 1, 0)
    assert pace.is_busy
    pace.read(14, 1, 0)
    assert not pace.is_busy
    pace.read(14.1, 0, 10_001)
    assert pace.is_busy, "a backlog, at once"
