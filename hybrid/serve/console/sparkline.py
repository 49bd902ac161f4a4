"""Sparklines: a short series of numbers as an SVG path."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT = 120, 28
_TOP = 2


def sparkline(values: Sequence[int]) -> str:
    """The path of a filled line through the values, oldest first, `WIDTH` by `HEIGHT`; empty without any."""
    highest = max(values, default=0)
    if highest <= 0:
        return ""
    step = WIDTH / max(1, len(values) - 1)
    points = [
        f"{number * step:.1f} {HEIGHT - (HEIGHT - _TOP) * value / highest:.1f}" for number, value in enumerate(values)
    ]
    return f"M0 {HEIGHT}L{'L'.join(points)}L{WIDTH} {HEIGHT}Z"
