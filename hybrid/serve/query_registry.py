"""Registry of running statements by request id, for `DELETE /query/{requestId}`, and of their callers."""

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
        # By request id: the account, and the function that interrupts the statement once it runs.
        self._running: dict[str, tuple[str | None, Callable[[], None] | None]] = {}
        self._cancelled: set[str] = set()

    @contextmanager
    def running(self, request_id: str, account: str | None = None) -> Iterator[Callable[[Callable[[], None]], None]]:
        """Register a statement; the yielded function accepts its interrupt. QueryError (503) once cancelled.

        The interrupt is called once, so it must also affect a statement that the engine has not begun yet.
        QueryError for an id that runs already, as a cancel would be ambiguous.
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
                if request_id in self._cancelled:  # cancelled while it switched from cache to files
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
        """Interrupt a statement, of `account` if not None; NotFoundError if no such statement runs."""
        with self._lock:
            owner, interrupt = self._running.get(request_id, (None, None))
            if request_id not in self._running or account not in (None, owner):
                raise NotFoundError(f"No query with request id '{request_id}' runs now.")
            self._cancelled.add(request_id)
            if interrupt is not None:
                interrupt()


class Callers:
    """The connections that statements arrive on. Use it on the event loop only."""

    def __init__(self) -> None:
        self._last: object = None
        self._others_at = 0.0

    def is_alone(self, connection: object) -> bool:
        """Whether no other connection was active lately, so that the event loop may answer without delaying others.

        With several active connections threads answer, which use all processors.
        """
        now = time.monotonic()
        if connection != self._last:
            self._last, self._others_at = connection, now
        return now - self._others_at > _ALONE_S
