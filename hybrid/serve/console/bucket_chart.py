"""A drawing of the buckets of a plan: rows before as a pale bar, what changes in front of it, removed rows below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hybrid.serve.console.backfill_views import totals

WIDTH, HEIGHT = 1000, 120
_BASE = 80  # y of the line between rows that stay or come, and rows that go
_MARKS_MAX = 200
_GAP = 0.25  # of a mark's width
_LEAST = 2.0  # a bar that can be seen


def bucket_chart(buckets: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One mark for each bucket, or for neighbours where there are many; without rows there is nothing to draw."""
    if not buckets:
        return []
    size = -(-len(buckets) // _MARKS_MAX)
    marks = [_sum(buckets[first : first + size]) for first in range(0, len(buckets), size)]
    highest = max(max(mark["rows_before"], mark["rows_after"]) for mark in marks)
    lowest = max(mark["removed"] for mark in marks)
    if not highest and not lowest:
        return []
    step = WIDTH / len(marks)
    return [
        {
            **mark,
            "x": round(place * step + step * _GAP / 2, 2),
            "width": round(step * (1 - _GAP), 2),
            "hold_x": round(place * step, 2),
            "hold_width": round(step, 2),
            "stay": _bar(max(mark["rows_before"], mark["rows_after"]), highest, _BASE),
            "come": _bar(mark["added"] + mark["changed"], highest, _BASE),
            "go": _bar(mark["removed"], max(lowest, 1), HEIGHT - _BASE),
        }
        for place, mark in enumerate(marks)
    ]


def _bar(value: int, highest: int, room: int) -> float:
    return 0.0 if not value else round(max(_LEAST, value / max(1, highest) * room), 2)


def _sum(group: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"start": group[0]["start"], "end": group[-1]["end"], **totals(group)}
