"""Decides whether a follower reads its stream or leaves unread rows to the commits that will bring them.

Decoding a backlog in Python takes longer than loading the files of its commits, and takes a processor from ingestion.
No visible row depends on the decision: a wrong one costs freshness. All inputs are arguments, time included.

    U  unread offsets: between the rows' positions and the stream's ends
    r  messages decoded a second, as measured under the present load
    G  time between commits
    L  the offsets that are decoded between two commits: r * G

Beyond L the commits are awaited, once they are trusted; from L/2 on the stream is read again. Nobody waits longer than
decoding would have taken: at the deadline, U/r after the mode was entered, the stream is read again, and commits have
to earn trust anew. Before the first commit nothing is known of them. If ingestion evidently runs, its first commit is
awaited for at most 10 s. If nobody commits then, or nobody ingests, the stream is decoded, in half of the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from hybrid.query.cache.tuning import CacheTuning

# The rate is measured under load and may be far too low: then the deadline would be far away.
_AWAIT_S_MAX = 60.0
# How long the first commit is awaited of an ingestion that evidently runs.
_FIRST_AWAIT_S_MAX = 10.0
# Weights of the newest measurement in the means.
_NEWEST_RATE, _NEWEST_GAP = 0.3, 0.3
# Fewer messages take too little time to be measured.
_MEASURED_MIN = 1000
# While rows arrive, commits are not further apart than this, s; a longer gap is a quiet time. The first is assumed.
_GAP_S_MIN, _GAP_S_MAX, _FIRST_GAP_S = 1.0, 10.0, 3.0

# A rest is no longer than this, s: commits are followed after it.
_REST_S_MAX = 0.5


@dataclass(frozen=True)
class TailStatus:
    """How a table's stream is read, for people. `awaits`: it is left to commits, since `since_s` seconds.

    The stream is read again once fewer than `limit / 2` of the `unread` offsets remain, or in `left_s` seconds.
    `decoded_per_s` is None while nothing was measured. `switches` counts by mode.
    """

    awaits: bool
    since_s: float
    left_s: float
    unread: int
    limit: float
    decoded_per_s: float | None
    to_commits: int
    to_stream: int

    @property
    def words(self) -> str:
        """How the stream is read, and why."""
        if not self.awaits:
            behind = f": {self.unread:,} offsets are unread" if self.unread > self.limit else " to its end"
            return f"the stream is read{behind}"
        return (
            f"the stream awaits commits for {self.since_s:.1f} s: {self.unread:,} offsets are unread, "
            f"{self.decoded_per_s or 0:,.0f}/s would be decoded; it is read on below {self.limit / 2:,.0f}, "
            f"or in {self.left_s:.0f} s"
        )


class TailMode:
    """The mode of one table: reading its stream at first. For the follower's thread; others may read attributes."""

    def __init__(self, tuning: CacheTuning) -> None:
        self._limit_min, self._unmeasured = tuning.tail_offsets_min, tuning.unmeasured_tail_offsets
        self.is_awaiting = False
        self.switches = {True: 0, False: 0}
        self._rate: float | None = None
        self._gap_s = _FIRST_GAP_S
        self._committed_at: float | None = None
        self._is_trusted = self._has_committed = False
        # Whether evidence of ingestion suffices: not after a deadline, until somebody commits.
        self._is_believed = True
        self._since: float | None = None
        self._deadline = math.inf
        self._is_followed = self._is_extended = False
        self._unread = 0

    @property
    def limit(self) -> float:
        """L: so many unread offsets are read from the stream."""
        if self._rate is None:
            return self._limit_min
        return max(self._limit_min, self._rate * self._gap_s)

    @property
    def files_limit(self) -> float:
        """So many unread offsets are read by a statement over files: none while memory leaves them to commits."""
        if self.is_awaiting:
            return 0
        return self.limit if self._rate is not None else max(self._limit_min, self._unmeasured)

    def restarts(self) -> None:
        """The rows are built from the files: measurements remain, trust and mode do not."""
        self._turn(False, None)
        self._is_trusted = self._has_committed = False

    def decoded(self, messages: int, took_s: float) -> None:
        """Measures that so many messages were decoded and taken in within `took_s` seconds."""
        if messages < _MEASURED_MIN or took_s <= 0:
            return
        rate = messages / took_s
        self._rate = rate if self._rate is None else self._rate + _NEWEST_RATE * (rate - self._rate)

    def committed(self, now: float, advanced: int, overtaken: int) -> None:
        """Measures a commit that advanced the committed offsets, `overtaken` of them beyond the rows' positions."""
        if advanced <= 0:
            return
        self._has_committed = self._is_believed = True
        before, self._committed_at = self._committed_at, now
        if before is not None:
            gap_s = min(_GAP_S_MAX, max(_GAP_S_MIN, now - before))
            self._gap_s += _NEWEST_GAP * (gap_s - self._gap_s)
        if overtaken > self._limit_min:
            self._is_trusted = True  # commits are evidently faster than the stream
        if self.is_awaiting:
            self._is_followed = True
            # Commits slower than decoding do not hold the stream for ever. A quiet time before does not count.
            since = max(self._since or 0.0, before or 0.0)
            self._is_extended |= advanced >= (self._rate or 0.0) * (now - since)

    def decide(
        self, now: float, unread: int, *, may_await: bool, is_ingested: Callable[[], bool] = lambda: False
    ) -> bool:
        """Decides by the number of unread offsets, at the end of a step; returns whether the mode has changed.

        `may_await`: the rows hold all that answers have shown of the stream. `is_ingested` returns whether somebody
        evidently ingests the stream now; it is called only where that matters.
        """
        self._unread = unread
        if not self.is_awaiting:
            if not may_await or self._rate is None or unread <= self.limit:
                return False
            if not self._is_trusted and not (self._is_believed and is_ingested()):
                return False
            self._turn(True, now)
            wait_s = self._wait_s(unread)
            self._deadline = now + (wait_s if self._is_trusted else min(wait_s, _FIRST_AWAIT_S_MAX))
            return True
        if self._is_extended:
            self._is_extended = False
            self._deadline = now + self._wait_s(unread)
        if self._is_followed and unread <= self.limit / 2:
            self._turn(False, now)
        elif now >= self._deadline:
            self._turn(False, now)
            self._is_trusted = self._is_believed = False
        return not self.is_awaiting

    def rest_s(self, took_s: float) -> float:
        """How long decoding rests after a step that took so long, s.

        Behind a backlog of which no commit was followed yet, ingestion gets half of the time: its first commit would be
        late otherwise. So rows are visible within twice the time of decoding them here, too.
        """
        is_unknown = not self._has_committed and not self.is_awaiting and self._unread > self.limit
        return min(took_s, _REST_S_MAX) if is_unknown else 0.0

    def status(self, now: float) -> TailStatus:
        """The mode for people."""
        since = self._since  # the follower's thread may change it
        since_s = now - since if since is not None else 0.0
        left_s = max(0.0, self._deadline - now) if self.is_awaiting else 0.0
        to_commits, to_stream = self.switches[True], self.switches[False]
        return TailStatus(
            self.is_awaiting, since_s, left_s, self._unread, self.limit, self._rate, to_commits, to_stream
        )

    def decoding_s(self, unread: int) -> float:
        """How long decoding so many offsets takes, s; 0 while nothing is measured."""
        return unread / self._rate if self._rate else 0.0

    def _wait_s(self, unread: int) -> float:
        return min(self.decoding_s(unread), _AWAIT_S_MAX)

    def _turn(self, awaits: bool, now: float | None) -> None:
        if awaits != self.is_awaiting:
            self.switches[awaits] += 1
            self._since = now
        self.is_awaiting = awaits
        self._is_followed = self._is_extended = False
