"""Producing: all events of a topic as fast as they go, and a steady stream from a process of its own."""

from __future__ import annotations

import multiprocessing
import multiprocessing.sharedctypes
import time
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.synchronize import Event

from kafka import KafkaProducer

from benchmarks.serving.measure import SPAWN
from benchmarks.serving.workload import PARTITIONS, Sizes, make_events
from hybrid.kafka.topics import create_topic

_TICK_S = 0.01
_STEP = 20_000  # awaited together, so that what is buffered stays small


def fill(brokers: str, topic: str, sizes: Sizes) -> float:
    """Creates the topic and produces all events, a process for each partition; the seconds it took."""
    create_topic(brokers, topic, PARTITIONS)
    started = time.perf_counter()
    workers = [SPAWN.Process(target=_fill_one, args=(brokers, topic, sizes, p)) for p in range(PARTITIONS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise RuntimeError(f"{topic} could not be filled")
    return time.perf_counter() - started


def _fill_one(brokers: str, topic: str, sizes: Sizes, partition: int) -> None:
    send(brokers, topic, partition, make_events(sizes).messages(partition))


def send(brokers: str, topic: str, partition: int, messages: Iterable[bytes]) -> int:
    """Produces in order and returns when all are acknowledged; how many they were."""
    producer = KafkaProducer(
        bootstrap_servers=brokers, acks="all", linger_ms=20, batch_size=1 << 18, compression_type="lz4"
    )
    failures: list[BaseException] = []
    count = 0
    for one in messages:
        producer.send(topic, one, partition=partition).add_errback(failures.append)
        count += 1
        if count % _STEP == 0:
            producer.flush()
    producer.flush()
    producer.close()
    if failures:
        raise failures[0]
    return count


Live = Callable[[int], tuple[int, bytes]]


class Feeder:
    """Produces `make(n)` (partition and message) for n from 0 on, `rate` a second, until `limit` or the end of `with`.

    `sent` is how many were acknowledged, `rate_of` how many that were a second.
    """

    def __init__(self, brokers: str, topic: str, make: Live, rate: int, limit: int | None = None) -> None:
        self._stop = SPAWN.Event()
        self._sent, self._took_s = SPAWN.Value("q", 0), SPAWN.Value("d", 0.0)
        arguments = (brokers, topic, make, rate, limit, self._stop, self._sent, self._took_s)
        self._process = SPAWN.Process(target=_feed, args=arguments, daemon=True)

    def __enter__(self) -> Feeder:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._process.join(timeout=60)
        if self._process.is_alive():
            self._process.kill()

    def is_going(self) -> bool:
        return self._process.is_alive()

    @property
    def sent(self) -> int:
        return int(self._sent.value)

    @property
    def rate_of(self) -> float:
        return self.sent / self._took_s.value if self._took_s.value else 0.0


class Flood:
    """Produces copies of a few ready messages as fast as `rate` a second, by librdkafka from a process of its own.

    Messages bear keys from 0 to `keys`; `sent` is how many were handed to Kafka's client.
    """

    def __init__(self, brokers: str, topic: str, messages: Sequence[tuple[int, bytes]], rate: int) -> None:
        self._stop = SPAWN.Event()
        self._sent = SPAWN.Value("q", 0)
        arguments = (brokers, topic, messages, rate, self._stop, self._sent)
        self._process = SPAWN.Process(target=_flood, args=arguments, daemon=True)

    def __enter__(self) -> Flood:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._process.join(timeout=60)
        if self._process.is_alive():
            self._process.kill()

    @property
    def sent(self) -> int:
        return int(self._sent.value)


def _flood(
    brokers: str,
    topic: str,
    messages: Sequence[tuple[int, bytes]],
    rate: int,
    stop: Event,
    sent: multiprocessing.sharedctypes.Synchronized[int],
) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5, "acks": "all", "compression.type": "lz4"})
    started, number = time.perf_counter(), 0
    while not stop.is_set():
        due = int((time.perf_counter() - started) * rate)
        while number < due:
            partition, value = messages[number % len(messages)]
            try:
                producer.produce(topic, value, partition=partition)
                number += 1
            except BufferError:
                producer.poll(0.01)
        sent.value = number
        producer.poll(0)
        time.sleep(_TICK_S)
    producer.flush(30)


def _feed(
    brokers: str,
    topic: str,
    make: Live,
    rate: int,
    limit: int | None,
    stop: Event,
    sent: multiprocessing.sharedctypes.Synchronized[int],
    took_s: multiprocessing.sharedctypes.Synchronized[float],
) -> None:
    producer = KafkaProducer(bootstrap_servers=brokers, acks="all", linger_ms=2)
    started, number = time.perf_counter(), 0
    while not stop.is_set() and (limit is None or number < limit):
        due = int((time.perf_counter() - started) * rate)
        futures = []
        while number < (due if limit is None else min(due, limit)):
            partition, value = make(number)
            futures.append(producer.send(topic, value, partition=partition))
            number += 1
        for future in futures:
            future.get(timeout=30)
        sent.value, took_s.value = number, time.perf_counter() - started
        time.sleep(_TICK_S)
    producer.close()
