"""A Spark standalone cluster on this machine: a master, and workers that do not see given folders."""

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
from glob import glob
from importlib.util import find_spec
from pathlib import Path

from hybrid.jvm.java import find_java
from tests.hidden_process import start_apart, without_folders
from tests.shared_jvm import INTERPRETED

_START_S = 60.0
# What Spark's own scripts give its Java.
JAVA_OPENED = [
    f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.nio", "sun.nio.ch", "java.util")
]


def open_files(folder: Path) -> list[str]:
    """The files, relative to a folder of workers, that their tasks write or upload just now."""
    # Path.glob fails when a task removes its folder meanwhile.
    return glob("**/hybrid-*/**/*.parquet", root_dir=folder, recursive=True)


@dataclass
class SparkWorker:
    """A worker, the leader of a process group with its executors."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def has_open_files(self) -> bool:
        """Whether one of its tasks writes or uploads a file just now."""
        return bool(open_files(self.folder))

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class SparkCluster:
    """`settings` are lines of `[spark]` for a home that uses it."""

    master: str
    folder: Path
    hidden: Sequence[Path] = ()
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def settings(self) -> str:
        return (
            f'[spark]\nmaster = "{self.master}"\nworker_python = "{sys.executable}"\ndriver_memory = "600m"\n'
            '"driver.host" = "127.0.0.1"\n"driver.bindAddress" = "127.0.0.1"\n"executor.memory" = "512m"\n'
            + interpreted()
        )

    def start_worker(self, name: str, cores: Sequence[int] | None = None) -> SparkWorker:
        """A worker with one core, pinned to `cores` of the machine. Call `await_workers` behind it."""
        folder = self.folder / name
        (folder / "local").mkdir(parents=True)
        words = _java("worker.Worker", "--cores", "1", "--memory", "600m", "--work-dir", str(folder), self.master)
        if cores is not None:
            words = ["taskset", "-c", ",".join(map(str, cores)), *words]
        words = without_folders(words, self.hidden)
        process = self._start(words, f"{name}.log", SPARK_LOCAL_DIRS=str(folder / "local"))
        return SparkWorker(process, folder)

    def await_workers(self, *workers: SparkWorker) -> None:
        for worker in workers:
            _await_text(worker.folder.with_suffix(".log"), "Successfully registered with master")

    def _start(self, words: Sequence[str], log: str, **environment: str) -> subprocess.Popen[bytes]:
        known = {"SPARK_HOME": str(spark_home()), "SPARK_SCALA_VERSION": "2.13", "JAVA_HOME": str(find_java().home)}
        process = start_apart(words, self.folder / log, {**known, **environment})
        self.processes.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextmanager
def spark_cluster(folder: Path, hidden: Sequence[Path] = ()) -> Iterator[SparkCluster]:
    """A cluster without workers until the end of the block; its logs and its workers' folders are in `folder`.

    Workers see empty folders in the place of those in `hidden`.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir(parents=True)
    cluster = SparkCluster(f"spark://127.0.0.1:{port}", folder, hidden)
    try:
        cluster._start(_java("master.Master", "--port", str(port)), "master.log")
        _await_text(folder / "master.log", "I have been elected leader")
        yield cluster
    finally:
        cluster.stop()


def _java(role: str, *options: str) -> list[str]:
    return [
        str(find_java().executable), "-Xmx256m", *JAVA_OPENED, "-cp", f"{spark_home()}/jars/*",
        f"org.apache.spark.deploy.{role}", "--host", "127.0.0.1", "--webui-port", "0", *options,
    ]  # fmt: skip


def interpreted() -> str:
    """Lines of `[spark]`: a plan of a test runs once, over a few rows, so its driver and executors interpret it."""
    return "".join(f'"{name.removeprefix("spark.")}" = "{value}"\n' for name, value in INTERPRETED.items())


def spark_home() -> Path:
    package = find_spec("pyspark")
    assert package is not None and package.origin is not None
    return Path(package.origin).parent


def _await_text(log: Path, text: str) -> None:
    end = time.monotonic() + _START_S
    while text not in log.read_text(errors="replace"):
        assert time.monotonic() < end, f"no '{text}' in {log}:\n{log.read_text(errors='replace')[-4000:]}"
        time.sleep(0.05)
