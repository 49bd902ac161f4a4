"""What must outlive expired segments: delete markers, and the floor of the boundary. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hybrid.config.table_config import BoundaryMode
from hybrid.move.segments import Aged
from hybrid.table.boundary import Boundary
from hybrid.table.effective import EffectiveBoundary, effective_boundary


def below_all_others(going: Iterable[Aged], staying: Iterable[Aged], beside_ms: int | None) -> list[Aged]:
    """Those of `going` that end before everything that stays begins, oldest end first.

    `beside_ms` is the first time of what stays elsewhere, None: nothing does. A segment that cannot go stays, too.
    """
    lows = [one.low for one in staying]
    if None in lows:
        return []
    first = min([low for low in lows if low is not None] + ([] if beside_ms is None else [beside_ms]), default=None)
    left = sorted(going, key=lambda one: one.high or 0)
    while left and first is not None and not left[-1].ends_before(first):
        low = left.pop().low
        first = first if low is None else min(first, low)
    return left


def covered_by_itself(boundary: Boundary, last_ms: int | None, lag_ms: int, *, by_pushes: bool) -> EffectiveBoundary:
    """What a boundary covers whatever was set by hand: (T, F); time alone in mode pinot where nothing names a frontier.

    `last_ms` is the last offline time (None: no row), `lag_ms` mode pinot's lag. `by_pushes`: outside jobs alone bring
    offline rows. Where a move is to bring them, what it has not brought yet is covered by nothing.
    """
    if boundary.mode is BoundaryMode.PINOT and by_pushes and not boundary.frontier:
        return effective_boundary(replace(boundary, override_ms=None), last_ms, lag_ms)
    return EffectiveBoundary(boundary.time_ms, boundary.frontier)


def floor_of_offline(boundary: Boundary, last_ms: int | None, lag_ms: int, dropped_ms: int) -> int | None:
    """The floor when offline rows up to `dropped_ms` go: no limit may bring their realtime copies back.

    Not above the limit that the boundary has by itself: realtime rows from there on are seen. None: it covers nothing.
    """
    limit_ms = effective_boundary(replace(boundary, override_ms=None), last_ms, lag_ms).limit_ms
    return None if limit_ms is None else min(dropped_ms + 1, limit_ms)


def never_shown(boundary: Boundary) -> EffectiveBoundary:
    """The realtime rows that no boundary shows again, however limits move: below the floor, and taken over."""
    if boundary.floor_ms is None or boundary.time_ms is None:
        return EffectiveBoundary(None, boundary.frontier)
    return EffectiveBoundary(min(boundary.floor_ms, boundary.time_ms), boundary.frontier)
