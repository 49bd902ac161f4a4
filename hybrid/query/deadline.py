"""Deadlines of statements: one thread interrupts statements that run too long.

Starting a thread per statement would take as long as a small statement.
"""

from __future__ import annotations

import heapq
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count

_LOG = logging.getLogger(__name__)
_IDLE_S = 60.0
# Interrupts are repeated: one is lost on a connection between two statements, or before the first.
_AGAIN_S = 0.02


class _Deadlines:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._running: set[int] = set()
        self._numbers = count()
        self._thread: threading.Thread | None = None
        # When the thread wakes next: statements that end before then never wake it.
        self._looks_at = 0.0

    def add(self, at: float, interrupt: Callable[[], None]) -> int:
        with self._changed:
            number = next(self._numbers)
            heapq.heappush(self._waiting, (at, number, interrupt))
            self._running.add(number)
            if self._thread is None or not self._thread.is_alive():
                self._looks_at = 0.0
                self._thread = threading.Thread(target=self._watch, name="deadlines", daemon=True)
                self._thread.start()
            elif at < self._looks_at:
                self._changed.notify()
        return number

    def hasten(self, number: int) -> None:
        """Makes a statement's deadline now, unless the statement has ended."""
        with self._changed:
            for place, (_, other, interrupt) in enumerate(self._waiting):
                if other == number:
                    self._waiting[place] = time.monotonic(), number, interrupt
                    heapq.heapify(self._waiting)
                    self._changed.notify()
                    return

    def remove(self, number: int) -> None:
        with self._changed:
            self._running.discard(number)
            while self._waiting and self._waiting[0][1] not in self._running:
                heapq.heappop(self._waiting)

    def _watch(self) -> None:
        while True:
            try:
                self._look()
            except Exception:  # an error with one statement must not end the deadlines of all others
                _LOG.exception("The deadlines of statements could not be looked at; they are looked at again")
                time.sleep(_AGAIN_S)

    def _look(self) -> None:
        """Interrupts statements past their deadline, and waits for the next deadline or for `_IDLE_S`."""
        with self._changed:
            now = time.monotonic()
            while self._waiting and self._waiting[0][0] <= now:
                _, number, interrupt = heapq.heappop(self._waiting)
                if number in self._running and _interrupts(interrupt):
                    heapq.heappush(self._waiting, (now + _AGAIN_S, number, interrupt))
            # Without the bound, a wait of more than some 292 years is an OverflowError.
            wait_s = min(self._waiting[0][0] - now, _IDLE_S) if self._waiting else _IDLE_S
            self._looks_at = now + wait_s
            self._changed.wait(max(0.0, wait_s))


def _interrupts(interrupt: Callable[[], None]) -> bool:
    """Calls `interrupt`; False when it fails, as on a database that was closed while its statement ran."""
    try:
        interrupt()
    except Exception:
        _LOG.warning("A statement that takes too long cannot be interrupted", exc_info=True)
        return False
    return True


_DEADLINES = _Deadlines()


@contextmanager
def deadline(at: float | None, interrupt: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Calls `interrupt` from the monotonic time `at` on until the block ends; None: no deadline.

    The yielded function makes the deadline now, from any thread: it cancels the statement.
    """
    number = _DEADLINES.add(math.inf if at is None else at, interrupt)
    try:
        yield partial(_DEADLINES.hasten, number)
    finally:
        _DEADLINES.remove(number)
