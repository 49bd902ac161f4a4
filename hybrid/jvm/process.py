"""A process that may outlive us, identified by number *and* start time, because the system reuses numbers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_POLL_S = 0.05


@dataclass(frozen=True)
class Process:
    """A running process. `started` is the system's text for its start time, compared literally."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """The process with this number, or None when there is none. A zombie counts as none."""
        started = _started(pid)
        return None if started is None else cls(pid, started)

    def is_alive(self) -> bool:
        """Whether this same process is still running."""
        return _started(self.pid) == self.started

    def stop(self, grace_s: float) -> None:
        """Terminate it, and kill it after `grace_s` seconds. Leaves another process with the same number alone."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if not self.is_alive():
                return
            os.kill(self.pid, sign)
            deadline = time.monotonic() + grace_s
            while self.is_alive() and time.monotonic() < deadline:
                time.sleep(_POLL_S)

    def save(self, path: Path, **more: object) -> None:
        """Write it, with further fields, as JSON readable by this user only. Readers see all of it or nothing.

        The record names its folder too, so that `read_record` ignores it in a copy of the folder.
        """
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(json.dumps({**vars(self), "folder": _identity(path.parent), **more}))
        os.replace(part, path)


def read_record(path: Path, *, same_path: bool = True) -> dict[str, Any] | None:
    """The record that `Process.save` wrote, if that process is alive and the record was saved in this same folder.

    None in a copy of the folder. With `same_path` also in a moved folder, because the process works on the old path.
    """
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        saved, here = record["folder"], _identity(path.parent)
        same = all(saved[key] == here[key] for key in here if same_path or key != "path")
        return record if same and Process(record["pid"], record["started"]).is_alive() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _identity(folder: Path) -> dict[str, str | int]:
    """The path of a folder, and device and inode, which distinguish it from its copies."""
    status = folder.stat()
    return {"path": str(folder.resolve()), "device": status.st_dev, "inode": status.st_ino}


def _started(pid: int) -> str | None:
    _bury(pid)
    if Path("/proc/self/stat").exists():
        return _started_linux(pid)
    answer = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True)
    state, _, started = answer.stdout.strip().partition(" ")
    return started.strip() if started and not state.startswith("Z") else None


def _started_linux(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the name in parentheses may hold spaces
    return None if fields[0] in "ZX" else fields[19]


def _bury(pid: int) -> None:
    """Reap a child of ours that has ended, which is a zombie until then."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
