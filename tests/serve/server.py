"""A real `hybrid serve` on a home, with the calls that a client makes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.watchdog import watch

READY_S = 60.0


class Server:
    """`hybrid serve` in a process group of its own, but for its JVM, whose session is its own.

    `env` are further variables of its processes, `options` its own; `headers` go with each request.
    """

    headers: Mapping[str, str] = {}

    def __init__(
        self, home: Path, broker: str | None = None, env: Mapping[str, str] | None = None, options: Sequence[str] = ()
    ) -> None:
        self.home = home
        self.log = home.parent / f"{home.name}-serve.log"
        known = {**os.environ, **({"HYBRID_KAFKA": broker} if broker else {}), **(env or {})}
        command = [
            sys.executable,
            "-m",
            "hybrid.cli",
            "--home",
            str(home),
            "serve",
            "--port",
            "0",
            "--broker-port",
            "0",
            *options,
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=known, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        watch(self.process)

    def __enter__(self) -> Server:
        try:
            self.await_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def address(self) -> dict[str, Any]:
        """What the running server leaves in its home: url, broker_url, pid."""
        return json.loads((self.home / "server.json").read_text())

    @property
    def url(self) -> str:
        return self.address["url"]

    @property
    def jvm_mark(self) -> str:
        """What its JVM is known by among all processes: it has a session of its own, and may outlive who started it."""
        return str(self.home / "logs" / "spark-log4j2.properties")

    def pids(self, role: str) -> list[int]:
        """The processes of this server: `serve`, `query`, `pipeline`, `java`."""
        found = []
        for pid, words in self._group():
            is_role = "--role" in words and words[words.index("--role") + 1] == role
            is_serve = role == "serve" and "serve" in words and "--role" not in words
            is_java = role == "java" and words[0].endswith("java")
            if is_role or is_serve or is_java:
                found.append(pid)
        return found

    def _group(self) -> list[tuple[int, list[str]]]:
        """The processes that run of it, with their command lines. Read in `/proc`: a start of `ps` takes longer."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                state, _, group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
                words = (folder / "cmdline").read_text(errors="replace").split("\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            is_ours = int(group) == self.process.pid or any(self.jvm_mark in word for word in words)
            if is_ours and state not in "ZX":
                found.append((int(folder.name), words))
        return found

    def answers(self, path: str, status: int = 200) -> bool:
        """Whether it answers with this status, soon."""
        try:
            return self.call("GET", path, timeout=5, text=True)[0] == status
        except (OSError, ValueError):
            return False

    def is_ready(self) -> bool:
        return self.answers("/readyz")

    def await_ready(self, timeout_s: float = READY_S) -> float:
        """Waits for readiness; the seconds it took."""
        started = time.monotonic()
        while not self.is_ready():
            assert time.monotonic() - started < timeout_s, f"not ready after {timeout_s} s\n{self.logged()}"
            time.sleep(0.1)
        return time.monotonic() - started

    def call(
        self, method: str, path: str, body: object = None, *, timeout: float = 120, text: bool = False
    ) -> tuple[int, Any]:
        """Status and JSON of a request."""
        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        headers = {**self.headers, **({"Content-Type": "application/json"} if data is not None else {})}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                status, answer = response.status, response.read()
        except urllib.error.HTTPError as error:
            status, answer = error.code, error.read()
        return status, answer.decode() if text else json.loads(answer)

    def ok(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of a request that must succeed."""
        status, answer = self.call(method, path, body)
        assert status == 200, (status, answer)
        return answer

    def rows(self, sql: str) -> list[list[Any]]:
        """The rows of a statement that must succeed."""
        answer = self.ok("POST", "/query/sql", {"sql": sql})
        assert answer["exceptions"] == [], answer
        return answer["resultTable"]["rows"]

    def await_task(self, task: str, timeout_s: float = 120) -> dict[str, Any]:
        """Follows a run to its end."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            run = self.ok("GET", f"/runs/{task}")
            if run["state"] not in {"QUEUED", "RUNNING"}:
                return run
            time.sleep(0.05)
        raise AssertionError(f"{task} goes on: {run}\n{self.logged()}")

    def await_true(self, look: Callable[[], bool], what: str, timeout_s: float = READY_S) -> None:
        """Waits until something holds."""
        deadline = time.monotonic() + timeout_s
        while not look():
            assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}\n{self.logged()}"
            time.sleep(0.1)

    def logged(self) -> str:
        """The ends of what the processes said."""
        logs = [self.log, *sorted((self.home / "logs").glob("*.log"))]
        return "\n".join(f"== {log}\n{log.read_text(errors='replace')[-2000:]}" for log in logs if log.exists())

    def terminate(self, timeout_s: float = 10.0) -> float:
        """SIGTERM to `serve`; the seconds until it had ended."""
        started = time.monotonic()
        os.kill(self.address["pid"], signal.SIGTERM)
        while self._group():
            assert time.monotonic() - started < timeout_s, f"{self._group()}\n{self.logged()}"
            if self.process.poll() is None:
                time.sleep(0.02)
        return time.monotonic() - started

    def kill(self) -> None:
        """Ends whatever is left of it."""
        for pid in [pid for pid, _ in self._group()]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait(timeout=10)
