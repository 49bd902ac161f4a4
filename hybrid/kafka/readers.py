"""Readers of partitions: each delivers their messages in an unbroken run from the positions where it begins.

A `Subscription` reads by the consumer that all quiet streams of a broker share, a `DedicatedConsumer` by its own.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from hybrid.config.kafka_security import KafkaSecurity
from hybrid.errors import StreamError
from hybrid.kafka.clients import fetching_consumer
from hybrid.table.boundary import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

POLL_RECORDS = 20_000
# A poll of a consumer of its own cannot be woken.
DEDICATED_POLL_S = 0.1
# Whether an end says nothing new: the position is there already.
IsKnownEnd = Callable[[TopicPartition, int], bool]
# What a waiting message takes beside its value, bytes.
_MESSAGE_BYTES = 200


@dataclass(frozen=True)
class ReaderTuning:
    """When a stream has a consumer of its own, and what waits for a slow one.

    `dedicated_max` streams of a broker have one: each takes four threads and some files. A stream gets it after
    `busy_s` busy seconds, and gives it back after `quiet_s` others. At most `waiting_max` messages, and
    `waiting_bytes_max` bytes, wait for a stream that shares a consumer.
    """

    dedicated_max: int = 16
    busy_s: int = 3
    quiet_s: float = 10.0
    waiting_max: int = 20_000
    waiting_bytes_max: int = 4 * 1024 * 1024


DEFAULT_READERS = ReaderTuning()


@dataclass
class FetchedMessages:
    """Messages in offset order by partition, and ends of partitions that were reached: all before them was fetched."""

    messages: list[Message] = field(default_factory=list)
    ends: dict[TopicPartition, int] = field(default_factory=dict)


class PartitionReader(Protocol):
    """Reads partitions. `heard` holds those that have sent a message or an end; its stream adds to it."""

    heard: set[TopicPartition]

    @property
    def is_cut(self) -> bool:
        """Whether nothing follows what was fetched, because too much was waiting."""

    def poll(self, wait_s: float) -> FetchedMessages:
        """What was fetched since the last call; waits up to `wait_s` for the first. StreamError when it is broken."""

    def wake(self) -> None:
        """Ends the poll in progress, or the next one, at once. Any thread may call it."""

    def close(self) -> None:
        """Stops to fetch."""


def place_of(message: Message) -> TopicPartition:
    """The partition of a message."""
    return TopicPartition(message.topic() or "", message.partition() or 0)


def split(polled: Iterable[Message]) -> FetchedMessages:
    """Messages and ends of what librdkafka returned. StreamError when one is another error."""
    fetched = FetchedMessages()
    for message in polled:
        error = message.error()
        if error is None:
            fetched.messages.append(message)
        elif error.code() == error._PARTITION_EOF:
            fetched.ends[place_of(message)] = message.offset() or 0
        elif not error.retriable():
            raise StreamError(error.str())
    return fetched


class Subscription:
    """One stream's partitions at a shared consumer: what was fetched of them, until the stream takes it."""

    def __init__(
        self,
        starts: Mapping[TopicPartition, int],
        leave: Callable[[Subscription], None],
        tuning: ReaderTuning = DEFAULT_READERS,
    ) -> None:
        self.starts, self._leave, self._tuning = starts, leave, tuning
        self.heard: set[TopicPartition] = set()
        self._arrived = threading.Condition()
        self._waiting = FetchedMessages()
        self._bytes = 0
        self._is_woken = self._is_cut = False
        self._error: str | None = None

    @property
    def is_cut(self) -> bool:
        """See `PartitionReader`."""
        return self._is_cut

    def poll(self, wait_s: float) -> FetchedMessages:
        """See `PartitionReader`."""
        with self._arrived:
            if not self._has_news:
                self._arrived.wait(wait_s)
            fetched, self._waiting, self._bytes, self._is_woken = self._waiting, FetchedMessages(), 0, False
        if self._error is not None and not fetched.messages:
            raise StreamError(self._error)
        return fetched

    @property
    def _has_news(self) -> bool:
        waiting = self._waiting
        return bool(self._is_woken or waiting.messages or waiting.ends or self._error or self._is_cut)

    def wake(self) -> None:
        """See `PartitionReader`."""
        with self._arrived:
            self._is_woken = True
            self._arrived.notify()

    def close(self) -> None:
        """See `PartitionReader`."""
        self._leave(self)

    # The shared consumer

    def deliver(self, messages: Sequence[Message], ends: Mapping[TopicPartition, int]) -> bool:
        """Adds what was fetched. False when too much is waiting now: then nothing may follow."""
        with self._arrived:
            self._waiting.messages += messages
            self._waiting.ends.update(ends)
            self._bytes += sum(map(len, messages)) + _MESSAGE_BYTES * len(messages)
            tuning = self._tuning
            self._is_cut = len(self._waiting.messages) > tuning.waiting_max or self._bytes > tuning.waiting_bytes_max
            self._arrived.notify()
            return not self._is_cut

    def fail(self, error: str) -> None:
        """Nothing will follow, for this reason."""
        with self._arrived:
            self._error = error
            self._arrived.notify()


