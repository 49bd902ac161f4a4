"""What readers of a cached table see at one moment, and how such moments follow each other."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hybrid.query.revision import TableRevision
from hybrid.query.tailrows import TailRows

# Commits come as they came: how much the newest gap counts, and the share of it that a statement may take by itself.
_NEWEST_GAP, _BUSY_SHARE = 0.2, 0.25


@dataclass(frozen=True)
class ReadView:
    """What the relation holds at one moment: which revision, and how much of it lies in segments.

    `indexed` are the columns by which a few rows are found at once; `enums` text columns of few values, as ENUM, whose
    order is the texts'. `marks` holds delete markers that count when the rows are folded; None where there are none.
    `waiting` are rows of the revision that are not in the relation yet.
    """

    relation: str
    marks: str | None
    indexed: Sequence[str]
    enums: Collection[str]
    revision: TableRevision
    segments: int
    consuming: int
    docs: int
    waiting: TailRows | None = None


class CommitSeqlock:
    """The commits of a table: counted, twice each, so that `number` is odd while one goes on; and how they follow."""

    def __init__(self) -> None:
        self.number = 0
        self._ended_at, self._gap_s = time.monotonic(), 0.0

    def begins(self) -> None:
        """A commit goes on from now."""
        self.number += 1

    def ended(self) -> None:
        """It is there, and readers see it."""
        now = time.monotonic()
        self._gap_s += _NEWEST_GAP * (now - self._ended_at - self._gap_s)
        self._ended_at = now
        self.number += 1

    def failed(self) -> None:
        """Whatever went on has been taken back."""
        self.number += self.number % 2

    def leaves(self, takes_s: float) -> bool:
        """Whether a statement that takes so long is likely to be over before the next commit."""
        return takes_s <= _BUSY_SHARE * max(self._gap_s, time.monotonic() - self._ended_at)
