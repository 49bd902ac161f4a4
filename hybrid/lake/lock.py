"""Locks of files, and the one of a half: acts on a half are serial, across processes of this machine.

The lock is `flock` on a file beside the half, so it is gone when its holder is. But a killed Python process can leave
its JVM behind for a moment, in the middle of a commit; two JVMs must never write one local Delta log. So the holder
writes down its JVM, and whoever takes the lock next waits until that JVM is gone, or ends it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from hybrid.errors import ConflictError
from hybrid.jvm.process import Process
from hybrid.runtime import durable

_POLL_S = 0.05
_ORPHAN_GRACE_S = 5.0


@contextmanager
def half_lock(
    path: Path, *, jvm_pid: int | None, commits: bool = True, timeout_s: float, waiting: Callable[[str], None]
) -> Iterator[None]:
    """Holds the lock of a half. ConflictError after `timeout_s`; `waiting` is told once why it waits.

    `jvm_pid` is this process's JVM, if it has one; without `commits` it has nothing to do with what is done.
    """
    durable.make_folder(path.parent)  # whoever writes there next takes the name as stored
    with path.open("a+", encoding="utf-8") as file:
        _acquire(file, path, timeout_s, waiting)
        try:
            _await_orphan(_read_holder(file), own_jvm=jvm_pid)
            _write_holder(file, jvm_pid if commits else None)
            try:
                yield
            except Exception as error:
                if not _lost_sight(error):
                    _write_holder(file, None)
                raise
            _write_holder(file, None)
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def try_lock(file: IO[Any], timeout_s: float, waiting: Callable[[], None] = lambda: None) -> bool:
    """Takes the lock of an open file, until that is closed; False when others have held it for `timeout_s`.

    `waiting` is called once when it is not free at once.
    """
    deadline, told = time.monotonic() + timeout_s, False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
        if not told:
            waiting()
            told = True
        time.sleep(_POLL_S)


def last_holder(path: Path) -> dict[str, Process]:
    """Who held the lock of a half last, or holds it: its Python process (`python`) and, during an act, its `jvm`."""
    try:
        with path.open(encoding="utf-8") as file:
            return _read_holder(file)
    except FileNotFoundError:
        return {}


def _lost_sight(error: Exception) -> bool:
    """Whether the JVM may go on with a commit that we no longer see: the connection to it broke.

    So it is after an interrupt (a BaseException), too. After any other error the call has come back: a holder that
    lives on with other work must not be taken for an orphan, and its JVM ended.
    """
    return isinstance(error, OSError) or type(error).__name__ == "Py4JNetworkError"


def _acquire(file: IO[str], path: Path, timeout_s: float, waiting: Callable[[str], None]) -> None:
    what = f"{path.stem} of table '{path.parent.name}'"
    if not try_lock(file, timeout_s, lambda: waiting(f"Waiting for another process that acts on {what}.")):
        raise ConflictError(
            f"Another process{_holder_words(file)} has acted on {what} for over {timeout_s:g} s. Nothing was changed.",
            hint="Run it again when the other is done, or set a longer lock_timeout_s.",
        )


def _holder_words(file: IO[str]) -> str:
    python = _read_holder(file).get("python")
    return f" (pid {python.pid})" if python else ""


def _read_holder(file: IO[str]) -> dict[str, Process]:
    """The last holder's Python process and JVM; empty when nobody held it, or the holder died while it wrote.

    Empty in a copy of the file as well: that holder works on the home that was copied.
    """
    file.seek(0)
    try:
        found = json.loads(file.read() or "{}")
        if found.pop("file", None) != _identity(file):
            return {}
        return {name: Process(**process) for name, process in found.items()}
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
    """What tells a file from its copies: device and inode."""
    found = os.fstat(file.fileno())
    return [found.st_dev, found.st_ino]


def _await_orphan(holder: dict[str, Process], own_jvm: int | None) -> None:
    """Waits until the JVM of a holder that died is gone; ends it after a grace period."""
    jvm = holder.get("jvm")
    if jvm is None or jvm.pid == own_jvm:
        return
    deadline = time.monotonic() + _ORPHAN_GRACE_S
    while jvm.is_alive() and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    jvm.stop(_ORPHAN_GRACE_S)
