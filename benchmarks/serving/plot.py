"""Grouped bars on a log scale as SVG, written by hand: one panel beside the other, readable on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_COLOURS = ("#1b7f79", "#d1495b", "#8d99ae")
_LABELS, _WIDTH, _BAR, _GAP, _TOP = 130, 380, 11, 9, 62


@dataclass(frozen=True)
class Bars:
    """A panel: a value of each series for each label."""

    title: str
    labels: Sequence[str]
    values: Mapping[str, Sequence[float]]


def svg(panels: Sequence[Bars]) -> str:
    """All panels on the same scale."""
    every = [value for panel in panels for series in panel.values.values() for value in series]
    low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
    height = _TOP + max(len(panel.labels) * _group(panel) for panel in panels) + 24
    width = len(panels) * (_LABELS + _WIDTH + 50)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="11"><rect width="100%" height="100%" fill="white"/>'
    ]
    for number, panel in enumerate(panels):
        parts += _panel(panel, number * (_LABELS + _WIDTH + 50), height, low, max(high, low + 1))
    return "\n".join([*parts, "</svg>\n"])


def _group(panel: Bars) -> int:
    return len(panel.values) * _BAR + _GAP


def _panel(panel: Bars, left: int, height: int, low: int, high: int) -> list[str]:
    def x(value: float) -> float:
        return left + _LABELS + (math.log10(value) - low) / (high - low) * _WIDTH

    parts = [f'<text x="{left + 10}" y="20" font-size="13" font-weight="bold">{escape(panel.title)}</text>']
    for number, name in enumerate(panel.values):
        at = left + 10 + number * 160
        parts.append(f'<rect x="{at}" y="32" width="10" height="10" fill="{_COLOURS[number]}"/>')
        parts.append(f'<text x="{at + 15}" y="41">{escape(name)}</text>')
    for power in range(low, high + 1):
        line = x(10.0**power)
        parts.append(f'<path d="M{line:.1f} {_TOP - 6}V{height - 20}" stroke="#ddd"/>')
        parts.append(f'<text x="{line:.1f}" y="{height - 6}" text-anchor="middle">{10.0**power:g}</text>')
    for row, label in enumerate(panel.labels):
        top = _TOP + row * _group(panel)
        middle = top + (_group(panel) - _GAP) / 2 + 4
        parts.append(f'<text x="{left + _LABELS - 6}" y="{middle:.1f}" text-anchor="end">{escape(label)}</text>')
        for number, series in enumerate(panel.values.values()):
            y, end = top + number * _BAR, x(series[row])
            wide = max(1.0, end - left - _LABELS)
            parts.append(
                f'<rect x="{left + _LABELS}" y="{y}" width="{wide:.1f}" height="{_BAR - 2}" fill="{_COLOURS[number]}"/>'
            )
            parts.append(f'<text x="{end + 4:.1f}" y="{y + 8}" font-size="9">{series[row]:.3g}</text>')
    return parts
