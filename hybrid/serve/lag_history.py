"""How far each table was behind Kafka in the last hour, in memory: for charts, and to tell when it has caught up."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hybrid.operations.ingestion_lag import TableLag

INTERVAL_MS, KEPT_MS = 10_000, 3_600_000
STALE_MS = 5 * INTERVAL_MS // 2  # an older sample says nothing about now
_SPAN_MS = 60_000  # that the rate is taken over
_SPAN_MS_MIN = 4000


class LagSample(NamedTuple):
    """A table at a moment (epoch ms): its uncommitted offsets, and how long the oldest may have waited.

    `waited_ms` None: not known.
    """

    at_ms: int
    behind: int
    waited_ms: int | None


@dataclass
class _TableSamples:
    """The samples of a table, one for each interval at most; `caught_up_ms` is when it was last seen without lag."""

    samples: deque[LagSample] = field(default_factory=lambda: deque(maxlen=KEPT_MS // INTERVAL_MS))
    caught_up_ms: int | None = None

    def add(self, lag: TableLag, now_ms: int, *, renews: bool) -> None:
        """Add a sample, unless its interval has one that is not renewed."""
        if lag.behind is None:
            return
        newest = self.samples[-1].at_ms if self.samples else None
        if newest is not None and newest - now_ms >= INTERVAL_MS:  # the clock was set back
            self.samples.clear()
            self.caught_up_ms = newest = None
        elif newest is not None:  # who looked before may add after others
            now_ms = max(now_ms, newest)
        has_sample = newest is not None and newest // INTERVAL_MS == now_ms // INTERVAL_MS
        if has_sample and not renews:
            return
        if not lag.behind:
            self.caught_up_ms = now_ms
        if has_sample:
            self.samples.pop()
        while self.samples and now_ms - self.samples[0].at_ms >= KEPT_MS:
            self.samples.popleft()
        self.samples.append(LagSample(now_ms, lag.behind, self._waited_ms(lag, now_ms)))

    def _waited_ms(self, lag: TableLag, now_ms: int) -> int | None:
        if not lag.behind:
            return 0
        moments = [moment for moment in (lag.complete_ms, self.caught_up_ms) if moment is not None]
        return max(0, now_ms - max(moments)) if moments else None


class LagHistory:
    """The samples of the last hour of each table. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[str, _TableSamples] = {}

    def add(self, lags: Iterable[TableLag], now_ms: int, *, renews: bool = True) -> None:
        """Record the lag of each table at `now_ms`; tables that are not among them are forgotten.

        `renews`: in place of the sample of the same interval, if it has one.
        """
        with self._lock:
            before, self._tables = self._tables, {}
            for lag in lags:
                self._tables[lag.table] = before.get(lag.table) or _TableSamples()
                self._tables[lag.table].add(lag, now_ms, renews=renews)

    def samples(self, table: str, now_ms: int) -> list[LagSample]:
        """The samples of a table in the hour before `now_ms`, oldest first."""
        with self._lock:
            found = self._tables.get(table)
            kept = found.samples if found is not None else ()
            return [sample for sample in kept if now_ms - sample.at_ms < KEPT_MS]


def catch_up_s(samples: Sequence[LagSample], now_ms: int) -> float | None:
    """The seconds until the lag is zero at the rate of the last minute before `now_ms`.

    None without lag, while it does not fall, and where it is not known.
    """
    if not samples or not samples[-1].behind or now_ms - samples[-1].at_ms > STALE_MS:
        return None
    newest = samples[-1]
    oldest = next(sample for sample in samples if newest.at_ms - sample.at_ms <= _SPAN_MS)
    took_ms, fell = newest.at_ms - oldest.at_ms, oldest.behind - newest.behind
    if took_ms < _SPAN_MS_MIN or fell <= 0:
        return None
    return newest.behind * took_ms / fell / 1000
