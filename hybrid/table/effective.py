"""The boundary that is in effect: what a boundary's mode and override make visible at one version of the OFFLINE half.

One limit divides both halves, so that a row of both is never seen in both:

    offline row     visible when  time < limit                       (mode `exact` without an override: always)
    realtime row    visible when  time >= limit  or  offset >= F     (time alone: only when time >= limit)

The limit is T in mode `exact`; the last offline time less a lag in mode `pinot`; an override in either. Each row once,
whatever comes after what, because the pair (T, F) goes its own way: no mode and no override changes what a move takes.
With `o` an override that lies at or below what the offline half covers:

    row moved, time < o                 offline copy; its realtime copy is covered, for its offset lies below F
    row moved, time >= o                realtime copy; its offline copy is hidden
    o set, then a move to (T', F')      the rows it brings are one of these two; late ones (time < o, offset >= F) are
                                        seen in REALTIME until its commit, and are covered by F' from it on
    a move plans, o is set, it commits  it commits on a state that was overtaken: it plans anew, and keeps o
    o set below an earlier one, lifted  rows between the two change sides at once, in one commit
    a replacement of times >= o         is hidden until the limit passes; the rows as they came are seen until then
    rows in the tail                    lie beyond F: visible; by time alone they go by their time, as in Pinot

Rows that only the offline half has are hidden from the limit on: that is what was asked for.

Where times of offline rows were rounded down, a limit inside of such a stretch would show its offline rows, which stand
at its start, and its last realtime rows besides. So a limit goes on to the end of a stretch that T has passed: a
realtime row is compared by its rounded time. Of any other stretch rows may be missing in OFFLINE, which have not moved
or were not pushed yet, and the limit goes back to its start: REALTIME answers for all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid.config.table_config import BoundaryMode
from hybrid.schema.rounding import rounded_down
from hybrid.table.boundary import INFINITE, Boundary, Offsets, PartitionKey


@dataclass(frozen=True)
class EffectiveBoundary:
    """`limit_ms` divides (None: no time is covered; exclusive for what lies before it), `frontier` is F.

    `time_alone`: offsets do not count, as nothing has named a frontier. `restricts_offline`: offline rows at or past
    the limit are hidden.
    """

    limit_ms: int | None = None
    frontier: Offsets = field(default_factory=dict)
    time_alone: bool = False
    restricts_offline: bool = False

    def covers(self, time_ms: int | None, key: PartitionKey, offset: int) -> bool:
        """Whether the realtime or tail row at these coordinates is hidden: the offline half answers for it."""
        return self.covers_time(time_ms) and (self.time_alone or offset < self.frontier.get(key, 0))

    def covers_none_from(self, positions: Offsets) -> bool:
        """Whether every realtime row from these offsets on is visible, whatever its time; absent means 0."""
        if self.limit_ms is None:
            return True
        return not self.time_alone and all(positions.get(key, 0) >= end for key, end in self.frontier.items())

    def covers_time(self, time_ms: int | None) -> bool:
        """Whether a time lies before the limit; None, of a table without a time column, lies before an infinite one."""
        if self.limit_ms is None:
            return False
        return True if time_ms is None else time_ms < self.limit_ms

    def shows_offline(self, time_ms: int | None) -> bool:
        """Whether an offline row of this time is visible."""
        return not self.restricts_offline or self.covers_time(time_ms)


def effective_boundary(boundary: Boundary, last_ms: int | None, lag_ms: int) -> EffectiveBoundary:
    """The boundary in effect, by the OFFLINE half's last time (None: no row) and the lag of mode pinot."""
    if boundary.time_ms == INFINITE:
        return EffectiveBoundary(INFINITE, boundary.frontier)
    pinot = boundary.mode is BoundaryMode.PINOT
    if boundary.override_ms is None and not pinot:
        return EffectiveBoundary(boundary.time_ms, boundary.frontier)
    limit_ms = boundary.override_ms
    if limit_ms is None and last_ms is not None:
        limit_ms = last_ms - lag_ms + 1
    if boundary.floor_ms is not None:
        limit_ms = boundary.floor_ms if limit_ms is None else max(limit_ms, boundary.floor_ms)
    limit_ms = _undivided(limit_ms, boundary)
    return EffectiveBoundary(limit_ms, boundary.frontier, pinot and not boundary.frontier, restricts_offline=True)


def covered_until(boundary: Boundary, last_ms: int | None) -> int | None:
    """How far an override may go (inclusive): what the offline half covers by time. None: it covers nothing."""
    if boundary.mode is BoundaryMode.EXACT:
        return boundary.time_ms
    if last_ms is None:
        return None
    # A stretch that T has not passed is not there as a whole.
    whole_ms = rounded_down(last_ms + 1, boundary.step_ms)
    if boundary.time_ms is None:
        return whole_ms
    return max(whole_ms, min(boundary.time_ms, end_of_step(last_ms, boundary)))


def end_of_step(time_ms: int, boundary: Boundary) -> int:
    """Where the stretch ends that a time lies in and that may have become one time in OFFLINE."""
    return (time_ms // boundary.step_ms + 1) * boundary.step_ms


def _undivided(limit_ms: int | None, boundary: Boundary) -> int | None:
    """The limit that divides no stretch whose times may have been rounded to one."""
    if limit_ms is None or limit_ms % boundary.step_ms == 0:
        return limit_ms
    end_ms = end_of_step(limit_ms, boundary)
    if boundary.time_ms is not None and end_ms <= boundary.time_ms:
        return end_ms
    start_ms = end_ms - boundary.step_ms
    return start_ms if boundary.floor_ms is None or start_ms >= boundary.floor_ms else limit_ms
