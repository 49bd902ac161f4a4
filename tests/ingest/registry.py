"""A real schema registry for tests: Apicurio, whose runner starts on Java and keeps its data in memory."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from hybrid.jvm.java import find_java
from tests.watchdog import watch

FOLDER = Path(sys.prefix) / "clients" / "registry"
RUNNER = FOLDER / "apicurio-registry-app-3.0.9-runner.jar"
_START_S = 120.0


class LocalRegistry:
    """The registry's process. `url` is its API in Confluent's shape; `stop` and `start` keep the port."""

    def __init__(self, folder: Path) -> None:
        if not RUNNER.exists():
            pytest.skip("the schema registry is not installed: tests/clients/install")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    def start(self) -> None:
        """Starts it and waits until it answers."""
        settings = (f"-Dquarkus.http.port={self._port}", "-Dquarkus.http.host=127.0.0.1", "-Xmx300m")
        env = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
        with (self._folder / "registry.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(find_java().executable), *settings, "-XX:TieredStopAtLevel=1", "-jar", str(RUNNER)],
                cwd=self._folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        watch(self._process)
        until = time.monotonic() + _START_S
        while not self._answers():
            assert self._process.poll() is None and time.monotonic() < until, (
                self._folder / "registry.log"
            ).read_text()
            time.sleep(0.2)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=2) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False

    def stop(self) -> None:
        """Ends it; what it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
