"""The write buffer of a cached table: rows of the stream that readers see before they are inserted.

A small INSERT costs DuckDB as much as a large one, and more than a small statement, so small batches are buffered. A
script that asks for a row as soon as it has arrived gets it in half the time. A statement that looks rows up finds
buffered rows in Python (`relations.py`); on a table with a key, one that looks up keys. Any other statement waits for a
flush, and for a while nothing is buffered. A flush is due at half of the room: rows that arrive do not wait for it.

    a row arrives and is asked for     it is in the buffer: the answer's revision includes it
    a flush during a statement         is a commit: the answer is discarded, or its transaction does not see the flush
    a statement needs all rows         the writer flushes within one poll of the stream; the statement waits
    rows have one key, or a stored one a look-up of the key resolves them with the stored rows; a flush does it again
    a commit brings further rows       the buffer is flushed first, as it is before a rebuild
    a background rebuild goes on       it reads up to what was flushed; the buffer is flushed before its last round
    rows are invalidated or rebuilt    the buffer is dropped: the stream delivers its rows again
"""

from __future__ import annotations

import time

from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.tailrows import TailRows

# How long a poll of the stream lasts without rows. Rows and statements that wait end it at once; short polls cost the
# answering process time. While rows are buffered a poll is shorter, because a statement may need a flush.
_POLL_S, _TURN_S = 1.0, 0.005


class WriteBuffer:
    """The buffered rows of one table. Any thread may call `lay_soon`, only the writer the rest."""

    def __init__(self, tuning: CacheTuning) -> None:
        self._rows_max, self._s_max = tuning.buffered_rows_max, tuning.buffered_s_max
        # A flush is due at so many rows.
        self._due_rows = self._due_rows_max = max(1, tuning.buffered_rows_max // 2)
        self._unbuffered_s = tuning.unbuffered_s
        # The rows; replaced and never changed, because readers hold references.
        self.rows: TailRows | None = None
        self._since, self._laid_until = 0.0, 0.0

    def lay_soon(self) -> None:
        """Requests a flush; for a while no row is buffered."""
        self._laid_until = time.monotonic() + self._unbuffered_s

    def bound_flush(self, rows_max: int | None) -> None:
        """Has a flush due at so many rows at most, where each of them takes long; None: they take little."""
        self._due_rows = self._due_rows_max if rows_max is None else min(rows_max, self._due_rows_max)

    def has_room(self, rows: TailRows) -> bool:
        """Whether these rows may be buffered too."""
        count = self.rows.count if self.rows is not None else 0
        return count + rows.count <= self._rows_max and time.monotonic() >= self._laid_until

    def add(self, rows: TailRows) -> None:
        """Appends rows to the buffer."""
        if self.rows is None:
            self.rows, self._since = rows, time.monotonic()
        else:
            self.rows = self.rows.joined(rows)

    def take(self) -> TailRows | None:
        """Empties the buffer and returns its rows."""
        rows, self.rows = self.rows, None
        return rows

    @property
    def is_due(self) -> bool:
        """Whether a flush is due: many rows wait, or for long enough, or a statement needs them."""
        if self.rows is None:
            return False
        now = time.monotonic()
        return self.rows.count >= self._due_rows or now >= self._since + self._s_max or now < self._laid_until

    @property
    def patience_s(self) -> float:
        """How long a poll of the stream may last, s."""
        return _POLL_S if self.rows is None else _TURN_S
