"""The lock of a half: operations on a half are serialized across the processes of this machine.

The lock is `flock` on a file beside the half, so it is released when its holder dies. But a killed Python process can
leave its JVM behind for a moment, in the middle of a commit. Two JVMs must never write one local Delta log. So the
holder records its JVM. Whoever takes the lock next waits until that JVM has exited, or ends it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hybrid.errors import ConflictError
from hybrid.jvm.process import Process
from hybrid.runtime import durable
from hybrid.runtime.file_lock import try_lock

_POLL_S = 0.05
_ORPHAN_GRACE_S = 5.0


@contextmanager
def half_lock(
    path: Path,
    *,
    jvm_pid: int | None,
    commits: bool = True,
    timeout_s: float,
    waiting: Callable[[str], None],
    orphan_grace_s: float = _ORPHAN_GRACE_S,
) -> Iterator[Callable[[int], None]]:
    """Hold the lock of a half. ConflictError after `timeout_s`; `waiting` is called once with the reason for waiting.

    `jvm_pid` is this process's JVM, if it has one. Without `commits` the JVM takes no part in the work under the lock,
    unless the function that the lock gives is called with its number first.
    The JVM of a dead holder is ended after `orphan_grace_s`.
    """
    durable.make_folder(path.parent)  # later writers take the folder's name as synced
    with path.open("a+", encoding="utf-8") as file:
        _acquire(file, path, timeout_s, waiting)
        try:
            _await_orphan(_read_holder(file), own_jvm=jvm_pid, grace_s=orphan_grace_s)
            _write_holder(file, jvm_pid if commits else None)
            try:
                yield lambda pid: _write_holder(file, pid)
            except Exception as error:
                if not _lost_sight(error):
                    _write_holder(file, None)
                raise
            _write_holder(file, None)
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def last_holder(path: Path) -> dict[str, Process]:
    """Who last held or holds the lock of a half: its Python process (`python`) and, during an operation, its `jvm`."""
    try:
        with path.open(encoding="utf-8") as file:
            return _read_holder(file)
    except FileNotFoundError:
        return {}


def _lost_sight(error: Exception) -> bool:
    """Whether the JVM may continue a commit that we no longer see, because the connection to it broke.

    An interrupt (a BaseException) has the same effect. After any other error the call has returned: a holder that goes
    on with other work must not be mistaken for an orphan, or its JVM would be ended.
    """
    return isinstance(error, OSError) or type(error).__name__ == "Py4JNetworkError"


def _acquire(file: IO[str], path: Path, timeout_s: float, waiting: Callable[[str], None]) -> None:
    what = f"{path.stem} of table '{path.parent.name}'"
    if not try_lock(file, timeout_s, waiting=lambda: waiting(f"Waiting for another process that works on {what}.")):
        raise ConflictError(
            f"Another process{_holder_words(file)} has acted on {what} for over {timeout_s:g} s. Nothing was changed.",
            hint="Run it again when the other is done, or set a longer lock_timeout_s.",
        )


def _holder_words(file: IO[str]) -> str:
    python = _read_holder(file).get("python")
    return f" (pid {python.pid})" if python else ""


def _read_holder(file: IO[str]) -> dict[str, Process]:
    """The last holder's Python process and JVM; empty without a holder, or when the holder died while it wrote.

    Also empty in a copy of the file: that holder works on the home that was copied.
    """
    file.seek(0)
    try:
        holder = json.loads(file.read() or "{}")
        if holder.pop("file", None) != _identity(file):
            return {}
        return {name: Process(**process) for name, process in holder.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def _write_holder(file: IO[str], jvm_pid: int | None) -> None:
    file.seek(0)
    file.truncate()
    holders = {"python": Process.of(os.getpid()), "jvm": Process.of(jvm_pid) if jvm_pid is not None else None}
    holder = {name: vars(process) for name, process in holders.items() if process is not None}
    json.dump({**holder, "file": _identity(file)}, file)
    file.flush()


def _identity(file: IO[str]) -> list[int]:
    """Device and inode, which distinguish a file from its copies."""
    status = os.fstat(file.fileno())
    return [status.st_dev, status.st_ino]


def _await_orphan(holder: dict[str, Process], own_jvm: int | None, grace_s: float) -> None:
    """Wait until the JVM of a dead holder has exited; end it after a grace period."""
    jvm = holder.get("jvm")
    if jvm is None or jvm.pid == own_jvm:
        return
    deadline = time.monotonic() + grace_s
    while jvm.is_alive() and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    jvm.stop(grace_s)