class DedicatedConsumer:
    """A consumer of one stream, for a busy one: no other thread touches its messages.

    librdkafka reports an end after each row: `is_known_end` leaves those out.
    """

    is_cut = False

    def __init__(
        self,
        brokers: str,
        security: KafkaSecurity,
        is_known_end: IsKnownEnd,
        closed: Callable[[], None],
    ) -> None:
        self.heard: set[TopicPartition] = set()
        self._is_known_end, self._closed = is_known_end, closed
        self._consumer: Consumer = fetching_consumer(brokers, security)

    def assign(self, starts: Mapping[TopicPartition, int]) -> None:
        """Fetches from these positions on: the one way to move that librdkafka does without losing messages."""
        import confluent_kafka

        self.heard = set()
        self._consumer.assign([confluent_kafka.TopicPartition(*place, start) for place, start in starts.items()])

    def unassign(self) -> None:
        """Fetches nothing until `assign`. Without an assignment librdkafka drops what it has fetched."""
        self.heard = set()
        self._consumer.unassign()

    def poll(self, wait_s: float) -> FetchedMessages:
        """See `PartitionReader`."""
        wait_s = min(wait_s, DEDICATED_POLL_S)
        first = self._consumer.poll(wait_s)
        while first is not None and self._is_old(first):
            first = self._consumer.poll(wait_s)
        return split([first, *self._consumer.consume(POLL_RECORDS, 0)]) if first is not None else FetchedMessages()

    def _is_old(self, message: Message) -> bool:
        error = message.error()
        if error is None or error.code() != error._PARTITION_EOF:
            return False
        place = place_of(message)
        return place in self.heard and self._is_known_end(place, message.offset() or 0)

    def wake(self) -> None:
        """See `PartitionReader`: its polls are short."""

    def close(self) -> None:
        """See `PartitionReader`."""
        try:
            self._consumer.close()
        finally:
            self._closed()


@dataclass
class _Route:
    """A partition of the shared consumer: who reads it, and where it is.

    `next` is the offset after what was routed, `is_at_end` whether Kafka held nothing beyond it, `is_heard` whether all
    subscriptions have been sent something.
    """

    next: int
    subscriptions: list[Subscription] = field(default_factory=list)
    is_heard: bool = False
    is_at_end: bool = False


