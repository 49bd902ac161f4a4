"""A statement in a thread of its own, for `asyncio`: a cancelled task interrupts its statement."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")
Interrupt = Callable[[], None]


class Cancellation:
    """Carries the wish to end a statement into its thread, also when it comes before the statement begins."""

    def __init__(self) -> None:
        self._lock, self._interrupt, self._is_cancelled = threading.Lock(), _nothing, False

    def began(self, interrupt: Interrupt) -> None:
        """A statement begins that `interrupt` ends. A statement may begin several times, each with its own."""
        with self._lock:
            self._interrupt, is_cancelled = interrupt, self._is_cancelled
        if is_cancelled:
            interrupt()

    def cancel(self) -> None:
        """Ends the statement that runs, and every later one."""
        with self._lock:
            interrupt, self._is_cancelled = self._interrupt, True
        interrupt()


async def run_in_background(work: Callable[[Cancellation], Answer]) -> Answer:
    """Awaits `work` in a thread of the event loop. When the awaiting task is cancelled, the statement is, too."""
    cancellation = Cancellation()
    try:
        return await asyncio.get_running_loop().run_in_executor(None, work, cancellation)
    except asyncio.CancelledError:
        cancellation.cancel()
        raise


def _nothing() -> None:
    pass
