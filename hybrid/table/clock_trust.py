"""Whether the wall clock can be believed before data is dropped by it. Pure; cases: docs/adr/0026-leaping-clocks.md.

The witness is the machine's own running time, which no setting of the clock changes: between two looks the wall clock
must have gone as far as it. After a restart nothing but the newest look and Kafka's timestamps are left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hybrid.clock import ClockReading

HOUR_MS = 3_600_000
# A day, and the pause between two looks of the schedules that drop something.
LEAP_MS = 30 * HOUR_MS
# A clock that was set right is believed after this time of steady running.
STEADY_MS = 24 * HOUR_MS


@dataclass(frozen=True)
class ClockTrust:
    """The last reading that was believed; `doubted` is the newest of a clock that has leapt since.

    `steady_ms` is how long the doubted clock has gone as it should.
    """

    believed: ClockReading
    doubted: ClockReading | None = None
    steady_ms: int = 0

    @property
    def leapt_ms(self) -> int:
        """How far the clock is ahead of what can be believed; 0 where it is believed, or behind."""
        if self.doubted is None:
            return 0
        return max(0, self.doubted.wall_ms - _expected_ms(self.believed, self.doubted))


def observe(before: ClockTrust | None, now: ClockReading, newest_message_ms: Callable[[], int | None]) -> ClockTrust:
    """What is believed after a look. The first look (`before` None) has nothing to go by, and believes the clock.

    `newest_message_ms` is asked for in doubt: Kafka's newest timestamp that was committed (epoch ms), None without any.
    """
    if before is None or _follows(before.believed, now):
        return ClockTrust(now)
    steady_ms = _steady_ms(before, now)
    if steady_ms >= STEADY_MS or _is_confirmed(now, before.believed, newest_message_ms()):
        return ClockTrust(now)
    return ClockTrust(before.believed, now, steady_ms)


def _expected_ms(earlier: ClockReading, later: ClockReading) -> int:
    """Where the wall clock must be by the running time; at the earlier reading where that is not known."""
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
    """Whether messages that came after the last believed look are of about this time."""
    return kafka_ms is not None and kafka_ms > believed.wall_ms and abs(now.wall_ms - kafka_ms) <= LEAP_MS
