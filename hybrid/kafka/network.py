"""The network of kafka-python's clients, which ends an attempt to connect when the brokers refuse the user.

Apache Kafka's own clients do so (KIP-152). kafka-python 3.0 means to: whoever connects again gets the refusal that its
manager has kept. But its connections end without raising, so that the manager learns of none, and tries on until the
timeout. It also drops an answer behind which the broker has closed the connection, as it does after a refusal. Import
this module where a client is made: it imports the client.
"""

from __future__ import annotations

from typing import Any

from kafka.errors import CorruptRecordError, SaslAuthenticationFailedError, UnsupportedSaslMechanismError
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

_REFUSALS = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError)


def network_client(**settings: Any) -> KafkaNetClient:
    """What kafka-python takes as `kafka_client`. A client that it connects raises the refusal of the last broker."""
    network = NetworkSelector(**settings)
    return KafkaNetClient(network, _ConnectionManager(network, **settings))


def refusal(error: Exception) -> str | None:
    """The broker's words for refusing the user or its mechanism; None for any other error."""
    return _words(error) if isinstance(error, _REFUSALS) else None


def unreadable(error: Exception) -> str | None:
    """What is wrong with a message that kafka-python cannot read; None for any other error.

    Kafka's own client reads some of them, such as one with the name of a header that is not UTF-8.
    """
    if not isinstance(error, CorruptRecordError):
        return None
    words = _words(error)
    # Of a message only the names of its headers are decoded there.
    return "the name of a header is not UTF-8" if UnicodeDecodeError.__name__ in words else words


def _words(error: Any) -> str:
    words = str(error.args[0]) if error.args else str(error.description)
    return words.removeprefix(f"{type(error).__name__}: ").rstrip(".")


class _ConnectionManager(KafkaConnectionManager):  # type: ignore[misc]
    """Keeps the refusals of bootstrap brokers until one of them has accepted the user."""

    def __init__(self, network: NetworkSelector, **settings: Any) -> None:
        super().__init__(network, **settings)
        self._refusals: dict[str, Exception] = {}
        self._is_accepted = False

    async def _build_transport(self, *arguments: Any, **options: Any) -> Any:
        """Hands on what came before the end of a connection; the end is found by the next reading."""
        transport = await super()._build_transport(*arguments, **options)
        receive = transport._sock_recv

        def received() -> tuple[bytes, Exception | None]:
            data, error = receive()
            return data, None if data else error

        transport._sock_recv = received
        return transport

    async def _connect(self, node: Any, conn: Any, *arguments: Any, **options: Any) -> None:
        await super()._connect(node, conn, *arguments, **options)
        if conn.connected:
            self._is_accepted = True
        elif isinstance(conn.init_future.exception, _REFUSALS):
            self._refusals[node.node_id] = conn.init_future.exception

    def maybe_raise_auth_failure(self, node_id: Any) -> None:
        """Raises a refusal when all bootstrap brokers have refused: a new user is known to some of them earlier."""
        super().maybe_raise_auth_failure(node_id)
        if self._is_accepted or node_id not in self._refusals:
            return
        if all(broker.node_id in self._refusals for broker in self.cluster.bootstrap_brokers()):
            raise self._refusals[node_id]
