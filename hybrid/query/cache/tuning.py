"""The tuning values of the cache: sizes and times that trade latency for throughput. None changes an answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheTuning:
    """How the cache follows its tables, runs statements, buffers rows and builds snapshots.

    Objects on the path of a statement copy what they need: two look-ups of an attribute would take longer than one.
    """

    # Following

    # The first and the longest pause before a table that could not be followed is tried again.
    backoff_s: tuple[float, float] = (0.5, 15.0)
    # How long a statement waits for fresh rows.
    await_fresh_s_max: float = 2.0
    # Rows are fresh while they hold everything up to so long ago: milliseconds, except under heavy load. Then answers
    # report their freshness. Reading the rest from Kafka for each statement would only slow the stream down.
    fresh_s: float = 3.0
    # A follower that keeps stepping will catch up; one that has not stepped for so long may never do.
    step_s_max: float = 10.0
    # Statements over files read a tail to its end if at most so many offsets lie beyond what answers have shown.
    unmeasured_tail_offsets: float = 100_000
    # So many offsets are read from the stream rather than skipped or left to a commit: one poll.
    tail_offsets_min: float = 20_000
    # How long a stream may not know of a partition that the files have read.
    unknown_partition_s: float = 2.0

    # Statements

    # The last run time up to which a statement runs without a transaction.
    optimistic_s_max: float = 0.02
    # The share of the mean gap between commits that such a statement may take.
    optimistic_gap_share: float = 0.25

    # The last run time up to which a statement is answered at once, and its timeout there, ms.
    brief_s: float = 0.01
    brief_ms_max: int = 20

    # The write buffer

    # How many rows are buffered at most, and how long.
    buffered_rows_max: int = 1000
    buffered_s_max: float = 0.25
    # For so long after a requested flush nothing is buffered: such statements tend to repeat.
    unbuffered_s: float = 5.0
    # Buffered rows passed to one reference, and their values: with more, planning takes longer than a flush.
    appended_rows_max: int = 8
    appended_values_max: int = 200

    # Snapshots

    # At most so many rows are a small batch: readers may wait for it, and an index finds its keys instead of a scan.
    small_batch_rows: int = 1000
    # A scan of so many keys takes as long as one look-up by the index.
    scanned_rows_of_one: int = 10_000
    # Where a snapshot has more keys, buffered rows are flushed by so few, each of which is looked up: some 10 ms.
    scanned_rows_max: int = 1_000_000
    looked_up_rows_max: int = 100
    # Changes scatter rows at the relation's end. After changes to this share of its rows, the snapshot is rebuilt.
    rebuild_share: float = 0.5
    rebuild_rows_min: int = 200_000
    # A background rebuild catches up until so few rows remain that the writer copies them in some milliseconds.
    last_round_rows: int = 5_000
    # So many of the latest inserted rows are read before the others, for a statement that asks for the newest, once so
    # many rows have changed: before, one scan is faster.
    latest_rows: int = 2_048
    latest_first_changes_min: int = 10_000
    # An ENUM pays on tables of at least so many rows.
    enum_rows_min: int = 20_000

    def is_scattered(self, changed: int, rows: int) -> bool:
        """Whether so many rows have changed that a snapshot of `rows` is to be rebuilt."""
        return changed >= max(self.rebuild_rows_min, self.rebuild_share * rows)

    def flushed_rows_max(self, rows: int) -> int | None:
        """How many rows are merged at once into a snapshot of `rows`; None: as many as there are."""
        return self.looked_up_rows_max if rows > self.scanned_rows_max else None


DEFAULT_TUNING = CacheTuning()
