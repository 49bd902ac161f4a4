"""Whether the wall clock can be believed before data is dropped by it. Pure; cases: docs/adr/0026-leaping-clocks.md.

The reference is the machine's running time, which setting the clock does not change: between two observations both must
have advanced alike. After a restart only the newest observation and Kafka's timestamps remain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hybrid.clock import ClockReading

HOUR_MS = 3_600_000
# The deviation that is tolerated: a day, and the interval of the schedules that drop data.
LEAP_MS = 30 * HOUR_MS
# A clock that leapt, perhaps to the right time, is believed after it has run steadily for this long.
STEADY_MS = 24 * HOUR_MS


@dataclass(frozen=True)
class ClockTrust:
    """The last clock reading that was believed; `doubted` is the newest reading of a clock that has leapt since.

    `steady_ms` is how long the doubted clock has advanced as the running time did.
    """

    believed: ClockReading
    doubted: ClockReading | None = None
    steady_ms: int = 0

    @property
    def leapt_ms(self) -> int:
        """How far (ms) the clock is ahead of the believed time; 0 when it is believed, or behind."""
        if self.doubted is None:
            return 0
        return max(0, self.doubted.wall_ms - _expected_ms(self.believed, self.doubted))


def observe(before: ClockTrust | None, now: ClockReading, newest_message_ms: Callable[[], int | None]) -> ClockTrust:
    """The trust after an observation of the clock. The first one (`before` None) has no reference: it is believed.

    `newest_message_ms` is called in doubt only. It returns the newest committed Kafka timestamp (epoch ms), or None.
    """
    if before is None or _follows(before.believed, now):
        return ClockTrust(now)
    steady_ms = _steady_ms(before, now)
    if steady_ms >= STEADY_MS or _is_confirmed(now, before.believed, newest_message_ms()):
        return ClockTrust(now)
    return ClockTrust(before.believed, now, steady_ms)


def _expected_ms(earlier: ClockReading, later: ClockReading) -> int:
    """The wall-clock time (ms) that the running time implies; after a restart that of the earlier reading."""
    passed_ms = later.running_ms - earlier.running_ms if earlier.boot and earlier.boot == later.boot else 0
    return earlier.wall_ms + passed_ms


def _follows(earlier: ClockReading, later: ClockReading) -> bool:
    return abs(later.wall_ms - _expected_ms(earlier, later)) <= LEAP_MS


def _steady_ms(before: ClockTrust, now: ClockReading) -> int:
    doubted = before.doubted
    if doubted is None or not _follows(doubted, now):
        return 0
    is_same = bool(now.boot) and now.boot == doubted.boot
    return before.steady_ms + (now.running_ms - doubted.running_ms if is_same else 0)


def _is_confirmed(now: ClockReading, believed: ClockReading, kafka_ms: int | None) -> bool:
    """Whether Kafka's newest timestamp is later than the last believed reading, and close to this one."""
    return kafka_ms is not None and kafka_ms > believed.wall_ms and abs(now.wall_ms - kafka_ms) <= LEAP_MS
