"""Handlers of signals for as long as a block runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def signals_handled(
    handler: Callable[[int, FrameType | None], Any] | signal.Handlers, *numbers: signal.Signals
) -> Iterator[None]:
    """Give signals a handler within a block, and then their handlers from before. In another thread nothing changes."""
    if threading.current_thread() is not threading.main_thread():  # where Python takes no handlers
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
