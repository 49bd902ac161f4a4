"""One lock per half: acts on a half are serial, across processes of this machine.

The lock is `flock` on a file beside the half, so it is gone when its holder is. But a killed Python process can leave
its JVM behind for a moment, in the middle of a commit; two JVMs must never write one local Delta log. So the holder
writes down its JVM, and whoever takes the lock next waits until that JVM is gone, or ends it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hybrid.errors import ConflictError

_POLL_S = 0.05
_ORPHAN_GRACE_S = 5.0


@contextmanager
def half_lock(path: Path, *, jvm_pid: int | None, timeout_s: float, waiting: Callable[[str], None]) -> Iterator[None]:
    """Holds the lock of a half. ConflictError after `timeout_s`; `waiting` is told once why it waits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        _acquire(file, path, timeout_s, waiting)
        try:
            _await_orphan(_read_holder(file), own_jvm=jvm_pid)
            _write_holder(file, jvm_pid)
            yield
            _write_holder(file, None)
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def _acquire(file: IO[str], path: Path, timeout_s: float, waiting: Callable[[str], None]) -> None:
    deadline = time.monotonic() + timeout_s
    told = False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise ConflictError(
                    f"Another process (pid {_read_holder(file).get('pid', '?')}) has acted on {path.stem} of table "
                    f"'{path.parent.name}' for over {timeout_s:g} s. Nothing was changed.",
                    hint="Run it again when the other is done, or set a longer lock_timeout_s.",
                ) from None
            if not told:
                waiting(f"Waiting for another process that acts on {path.stem} of table '{path.parent.name}'.")
                told = True
            time.sleep(_POLL_S)


def _read_holder(file: IO[str]) -> dict[str, object]:
    file.seek(0)
    try:
        found = json.loads(file.read() or "{}")
    except ValueError:  # the holder died while it wrote
        return {}
    return found if isinstance(found, dict) else {}


def _write_holder(file: IO[str], jvm_pid: int | None) -> None:
    file.seek(0)
    file.truncate()
    if jvm_pid is not None:
        json.dump({"pid": os.getpid(), "jvm": jvm_pid, "jvm_started": _started(jvm_pid)}, file)
    file.flush()


def _await_orphan(holder: dict[str, object], own_jvm: int | None) -> None:
    """Waits until the JVM of a holder that died is gone; ends it after a grace period."""
    pid = holder.get("jvm")
    if not isinstance(pid, int) or pid == own_jvm:
        return
    deadline = time.monotonic() + _ORPHAN_GRACE_S
    while _started(pid) == holder.get("jvm_started") is not None:
        if time.monotonic() >= deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def _started(pid: int) -> str | None:
    """When a process began, in a form that tells it from a later one of the same number; None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return _started_by_ps(pid) if not Path("/proc/self").exists() else None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else fields[19]


def _started_by_ps(pid: int) -> str | None:
    """The same where there is no /proc (macOS)."""
    import subprocess

    found = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip() or None
