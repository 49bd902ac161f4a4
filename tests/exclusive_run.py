"""Tests that measure time have the machine to themselves when tests run side by side: mark them `alone`."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What is locked are two files that stand here anyway, so that nothing is left behind.
_GATE, _FLOOR = Path(__file__), Path(__file__).with_name("conftest.py")


@contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """Lets a test go on beside those of other processes, or `alone`.

    Whoever comes passes the gate first. A test that is to run alone stays in it until the others are done, so that no
    new one begins before it.
    """
    with _GATE.open() as gate, _FLOOR.open() as floor:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(floor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield
