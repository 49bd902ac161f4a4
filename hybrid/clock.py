"""The wall clock, in one place: whoever needs another one is handed it. And what tells that it has leapt."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_RUNNING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the first goes on while a machine sleeps


def wall_clock_ms() -> int:
    """The machine's clock in epoch milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class ClockReading:
    """The wall clock, and how long the machine has run: two readings of one `boot` tell whether the wall clock leapt.

    Both in milliseconds. `boot` is empty where nothing is known of the machine's running.
    """

    wall_ms: int
    running_ms: int = 0
    boot: str = ""


def read_clock(now_ms: Callable[[], int] = wall_clock_ms) -> ClockReading:
    """Both clocks at this moment."""
    return ClockReading(now_ms(), time.clock_gettime_ns(_RUNNING) // 1_000_000, _boot())


@cache
def _boot() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
