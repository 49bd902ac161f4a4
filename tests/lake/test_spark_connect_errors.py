"""Errors of a Spark Connect server's client, as users read them; and what passes on unchanged."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.errors import MachineError
from hybrid.lake import spark_connect
from hybrid.lake.spark_connect import ConnectServer, is_remote, make_columns, remote_parallelism, server_faults
from hybrid.lake.spark_values import VALUE_SETTINGS

COLUMNS = "SPARK_CONNECT_MODE_ENABLED"


class Session:
    """A session on a server, by the module of its class."""

    client = SimpleNamespace(host="there")

    def __init__(self, plan: str = "") -> None:
        self._plan = plan

    def range(self, end: int) -> Any:
        return SimpleNamespace(_explain_string=lambda mode: self._plan)


Session.__module__ = "pyspark.sql.connect.session"


class ClientError(Exception):
    """An error with a gRPC status."""

    def __init__(self, text: str, status: str = "UNKNOWN") -> None:
        super().__init__(text)
        self.getGrpcStatusCode = lambda: SimpleNamespace(name=status)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ClientError("[INVALID_HANDLE.SESSION_CHANGED] The handle is invalid."), "on there has ended the session"),
        (RuntimeError("[RESPONSE_ALREADY_RECEIVED] OPERATION_NOT_FOUND from the server"), "has ended the session"),
        (ClientError('<RPC that ended with:\n\tdetails = "x: Connection refused"\n>', "UNAVAILABLE"),
         r"does not answer: x: Connection refused\. Nothing was committed"),
        (ClientError("Deadline Exceeded", "DEADLINE_EXCEEDED"), "does not answer: Deadline Exceeded"),
        (ClientError("Invalid token", "UNAUTHENTICATED"), "refuses this process: Invalid token"),
    ],
    ids=["ended", "received", "refused", "silent", "token"],
)  # fmt: skip
def test_a_lost_server_is_named(error: Exception, words: str) -> None:
    session: Any = Session()
    with pytest.raises(MachineError, match=words) as raised, server_faults(session):
        raise error
    assert raised.value.hint and raised.value.__cause__ is error


def test_other_errors_pass() -> None:
    remote, local = Session(), SimpleNamespace()
    assert is_remote(remote) and not is_remote(local)
    for session, error in ((remote, ClientError("[DIVIDE_BY_ZERO]")), (local, ClientError("x", "UNAVAILABLE"))):
        with pytest.raises(ClientError), server_faults(session):  # type: ignore[arg-type]
            raise error


def test_a_process_leaves_columns_as_somebody_else_had_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for former in (None, "theirs"):
        monkeypatch.setattr("os.environ", {} if former is None else {COLUMNS: former})
        make_columns(for_server=False)
        assert os.environ.get(COLUMNS) == former
        for _ in range(2):
            make_columns(for_server=True)
            assert os.environ[COLUMNS] == "1"
        make_columns(for_server=False)
        assert os.environ.get(COLUMNS) == former


def test_a_session_decides_values_itself_and_the_user_has_the_last_word() -> None:
    settings: dict[str, str] = {}
    session: Any = SimpleNamespace(conf=SimpleNamespace(set=settings.__setitem__))
    ConnectServer("sc://there", {"spark.sql.ansi.enabled": "false"}, print)._configure(session)
    assert settings["spark.sql.storeAssignmentPolicy"] == "ANSI" and settings["spark.sql.ansi.enabled"] == "false"
    assert VALUE_SETTINGS.keys() <= settings.keys()


def test_the_version_of_spark() -> None:
    from pyspark import __version__

    spark_connect._require_version(f"{__version__.rpartition('.')[0]}.99", "sc://there")
    with pytest.raises(MachineError, match=f"sc://there has Spark 3.5.1, this process {__version__}"):
        spark_connect._require_version("3.5.1", "sc://there")


def test_the_cores_of_a_plan() -> None:
    session: Any = Session("*(1) Range (0, 1, step=1, splits=12)\n")
    assert remote_parallelism(session) == 12
    other: Any = Session("LocalTableScan [id]")
    assert remote_parallelism(other) == 2


def test_an_address_has_no_parameters() -> None:
    for url in ("sc://there:15002/;use_ssl=true", "sc://there:15002;use_ssl=true", "sc://there:15002/"):
        assert ConnectServer(url, {}, print).address == "sc://there:15002"
