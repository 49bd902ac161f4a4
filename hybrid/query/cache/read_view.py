"""What readers of a cached table see at one moment, and the seqlock of its commits."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.revision import TableRevision
from hybrid.query.tailrows import TailRows

# The weight of the newest gap in the mean gap between commits.
_NEWEST_GAP = 0.2


@dataclass(frozen=True)
class ReadView:
    """What readers see of a table at one moment: the relation, its revision, and counts of segments and rows.

    `indexed` lists the columns with an index; `enums` the text columns stored as ENUM, which sort as their texts.
    `marks` is the relation of delete markers, which count when rows of a key are resolved; None where they never do.
    `waiting` holds rows of the revision that are still in the write buffer. `has_marks`: delete markers are stored.
    `latest_row_id` is the first row id of the rows inserted last; None where reading them before the others does not
    pay.
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
    has_marks: bool = False
    latest_row_id: int | None = None


class CommitSeqlock:
    """Seqlock of a table's commits: `number` is odd while a commit is in progress. It also tracks their mean gap."""

    def __init__(self, tuning: CacheTuning) -> None:
        self.number = 0
        self._gap_share = tuning.optimistic_gap_share
        self._ended_at, self._gap_s = time.monotonic(), 0.0

    def begins(self) -> None:
        """A commit begins."""
        self.number += 1

    def ended(self) -> None:
        """The commit has ended, and readers see it."""
        now = time.monotonic()
        self._gap_s += _NEWEST_GAP * (now - self._ended_at - self._gap_s)
        self._ended_at = now
        self.number += 1

    def failed(self) -> None:
        """The commit in progress, if any, was rolled back."""
        self.number += self.number % 2

    def leaves(self, takes_s: float) -> bool:
        """Whether a statement of `takes_s` seconds is likely to end before the next commit."""
        return takes_s <= self._gap_share * max(self._gap_s, time.monotonic() - self._ended_at)
