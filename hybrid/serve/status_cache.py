"""A short-lived cache of the tables' status for the page at `/`, shared by all viewers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid.operations.tables.status import TableStatus

_KEPT_S = 2.0


class StatusCache:
    """Caches the result of `look` for two seconds. Thread-safe; concurrent callers share one call."""

    def __init__(self, look: Callable[[], Sequence[TableStatus]], kept_s: float = _KEPT_S) -> None:
        self._look, self._kept_s = look, kept_s
        self._one_looks = threading.Lock()
        self._found: tuple[float, Sequence[TableStatus]] | None = None

    def get(self) -> Sequence[TableStatus]:
        """Return the status of every table, not older than the cache allows."""
        requested_at = time.monotonic()
        with self._one_looks:
            if self._found is None or self._found[0] < requested_at - self._kept_s:
                statuses = self._look()
                self._found = time.monotonic(), statuses
            return self._found[1]
