"""The tables' status for the page at `/`: asked once for all that look at it, and kept for a moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid.operations.tables.status import TableStatus

_KEPT_S = 2.0


class StatusCache:
    """Keeps what `look` finds for two seconds. Any thread may ask; who comes while one looks has its answer."""

    def __init__(self, look: Callable[[], Sequence[TableStatus]], kept_s: float = _KEPT_S) -> None:
        self._look, self._kept_s = look, kept_s
        self._one_looks = threading.Lock()
        self._found: tuple[float, Sequence[TableStatus]] | None = None

    def get(self) -> Sequence[TableStatus]:
        """The status of every table, at most so old."""
        asked_at = time.monotonic()
        with self._one_looks:
            if self._found is None or self._found[0] < asked_at - self._kept_s:
                found = self._look()
                self._found = time.monotonic(), found
            return self._found[1]
