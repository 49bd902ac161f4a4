"""The session's view of its JVM: each name is looked up once. Expressions are made without a look at the stack."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j import protocol
from py4j.java_gateway import JavaClass, JVMView
from py4j.protocol import Py4JError

from hybrid.lake.commit_context import CommitContext
from hybrid.lake.spark import leave_out_cluster_defaults, remember_names


class Client:
    """A gateway that knows one class, and counts what it is asked."""

    gateway_property = SimpleNamespace(pool=None)
    converters: tuple[object, ...] = ()

    def __init__(self) -> None:
        self.asked: list[str] = []

    def send_command(self, command: str) -> str:
        name = command.split("\n")[2]
        self.asked.append(name)
        if name == "nothing":
            return f"{protocol.ERROR}{protocol.STRING_TYPE}nothing"
        return f"{protocol.SUCCESS}{protocol.CLASS_TYPE}a.b.C" if name.endswith("C") else protocol.SUCCESS_PACKAGE


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def jvm(client: Client) -> JVMView:
    view = JVMView(client, "default", id="rj")
    remember_names(view)
    return view


def test_a_class_is_looked_up_once_by_any_path(client: Client, jvm: JVMView) -> None:
    for _ in range(3):
        assert isinstance(jvm.a.b.C, JavaClass) and isinstance(jvm.C, JavaClass)
    assert client.asked == ["a", "a.b", "a.b.C", "C"]
    assert jvm.a.b is jvm.a.b and jvm.a.other is not jvm.a.b


def test_what_is_not_there_is_asked_for_again(client: Client, jvm: JVMView) -> None:
    for _ in range(2):
        with pytest.raises(Py4JError, match="nothing does not exist in the JVM"):
            _ = jvm.nothing
    assert client.asked == ["nothing", "nothing"]


@pytest.mark.spark
def test_expressions_are_made_without_a_look_at_the_stack(
    workbench: CommitContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import utils
    from pyspark.sql import functions as F

    assert workbench.spark is not None
    monkeypatch.setattr(utils, "_enable_debugging_cache", None)  # PySpark asks for its setting once in a process
    monkeypatch.setattr(utils, "_capture_call_site", lambda depth: pytest.fail("the stack was looked at"))
    assert (F.col("a") + 1) is not None


@pytest.mark.spark
def test_a_local_session_has_no_settings_of_a_cluster(workbench: CommitContext) -> None:
    leave_out_cluster_defaults(workbench.spark.sparkContext)  # an earlier test may have run a job of Hadoop's
    session = workbench.spark._jsparkSession.sessionState().newHadoopConf()
    for hadoop in (workbench.spark.sparkContext._jsc.hadoopConfiguration(), session):  # type: ignore[union-attr]
        assert [key for key in names_of(hadoop) if key.startswith(("yarn.", "mapreduce.jobhistory."))] == []
        assert hadoop.get("fs.s3a.impl") == "org.apache.hadoop.fs.s3a.S3AFileSystem"  # a default of Hadoop's core
        assert hadoop.get("fs.permissions.umask-mode") == "077"  # a setting of ours


def names_of(hadoop: Any) -> list[str]:
    entries = hadoop.iterator()
    names = []
    while entries.hasNext():
        names.append(entries.next().getKey())
    return names
