"""Numbers of bytes as people read them."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_STEP = 1000


def size_text(count: int) -> str:
    """A number of bytes with its decimal unit: `848 B`, `2.8 kB`, `28 MB`."""
    amount, unit = float(count), 0
    while round(amount, 1 if amount < 10 else 0) >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit and round(amount, 1) < 10 else f"{amount:.0f} {_UNITS[unit]}"
