"""The network of kafka-python's clients: it ends attempts that no repetition can help, and has words for their errors.

That is when all brokers refuse the user, or have a certificate that this machine does not trust.

Apache Kafka's own clients do so (KIP-152). kafka-python 3.0 means to: whoever connects again gets the refusal that its
manager has kept. But its connections end without raising, so that the manager learns of none, and tries on until the
timeout. It also drops an answer behind which the broker has closed the connection, as it does after a refusal. And it
has one error for all failed handshakes of TLS; most come from brokers that start or stop, and are worth repeating.
Import this module where a client is made: it imports the client.
"""

from __future__ import annotations

from ssl import SSLCertVerificationError
from typing import Any

from kafka.errors import (
    CorruptRecordError,
    KafkaConnectionError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.compat import KafkaNetClient
from kafka.net.inet import create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

_REFUSALS = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError)


class _UntrustedError(KafkaConnectionError):  # type: ignore[misc]
    """A broker's certificate is not trusted here. Its text says why, as OpenSSL does."""


def network_client(**settings: Any) -> KafkaNetClient:
    """What kafka-python takes as `kafka_client`.

    A client that it connects raises an error that `refusal` or `distrust` knows, when all brokers give one.
    """
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


def distrust(error: Exception) -> str | None:
    """Why the broker's certificate is not trusted; None for any other error."""
    return str(error.args[0]) if isinstance(error, _UntrustedError) else None


class _ConnectionManager(KafkaConnectionManager):  # type: ignore[misc]
    """Keeps the refusals of bootstrap brokers, and of their certificates, until one of them is connected."""

    def __init__(self, network: NetworkSelector, **settings: Any) -> None:
        super().__init__(network, **settings)
        self._refusals: dict[str, Exception] = {}
        self._is_accepted = False

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        """A connected transport, which hands on what came before the end of a connection.

        The end is found by the next reading. The inherited method hides why TLS failed, and leaves the socket open.
        """
        sock = await create_connection(
            self._net, node.host, node.port, self.config["socket_options"],
            proxy_url=self.config["proxy_url"], timeout_at=timeout_at,
        )  # fmt: skip
        if self.ssl_enabled:
            tls = {key: value for key, value in self.config.items() if key.startswith("ssl_")}
            transport = KafkaSSLTransport(self._net, sock, host=node.host, **tls)
        else:
            transport = KafkaTCPTransport(self._net, sock, host=node.host)
        try:
            await transport.handshake()
        except Exception as error:
            transport.abort(error)
            if isinstance(error, SSLCertVerificationError):
                raise _UntrustedError(error.verify_message.rstrip(".")) from error
            raise KafkaConnectionError(f"Handshake failed: {error}") from error
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
        elif isinstance(conn.init_future.exception, (*_REFUSALS, _UntrustedError)):
            self._refusals[node.node_id] = conn.init_future.exception

    def maybe_raise_auth_failure(self, node_id: Any) -> None:
        """Raises a refusal when all bootstrap brokers have refused: a new user is known to some of them earlier."""
        super().maybe_raise_auth_failure(node_id)
        if self._is_accepted or node_id not in self._refusals:
            return
        if all(broker.node_id in self._refusals for broker in self.cluster.bootstrap_brokers()):
            raise self._refusals[node_id]
