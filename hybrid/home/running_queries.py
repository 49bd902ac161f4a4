"""Registry of running statements by request id: for the list of statements, and for `DELETE /query/{requestId}`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hybrid.errors import CANCELLED, NotFoundError, QueryError

CLI, PYTHON = "cli", "python"  # clients of a home without a server
_Interrupt = Callable[[], None]


@dataclass
class RunningQuery:
    """A statement that runs: its text (None: it reads rows by another verb), who asked, and since when (monotonic).

    `interrupt` ends it, once the engine has begun.
    """

    id: str
    account: str | None
    sql: str | None
    client: str
    began: float = field(default_factory=time.monotonic)
    interrupt: _Interrupt | None = None


class RunningQueries:
    """The running statements of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, RunningQuery] = {}
        self._cancelled: set[str] = set()

    @contextmanager
    def running(
        self, request_id: str, account: str | None = None, sql: str | None = None, client: str = ""
    ) -> Iterator[Callable[[_Interrupt], None]]:
        """Register a statement; the yielded function accepts its interrupt. QueryError (503) once cancelled.

        The interrupt is called once, so it must also affect a statement that the engine has not begun yet.
        QueryError for an id that runs already, as a cancel would be ambiguous.
        """
        statement = RunningQuery(request_id, account, sql, client)
        with self._lock:
            if request_id in self._running:
                raise QueryError(
                    f"A query with request id '{request_id}' runs already.", hint="Send another X-Request-Id, or none."
                )
            self._running[request_id] = statement

        def started(interrupt: _Interrupt) -> None:
            with self._lock:
                statement.interrupt = interrupt
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

    def list(self) -> list[RunningQuery]:
        """The statements that run now, newest first."""
        with self._lock:
            statements = [statement for statement in self._running.values() if statement.sql is not None]
        return sorted(statements, key=lambda statement: -statement.began)

    def cancel(self, request_id: str, account: str | None = None) -> None:
        """Interrupt a statement, of `account` if not None; NotFoundError if no such statement runs."""
        with self._lock:
            statement = self._running.get(request_id)
            if statement is None or account not in (None, statement.account):
                raise NotFoundError(f"No query with request id '{request_id}' runs now.")
            self._cancelled.add(request_id)
            if statement.interrupt is not None:
                statement.interrupt()
