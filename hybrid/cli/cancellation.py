"""Ctrl-C stops a statement in this process at its engine, whatever it does at that moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeAlias, TypeVar

from hybrid.errors import NotFoundError
from hybrid.home.running_queries import RunningQueries

T = TypeVar("T")
# Receives the function that interrupts the statement, once the engine begins.
Started: TypeAlias = Callable[[Callable[[], None]], None]
_STATEMENT = "statement"
_NOTICED_S = 0.2


def cancellable(work: Callable[[Started], T]) -> T:
    """The result of `work`, which runs in a thread. On Ctrl-C its statement is stopped, then KeyboardInterrupt raised.

    In the main thread DuckDB sometimes loses a signal that arrives while it plans. A second Ctrl-C does not wait.
    """
    running, ended = RunningQueries(), threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            with running.running(_STATEMENT) as started:
                results.append(work(started))
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=copy_context().run, args=(run,), name="statement", daemon=True)
    try:
        thread.start()
        _await(ended)
    except KeyboardInterrupt:
        with suppress(NotFoundError):  # it has just ended, or not begun
            running.cancel(_STATEMENT)
        if thread.is_alive():
            _await(ended)
        if not results:
            raise
        # It was about to end: what it has written is there.
    if errors:
        raise errors[0]
    return results[0]


def _await(ended: threading.Event) -> None:
    """Wait, and notice a signal that another thread has received."""
    while not ended.wait(_NOTICED_S):
        pass
