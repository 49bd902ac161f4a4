"""Counts rows for the status of tables, those that a query sees and those stored twice: in bounded time and memory."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from hybrid.errors import HybridError

if TYPE_CHECKING:
    from hybrid.config.table_config import TableSpec
    from hybrid.home.home import Home
    from hybrid.lake.log import HalfSnapshot
    from hybrid.operations.queries import Queries
    from hybrid.query.covered_rows import StoredTwice
    from hybrid.table.effective import EffectiveBoundary

_ALL_S = 3.0
_MEMORY_BYTES = 256 * 1024 * 1024


class VisibleRows:
    """Counts rows for one status page. All its counts together take three seconds at most."""

    def __init__(self, home: Home, queries: Queries, all_s: float = _ALL_S) -> None:
        self._home, self._queries, self._all_s = home, queries, all_s
        self._began: float | None = None
        self._one_at_a_time = threading.Lock()  # for the sake of memory; a count from a server's cache is short

    def count(self, table: str, *, with_tail: bool) -> int | None:
        """The rows that a query of the table sees now; None when they are not counted in time.

        Without `with_tail` Kafka is not asked, and only committed rows count.
        """
        from hybrid.query.connection import identifier
        from hybrid.query.engine import QueryOptions
        from hybrid.query.tail import KafkaTail, NoTail

        with self._one_at_a_time:
            began = self._start()
            if time.monotonic() - began > self._all_s:
                return None
            options = QueryOptions(
                timeout_ms=int(self._all_s * 1000),
                began=began,
                tail=KafkaTail() if with_tail else NoTail(),
                memory_bytes=_MEMORY_BYTES,
                spill=self._home.settings.spill,
            )
            try:
                result = self._queries.query(f"SELECT count(*) FROM {identifier(table)}", options)
            except HybridError:
                return None
        # A warning says that rows in Kafka are missing, as they were not read in time.
        return None if with_tail and result.warnings else int(result.rows[0][0])

    def stored_twice(self, spec: TableSpec, realtime: HalfSnapshot, boundary: EffectiveBoundary) -> StoredTwice | None:
        """The rows that both halves hold; None when they are not counted in time."""
        from hybrid.query.covered_rows import stored_twice

        with self._one_at_a_time:
            return stored_twice(spec, realtime, boundary, self._start() + self._all_s)

    def _start(self) -> float:
        """When the first count began (monotonic). The state of slow brokers may have been asked for before."""
        if self._began is None:
            self._began = time.monotonic()
        return self._began
