"""Factories of all Kafka clients, and how long each kind of work waits for a broker."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from hybrid.config.kafka_security import KafkaSecurity

if TYPE_CHECKING:
    from confluent_kafka import Consumer
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.admin import KafkaAdminClient
    from kafka.net.compat import KafkaNetClient

Client = TypeVar("Client")
QUERY_TIMEOUT_MS = 1_500  # queries and pages; without Kafka they continue with committed rows
CHECK_TIMEOUT_MS = 3_000  # a health check or the status of a connector
WORK_TIMEOUT_MS = 10_000  # ingestion, and commands that need Kafka

_FETCHING = {
    # librdkafka requires a group id, though nothing is committed and no group is joined.
    "group.id": "hybrid-tail",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 100,
    "fetch.queue.backoff.ms": 10,
    "max.partition.fetch.bytes": 8 * 1024 * 1024,
    "queued.max.messages.kbytes": 64 * 1024,
}
_SILENT = logging.Logger("librdkafka", logging.CRITICAL + 1)  # we report errors ourselves, once


def import_clients() -> None:
    """Imports kafka-python in whole, in a process whose threads would otherwise do it side by side.

    Its modules import each other in circles: a second thread then finds one of them half initialized, an ImportError.
    """
    import kafka.admin
    import kafka.consumer
    import kafka.producer
    import kafka.protocol.consumer  # noqa: F401


@contextmanager
def admin_client(brokers: str, timeout_ms: int, security: KafkaSecurity | None = None) -> Iterator[KafkaAdminClient]:
    """An admin client of the brokers `host:port,...`, closed at the end. It raises the client's own errors."""
    client = connect_admin(brokers, timeout_ms, security)
    try:
        yield client
    finally:
        client.close()


def connect_admin(brokers: str, timeout_ms: int, security: KafkaSecurity | None = None) -> KafkaAdminClient:
    """A connected admin client, which the caller closes. `timeout_ms` holds for the connection and for each request."""
    from kafka.admin import KafkaAdminClient

    return _connected(
        KafkaAdminClient,
        bootstrap_servers=brokers.split(","),
        bootstrap_timeout_ms=timeout_ms,
        request_timeout_ms=timeout_ms,
        **(security or KafkaSecurity()).for_python(),
    )


def consumer(brokers: str, security: KafkaSecurity, timeout_ms: int, **settings: Any) -> KafkaConsumer:
    """A consumer without a group that reads committed transactions; `settings` are kafka-python's."""
    from kafka import KafkaConsumer

    return _connected(
        KafkaConsumer,
        bootstrap_servers=brokers.split(","),
        bootstrap_timeout_ms=timeout_ms,
        group_id=None,
        enable_auto_commit=False,
        isolation_level="read_committed",
        allow_auto_create_topics=False,
        metrics_enabled=False,
        **settings,
        **security.for_python(),
    )


def fetching_consumer(brokers: str, security: KafkaSecurity) -> Consumer:
    """A consumer of librdkafka, for assignments at explicit offsets: it fetches beside Python's threads.

    It reads committed transactions and reports the ends of partitions.
    """
    from confluent_kafka import Consumer

    return Consumer({**_FETCHING, "bootstrap.servers": brokers, **security.for_librdkafka()}, logger=_SILENT)


@contextmanager
def producer(brokers: str) -> Iterator[KafkaProducer]:
    """A producer whose records are acknowledged by all replicas."""
    from kafka import KafkaProducer

    client = _connected(
        KafkaProducer,
        bootstrap_servers=brokers.split(","),
        bootstrap_timeout_ms=WORK_TIMEOUT_MS,
        acks="all",
        linger_ms=5,
    )
    try:
        yield client
    finally:
        client.close(timeout=10)


def broker_answers(brokers: str) -> bool:
    """Whether any broker of the list accepts a connection. Brokers that do not respond cost `QUERY_TIMEOUT_MS`."""
    deadline = time.monotonic() + QUERY_TIMEOUT_MS / 1000
    for address in brokers.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            timeout_s = max(0.05, deadline - time.monotonic())
            socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s).close()
        except (OSError, ValueError):
            continue
        return True
    return False


def _connected(kind: Callable[..., Client], **settings: Any) -> Client:
    """A client of kafka-python. If no broker answers, or all refuse the user, nothing remains of it.

    It would leave its thread and sockets.
    """
    from hybrid.kafka.network import network_client

    _silence()
    networks: list[KafkaNetClient] = []

    def network(**of_client: Any) -> KafkaNetClient:
        networks.append(network_client(**of_client))
        return networks[-1]

    try:
        return kind(kafka_client=network, **settings)
    except BaseException:
        for unconnected in networks:
            unconnected.close()
        raise


def _silence() -> None:
    """Silence the client, which logs each failed attempt: our own error reports it once."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
