"""Signals that another thread acts on: a handler of Python's may take no lock."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress


def act_on_signals(act: Callable[[], object], *numbers: signal.Signals) -> None:
    """From now on, call `act` in a thread when one of these signals comes. Call this in the main thread.

    Python runs a handler in the main thread, between any two of its steps. When that is inside of `wait` of an event,
    the main thread holds the event's lock, and `set` in the handler would wait for it forever. So the handler only
    writes a byte, for a thread that waits for one.
    """
    received, sent = os.pipe()
    os.set_blocking(sent, False)

    def watch() -> None:
        while os.read(received, 1):
            act()

    def handle(*_: object) -> None:
        with suppress(BlockingIOError):  # thousands of signals are waiting to be acted on
            os.write(sent, b"\0")

    threading.Thread(target=watch, name="signals", daemon=True).start()
    for number in numbers:
        signal.signal(number, handle)
