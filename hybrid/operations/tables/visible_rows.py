"""Counts rows for the status of tables, those that a query sees and those stored twice: in bounded time and memory."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from hybrid.config.table_config import Half
from hybrid.errors import HybridError
from hybrid.lake.log_entries import newest_version
from hybrid.query.connection import identifier
from hybrid.query.revision import PinnedHalves
from hybrid.query.visible_count import VisibleCount

if TYPE_CHECKING:
    from hybrid.config.table_config import TableSpec
    from hybrid.home.home import Home
    from hybrid.home.table_ref import FixedTableRef
    from hybrid.lake.log import HalfSnapshot
    from hybrid.operations.queries import Queries
    from hybrid.query.covered_rows import StoredTwice
    from hybrid.table.effective import EffectiveBoundary

_ALL_S = 3.0
_MEMORY_BYTES = 256 * 1024 * 1024


class RowCount(NamedTuple):
    """The rows that a query sees, or None and why they are not known: a part of a sentence."""

    rows: int | None
    reason: str | None = None


class VisibleRows:
    """Counts rows for one status page. All its counts together take three seconds at most."""

    def __init__(self, home: Home, queries: Queries, all_s: float = _ALL_S) -> None:
        self._home, self._queries, self._all_s = home, queries, all_s
        self._began: float | None = None
        self._one_at_a_time = threading.Lock()  # for the sake of memory; a count from a server's cache is short

    def count(self, table: FixedTableRef, behind: int | None) -> RowCount:
        """The rows that a query of the table sees now; without a number when they are not counted in time.

        `behind` counts the offsets in Kafka that are not committed. None: Kafka is not asked, committed rows count.
        """
        committed = None if behind else _committed_rows(table)
        counted = None if committed is None else committed.by_statistics()
        if counted is not None:
            return RowCount(counted)
        with self._one_at_a_time:
            until = self._start() + self._all_s
            if committed is not None and not self._queries.has_cache:
                counted = committed.by_reading(_MEMORY_BYTES, self._home.settings.spill, until)
            if counted is not None:
                return RowCount(counted)
            if time.monotonic() > until:
                return RowCount(None, f"all tables together were not counted within {self._all_s:g} s")
            return self._by_query(table.name, with_tail=behind is not None)

    def _by_query(self, table: str, *, with_tail: bool) -> RowCount:
        from hybrid.query.engine import QueryOptions
        from hybrid.query.tail import KafkaTail, NoTail

        options = QueryOptions(
            timeout_ms=int(self._all_s * 1000),
            began=self._start(),
            tail=KafkaTail() if with_tail else NoTail(),
            memory_bytes=_MEMORY_BYTES,
            spill=self._home.settings.spill,
        )
        try:
            result = self._queries.query(f"SELECT count(*) FROM {identifier(table)}", options)
        except HybridError as error:
            return RowCount(None, str(error).removesuffix("."))
        if with_tail and result.warnings:  # rows in Kafka are missing, as they were not read in time
            return RowCount(None, str(result.warnings[0]).removesuffix("."))
        return RowCount(int(result.rows[0][0]))

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


def _committed_rows(table: FixedTableRef) -> VisibleCount | None:
    """The committed rows that a query sees; None when a commit came between the halves."""
    offline = table.half(Half.OFFLINE) if Half.OFFLINE in table.spec.halves else None
    realtime = table.half(Half.REALTIME) if Half.REALTIME in table.spec.halves else None
    if offline is not None and newest_version(offline.path, offline.version) != offline.version:
        return None  # as `pin_halves` says: rows may be in neither half of the pair
    return VisibleCount(table.spec, PinnedHalves(offline, realtime))
