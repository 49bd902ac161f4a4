"""How often Python looks for garbage, in processes that hold many rows as Python values for a moment."""

from __future__ import annotations

import gc

_THRESHOLDS = (100_000, 50, 50)


def collect_rarely() -> None:
    """From now on this process looks for cycles each 100,000 objects instead of each 700.

    Rows die by themselves; while 20,000 of them are alive, looking through them again and again takes as long as
    decoding them does.
    """
    gc.set_threshold(*_THRESHOLDS)
