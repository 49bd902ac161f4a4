"""Lays a table's rows anew beside the work of their writer, so that rows of the stream are seen meanwhile.

    writer   takes rows into the generation that readers see                     last round, readers see the new one
    fold     what lay below the offsets F0 -> new generation -> rows in [F0, F1) -> [F1, F2) -> ended

Why the new generation ends as the old one: meanwhile rows come by the stream only, at offsets beyond F0, or of REALTIME
files that the stream did not bring, which lie beyond F0 too. So what differs from F0 on is told by the rows beyond it
that are in the old generation now: on an append table they are what came; on an upsert table the winners of all keys
that changed, of which a round removes what the new generation had. A row in [F0, F1) that was beaten before the round
has its winner beyond F1, and a later round brings that. The round up to what readers see, in which nothing comes, is
the last. Whatever changes rows otherwise abandons the fold. Rows that somebody else wrote into the REALTIME half may
lie beyond the offsets that were read: then the numbers of rows differ in the end, and the new generation is not taken.
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
from hybrid.query.scan import FILE
from hybrid.table.boundary import PartitionKey
from hybrid.table.columns import OFFSET
from hybrid.table.coverage_sql import below_sql

_LOG = logging.getLogger(__name__)
# Rounds go on until so few rows are left, which the writer brings over in some milliseconds.
_FEW_ROWS, _ROUNDS_MAX = 5_000, 8
_INTERRUPT_S = 0.02
_STAGED = "temp.main.folded"
Ends = Mapping[PartitionKey, int]

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class BackgroundRebuild(threading.Thread):
    """One laying of the rows of `left` in `room`. `shown` tells up to which offsets readers see the stream.

    Made, started, and ended by `finish` or `abandon`, by the writer of the rows.
    """

    def __init__(
        self,
        database: CacheDatabase,
        spec: TableSpec,
        left: TableSnapshot,
        room: str,
        plain: Collection[str],
        shown: Callable[[], Ends],
    ) -> None:
        super().__init__(name=f"fold-{spec.name}", daemon=True)
        self._spec, self._left, self._room, self._plain, self._shown = spec, left, room, plain, shown
        self._bytes_max = database.bytes_max
        self._ends = shown()
        self._connection: DuckDBPyConnection = database.cursor()
        self._laid: TableSnapshot | None = None
        self._abandoned = False
        # Whether there was no room in memory for both generations.
        self.found_no_room = False

    def run(self) -> None:
        """The thread's work: all but the last round."""
        try:
            self._work()
        except Exception as error:  # of any kind: the writer lays the rows itself
            self._fail(error)

    def finish(self, left: TableSnapshot) -> TableSnapshot | None:
        """After the thread's end: the new generation, which holds all that `left` does now. None: there is none."""
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
        """Ends it, whatever it does; nothing of it is left."""
        self._abandoned = True
        while self.is_alive():
            self._connection.interrupt()
            self.join(_INTERRUPT_S)
        self._laid = None
        self._clear()

    def _work(self) -> None:
        new = f"{FILE} = 0 AND coalesce(NOT {below_sql(self._ends)}, FALSE)"
        self._run(f"CREATE TEMP TABLE {_STAGED} AS {self._left.select(self._spec, f'NOT ({new})')}")
        laid = build_snapshot(
            self._connection, self._spec, self._room, _STAGED, self._bytes_max, more=self._left.enums, plain=self._plain
        )
        self._run(f"DROP TABLE {_STAGED}")
        self._laid = laid
        for _ in range(_ROUNDS_MAX):
            if self._catch_up() <= _FEW_ROWS:
                return

    def _catch_up(self) -> int:
        """Brings over what the writer took in since the last round; how many rows."""
        assert self._laid is not None
        ends = self._shown()
        grown = {key: end for key, end in ends.items() if end > self._ends.get(key, 0)}
        if not grown:
            return 0
        since = {key: self._ends.get(key, 0) for key in grown}
        # The least of them, bare, so that rows which have long been there are not looked at.
        between = f"{FILE} = 0 AND {OFFSET} >= {min(since.values())} AND NOT {below_sql(since)} AND {below_sql(grown)}"
        self._run(f"CREATE TEMP TABLE {_STAGED} AS {self._left.select(self._spec, between)}")
        self._run("BEGIN TRANSACTION")
        laid = self._laid
        if self._spec.picks_winners:
            laid = laid.delete(among(self._spec, _STAGED), self._run)
        before, laid = laid, laid.insert(self._spec, _STAGED, self._run)
        self._run("COMMIT")
        self._run(f"DROP TABLE {_STAGED}")
        self._laid, self._ends = laid, ends
        return laid.changed - before.changed

    def _fail(self, error: Exception) -> None:
        self._laid = None
        self.found_no_room = is_out_of_memory(error)
        if not self._abandoned:
            _LOG.warning("Table '%s' is not laid anew beside its work", self._spec.name, exc_info=error)

    def _run(self, statement: str) -> DuckDBPyConnection:
        if self._abandoned:
            raise InterruptedError
        return self._connection.execute(statement)

    def _clear(self) -> None:
        """Leaves nothing but a generation that is whole."""
        import duckdb

        with suppress(duckdb.Error):  # there may be no transaction
            self._connection.execute("ROLLBACK")
        if self._laid is None:
            self._connection.execute(f"DETACH DATABASE IF EXISTS {self._room}")
        self._connection.close()
