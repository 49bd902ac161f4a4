"""YARN on this machine: a ResourceManager, and a NodeManager whose containers do not see given folders."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from hybrid.errors import MachineError
from hybrid.jvm.jars import ensure_jars
from hybrid.jvm.java import find_java
from hybrid.progress import Silent
from tests.hidden_process import start_apart, without_folders
from tests.spark_cluster import JAVA_OPENED, interpreted, open_files, spark_home

_START_S = 60.0
_LOCK = Path(__file__).with_name("yarn.lock")
# What the daemons need of pyspark's jars, of which others have classes of the same names.
_OF_SPARK = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "log4j", "jcl-over-slf4j")
_LOG4J = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""
_QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}
_NODE = {
    **{f"yarn.nodemanager.{name}": "127.0.0.1:0" for name in ("address", "localizer.address", "webapp.address")},
    "yarn.nodemanager.resource.memory-mb": "4096",
    "yarn.nodemanager.resource.cpu-vcores": "4",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
}


@dataclass
class YarnCluster:
    """Its daemons can be started and killed by name, at the same addresses. Logs and containers are in `folder`."""

    folder: Path
    hidden: Sequence[Path]
    jars: Sequence[Path]
    ports: Sequence[int] = field(default_factory=lambda: _free_ports(4))
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def configuration(self) -> Path:
        """The folder for HADOOP_CONF_DIR."""
        return self.folder / "conf"

    @property
    def address(self) -> str:
        """The ResourceManager's address for clients."""
        return f"127.0.0.1:{self.ports[0]}"

    @property
    def settings(self) -> str:
        """Lines of `[spark]` for a home that uses it."""
        java, brief = find_java().home, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        return (
            f'[spark]\nmaster = "yarn"\nworker_python = "{sys.executable}"\ndriver_memory = "600m"\n'
            '"driver.host" = "127.0.0.1"\n"driver.bindAddress" = "127.0.0.1"\n"executor.memory" = "512m"\n'
            f'"yarn.jars" = "local:{spark_home()}/jars/*"\n"yarn.stagingDir" = "file://{self.folder}/staging"\n'
            f'"yarn.appMasterEnv.JAVA_HOME" = "{java}"\n"executorEnv.JAVA_HOME" = "{java}"\n'
            f'"yarn.am.extraJavaOptions" = "{brief}"\n"executor.extraJavaOptions" = "{brief}"\n' + interpreted()
        )

    def start(self) -> None:
        """Start both daemons, and wait until the node offers its cores."""
        self._start("resourcemanager.ResourceManager", ())
        log = self._start("nodemanager.NodeManager", self.hidden)
        end = time.monotonic() + _START_S
        while "Registered with ResourceManager" not in (said := log.read_text(errors="replace")):
            ended = [name for name, process in self.daemons.items() if process.poll() is not None]
            assert not ended and time.monotonic() < end, f"{ended} ended, see {self.folder}\n{said[-4000:]}"
            time.sleep(0.05)

    def kill(self, daemon: str) -> None:
        """SIGKILL for `ResourceManager` or `NodeManager`; containers live on."""
        process = self.daemons.pop(daemon)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def writing_containers(self) -> set[int]:
        """The containers of which a task writes or uploads a file just now, as sessions of the operating system."""
        files = open_files(self.folder / "local")
        folders = {part for file in files for part in Path(file).parts if part.startswith("blockmgr-")}
        found = set[int]()
        for environment in Path("/proc").glob("[0-9]*/environ") if folders else ():
            with suppress(OSError):  # the process has ended
                text = environment.read_text(errors="replace")  # Spark tells a task's Python where the folder is
                if any(folder in text for folder in folders):
                    found.add(os.getsid(int(environment.parts[2])))
        return found

    def stop(self) -> None:
        for name in [*self.daemons]:
            self.kill(name)
        for link in Path("/proc").glob("[0-9]*/cwd"):
            with suppress(OSError):  # the process has ended
                if os.readlink(link).startswith(f"{self.folder}/local/"):
                    kill_container(os.getsid(int(link.parts[2])))

    def _start(self, role: str, hidden: Sequence[Path]) -> Path:
        """Start a daemon. Returns its log."""
        pyspark = [path for path in (spark_home() / "jars").iterdir() if path.name.startswith(_OF_SPARK)]
        class_path = ":".join(map(str, [self.configuration, *self.jars, *pyspark]))
        name = role.partition(".")[2]
        words = [str(find_java().executable), "-Xmx256m", *JAVA_OPENED, "-cp", class_path]
        words.append(f"org.apache.hadoop.yarn.server.{role}")
        log = self.folder / f"{name}.log"
        # No JAVA_HOME: the settings say where containers find it.
        self.daemons[name] = start_apart(without_folders(words, hidden), log, {})
        return log

    def _configure(self) -> None:
        client, scheduler, tracker, admin = (f"127.0.0.1:{port}" for port in self.ports)
        self.configuration.mkdir(parents=True)
        files = {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(self.folder / "tmp")}
        _write_xml(self.configuration / "core-site.xml", files)
        _write_xml(self.configuration / "capacity-scheduler.xml", _QUEUES)
        yarn = {
            "yarn.resourcemanager.address": client,
            "yarn.resourcemanager.scheduler.address": scheduler,
            "yarn.resourcemanager.resource-tracker.address": tracker,
            "yarn.resourcemanager.admin.address": admin,
            "yarn.resourcemanager.webapp.address": "127.0.0.1:0",
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "100",
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.nodemanager.local-dirs": str(self.folder / "local"),
            "yarn.nodemanager.log-dirs": str(self.folder / "containers"),
            **_NODE,
        }
        _write_xml(self.configuration / "yarn-site.xml", yarn)
        (self.configuration / "log4j2.properties").write_text(_LOG4J)


@contextmanager
def yarn_cluster(folder: Path, hidden: Sequence[Path] = ()) -> Iterator[YarnCluster]:
    """A cluster of one node, to be started, until the end of the block. Without YARN's jar the test is skipped.

    Containers see empty folders in the place of those in `hidden`.
    """
    try:
        jars = ensure_jars(Silent(), lock_file=_LOCK).spark
    except MachineError as error:
        pytest.skip(f"YARN's jar cannot be had: {error}")
    cluster = YarnCluster(folder, hidden, jars)
    cluster._configure()
    try:
        yield cluster
    finally:
        cluster.stop()


def kill_container(session: int) -> None:
    """SIGKILL for all processes of a container: its shell, its Java and its Python workers."""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            if os.getsid(int(path.name)) == session:
                os.kill(int(path.name), signal.SIGKILL)


def _write_xml(path: Path, values: Mapping[str, str]) -> None:
    properties = (
        f"<property><name>{name}</name><value>{escape(text)}</value></property>\n" for name, text in values.items()
    )
    path.write_text(f"<configuration>\n{''.join(properties)}</configuration>\n")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for free in sockets:
        free.bind(("127.0.0.1", 0))
    ports = [int(free.getsockname()[1]) for free in sockets]
    for free in sockets:
        free.close()
    return ports
