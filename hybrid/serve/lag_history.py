"""How far each table was behind Kafka lately, in memory, to estimate when it has caught up."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_SAMPLES = 120
_SPAN_S = 60.0  # that the rate is taken over
_SPAN_S_MIN = 4.0


class LagSample(NamedTuple):
    """A table's number of uncommitted offsets at a moment (seconds of a monotonic clock)."""

    at_s: float
    behind: int


class LagHistory:
    """The latest samples of each table. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples: dict[str, deque[LagSample]] = {}

    def add(self, lags: Iterable[tuple[str, int | None]]) -> None:
        """Record the lag of each table now; tables that are not among them are forgotten."""
        now_s = time.monotonic()
        with self._lock:
            before, self._samples = self._samples, {}
            for table, behind in lags:
                if behind is not None:
                    self._samples[table] = before.get(table, deque(maxlen=_SAMPLES))
                    self._samples[table].append(LagSample(now_s, behind))

    def catch_up_s(self, table: str) -> float | None:
        """The seconds until a table has caught up at its present rate; None when it has, or does not approach."""
        with self._lock:
            samples = list(self._samples.get(table, ()))
        return catch_up_s(samples)


def catch_up_s(samples: Sequence[LagSample]) -> float | None:
    """The seconds until the lag is zero at the rate of the last minute; None without lag, or while it does not fall."""
    if not samples or not samples[-1].behind:
        return None
    newest = samples[-1]
    oldest = next(sample for sample in samples if newest.at_s - sample.at_s <= _SPAN_S)
    took_s, fell = newest.at_s - oldest.at_s, oldest.behind - newest.behind
    if took_s < _SPAN_S_MIN or fell <= 0:
        return None
    return newest.behind * took_s / fell
