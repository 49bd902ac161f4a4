"""The boundary in effect: what a boundary's mode and override make visible at one version of the OFFLINE half.

One limit divides both halves, so that a row that both hold is visible in one only:

    offline row     visible when  time < limit                       (mode `exact` without an override: always)
    realtime row    visible when  time >= limit  or  offset >= F     (time alone: only when time >= limit)

The limit is T in mode `exact`, the last offline time less a lag in mode `pinot`, and an override in either. Moves take
rows by (T, F) alone, which no mode and no override changes. So each row is visible once, in any order of operations.
With an override `o` at or below what the offline half covers:

    row moved, time < o                 offline copy; the realtime copy is covered, because its offset lies below F
    row moved, time >= o                realtime copy; the offline copy is hidden
    o set, then a move to (T', F')      moved rows are one of these two; late ones (time < o, offset >= F) are visible
                                        in REALTIME until the move commits, and covered by F' afterwards
    a move plans, o is set, it commits  the commit conflicts, as the state has changed: the move plans again, keeps o
    o set below an earlier one, lifted  rows between the two change sides at once, in one commit
    a replacement of times >= o         hidden until the limit passes; until then the original rows are visible
    rows in the tail                    beyond F, so visible; by time alone their time decides, as in Pinot

From the limit on, rows that only the offline half has are hidden: the override says so.

Times of offline rows may have been rounded down to the start of a step. A limit inside a step would show its offline
rows, and the realtime copies of its last rows too. If T has passed the step, the limit is raised to its end: realtime
rows are compared by their rounded time. Otherwise OFFLINE may lack rows of the step, not moved or not pushed yet. The
limit is then lowered to the start of the step, and REALTIME answers for all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hybrid.config.table_config import BoundaryMode
from hybrid.runtime.sentence_repr import shown_by
from hybrid.schema.rounding import rounded_down
from hybrid.table.boundary import INFINITE, Boundary, Offsets, PartitionKey, drawn_limit, offsets_to_json
from hybrid.table.boundary_drawing import boundary_svg


@shown_by(lambda boundary: drawn_limit(boundary.limit_ms) or "no time")
@dataclass(frozen=True)
class EffectiveBoundary:
    """The limit between the halves. Times before `limit_ms` are covered (None: no time is); `frontier` is F.

    `time_alone`: offsets do not count, because there is no frontier. `restricts_offline`: offline rows at or past the
    limit are hidden.
    """

    limit_ms: int | None = None
    frontier: Offsets = field(default_factory=dict)
    time_alone: bool = False
    restricts_offline: bool = False

    def _repr_html_(self) -> str:
        """A drawing of what is visible in each half."""
        return boundary_svg(
            drawn_limit(self.limit_ms),
            offsets_to_json(self.frontier),
            "in effect",
            hides_offline=self.restricts_offline,
            time_alone=self.time_alone,
        )

    def covers(self, time_ms: int | None, key: PartitionKey, offset: int) -> bool:
        """Whether the realtime or tail row at these coordinates is hidden, because the offline half answers for it."""
        return self.covers_time(time_ms) and (self.time_alone or offset < self.frontier.get(key, 0))

    def covers_none_from(self, positions: Offsets) -> bool:
        """Whether every realtime row from these offsets on is visible, whatever its time; absent means 0."""
        if self.limit_ms is None:
            return True
        return not self.time_alone and all(positions.get(key, 0) >= end for key, end in self.frontier.items())

    def covers_time(self, time_ms: int | None) -> bool:
        """Whether a time lies before the limit. None (a table without a time column) lies before an infinite limit."""
        if self.limit_ms is None:
            return False
        return True if time_ms is None else time_ms < self.limit_ms

    def shows_offline(self, time_ms: int | None) -> bool:
        """Whether an offline row of this time is visible."""
        return not self.restricts_offline or self.covers_time(time_ms)


def effective_boundary(boundary: Boundary, last_ms: int | None, lag_ms: int) -> EffectiveBoundary:
    """The boundary in effect. `last_ms` is the OFFLINE half's last time (None: no row), `lag_ms` that of mode pinot."""
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
    """The greatest override allowed: the end of what the offline half covers by time. None: it covers nothing."""
    if boundary.mode is BoundaryMode.EXACT:
        return boundary.time_ms
    if last_ms is None:
        return None
    # OFFLINE may lack rows of a step that T has not passed.
    whole_ms = rounded_down(last_ms + 1, boundary.step_ms)
    if boundary.time_ms is None:
        return whole_ms
    return max(whole_ms, min(boundary.time_ms, end_of_step(last_ms, boundary)))


def end_of_step(time_ms: int, boundary: Boundary) -> int:
    """The end (epoch ms) of the rounding step that holds a time; OFFLINE may store its rows at the step's start."""
    return (time_ms // boundary.step_ms + 1) * boundary.step_ms


def _undivided(limit_ms: int | None, boundary: Boundary) -> int | None:
    """The limit, moved to an edge of the rounding step that it lies in (see the module)."""
    if limit_ms is None or limit_ms % boundary.step_ms == 0:
        return limit_ms
    end_ms = end_of_step(limit_ms, boundary)
    if boundary.time_ms is not None and end_ms <= boundary.time_ms:
        return end_ms
    start_ms = end_ms - boundary.step_ms
    return start_ms if boundary.floor_ms is None or start_ms >= boundary.floor_ms else limit_ms
