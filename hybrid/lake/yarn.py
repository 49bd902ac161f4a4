"""YARN as Spark's master: its configuration must be named, and an application's start is awaited for a limited time.

Hadoop's client asks for a ResourceManager for fifteen minutes, and Spark awaits its application without an end. Only
the start has shorter limits: with Hadoop's own, a running application survives a restart of the ResourceManager.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybrid.errors import MachineError
from hybrid.jvm.spark_errors import short_words

if TYPE_CHECKING:
    from pyspark import SparkConf

MASTER = "yarn"
_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_ADDRESS, _HOST = "yarn.resourcemanager.address", "yarn.resourcemanager.hostname"
_TAGS = "spark.yarn.tags"
# States of an application that has no process yet.
_WAITING = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED")


@dataclass(frozen=True)
class StartLimits:
    """How long a start waits: for a ResourceManager, which is asked `attempts` + 1 times, and for an application."""

    attempts: int = 3
    pause_ms: int = 2_000
    answer_ms: int = 5_000
    application_s: float = 120.0
    poll_s: float = 5.0


def require_configuration(environ: Mapping[str, str]) -> None:
    """MachineError unless the environment names the folder with the cluster's addresses.

    Spark's launcher then ends without a word to this process. A `spark-env.sh`, by SPARK_CONF_DIR, may name it, too.
    """
    if not any(environ.get(name) for name in (*_FOLDERS, "SPARK_CONF_DIR")):
        raise MachineError(
            "spark.master is 'yarn', and no variable names the folder with the cluster's yarn-site.xml. "
            "Nothing was started.",
            hint="export HADOOP_CONF_DIR=/etc/hadoop/conf, or where core-site.xml and yarn-site.xml are.",
        )


@contextmanager
def limited_start(jvm: Any, conf: SparkConf, limits: StartLimits | None = None) -> Iterator[None]:
    """Start a Spark context of this configuration in the block; the configuration gets a tag for its application.

    MachineError when no ResourceManager answers, or when YARN gives the application no container in time: it is killed.
    """
    limits = limits or StartLimits()
    client = _client(jvm, conf, limits)
    tag = f"hybrid-{uuid.uuid4().hex}"
    conf.set(_TAGS, ",".join(filter(None, [conf.get(_TAGS, None), tag])))
    watch = _ApplicationWatch(jvm, client, tag, limits)
    watch.start()
    try:
        yield
    except BaseException as error:  # Ctrl-C too: nobody would use the application that YARN starts later
        watch.kill()
        if watch.failure is not None:
            raise watch.failure from error
        raise
    finally:
        watch.end()
        client.stop()


class _ApplicationWatch(threading.Thread):
    """Kills the application with a tag when YARN gives it no container in time, which ends Spark's start with an error.

    `failure` is the reason then.
    """

    def __init__(self, jvm: Any, client: Any, tag: str, limits: StartLimits) -> None:
        super().__init__(name="yarn-application", daemon=True)
        tags = jvm.java.util.HashSet()
        tags.add(tag)
        self._request = jvm.org.apache.hadoop.yarn.api.protocolrecords.GetApplicationsRequest.newInstance()
        self._request.setApplicationTags(tags)
        self._client, self._limits = client, limits
        self._ended = threading.Event()
        self.failure: MachineError | None = None

    def run(self) -> None:
        waits_since: float | None = None
        while not self._ended.wait(self._limits.poll_s):
            with suppress(Exception):  # without an answer it asks again; Spark's own requests go on, too
                report = self._report(*_WAITING)
                if report is None:
                    continue
                waits_since = waits_since or time.monotonic()
                if time.monotonic() - waits_since >= self._limits.application_s:
                    self._give_up(report)
                    return

    def end(self) -> None:
        """Watch no longer."""
        self._ended.set()
        self.join()

    def kill(self) -> None:
        """Kill the application unless it has ended. Without an answer it is left: it ends when it finds no driver."""
        with suppress(Exception):
            report = self._report(*_WAITING, "RUNNING")
            if report is not None:
                self._client.killApplication(report.getApplicationId())

    def _report(self, *states: str) -> Any | None:
        """YARN's report of the application, if it is submitted and in one of these states."""
        reports = [*self._client.getApplications(self._request)]
        return next((report for report in reports if str(report.getYarnApplicationState()) in states), None)

    def _give_up(self, report: Any) -> None:
        name, words = report.getApplicationId().toString(), " ".join(str(report.getDiagnostics()).split())
        self.failure = MachineError(
            f"YARN has not started {name} within {self._limits.application_s:.0f} s, and it was killed. "
            f"The queue {report.getQueue()} says: {words.partition(' Details :')[0] or 'nothing'}",
            hint='Name a queue with free memory under [spark], "yarn.queue", or ask for less: "yarn.am.memory".',
        )
        self._client.killApplication(report.getApplicationId())


def _client(jvm: Any, conf: SparkConf, limits: StartLimits) -> Any:
    """A client of YARN with short waits, for the same cluster and user as Spark's. MachineError without an answer."""
    spark = jvm.org.apache.spark.SparkConf()  # with what the launcher has read from files
    for key, value in conf.getAll():
        spark.set(key, value)
    hadoop = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(spark)
    yarn = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration(hadoop)
    for key, value in _waits(limits).items():
        yarn.set(key, value)
    client = jvm.org.apache.hadoop.yarn.client.api.YarnClient.createYarnClient()
    client.init(yarn)
    client.start()
    try:
        client.getYarnClusterMetrics()
    except Exception as error:  # py4j's errors are of Java's any class
        client.stop()
        reason = short_words(error).partition(". ch :")[0]  # behind it is the name of a socket
        folders = " or ".join(os.environ[name] for name in _FOLDERS if os.environ.get(name))
        raise MachineError(
            f"YARN's ResourceManager at {_addresses(yarn)} gives no answer: {reason}. Nothing was started.",
            hint=f"Is it running? Its address is {_ADDRESS} in yarn-site.xml{f' in {folders}' if folders else ''}.",
        ) from error
    return client


def _waits(limits: StartLimits) -> dict[str, str]:
    """Settings of Hadoop's client: a few attempts for a refused connection and for a silent server."""
    return {
        "yarn.resourcemanager.connect.max-wait.ms": str(limits.attempts * limits.pause_ms),
        "yarn.resourcemanager.connect.retry-interval.ms": str(limits.pause_ms),
        "yarn.client.failover-max-attempts": str(limits.attempts),
        "yarn.client.failover-sleep-base-ms": str(limits.pause_ms),
        "yarn.client.failover-sleep-max-ms": str(limits.pause_ms),
        "yarn.timeline-service.enabled": "false",
        "ipc.client.connect.max.retries": "0",
        "ipc.client.connect.max.retries.on.timeouts": "0",
        "ipc.client.connect.timeout": str(limits.answer_ms),
        "ipc.client.rpc-timeout.ms": str(limits.answer_ms),
    }


def _addresses(yarn: Any) -> str:
    """The addresses of all ResourceManagers, as the configuration has them."""
    names = [f".{name}" for name in yarn.getTrimmedStrings("yarn.resourcemanager.ha.rm-ids")] or [""]
    return ", ".join(yarn.get(f"{_ADDRESS}{name}") or f"{yarn.get(f'{_HOST}{name}')}:8032" for name in names)
