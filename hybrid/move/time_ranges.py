"""Ranges of time that the tasks of a move take. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hybrid.lake.log_entries import DataFile


@dataclass(frozen=True)
class TimeRange:
    """Rows whose `column` is in [`low`, `high`); None: no limit. Nulls belong to the range without upper limit."""

    column: str
    low: int | None = None
    high: int | None = None

    @property
    def condition(self) -> str:
        """The range as a SQL condition. Its comparisons are bare, so that readers skip row groups by statistics."""
        if self.high is not None:
            return f"{self.column} < {self.high}" + (
                f" AND {self.column} >= {self.low}" if self.low is not None else ""
            )
        return "TRUE" if self.low is None else f"({self.column} >= {self.low} OR {self.column} IS NULL)"

    def may_hold(self, file: DataFile) -> bool:
        """Whether a file may have rows of the range, by its statistics."""
        low, high = file.low.get(self.column), file.high.get(self.column)
        if not (isinstance(low, int) and isinstance(high, int)):
            return True
        return (self.high is None or low < self.high) and (self.low is None or high >= self.low)

    def divided_at(self, cuts: Sequence[int]) -> list[TimeRange]:
        """The ranges between some times inside of it, ascending."""
        edges = [self.low, *cuts, self.high]
        return [TimeRange(self.column, low, high) for low, high in pairwise(edges)]


def groups(column: str, cuts: Sequence[int], period_ms: int | None) -> list[list[TimeRange]]:
    """The ranges between `cuts`, in groups that share no bucket. `period_ms` None: all time is one bucket."""
    outer = [cut for cut in cuts if period_ms is not None and cut % period_ms == 0]
    return [
        group.divided_at([cut for cut in cuts if _is_inside(group, cut)])
        for group in TimeRange(column).divided_at(outer)
    ]


def _is_inside(group: TimeRange, cut: int) -> bool:
    return (group.low is None or cut > group.low) and (group.high is None or cut < group.high)
