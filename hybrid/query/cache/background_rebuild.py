"""Rebuilds a table snapshot in the background, while its writer keeps taking in rows of the stream.

    writer    inserts rows into the old snapshot, which readers see         last round, publishes the new one
    rebuild   rows below the offsets F0 -> new snapshot -> rows in [F0, F1) -> [F1, F2) -> ended

Why the new snapshot equals the old one in the end: meanwhile rows arrive only at offsets beyond F0, from the stream or
from REALTIME files that the stream did not deliver. So the rows beyond F0 in the old snapshot hold every difference. On
an append table they are the rows that arrived. On an upsert table they are the winners of all changed keys; a round
first deletes what the new snapshot has of these keys. A row in [F0, F1) that was beaten before the round has its winner
beyond F1, and a later round brings that. The last round runs in the writer, up to what readers see, while no row
arrives. Any other change of rows abandons the rebuild. Rows that somebody else wrote into the REALTIME half may lie
beyond the offsets that were read. Then the numbers of rows differ in the end, and the new snapshot is discarded.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from hybrid.config.table_config import TableSpec
from hybrid.query.cache.database import CacheDatabase, is_out_of_memory
from hybrid.query.cache.table_snapshot import TableSnapshot, among, build_snapshot
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.scan import FILE
from hybrid.table.boundary import PartitionKey
from hybrid.table.columns import OFFSET
from hybrid.table.coverage_sql import below_sql

_LOG = logging.getLogger(__name__)
_ROUNDS_MAX = 8
_INTERRUPT_S = 0.02
_STAGED = "temp.main.folded"
Ends = Mapping[PartitionKey, int]

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class BackgroundRebuild(threading.Thread):
    """Rebuilds the snapshot `left` in the database `room`. `shown` returns the offsets that readers see.

    The writer of the rows makes it, starts it, and ends it by `finish` or `abandon`.
    """

    def __init__(
        self,
        database: CacheDatabase,
        spec: TableSpec,
        left: TableSnapshot,
        room: str,
        plain: Collection[str],
        shown: Callable[[], Ends],
        tuning: CacheTuning,
    ) -> None:
        super().__init__(name=f"fold-{spec.name}", daemon=True)
        self._spec, self._left, self._room, self._plain, self._shown = spec, left, room, plain, shown
        self._bytes_max, self._tuning = database.bytes_max, tuning
        self._ends = shown()
        self._connection: DuckDBPyConnection = database.cursor()
        self._laid: TableSnapshot | None = None
        self._abandoned = False
        # Whether the memory did not suffice for both snapshots.
        self.found_no_room = False

    def run(self) -> None:
        """The thread's work: all but the last round."""
        try:
            self._work()
        except Exception as error:  # of any kind: the writer rebuilds in the foreground
            self._fail(error)

    def finish(self, left: TableSnapshot) -> TableSnapshot | None:
        """Runs the last round after the thread's end; returns the new snapshot with all rows of `left`, or None."""
        try:
            if self._laid is not None:
                self._catch_up()
        except Exception as error:
            self._fail(error)
        if self._laid is not None and (self._laid.rows, self._laid.marked) != (left.rows, left.marked):
            self._laid = None
        self._clear()
        return self._laid

    def abandon(self) -> None:
        """Ends the rebuild at any point and drops its snapshot."""
        self._abandoned = True
        while self.is_alive():
            self._connection.interrupt()
            self.join(_INTERRUPT_S)
        self._laid = None
        self._clear()

    def _work(self) -> None:
        new = f"{FILE} = 0 AND coalesce(NOT {below_sql(self._ends)}, FALSE)"
        self._run(f"CREATE TEMP TABLE {_STAGED} AS {self._left.select(self._spec, f'NOT ({new})')}")
        snapshot = build_snapshot(
            self._connection,
            self._spec,
            self._room,
            _STAGED,
            self._bytes_max,
            self._tuning,
            more=self._left.enums,
            plain=self._plain,
        )
        self._run(f"DROP TABLE {_STAGED}")
        self._laid = snapshot
        for _ in range(_ROUNDS_MAX):
            if self._catch_up() <= self._tuning.last_round_rows:
                return

    def _catch_up(self) -> int:
        """Copies the rows that the writer took in since the last round; returns how many."""
        assert self._laid is not None
        ends = self._shown()
        grown = {key: end for key, end in ends.items() if end > self._ends.get(key, 0)}
        if not grown:
            return 0
        since = {key: self._ends.get(key, 0) for key in grown}
        # A bare comparison with the least offset lets DuckDB skip older rows by their zone maps.
        between = f"{FILE} = 0 AND {OFFSET} >= {min(since.values())} AND NOT {below_sql(since)} AND {below_sql(grown)}"
        self._run(f"CREATE TEMP TABLE {_STAGED} AS {self._left.select(self._spec, between)}")
        self._run("BEGIN TRANSACTION")
        snapshot = self._laid
        if self._spec.picks_winners:
            snapshot = snapshot.delete(among(self._spec, _STAGED), self._run)
        before, snapshot = snapshot, snapshot.insert(self._spec, _STAGED, self._run)
        self._run("COMMIT")
        self._run(f"DROP TABLE {_STAGED}")
        self._laid, self._ends = snapshot, ends
        return snapshot.changed - before.changed

    def _fail(self, error: Exception) -> None:
        self._laid = None
        self.found_no_room = is_out_of_memory(error)
        if not self._abandoned:
            _LOG.warning("Table '%s' is not rebuilt in the background", self._spec.name, exc_info=error)

    def _run(self, statement: str) -> DuckDBPyConnection:
        if self._abandoned:
            raise InterruptedError
        return self._connection.execute(statement)

    def _clear(self) -> None:
        """Drops everything but a complete snapshot."""
        import duckdb

        with suppress(duckdb.Error):  # there may be no transaction
            self._connection.execute("ROLLBACK")
        if self._laid is None:
            self._connection.execute(f"DETACH DATABASE IF EXISTS {self._room}")
        self._connection.close()
