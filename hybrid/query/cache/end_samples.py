"""End offsets of a stream at some instants: the newest that rows have reached says how fresh they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hybrid.table.boundary import Offsets, PartitionKey

_SAMPLES_MAX = 60


class EndOffsets(NamedTuple):
    """The end offsets of a stream, and an instant (monotonic clock, s) before they were read."""

    at: float = 0.0
    ends: Mapping[PartitionKey, int] = {}


class EndSamples:
    """End offsets that are not reached yet, oldest first, and the instant of the newest that is.

    A reader that is always some seconds behind never reaches the newest end offsets, but it does reach earlier ones.
    """

    def __init__(self) -> None:
        self._samples: list[EndOffsets] = []
        self._reached_at: float | None = None
        self.newest = EndOffsets()

    def add(self, sample: EndOffsets) -> None:
        """Adds end offsets; the same ones may be added again."""
        if sample.at <= self.newest.at:
            return
        self.newest = sample
        self._samples.append(sample)
        if len(self._samples) > _SAMPLES_MAX:
            del self._samples[1::2]

    def reached_at(self, positions: Offsets) -> float | None:
        """The instant of the newest end offsets that positions have reached; None: of none. Positions never fall."""
        if self._samples and _are_reached(self._samples[-1], positions):
            self._reached_at = self._samples[-1].at  # whatever an older one says: ends may fall
            self._samples.clear()
        while self._samples and _are_reached(self._samples[0], positions):
            self._reached_at = self._samples.pop(0).at
        return self._reached_at

    @property
    def is_reached(self) -> bool:
        """Whether all end offsets had been reached when `reached_at` was called."""
        return not self._samples


def _are_reached(sample: EndOffsets, positions: Offsets) -> bool:
    return all(positions.get(key, 0) >= end for key, end in sample.ends.items())


def offsets_beyond(positions: Offsets, ends: Offsets) -> int:
    """How many offsets lie between positions and later ends."""
    return sum(max(0, end - positions.get(key, 0)) for key, end in ends.items())
