"""Guards retention, vacuum and compaction against a machine clock that has leapt ahead.

A clock passed to `Hybrid` is trusted: only the machine's clock can leap.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hybrid.clock import read_clock, wall_clock_ms
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, HybridError
from hybrid.progress import counted
from hybrid.runtime.json_values import utc
from hybrid.table.clock_trust import STEADY_MS, ClockTrust, observe

if TYPE_CHECKING:
    from hybrid.home.home import Home

_LOG = logging.getLogger(__name__)
_WRITE_MS = 60_000
_HINT = (
    f"Set the clock right. If it is right: it is believed after {STEADY_MS // 3_600_000} hours of steady running, "
    "as soon as messages with such timestamps are committed, or at once by `hybrid task run TABLE TYPE --yes`."
)


def observe_clock(home: Home) -> ClockTrust | None:
    """Reads the clock and records how far it is trusted. None for a clock that was passed in: it is trusted."""
    if home.now_ms is not wall_clock_ms:
        return None
    before = home.catalog.clock.read()
    after = observe(before, read_clock(), lambda: _newest_message_ms(home))
    passed_ms = after.believed.wall_ms - before.believed.wall_ms if before is not None else _WRITE_MS
    if after.doubted is not None or (before is not None and before.doubted is not None) or abs(passed_ms) >= _WRITE_MS:
        home.catalog.clock.write(after)
    if after.leapt_ms and not (before is not None and before.leapt_ms):
        _LOG.warning("%s Nothing is dropped by it. %s", clock_words(after), _HINT)
    return after


def require_clock(home: Home, what: str) -> None:
    """ConflictError when the clock has leapt ahead; `what` names the operation that depends on it."""
    trust = observe_clock(home)
    if trust is not None and trust.leapt_ms:
        raise ConflictError(f"{clock_words(trust)} {what} did nothing.", hint=_HINT)


def accept_clock(home: Home) -> None:
    """Trusts the clock as it is now: a person has decided so."""
    if home.now_ms is wall_clock_ms:
        home.catalog.clock.write(ClockTrust(read_clock()))


def is_clock_believed(home: Home) -> bool:
    """Whether the clock is trusted."""
    trust = observe_clock(home)
    return trust is None or not trust.leapt_ms


def doubt_of(home: Home) -> tuple[str, str] | None:
    """What is wrong with the clock and how to fix it, by the last reading; None when it is trusted."""
    trust = home.catalog.clock.read()
    return None if trust is None or not trust.leapt_ms else (clock_words(trust), _HINT)


def clock_words(trust: ClockTrust) -> str:
    """The leap of the clock as a sentence."""
    assert trust.doubted is not None
    leap = counted(max(1, trust.leapt_ms // 86_400_000), "day")
    seen = utc(trust.doubted.wall_ms - trust.leapt_ms)
    return f"The machine's clock is {leap} ahead: it says {utc(trust.doubted.wall_ms)}, and {seen} was expected."


def _newest_message_ms(home: Home) -> int | None:
    """Kafka's newest timestamp in the commits of all tables. Timestamps in the clock's future prove nothing."""
    from hybrid.lake.log import open_half  # with the library of Delta, which most verbs do not need

    now_ms, timestamps = home.now_ms(), list[int]()
    for name in home.definitions.names():
        try:
            newest = open_half(home.layout(name).half(Half.REALTIME)).realtime.timestamp_max
        except (HybridError, OSError):  # missing or unreadable: the other tables are evidence enough
            continue
        if newest is not None and newest <= now_ms:
            timestamps.append(newest)
    return max(timestamps, default=None)
