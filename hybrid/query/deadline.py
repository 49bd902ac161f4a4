"""Deadlines of statements: one thread interrupts what runs too long, as starting one for each would cost as much time
as a small statement takes.
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
# An interrupt is lost on a connection that is between two statements, or has not begun with the first.
_AGAIN_S = 0.02


class _Deadlines:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._running: set[int] = set()
        self._numbers = count()
        self._thread: threading.Thread | None = None
        # When it looks by itself: statements that end before then never cost it a turn.
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
        """Interrupts from now on what has not ended yet."""
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
            except Exception:  # one statement's trouble must not take the deadlines of all others with it
                _LOG.exception("The deadlines of statements could not be looked at; they are looked at again")
                time.sleep(_AGAIN_S)

    def _look(self) -> None:
        """Interrupts what has taken too long, and waits for the next deadline or for `_IDLE_S`."""
        with self._changed:
            now = time.monotonic()
            while self._waiting and self._waiting[0][0] <= now:
                _, number, interrupt = heapq.heappop(self._waiting)
                if number in self._running and _interrupts(interrupt):
                    heapq.heappush(self._waiting, (now + _AGAIN_S, number, interrupt))
            # A condition waits no longer than some 292 years: more is an OverflowError.
            left = min(self._waiting[0][0] - now, _IDLE_S) if self._waiting else _IDLE_S
            self._looks_at = now + left
            self._changed.wait(max(0.0, left))


def _interrupts(interrupt: Callable[[], None]) -> bool:
    """Interrupts; whether there is something to interrupt: who closes a database does not wait for its statements."""
    try:
        interrupt()
    except Exception:
        _LOG.warning("A statement that takes too long cannot be interrupted", exc_info=True)
        return False
    return True


_DEADLINES = _Deadlines()


@contextmanager
def deadline(at: float | None, interrupt: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Calls `interrupt` from the monotonic time `at` on until the block ends; None: it may take as long as it wants.

    What it yields makes that time now, from any thread: for a statement that is cancelled.
    """
    number = _DEADLINES.add(math.inf if at is None else at, interrupt)
    try:
        yield partial(_DEADLINES.hasten, number)
    finally:
        _DEADLINES.remove(number)
