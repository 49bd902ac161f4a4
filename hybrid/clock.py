"""The wall clock, in one place: whoever needs another one is handed it."""

from __future__ import annotations

import time


def wall_clock_ms() -> int:
    """The machine's clock in epoch milliseconds."""
    return time.time_ns() // 1_000_000
