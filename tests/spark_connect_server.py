"""A Spark Connect server on this machine, whose workers do not see given folders."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.jvm.java import find_java
from tests.hidden_process import start_apart, without_folders
from tests.shared_jvm import INTERPRETED
from tests.spark_cluster import JAVA_OPENED, open_files, spark_home

_START_S = 60.0


@dataclass
class SparkConnectServer:
    """`start` and `kill` it as often as a test needs: its address stays. Its logs and its workers' files: `folder`."""

    folder: Path
    jars: Sequence[Path] = ()
    hidden: Sequence[Path] = ()
    python: str = sys.executable
    port: int = field(default_factory=lambda: _free_port())
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    @property
    def settings(self) -> str:
        """Lines of `hybrid.toml`, below those of the top level."""
        return f'[spark]\nmaster = "{self.url}"\nworker_files = "store"\n'

    @property
    def has_open_files(self) -> bool:
        """Whether one of its workers writes or uploads a file just now."""
        return bool(open_files(self.folder / "local"))

    def start(self) -> None:
        """Start it, and wait until it answers."""
        for name in ("local", "events"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        log = self.folder / "server.log"
        known = {"SPARK_HOME": str(spark_home()), "SPARK_LOCAL_DIRS": str(self.folder / "local")}
        known |= {"PYSPARK_PYTHON": self.python, "JAVA_HOME": str(find_java().home)}
        self.process = start_apart(without_folders(self._words(), self.hidden), log, known)
        end = time.monotonic() + _START_S
        while not _listens(self.port):
            assert self.process.poll() is None and time.monotonic() < end, log.read_text(errors="replace")[-4000:]
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL for it and its workers."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def _words(self) -> list[str]:
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": f"file://{self.folder}/events",
            **INTERPRETED,
        }
        configuration = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        jars = ["--jars", ",".join(map(str, self.jars))] if self.jars else []
        return [
            str(find_java().executable), "-Xmx700m", *JAVA_OPENED, "-cp", f"{spark_home()}/jars/*",
            "org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", *configuration, *jars,
            "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal",
        ]  # fmt: skip


@contextmanager
def spark_connect_server(server: SparkConnectServer) -> Iterator[SparkConnectServer]:
    """Start a server until the end of the block."""
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0
