"""How many offsets a server's next batch may hold, and how long ingestion rests after a batch: both by time.

    a message arrives | the batch that runs | the rest | its own batch | it is committed

So it waits for two batches and a rest at most. While rows keep coming, the rest is what two batches leave of the lag. A
backlog is read in batches of up to ten seconds. Its messages are late anyway, and each commit has a fixed cost, but a
batch of the whole backlog would show nothing for long. No row depends on these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hybrid.ingest.batch import BATCH_OFFSETS_MAX

# The longest wait of a message for its commit, at rates at which two batches take less, s.
LAG_S = 2.0
# For planning, and for batches that take longer than the one before, s.
_MARGIN_S = 0.2
# A batch near the end of a stream, and one of a long backlog, s.
_BATCH_S, _BACKLOG_S = 1.0, 10.0
# Statements see rows before they are committed, so commits more frequent than needed would only take processors from
# statements and make small files: the rest is this multiple of a batch, if the lag allows it.
_REST = 3.0
# The first batch is small enough for an early commit. A batch grows by this factor at most.
_FIRST_OFFSETS, _OFFSETS_MIN, _GROWTH_MAX = 100_000, 20_000, 8.0


@dataclass(frozen=True)
class BatchPace:
    """The bound of the next batch, in offsets, and the duration of the last one, s."""

    offsets_max: int = _FIRST_OFFSETS
    took_s: float = 0.0

    def after(self, offsets: int, took_s: float, behind: int) -> BatchPace:
        """The pace after a batch of so many offsets, which has left `behind` offsets.

        A batch that was not full says nothing of larger ones, because of the fixed cost, unless it took too long.
        """
        if offsets <= 0 or took_s <= 0:
            return self
        target_s = min(_BACKLOG_S, max(_BATCH_S, behind * took_s / offsets))
        if offsets < self.offsets_max and took_s <= target_s:
            return replace(self, took_s=took_s)
        wanted = offsets * min(target_s / took_s, _GROWTH_MAX)
        return BatchPace(min(BATCH_OFFSETS_MAX, max(_OFFSETS_MIN, int(wanted))), took_s)

    def rest_s(self, interval_s: float) -> float:
        """How long ingestion rests after a batch while rows keep coming; `interval_s` is the rest when none come.

        A longer interval is a longer lag: whoever sets it wants fewer commits.
        """
        left_s = max(LAG_S, interval_s) - 2 * self.took_s - _MARGIN_S
        return max(0.0, min(max(interval_s, _REST * self.took_s), left_s))
