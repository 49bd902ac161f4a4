"""What must outlive expired segments: delete markers, and the floor of the boundary. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hybrid.config.table_config import BoundaryMode
from hybrid.move.segments import Aged
from hybrid.table.boundary import Boundary
from hybrid.table.effective import EffectiveBoundary, effective_boundary


def below_all_others(going: Iterable[Aged], staying: Iterable[Aged], beside_ms: int | None) -> list[Aged]:
    """The segments of `going` that end before everything that stays begins, oldest end first.

    `beside_ms` is the first time of rows that stay elsewhere; None without any. A segment that cannot be dropped also
    stays.
    """
    lows = [segment.low for segment in staying]
    if None in lows:
        return []
    first = min([low for low in lows if low is not None] + ([] if beside_ms is None else [beside_ms]), default=None)
    droppable = sorted(going, key=lambda segment: segment.high or 0)
    while droppable and first is not None and not droppable[-1].ends_before(first):
        low = droppable.pop().low
        first = first if low is None else min(first, low)
    return droppable


def covered_by_itself(boundary: Boundary, last_ms: int | None, lag_ms: int, *, by_pushes: bool) -> EffectiveBoundary:
    """What a boundary covers without an override: (T, F), or time alone in mode pinot when nothing names a frontier.

    `last_ms` is the last offline time (None: no row), `lag_ms` mode pinot's lag. `by_pushes`: only outside jobs write
    offline rows. If moves write them, rows that have not moved yet are not covered.
    """
    if boundary.mode is BoundaryMode.PINOT and by_pushes and not boundary.frontier:
        return effective_boundary(replace(boundary, override_ms=None), last_ms, lag_ms)
    return EffectiveBoundary(boundary.time_ms, boundary.frontier)


def floor_of_offline(boundary: Boundary, last_ms: int | None, lag_ms: int, dropped_ms: int) -> int | None:
    """The floor after dropping offline rows up to `dropped_ms`: no limit may make their realtime copies visible again.

    It is not above the limit without an override, because realtime rows from there on are visible. None: nothing is
    covered.
    """
    limit_ms = effective_boundary(replace(boundary, override_ms=None), last_ms, lag_ms).limit_ms
    return None if limit_ms is None else min(dropped_ms + 1, limit_ms)


def never_shown(boundary: Boundary) -> EffectiveBoundary:
    """The realtime rows that no boundary shows again, however limits move: below the floor, and moved."""
    if boundary.floor_ms is None or boundary.time_ms is None:
        return EffectiveBoundary(None, boundary.frontier)
    return EffectiveBoundary(min(boundary.floor_ms, boundary.time_ms), boundary.frontier)
