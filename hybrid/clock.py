"""The wall clock, in one place so that callers can replace it, and readings that detect jumps of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_RUNNING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the former continues while a machine sleeps


def wall_clock_ms() -> int:
    """The machine's clock in epoch milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class ClockReading:
    """The wall clock and the machine's running time. Two readings of one `boot` show whether the wall clock jumped.

    Both are in milliseconds. `boot` is empty where the running time is unknown.
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
