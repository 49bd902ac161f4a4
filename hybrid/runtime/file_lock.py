"""Locks on files between the processes of a machine. They are `flock`, which ends with its holder's process."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_POLL_S = 0.05


@contextmanager
def file_lock(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the exclusive lock of a file or folder. The file is created where it is missing.

    `waiting` is called once when another holds the lock.
    """
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def try_lock(
    file: IO[Any],
    timeout_s: float = 0.0,
    *,
    waiting: Callable[[], None] = lambda: None,
    gives_up: Callable[[], bool] = lambda: False,
) -> bool:
    """Take the exclusive lock of an open file until the file is closed.

    False when others have held it for `timeout_s`, or when `gives_up` says so while it is held. `waiting` is called
    once when the lock is not free at once.
    """
    deadline, has_notified = time.monotonic() + timeout_s, False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if gives_up() or time.monotonic() >= deadline:
                return False
        if not has_notified:
            waiting()
            has_notified = True
        time.sleep(_POLL_S)


def is_locked(path: Path) -> bool:
    """Whether a process holds the exclusive lock of a file. False without the file."""
    try:
        with path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # a shared lock: those who ask do not block each other
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
