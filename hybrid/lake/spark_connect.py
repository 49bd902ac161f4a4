"""The session on a Spark Connect server, for a master `sc://host:port`: this process starts no JVM (docs/adr/0068).

The server brings Spark, its connector of Kafka and the workers' Python. Our package is sent, as on a cluster.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hybrid.errors import HybridError, MachineError, SpecError
from hybrid.jvm.jars import cache_root
from hybrid.jvm.spark_errors import short_words
from hybrid.lake.spark_values import VALUE_SETTINGS
from hybrid.lake.spark_workers import WorkerSide, package_archive, require_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = "pyspark.sql.connect"
# What the errors of a session say that the server does not have, or of a client that has seen another server.
_ENDED = ("INVALID_HANDLE", "RESPONSE_ALREADY_RECEIVED", "NO_ACTIVE_SESSION", "server side session identifier")
_SILENT = {"UNAVAILABLE", "DEADLINE_EXCEEDED"}
_REFUSED = {"UNAUTHENTICATED", "PERMISSION_DENIED"}
_DETAILS = re.compile(r'details = "([^"]*)"')
_SPLITS = re.compile(r"\bsplits=(\d+)")
# By this PySpark's functions make columns for a server, in a process that has not set SPARK_REMOTE.
_COLUMNS_FOR_SERVER = "SPARK_CONNECT_MODE_ENABLED"
_FORMER: dict[str, str | None] = {}  # its value before this module set it, while it does
# The plan of a statement is in the server's UI and event log, with the options of a reader: passwords of Kafka.
_REDACTION = "spark.sql.redaction.string.regex"
_SECRETS = r'key: "kafka\.(?:sasl|ssl)\.[^"]*"\s*value: "(?:[^"\\]|\\.)*"'
# A server ends connections that are probed more often than every five minutes.
_KEEPALIVE_MS, _KEEPALIVE_TIMEOUT_MS = 330_000, 20_000
_REQUEST_S = 30.0
_RECONNECT_MS = (500, 2_000)


@dataclass
class ConnectServer:
    """A Spark Connect server, by its URL `sc://host:port;key=value`, and the session there that this process shares.

    `settings` are the user's keys for Spark, which the server's session gets.
    """

    url: str
    settings: Mapping[str, str]
    say: Callable[[str], None]
    _session: SparkSession | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def address(self) -> str:
        """The URL without its parameters."""
        return self.url.partition("/;")[0].partition(";")[0].rstrip("/")

    def session(self) -> SparkSession:
        """The session, after asking the server whether it still has it; else another one.

        MachineError when the server does not answer, or lacks what our work needs.
        """
        held = self._session
        if held is not None and _has(held):
            return held
        with self._lock:
            if self._session is None or self._session is held:
                if held is not None:
                    held.client.set_retry_policies([])  # which its client would use at the end of the process
                self._session = None
                self._session = self._started()
            return self._session

    def _started(self) -> SparkSession:
        session = _client_session(self.url)
        try:
            with server_faults(session):
                _require_version(session.version, self.address)
                self.say(f"Opening a session at {self.address}.")
                self._configure(session)
                _require_kafka(session, self.address)
                archive = package_archive(cache_root() / "packages")
                session.addArtifacts(str(archive), pyfile=True)
                sys.path.remove(str(archive))  # where the client puts it for this process, too
                side = WorkerSide(self.address, "PYSPARK_PYTHON of the Spark Connect server")
                require_workers(session, remote_parallelism(session), archive, side, needs_store=True)
        except BaseException:
            _leave(session)
            raise
        _be_patient(session)
        atexit.unregister(_leave)  # of the session before
        atexit.register(_leave, session)
        return session

    def _configure(self, session: SparkSession) -> None:
        session.conf.set(_REDACTION, _SECRETS)
        for key, value in VALUE_SETTINGS.items():
            session.conf.set(key, value)
        for key, value in self.settings.items():
            try:
                session.conf.set(key, value)
            except Exception as error:  # pyspark has no common base class for errors of both kinds of session
                if "CANNOT_MODIFY" not in str(error):
                    raise
                raise SpecError(
                    f"{key} cannot be changed in a session of the Spark Connect server {self.address}.",
                    hint="Set it where the server is started, and take it out of [spark] here.",
                ) from error


def make_columns(*, for_server: bool) -> None:
    """Let PySpark's functions make columns for a session on a server, or for one of this process's JVM, from now on.

    Work on both at once in one process is not possible. What somebody else has set, such as a notebook with a session
    of its own on a server, is as before when it is for a JVM again.
    """
    if for_server:
        _FORMER.setdefault(_COLUMNS_FOR_SERVER, os.environ.get(_COLUMNS_FOR_SERVER))
        os.environ[_COLUMNS_FOR_SERVER] = "1"
    elif _COLUMNS_FOR_SERVER in _FORMER:
        former = _FORMER.pop(_COLUMNS_FOR_SERVER)
        if former is None:
            os.environ.pop(_COLUMNS_FOR_SERVER, None)
        else:
            os.environ[_COLUMNS_FOR_SERVER] = former


def is_remote(spark: object) -> bool:
    """Whether a session is on a Spark Connect server. Its client is imported only by who has one."""
    return type(spark).__module__.startswith(_PACKAGE)


def remote_parallelism(spark: SparkSession) -> int:
    """How many tasks the server would make of rows that nobody has divided: the cores that it has just now, or 2."""
    undivided: Any = spark.range(1)
    splits = _SPLITS.search(undivided._explain_string(mode="simple"))
    return int(splits[1]) if splits is not None else 2


@contextmanager
def server_faults(spark: SparkSession) -> Iterator[None]:
    """MachineError when a Spark Connect server does not answer, or has ended the session. Other errors go on."""
    try:
        yield
    except Exception as error:
        fault = _fault(spark, error) if is_remote(spark) and not isinstance(error, HybridError) else None
        if fault is None:
            raise
        raise fault from error


def _has(session: SparkSession) -> bool:
    """Whether the server has a session. MachineError when it does not answer."""
    try:
        with server_faults(session):
            return session.conf.get("spark.app.id") is not None
    except MachineError as error:
        if _has_ended(error.__cause__):
            return False
        raise


def _has_ended(error: BaseException | None) -> bool:
    return any(words in str(error) for words in _ENDED)


def _fault(spark: SparkSession, error: Exception) -> MachineError | None:
    server = f"The Spark Connect server on {spark.client.host}"
    if _has_ended(error):
        return MachineError(
            f"{server} has ended the session: it was started again, or took the session for left. Nothing was "
            "committed.",
            hint="`hybrid serve` opens another one by itself; a command can be run again.",
        )
    status = _status(error)
    if status in _REFUSED:
        return MachineError(
            f"{server} refuses this process: {_words(error)}",
            hint="Put its token into SPARK_CONNECT_AUTHENTICATE_TOKEN, and use_ssl=true into spark.master.",
        )
    if status in _SILENT:
        return MachineError(
            f"{server} does not answer: {_words(error)}. Nothing was committed.",
            hint="Start it. `hybrid serve` goes on by itself when it answers; a command can be run again.",
        )
    return None


def _status(error: Exception) -> str:
    """The name of a gRPC status; empty for an error without one."""
    status = getattr(error, "getGrpcStatusCode", getattr(error, "code", None))
    return str(getattr(status() if callable(status) else None, "name", ""))


def _words(error: Exception) -> str:
    text = str(error).strip()
    details = _DETAILS.search(text)
    return (details[1] if details is not None else text.partition("\n")[0]).rstrip(".")


def _client_session(url: str) -> SparkSession:
    """A session that has asked the server nothing yet. SpecError for a URL that cannot be one."""
    try:
        import grpc
        from pyspark.sql.connect.client import DefaultChannelBuilder
        from pyspark.sql.connect.session import SparkSession
    except ImportError as error:
        raise MachineError(
            f"Spark Connect needs packages that are not installed: {short_words(error)}",
            hint="pip install 'hybrid[spark-connect]'",
        ) from error

    class LimitedRequests(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]
        """Ends requests with one answer that get none in time, as from a frozen server."""

        def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
            return continuation(details._replace(timeout=_REQUEST_S), request)

    try:
        builder = DefaultChannelBuilder(url)
    except ValueError as error:
        raise SpecError(
            f"spark.master '{url.partition(';')[0]}' is no address of a Spark Connect server: {short_words(error)}",
            hint='master = "sc://host:15002" under [spark]',
        ) from error
    builder.setChannelOption("grpc.keepalive_time_ms", _KEEPALIVE_MS)
    builder.setChannelOption("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS)
    builder.setChannelOption("grpc.initial_reconnect_backoff_ms", _RECONNECT_MS[0])
    builder.setChannelOption("grpc.max_reconnect_backoff_ms", _RECONNECT_MS[1])
    builder.add_interceptor(LimitedRequests())
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
    session: Any = SparkSession(connection=builder)
    session.client.set_retry_policies([])  # its own ask for ten minutes
    return session  # type: ignore[no-any-return]


def _be_patient(session: SparkSession) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    # 200 ms to 5.4 s, together 8 s: a connection that was lost for so long goes on.
    policy = DefaultPolicy(max_retries=4, initial_backoff=200, backoff_multiplier=3.0, max_backoff=10_000)
    session.client.set_retry_policies([policy])


def _leave(session: SparkSession) -> None:
    """End a session and its work at the server, if it answers at once."""
    with suppress(Exception):  # the server ends it by itself after an hour
        session.client.set_retry_policies([])
        session.stop()


def _require_version(found: str, address: str) -> None:
    """MachineError when the server's Spark has another version, but for the last number."""
    from pyspark import __version__ as here

    if found.split(".")[:2] != here.split(".")[:2]:
        raise MachineError(
            f"The Spark Connect server {address} has Spark {found}, this process {here}. Nothing was started.",
            hint=f"Start a server of Spark {'.'.join(here.split('.')[:2])}.",
        )


def _require_kafka(session: SparkSession, address: str) -> None:
    """MachineError when the server has no connector of Kafka. No broker is asked."""
    from pyspark import __version__ as here

    reader = session.read.format("kafka").option("kafka.bootstrap.servers", "localhost:9").option("subscribe", "any")
    try:
        _ = reader.load().schema
    except Exception as error:
        if "kafka" not in str(error).lower() or _status(error) in _SILENT:
            raise
        raise MachineError(
            f"The Spark Connect server {address} lacks Spark's connector of Kafka: {short_words(error)}",
            hint=f"Start it with spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:{here}",
        ) from error
