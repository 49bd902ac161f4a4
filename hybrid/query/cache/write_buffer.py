"""Rows of the stream that readers see before they are laid.

Few rows take DuckDB as long to lay as many, and longer than a small statement takes: a row that is asked for as soon as
it is there, and a script does that, is seen in half the time when it need not be laid first. So a few rows wait for
others to be laid with. A statement that looks rows up finds those that wait in Python (`relations.py`); for any other
one they are laid first, and for a while rows are laid as they come.

    row comes, is asked for            it is among those that wait: the answer's revision holds it
    rows are laid while one reads      that is a commit: the answer does not count, or its transaction does not see it
    statement needs all rows           their writer lays them within a poll of the stream; the statement waits
    a commit of either half, a fold    rows are laid before it is looked at; while a fold reads none wait
    rows are lost, or built anew       those that wait go with them: the stream brings them again
"""

from __future__ import annotations

import time

from hybrid.query.tailrows import TailRows

# So many rows wait, and so long.
_ROWS_MAX, _WAIT_S = 200, 0.02
# Rows end a poll of the stream at once; an idle one costs a thread of the process that answers. While rows wait it is
# shorter, for somebody may need them laid.
_POLL_S, _TURN_S = 0.1, 0.005
# Who needs all rows laid asks again soon.
_LAID_S = 5.0


class WriteBuffer:
    """The rows of one table that wait. All but `lay_soon` is their writer's."""

    def __init__(self) -> None:
        # What waits; never changed, for readers hold on to it.
        self.rows: TailRows | None = None
        self._since, self._laid_until = 0.0, 0.0

    def lay_soon(self) -> None:
        """No row may wait from now on, for a while."""
        self._laid_until = time.monotonic() + _LAID_S

    def has_room(self, rows: TailRows) -> bool:
        """Whether these may wait besides."""
        count = self.rows.count if self.rows is not None else 0
        return count + rows.count <= _ROWS_MAX and time.monotonic() >= self._laid_until

    def add(self, rows: TailRows) -> None:
        """These wait too, behind the others."""
        if self.rows is None:
            self.rows, self._since = rows, time.monotonic()
        else:
            self.rows = self.rows.joined(rows)

    def take(self) -> TailRows | None:
        """What waits; nothing does any more."""
        rows, self.rows = self.rows, None
        return rows

    @property
    def is_due(self) -> bool:
        """Whether rows have waited long enough, or somebody needs them laid."""
        now = time.monotonic()
        return self.rows is not None and (now >= self._since + _WAIT_S or now < self._laid_until)

    @property
    def patience_s(self) -> float:
        """How long the stream may be waited for."""
        return _POLL_S if self.rows is None else _TURN_S
