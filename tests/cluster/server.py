"""`hybrid serve` on a host of a cluster, in a home of its own, with the calls that a client elsewhere makes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hybrid.catalog.ownership import warehouse_owner
from tests.cluster.network import Host
from tests.cluster.role import Role
from tests.serve.server import Server

PORT = 9000
ROOT = Path(__file__).resolve().parents[2]


class ClusterServer(Server):
    """A server, reached by the address of its host with the secret of an account."""

    def __init__(self, name: str, host: Host, folder: Path, secret: str, env: Mapping[str, str]) -> None:
        self.name, self.home, self.secret = name, folder / name / "home", secret
        command = [sys.executable, "-m", "hybrid.cli", "--home", str(self.home)]
        command += ["serve", "--host", host.address]
        known = {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": host.address, **env}
        self.role = Role(name, host, command, folder / name, self.answers, known)
        self.log = self.role.log
        self.headers = {"Authorization": f"Bearer {secret}"}

    @property
    def url(self) -> str:
        return f"http://{self.role.host.address}:{PORT}"

    @property
    def owner_id(self) -> str:
        """What the warehouse calls this home."""
        return warehouse_owner(self.home).id

    def answers(self) -> bool:
        return self.is_ready()

    def kill_role(self, role: str) -> None:
        """kill -9 of one process: `query`, `pipeline` or `java`."""
        pids = self.pids(role)
        assert pids, f"{self.name} has no {role}\n{self.logged()}"
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def _group(self) -> list[tuple[int, list[str]]]:
        found = []
        for pid in self.role.host.pids():
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
                if words[0]:  # a zombie has none
                    found.append((pid, words))
        return found

    def kill(self) -> None:
        self.role.kill()
