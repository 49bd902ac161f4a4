"""One role of a cluster: a command on a host of its own, which is started, killed and started again by name."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.network import Host
from tests.watchdog import watch

START_S = 120.0
_POLL_S = 0.1


@dataclass
class Role:
    """A host and what runs on it. `answers` says whether it does its work; `env` are further variables."""

    name: str
    host: Host
    command: Sequence[str]
    folder: Path
    answers: Callable[[], bool]
    env: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def start(self) -> None:
        """Start it, as a service manager would; what it kept on its disk is there."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.host.command(self.command),
                env={**os.environ, **self.env},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        watch(self.process)

    def await_answers(self, timeout_s: float = START_S) -> None:
        deadline = time.monotonic() + timeout_s
        while not self.answers():
            assert self.process is not None and self.process.poll() is None, f"{self.name} has ended\n{self.logged()}"
            assert time.monotonic() < deadline, f"{self.name} does not answer\n{self.logged()}"
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """kill -9 of everything on its host."""
        self.host.kill()
        if self.process is not None:
            self.process.wait(timeout=10)

    def logged(self) -> str:
        """The end of what it said."""
        return f"== {self.log}\n{self.log.read_text(errors='replace')[-3000:]}" if self.log.exists() else ""
