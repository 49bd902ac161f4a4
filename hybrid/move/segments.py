"""Segments summarized by the statistics of their files, for tasks. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from hybrid.lake.log_entries import DataFile


@dataclass(frozen=True)
class Aged:
    """A segment by its files, with the first and last time of a row (epoch ms), None without such statistics."""

    name: str
    rows: int
    bytes: int
    low: int | None
    high: int | None
    files: frozenset[str]

    def ends_before(self, time_ms: int) -> bool:
        """Whether every row is certainly older than `time_ms`."""
        return self.high is not None and self.high < time_ms


def by_age(files: Iterable[DataFile], without: Collection[str] = ()) -> list[Aged]:
    """The segments of some files except `without`, oldest end first; segments with unknown end last."""
    grouped: dict[str, list[DataFile]] = defaultdict(list)
    for file in files:
        if file.segment not in without:
            grouped[file.segment].append(file)
    segments = [_aged(name, of_segment) for name, of_segment in grouped.items()]
    return sorted(segments, key=lambda segment: (segment.high is None, segment.high or 0, segment.name))


def _aged(name: str, files: Sequence[DataFile]) -> Aged:
    times = [file.times for file in files if file.times is not None]
    is_known = len(times) == len(files)
    return Aged(
        name,
        sum(file.rows for file in files),
        sum(file.bytes for file in files),
        min(low for low, _ in times) if is_known else None,
        max(high for _, high in times) if is_known else None,
        frozenset(file.path for file in files),
    )


def last_of(segments: Iterable[Aged]) -> int | None:
    """The last time in some segments; None without any."""
    return max((segment.high for segment in segments if segment.high is not None), default=None)
