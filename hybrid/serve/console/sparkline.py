"""Sparklines: a series of numbers as an SVG path, by their order or by their times."""

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


def time_line(points: Sequence[tuple[int, int]], stretch: tuple[int, int], gap_ms: int) -> str:
    """The path of a filled line through (time in ms, value), oldest first, in the box of `sparkline`.

    Times longer apart than `gap_ms` are not joined. Points outside of the stretch are left out; empty without a value.
    """
    start_ms, end_ms = stretch
    shown = [point for point in points if start_ms <= point[0] <= end_ms]
    highest = max((value for _, value in shown), default=0)
    if highest <= 0:
        return ""
    runs: list[list[str]] = []
    before_ms: int | None = None
    for time_ms, value in shown:
        if before_ms is None or time_ms - before_ms > gap_ms:
            runs.append([])
        before_ms = time_ms
        x = WIDTH * (time_ms - start_ms) / (end_ms - start_ms)
        runs[-1].append(f"{x:.1f} {HEIGHT - (HEIGHT - _TOP) * value / highest:.1f}")
    return "".join(f"M{run[0].split()[0]} {HEIGHT}L{'L'.join(run)}L{run[-1].split()[0]} {HEIGHT}Z" for run in runs)
