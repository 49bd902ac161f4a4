"""The memory that all statements over files have together: each has a database of its own, which knows of no other."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hybrid.errors import QueryError
from hybrid.query.error_mapping import TIMEOUT

_LEAST = 64 * 1024**2


class MemoryBudget:
    """`total` bytes. A statement has half of what is left, at most what it may take; what it has no room for it spills.

    So many may run at once and none has to wait, until less is left than a statement needs at all.
    """

    def __init__(self, total: int, least: int = _LEAST) -> None:
        self._left, self._least = max(total, least), least
        self._changed = threading.Condition()

    @contextmanager
    def share(self, most: int | None, until: float | None = None) -> Iterator[int]:
        """The bytes that a statement has meanwhile. QueryError when none are free until then (monotonic clock, s)."""
        with self._changed:
            while self._left < self._least:
                left_s = None if until is None else until - time.monotonic()
                if left_s is not None and left_s <= 0:
                    raise QueryError(
                        "Other statements took all memory that there is for them, until this one's time was over.",
                        pinot_code=TIMEOUT,
                        hint="Ask again later, or raise query_memory_total_bytes of the server that answers it.",
                    )
                self._changed.wait(left_s)
            half = max(self._least, self._left // 2)
            granted = half if most is None else min(most, half)
            self._left -= granted
        try:
            yield granted
        finally:
            with self._changed:
                self._left += granted
                self._changed.notify_all()


def default_total() -> int:
    """Half of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
