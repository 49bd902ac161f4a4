"""The statements that run now, by request id, so that `DELETE /query/{requestId}` can stop one; and who asks them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hybrid.errors import NotFoundError, QueryError

_ALONE_S = 0.1
CANCELLED = 503  # Pinot's QUERY_CANCELLATION


class RunningQueries:
    """The running statements of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Who asks a statement, and how it is interrupted once it runs.
        self._running: dict[str, tuple[str | None, Callable[[], None] | None]] = {}
        self._cancelled: set[str] = set()

    @contextmanager
    def running(self, request_id: str, account: str | None = None) -> Iterator[Callable[[Callable[[], None]], None]]:
        """Around a statement; what it yields is told how to interrupt it. A cancelled one is a QueryError (503).

        The interrupt is called once: it must hold for a statement that the engine has not begun yet, too. An id that
        runs already is a QueryError: nobody could tell which of the two a cancel means.
        """
        with self._lock:
            if request_id in self._running:
                raise QueryError(
                    f"A query with request id '{request_id}' runs already.", hint="Send another X-Request-Id, or none."
                )
            self._running[request_id] = account, None

        def started(interrupt: Callable[[], None]) -> None:
            with self._lock:
                self._running[request_id] = account, interrupt
                if request_id in self._cancelled:  # while it went from one way to be answered to another
                    raise QueryError("The query was cancelled.", pinot_code=CANCELLED)

        try:
            yield started
        except QueryError as error:
            if request_id in self._cancelled:
                raise QueryError("The query was cancelled.", pinot_code=CANCELLED) from error
            raise
        finally:
            with self._lock:
                self._running.pop(request_id, None)
                self._cancelled.discard(request_id)

    def cancel(self, request_id: str, account: str | None = None) -> None:
        """Interrupts a statement, of that account if one is given; NotFoundError when none of that id runs."""
        with self._lock:
            owner, interrupt = self._running.get(request_id, (None, None))
            if request_id not in self._running or account not in (None, owner):
                raise NotFoundError(f"No query with request id '{request_id}' runs now.")
            self._cancelled.add(request_id)
            if interrupt is not None:
                interrupt()


class Callers:
    """Over which connections statements come. For the event loop's thread."""

    def __init__(self) -> None:
        self._last: object = None
        self._others_at = 0.0

    def is_alone(self, connection: object) -> bool:
        """Whether nobody else asks these days: then nobody waits while the event loop answers by itself.

        Where several ask at once, threads answer them, for these use all processors.
        """
        now = time.monotonic()
        if connection != self._last:
            self._last, self._others_at = connection, now
        return now - self._others_at > _ALONE_S
