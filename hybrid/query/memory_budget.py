"""The memory budget that all statements over files share: each runs in a database of its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hybrid.errors import TIMEOUT, QueryError

_LEAST = 64 * 1024**2


class MemoryBudget:
    """A budget of `total` bytes. A statement gets half of the free bytes, up to its own limit, and spills the rest.

    So many statements can run at once. They wait only when less than `least` bytes are free.
    """

    def __init__(self, total: int, least: int = _LEAST) -> None:
        self._left, self._least = max(total, least), least
        self._changed = threading.Condition()

    @contextmanager
    def share(self, most: int | None, until: float | None = None) -> Iterator[int]:
        """Grants a statement its bytes for the block. QueryError if none are free by `until` (monotonic clock, s)."""
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
