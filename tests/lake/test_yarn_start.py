"""The start of an application on YARN: what is refused at once, and waits that end."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import SparkConf

from hybrid.errors import MachineError
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.spark import SparkSettings, _configuration, leave_out_cluster_defaults, spark_session
from hybrid.lake.spark_workers import WorkerSide, _within
from hybrid.lake.yarn import StartLimits, _ApplicationWatch, limited_start, require_configuration

BRIEF = StartLimits(attempts=1, pause_ms=100, answer_ms=1_000, application_s=0.05, poll_s=0.01)


def test_the_folder_of_the_configuration_must_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
        require_configuration({name: "/etc/some/conf"})
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(MachineError, match=r"no variable names the folder with the cluster's yarn-site\.xml") as raised:
        spark_session(SparkSettings([], tmp_path, master="yarn"))
    assert str(raised.value.hint).startswith("export HADOOP_CONF_DIR=/etc/hadoop/conf")


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.spark
def test_a_resource_manager_that_does_not_answer(
    workbench: CommitContext, monkeypatch: pytest.MonkeyPatch, silent: str, closed: str
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop/conf")
    both = {"ha.enabled": "true", "ha.rm-ids": "one,two", "address.one": closed, "address.two": closed}
    cases = [
        ({"address": closed}, f"at {closed} gives no answer: ConnectException: Connection refused"),
        ({"address": silent}, f"at {silent} gives no answer: SocketTimeoutException"),
        (both, f"at {closed}, {closed} gives no answer: ConnectException"),
    ]
    try:
        for settings, words in cases:
            conf, began = SparkConf(loadDefaults=False), time.monotonic()
            conf.setAll([(f"spark.hadoop.yarn.resourcemanager.{name}", text) for name, text in settings.items()])
            with (
                pytest.raises(MachineError, match=words) as raised,
                limited_start(workbench.spark.sparkContext._jvm, conf, BRIEF),
            ):
                pytest.fail("an application was started")
            assert "yarn-site.xml in /etc/hadoop/conf" in str(raised.value.hint)
            assert time.monotonic() - began < 20
    finally:
        leave_out_cluster_defaults(workbench.spark.sparkContext)  # YARN's client has brought them back


class Yarn:
    """A client of YARN with one application, and the JVM that it is in."""

    def __init__(self, state: str) -> None:
        self.tags, self.killed = set[str](), list[str]()
        name = SimpleNamespace(toString=lambda: "application_1_0001")
        self._report = SimpleNamespace(
            getApplicationId=lambda: name,
            getYarnApplicationState=lambda: state,
            getDiagnostics=lambda: (
                "[Sat Nov 28]  Not yet activated.\nAM resource limit exceeded.  Details : AM Partition"
            ),
            getQueue=lambda: "root.default",
        )

    def __getattr__(self, name: str) -> Any:
        return self  # packages of the JVM

    def newInstance(self) -> Any:
        return SimpleNamespace(setApplicationTags=lambda tags: None)

    def HashSet(self) -> set[str]:
        return self.tags

    def getApplications(self, request: object) -> list[Any]:
        return [self._report]

    def killApplication(self, name: Any) -> None:
        self.killed.append(name.toString())


@pytest.mark.parametrize("state", ["ACCEPTED", "RUNNING"])
def test_an_application_that_gets_no_container_is_killed(state: str) -> None:
    client = Yarn(state)
    watch = _ApplicationWatch(client, client, "hybrid-1", BRIEF)
    watch.start()
    watch.join(0.5)
    watch.end()
    assert client.tags == {"hybrid-1"}
    if state == "RUNNING":
        assert (watch.failure, client.killed) == (None, [])
        watch.kill()  # as after an error of Spark's start
        assert client.killed == ["application_1_0001"]
        return
    assert client.killed == ["application_1_0001"]
    assert "YARN has not started application_1_0001 within 0 s, and it was killed" in str(watch.failure)
    assert "root.default says: [Sat Nov 28] Not yet activated. AM resource limit exceeded." in str(watch.failure)
    assert "Partition" not in str(watch.failure)


def test_keys_of_the_store_are_not_in_the_configuration_of_a_cluster(tmp_path: Path) -> None:
    def keys(**options: Any) -> list[str]:
        found = _configuration(SparkSettings([], tmp_path, **options))
        return [value for key, value in found.items() if key.startswith("spark.hadoop.fs.s3")]

    assert keys(master="yarn", needs_store=True) == [""] * 7
    assert keys(master="yarn") == keys(needs_store=True) == []
    named = {"spark.hadoop.fs.s3a.access.key": "mine"}
    assert "mine" in keys(master="yarn", needs_store=True, extra=named)


def test_errors_of_workers_name_yarns_commands() -> None:
    def of(**context: str) -> WorkerSide:
        return WorkerSide.of(cast("Any", SimpleNamespace(**context)))

    def fails() -> list[str]:
        raise RuntimeError("what nobody expects")

    side, held = of(master="yarn", applicationId="application_1_0001"), Event()
    with pytest.raises(MachineError, match="workers of YARN cannot work: what nobody expects") as raised:
        _within(side, 5, fails)
    assert raised.value.hint == "yarn logs -applicationId application_1_0001"
    with pytest.raises(MachineError, match="No worker of YARN has given a core within 0 s") as raised:
        _within(side, 0.01, lambda: [str(held.wait(5))])
    held.set()
    assert str(raised.value.hint).startswith("yarn application -status application_1_0001; and see spark.executor.")
    assert of(master="spark://there:7077") == WorkerSide("spark://there:7077")