class SharedConsumer:
    """One consumer for all quiet streams of a broker, and the thread that routes its messages.

    That thread alone changes the assignment, between two batches: so a batch belongs to the routes that exist, and a
    partition that two streams read is read again from the lower position. The other stream drops what it has.
    """

    # How long commands wait at most: a poll cannot be woken.
    _POLL_S = 0.05

    def __init__(self, brokers: str, security: KafkaSecurity, tuning: ReaderTuning = DEFAULT_READERS) -> None:
        self._tuning = tuning
        self._consumer: Consumer = fetching_consumer(brokers, security)
        self._routes: dict[TopicPartition, _Route] = {}
        # What the thread is to do: subscriptions that join (True) and leave.
        self._commands: deque[tuple[Subscription, bool]] = deque()
        self._is_commanded, self._is_closing = threading.Event(), threading.Event()
        self._error: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"route-{brokers}", daemon=True)
        self._thread.start()

    @property
    def is_broken(self) -> bool:
        """Whether it routes nothing any more."""
        return self._error is not None

    def subscribe(self, starts: Mapping[TopicPartition, int]) -> Subscription:
        """Reads partitions from these positions on."""
        subscription = Subscription(starts, lambda leaving: self._command(leaving, joins=False), self._tuning)
        self._command(subscription, joins=True)
        if self._error is not None:  # checked after the command: the thread may have ended before it
            subscription.fail(self._error)
        return subscription

    def close(self) -> None:
        """Ends the thread and the connection."""
        self._is_closing.set()
        self._is_commanded.set()
        self._thread.join()

    def _command(self, subscription: Subscription, *, joins: bool) -> None:
        self._commands.append((subscription, joins))
        self._is_commanded.set()

    def _run(self) -> None:
        try:
            while not self._is_closing.is_set():
                self._obey()
                if not self._routes:
                    self._is_commanded.wait()
                    continue
                first = self._consumer.poll(self._POLL_S)
                if first is not None:
                    self._route([first, *self._consumer.consume(POLL_RECORDS, 0)])
        except Exception as error:  # whatever it is, streams must not wait for ever
            self._error = str(error)
            for subscription in self._all():
                subscription.fail(self._error)
        finally:
            self._error = self._error or "The connection was closed."
            self._consumer.close()

    def _all(self) -> set[Subscription]:
        routed = {subscription for route in self._routes.values() for subscription in route.subscriptions}
        return routed | {subscription for subscription, _ in list(self._commands)}

    def _obey(self) -> None:
        self._is_commanded.clear()
        while self._commands:
            subscription, joins = self._commands[0]  # it stays there meanwhile: an error reaches it
            if joins:
                self._join(subscription)
            else:
                self._leave(subscription)
            self._commands.popleft()

    def _join(self, subscription: Subscription) -> None:
        from confluent_kafka import TopicPartition as Assigned

        starting, again, ends = [], [], {}
        for place, start in subscription.starts.items():
            route = self._routes.get(place)
            if route is None:
                route = self._routes[place] = _Route(start)
                starting.append(Assigned(*place, start))
            elif start < route.next:
                route.next, route.is_at_end = start, False
                again.append(Assigned(*place))
                starting.append(Assigned(*place, start))
            elif start == route.next and route.is_at_end:
                ends[place] = start  # librdkafka does not report it again
            route.is_heard = False
            route.subscriptions.append(subscription)
        if again:
            self._consumer.incremental_unassign(again)
        if starting:
            self._consumer.incremental_assign(starting)
        if ends:
            subscription.deliver([], ends)

    def _leave(self, subscription: Subscription) -> None:
        from confluent_kafka import TopicPartition as Assigned

        left = []
        for place in subscription.starts:
            route = self._routes.get(place)
            if route is None or subscription not in route.subscriptions:
                continue  # it was cut
            route.subscriptions.remove(subscription)
            if not route.subscriptions:
                del self._routes[place]
                left.append(Assigned(*place))
        if left:
            self._consumer.incremental_unassign(left)

    def _route(self, polled: Iterable[Message]) -> None:
        batch = _Batch()
        for message in polled:
            place, error = place_of(message), message.error()
            route = self._routes.get(place)
            if error is not None and error.code() != error._PARTITION_EOF:
                if not error.retriable():
                    concerned = route.subscriptions if route is not None else ()
                    batch.failed += [(each, error.str()) for each in (concerned if message.topic() else self._all())]
            elif route is None:
                continue
            elif error is None:
                batch.add(route, message)
            else:
                batch.add_end(route, place, message.offset() or 0)
        for subscription in batch.messages.keys() | batch.ends.keys():
            if not subscription.deliver(batch.messages.get(subscription, ()), batch.ends.get(subscription, {})):
                self._leave(subscription)
        for subscription, reason in batch.failed:
            subscription.fail(reason)


class _Batch:
    """What one poll of the shared consumer returned, by subscription."""

    def __init__(self) -> None:
        self.messages: defaultdict[Subscription, list[Message]] = defaultdict(list)
        self.ends: defaultdict[Subscription, dict[TopicPartition, int]] = defaultdict(dict)
        self.failed: list[tuple[Subscription, str]] = []

    def add(self, route: _Route, message: Message) -> None:
        """Adds a message for all who read its partition."""
        route.next = (message.offset() or 0) + 1
        route.is_heard, route.is_at_end = True, False
        for subscription in route.subscriptions:
            self.messages[subscription].append(message)

    def add_end(self, route: _Route, place: TopicPartition, end: int) -> None:
        """Adds the end of a partition, unless all know it: librdkafka reports an end after each row."""
        is_known = route.is_heard and end == route.next
        route.next = max(route.next, end)
        route.is_heard = route.is_at_end = True
        for subscription in () if is_known else route.subscriptions:
            self.ends[subscription][place] = end
