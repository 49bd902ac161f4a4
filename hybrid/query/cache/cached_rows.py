"""The visible rows of one table in the cache, and the transactions that keep them current.

One relation holds what `FROM table` shows: on an append table every visible row, on an upsert table the winner of each
key. A second relation holds the delete markers that won their key, so that an older row that arrives late stays hidden.
On a table with partial upsert both hold all visible rows, and every statement combines them. Rows are stored newest
first, so that DuckDB finds the newest and a range of times by its zone maps; keys have an index. Rows of the stream are
inserted behind them, newest last; `first_rows.py` reads these first. Both relations form one table snapshot, which a
rebuild replaces by another (`table_snapshot.py`, `background_rebuild.py`).

Two things change a snapshot, each in one transaction:

    rows of the stream     rows that the boundary does not cover are added; on an upsert table only winners, which
                           replace the rows they beat
    an OFFLINE commit      realtime rows that the new boundary covers are removed, and rows of added files are merged;
                           after most moves only the rows' file changes (`moved_rows.py`)

A few rows of the stream wait in a write buffer beside the snapshot, to be taken in together (`write_buffer.py`).

Why this gives the same answers as the files (R5): a key's winner is the greatest of its visible rows, and a move
removes only rows whose greatest it brings back. After other removals `follow_offline` returns False: all is rebuilt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from hybrid.lake.log_entries import Commit, DataFile
from hybrid.query.cache.background_rebuild import BackgroundRebuild
from hybrid.query.cache.database import CacheDatabase
from hybrid.query.cache.moved_rows import moved_rows
from hybrid.query.cache.read_view import CommitSeqlock, ReadView
from hybrid.query.cache.stream_batch import StreamBatch
from hybrid.query.cache.stream_commits import boundaries_after, emptied_segments, is_onward, staged_sql
from hybrid.query.cache.table_snapshot import TableSnapshot, among, build_snapshot, columns
from hybrid.query.cache.tuning import CacheTuning
from hybrid.query.cache.write_buffer import WriteBuffer
from hybrid.query.connection import identifier
from hybrid.query.error_mapping import is_evolution
from hybrid.query.prune import choose_offline, choose_realtime
from hybrid.query.query_table import QueryTable
from hybrid.query.revision import PinnedHalves, TableRevision
from hybrid.query.scan import FILE, Scan
from hybrid.query.tailrows import TailRows
from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.columns import OFFSET, OP, bookkeeping
from hybrid.table.coverage_sql import frontier_sql, visible_realtime_sql
from hybrid.table.effective import EffectiveBoundary
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# The writer's temporary relations: staged rows, the winners among them, and the rows of a rebuild.
_STAGED, _WON, _LAID = _TEMPORARY = ("staged", "won", "laid")
# A column whose ENUM was widened more often than this stays text.
_WIDENED_MAX = 3
# After so many failed background rebuilds in a row, the writer rebuilds in the foreground and the stream waits.
_FOLDS_LOST_MAX = 3


class CachedRows:
    """One table's cached rows. Only their one writer may call methods other than `current`, `settled` and `is_at`."""

    def __init__(self, database: CacheDatabase, table: QueryTable, name: str, tuning: CacheTuning) -> None:
        self.table, self.tuning = table, tuning
        self._spec = table.spec
        self._name, self._rooms = name, count(1)
        self._database = database
        self._write = database.cursor()
        self._incoming = StreamBatch(self._write, f"{name} stream", table.spec)
        self._laid = TableSnapshot(identifier(f"cache {name} 0"))
        self._fold: BackgroundRebuild | None = None
        self._folds_lost = 0
        self._current: ReadView | None = None
        self._pace = CommitSeqlock(tuning)
        self.waiting = WriteBuffer(tuning)  # rows that readers see before they are inserted
        self._docs = 0
        self._boundary: Boundary | None = None
        self._effective: EffectiveBoundary | None = None
        self._offline_version: int | None = None
        self._realtime_version: int | None = None
        self._realtime: RealtimeState | None = None
        self._positions: Mapping[PartitionKey, int] = {}
        self.shown: Mapping[PartitionKey, int] = {}  # the offsets up to which readers see the stream
        self._flushed: Mapping[PartitionKey, int] = {}  # and up to which the snapshot holds it, without the buffer
        self._widened: Counter[str] = Counter()
        self._files: dict[str, int] = {}
        self._segments: set[str] = set()
        self._grown: frozenset[str] | None = None

    # Readers

    @property
    def current(self) -> ReadView | None:
        """The read view after the last commit; None before the first build. Read it while a reader is being pinned."""
        return self._current

    def settled(self, takes_s: float, *, may_wait: bool = True) -> tuple[int, ReadView] | None:
        """The commit number and view for a statement without a transaction; None if a commit may well overtake it."""
        if self._pace.number % 2 and may_wait:  # waiting for the commit is faster than a transaction of our own
            self._database.await_commit()
        number, served = self._pace.number, self._current
        return None if served is None or number % 2 or not self._pace.leaves(takes_s) else (number, served)

    def is_at(self, number: int) -> bool:
        """Whether nothing was committed since `settled` returned this number."""
        return self._pace.number == number

    @property
    def is_waiting(self) -> bool:
        """Whether readers see rows that are still in the write buffer."""
        current = self._current
        return current is not None and current.waiting is not None

    # The writer

    @property
    def positions(self) -> Mapping[PartitionKey, int]:
        """The offset after the last row taken in, by partition."""
        return self._positions

    @property
    def versions(self) -> tuple[int | None, int | None]:
        """The versions of OFFLINE and REALTIME that the rows reflect."""
        return self._offline_version, self._realtime_version

    @property
    def realtime(self) -> RealtimeState:
        """The state of the REALTIME half as followed."""
        assert self._realtime is not None
        return self._realtime

    def build(self, halves: PinnedHalves) -> None:
        """Builds the snapshot from the files of a pinned pair of halves."""
        self._abandon_fold()
        self._pin(halves)
        offline = list(halves.offline.files) if halves.offline else []
        realtime = [file for file in halves.realtime.files if self._is_data(file)] if halves.realtime else []
        shown = choose_offline(offline, self._effective, ()).read
        partitions = sorted({*self._positions, *halves.boundary.frontier})
        beyond = choose_realtime(self._spec, realtime, self._effective, partitions, ()).read
        self._files = {file.path: number for number, file in enumerate(shown, start=1)}
        self._laid = replace(self._laid, enums={})
        self._segments = {file.segment for file in (*offline, *realtime)}
        self._docs = sum(file.rows for file in (*offline, *realtime))
        self._stage(shown, beyond)
        self._lay(self._temporary(_STAGED))

    def take(self, rows: TailRows | None, positions: Mapping[PartitionKey, int]) -> None:
        """Takes in rows of the stream, which continue at `self.positions`."""
        texts = {name: rows.texts(name) for name in self._laid.enums} if rows is not None else {}
        waits = rows is not None and self._may_wait(rows, texts)
        if not waits:
            self.lay_waiting()
            self._widen(texts)
        self._positions = {**self._positions, **positions}
        self._docs += rows.count if rows is not None else 0
        if rows is not None and waits:
            self.waiting.add(rows)
        if rows is None or waits:
            self._publish()
            return
        self._put(rows)

    def lay_waiting(self) -> None:
        """Flushes the write buffer into the snapshot. Readers have seen its rows already."""
        rows = self.waiting.take()
        if rows is not None:
            self._put(rows)

    def follow_realtime(self, commit: Commit) -> bool:
        """Applies a REALTIME commit; rows that the stream has not delivered yet are read from its files.

        False: the commit's difference does not determine what the half holds now.
        """
        files = [file for file in commit.added if self._is_data(file)]
        foreign = commit.state is None
        if commit.removed or not commit.is_plain or (foreign and files):
            return False
        state = commit.state if isinstance(commit.state, RealtimeState) else self.realtime
        missing = {key: at for key, at in state.offsets.items() if at > self._positions.get(key, 0)}
        if missing:
            self.lay_waiting()
            # All offsets of a commit follow those of the previous commit, so the positions cut its files in two.
            self._docs += self._stage((), files, f" WHERE {OFFSET} >= {frontier_sql(self._positions)}")
        # Staging may rebuild the snapshot, still at the old revision. From here on the new one applies.
        self._realtime, self._realtime_version = state, commit.version
        self._segments |= {file.segment for file in files}
        self._positions = {**self._positions, **missing}
        if not missing:
            self._publish()
        else:
            with self._commit():
                self._merge()
        return True

    def follow_offline(self, commit: Commit, *, holds_realtime: bool = False) -> bool:
        """Applies an OFFLINE commit. False: rebuild. `holds_realtime`: every row of REALTIME has been taken in."""
        self._abandon_fold()
        self.lay_waiting()
        if not commit.is_plain or not is_onward(self._spec, self._files, self._boundary, commit):
            return False
        first, moved = max(self._files.values(), default=0) + 1, None
        boundary, effective = boundaries_after(self._spec, commit, self._boundary, self._effective)
        if holds_realtime and effective is not None:
            moved = moved_rows(self._spec, self._laid, commit, self._positions, effective, first, self._run)
        if commit.added and moved is None:
            self._stage(commit.added, (), first=first)
        # Staging may rebuild the snapshot at the old revision. From here on the new one applies.
        removed = [self._files.pop(path) for path in commit.removed]
        self._segments -= emptied_segments(commit.removed, self._files)
        self._boundary, self._effective, self._offline_version = boundary, effective, commit.version
        self._files.update({file.path: number for number, file in enumerate(commit.added, start=first)})
        self._segments |= {file.segment for file in commit.added}
        self._docs += sum(file.rows for file in commit.added)
        with self._commit():
            if moved is not None:
                moved.renumber(self._laid, self._run)
                return True
            if removed:
                self._docs -= self._delete(f"{FILE} IN ({', '.join(map(str, removed))})")
            if effective is not None:
                self._delete(f"{FILE} = 0 AND NOT ({visible_realtime_sql(effective)})")
            if commit.added:
                self._merge()
        return True

    def fold(self, *, may_begin: bool = True) -> bool:
        """Starts a background rebuild when many rows have changed; True when a rebuilt snapshot has been published."""
        if self._fold is not None and self._fold.is_alive():
            return False
        if self._fold is not None:
            self.lay_waiting()  # its last round reads all rows from the snapshot
            return self._turn_to_fold(self._fold)
        if not may_begin or not self.tuning.is_scattered(self._laid.changed, self._laid.rows):
            return False
        self.lay_waiting()
        if self._folds_lost >= _FOLDS_LOST_MAX:
            self._relay({})
            return True
        self._fold = BackgroundRebuild(
            self._database, self._spec, self._laid, self._next_room(), self._plain(), lambda: self._flushed, self.tuning
        )
        self._fold.start()
        return False

    def forget(self) -> None:
        """Frees the memory until the next build."""
        self._abandon_fold()
        self._current = None
        self.waiting.take()
        self._incoming.forget()
        self._write.execute(f"DETACH DATABASE IF EXISTS {self._laid.room}")
        for part in _TEMPORARY:
            self._write.execute(f"DROP TABLE IF EXISTS {self._temporary(part)}")

    def close(self) -> None:
        """Drops the relations."""
        self.forget()
        self._incoming.close()
        self._write.close()

    # Parts

    def _pin(self, halves: PinnedHalves) -> None:
        self._boundary, self._effective = None, None
        self.waiting.take()
        self._grown = halves.grown
        if halves.offline is not None and halves.realtime is not None:
            self._boundary = halves.boundary
            self._effective = halves.offline.effective_boundary(self._spec.boundary_lag_ms)
        self._offline_version = halves.offline.version if halves.offline else None
        self._realtime_version = halves.realtime.version if halves.realtime else None
        self._realtime = halves.realtime.realtime if halves.realtime else None
        self._positions = dict(self._realtime.offsets) if self._realtime else {}

    def _put(self, rows: TailRows) -> None:
        """Puts rows of the stream into the snapshot, as one commit."""
        marks, is_small = self._spec.folds and rows.has_deletes, rows.count <= self.tuning.small_batch_rows
        if not self._spec.picks_winners and not marks and is_small:
            # By one autocommitted statement: each further statement would wait for Python.
            with self._incoming.holding(rows), self._showing(self._served()):
                self._insert(self._come, self._incoming.run, marks=False)
            return
        with self._incoming.holding(rows), self._commit():
            if not self._spec.picks_winners:
                self._insert(self._come, self._incoming.run, marks=marks)
            elif is_small:
                self._merge_few(rows.count, rows.has_deletes)
            else:
                self._put_aside(_STAGED, f"SELECT {columns(self._spec, OP, FILE)} FROM {self._come}")
                self._merge()

    def _may_wait(self, rows: TailRows, texts: Mapping[str, Collection[str]]) -> bool:
        """Whether rows may wait in the buffer: few, all visible, and no flush is requested."""
        return (
            self.waiting.has_room(rows)
            and (self._effective is None or self._effective.covers_none_from(self._positions))
            and all(self._laid.enums[name].issuperset(column_texts) for name, column_texts in texts.items())
        )

    def _is_data(self, file: DataFile) -> bool:
        return file.segment not in bookkeeping(self._spec.name)

    @property
    def _come(self) -> str:
        """A relation of the current stream batch, without the rows that the boundary covers."""
        hidden = "" if self._effective is None else f" WHERE {visible_realtime_sql(self._effective)}"
        return f"(SELECT *, 0 AS {FILE} FROM ({self._incoming.select}){hidden})"

    def _temporary(self, part: str) -> str:
        return f"temp.main.{identifier(f'{self._name} {part}')}"

    def _put_aside(self, part: str, select: str) -> int:
        """Stores the rows of `select` in a temporary relation of the writer; returns how many."""
        counts = self._run(f"CREATE OR REPLACE TEMP TABLE {self._temporary(part)} AS {select}").fetchone()
        return int(counts[0]) if counts else 0

    def _stage(self, offline: Sequence[DataFile], realtime: Sequence[DataFile], where: str = "", first: int = 1) -> int:
        """Stages the visible rows of files, outside of any transaction: reading takes long. Returns how many."""
        import duckdb

        scan = Scan(
            self._spec, None, offline, realtime, None, self._effective, (), self._grown is not None, self._grown
        )
        try:
            rows = self._put_aside(_STAGED, staged_sql(scan, first, where))
        except duckdb.Error as error:
            if not is_evolution(str(error), self._spec.schema.column_names):
                raise
            rows = self._put_aside(_STAGED, staged_sql(replace(scan, evolved=True), first, where))
        if enums := self._laid.enums:
            names = ", ".join(f"list(DISTINCT {identifier(name)})" for name in enums)
            row = self._write.execute(f"SELECT {names} FROM {self._temporary(_STAGED)}").fetchone() or ()
            self._widen({name: set(values or ()) - {None} for name, values in zip(enums, row, strict=True)})
        return rows

    def _relay(self, more: Mapping[str, Collection[str]]) -> None:
        """Rebuilds the snapshot from its own rows; ENUMs take `more` texts too."""
        self._put_aside(_LAID, self._laid.select(self._spec))
        self._lay(self._temporary(_LAID), more)

    def _widen(self, texts: Mapping[str, Collection[str]]) -> None:
        """Rebuilds the snapshot if its ENUMs lack some of these texts. A column that often gets new ones stays text."""
        new = {name: set(column_texts) - self._laid.enums[name] for name, column_texts in texts.items()}
        if any(new.values()):
            self._widened.update(name for name, column_texts in new.items() if column_texts)
            self._relay(new)

    def _lay(self, source: str, more: Mapping[str, Collection[str]] | None = None) -> None:
        """Builds and publishes a snapshot from staged rows; ENUMs take `more` texts too."""
        self._abandon_fold()
        plain = self._plain()
        if more:  # for the rows about to be inserted, texts are known for the ENUM columns only
            plain |= set(self._spec.schema.column_names) - self._laid.enums.keys()
        room, bytes_max = self._next_room(), self._database.bytes_max
        snapshot = build_snapshot(self._write, self._spec, room, source, bytes_max, self.tuning, more=more, plain=plain)
        self._turn_to(snapshot)
        self._write.execute(f"DROP TABLE {source}")

    def _turn_to_fold(self, fold: BackgroundRebuild) -> bool:
        self._fold, snapshot = None, fold.finish(self._laid)
        if snapshot is not None:
            self._turn_to(snapshot)
        elif fold.found_no_room:
            self._laid = replace(self._laid, changed=0)  # keep the old snapshot until as many rows have changed again
        else:
            self._folds_lost = _FOLDS_LOST_MAX
        return snapshot is not None

    def _turn_to(self, laid: TableSnapshot) -> None:
        """Publishes another snapshot to readers and drops the previous one."""
        previous, self._laid = self._laid, laid
        try:
            served = self._served()
        except BaseException:
            self._laid = previous
            self._write.execute(f"DETACH {laid.room}")
            raise
        with self._showing(served):
            pass
        self._folds_lost = 0
        self._incoming.forget()
        self._write.execute(f"DETACH DATABASE IF EXISTS {previous.room}")

    def _abandon_fold(self) -> None:
        """Ends a background rebuild before rows change otherwise than by the stream."""
        if self._fold is not None:
            self._fold.abandon()
            self._fold = None
            self._folds_lost += 1

    def _next_room(self) -> str:
        return identifier(f"cache {self._name} {next(self._rooms)}")

    def _plain(self) -> set[str]:
        """The text columns that are no longer stored as ENUMs."""
        return {name for name, times in self._widened.items() if times > _WIDENED_MAX}

    def _merge(self) -> None:
        """Merges the staged rows, which may be many, and drops the stage."""
        if not self._spec.picks_winners:
            self._insert(self._temporary(_STAGED), self._run, marks=self._spec.folds)
        else:
            won = self._temporary(_WON)
            self._put_aside(_WON, self._laid.winners_among(self._spec, self._temporary(_STAGED)))
            self._delete(among(self._spec, won))
            self._insert(won, self._run)
            self._write.execute(f"DROP TABLE {won}")
        self._write.execute(f"DROP TABLE {self._temporary(_STAGED)}")

    def _merge_few(self, count: int, deletes: bool) -> None:
        """Merges a small stream batch, whose keys are found by the index, or by a scan where that is faster."""
        has_index = len(self._spec.primary_key) == 1
        if not has_index or self._laid.rows <= count * self.tuning.scanned_rows_of_one:
            self._incoming.contend_by_scan(self._come, self._laid.relations)
            if self._incoming.count:
                self._laid = self._laid.delete(among(self._spec, self._come), self._incoming.run)
        elif beaten := self._incoming.contend(self._come, self._laid.relations, self._run):
            self._delete(self._incoming.near(beaten), beaten)
        if self._incoming.count:
            self._insert(self._come, self._incoming.run, marks=deletes)
        self.waiting.bound_flush(self.tuning.flushed_rows_max(self._laid.rows) if has_index else None)

    def _insert(self, source: str, run: Callable[[str], DuckDBPyConnection], *, marks: bool = True) -> None:
        """Inserts rows. `marks` and `run` as in `TableSnapshot.insert`."""
        self._laid = self._laid.insert(self._spec, source, run, marks=marks)

    def _delete(self, where: str, parameters: Sequence[object] = ()) -> int:
        """Deletes rows; returns how many, delete markers not counted."""
        before, self._laid = self._laid, self._laid.delete(where, lambda statement: self._run(statement, parameters))
        return before.rows - self._laid.rows

    def _run(self, statement: str, parameters: Sequence[object] = ()) -> DuckDBPyConnection:
        return self._write.execute(self._database.parsed(statement), list(parameters))

    @contextmanager
    def _commit(self) -> Iterator[None]:
        before = self._laid
        self._run("BEGIN TRANSACTION")
        try:
            yield
            with self._showing(self._served()):
                self._run("COMMIT")
        except BaseException:
            self._laid = before
            self._write.execute("ROLLBACK")
            raise

    @contextmanager
    def _showing(self, served: ReadView) -> Iterator[None]:
        """Publishes `served` to readers once the commit inside of the block has succeeded."""
        with self._database.commits:
            self._pace.begins()
            try:
                yield
            except BaseException:
                self._pace.failed()
                raise
            self._current = served
            self._pace.ended()
        self._note_shown()

    def _publish(self) -> None:
        """Publishes a newer revision with the same relation."""
        self._current = self._served()
        self._note_shown()

    def _note_shown(self) -> None:
        self.shown = self._positions
        self._flushed = self._positions if self.waiting.rows is None else self._flushed

    def _served(self) -> ReadView:
        state, effective, snapshot = self._realtime, self._effective, self._laid
        consuming = state.consuming_names() if state is not None else frozenset()
        return ReadView(
            snapshot.relation,
            snapshot.marks if self._spec.picks_winners or (self._spec.folds and snapshot.marked) else None,
            snapshot.index,
            tuple(snapshot.enums),
            TableRevision(
                self._spec.name,
                self._offline_version,
                self._realtime_version,
                self._boundary if self._boundary is not None else Boundary(),
                self._positions,
                effective.limit_ms if effective is not None else None,
            ),
            len(self._segments | consuming),
            len(consuming),
            self._docs,
            self.waiting.rows,
            snapshot.marked > 0,
            snapshot.latest_row_id(self.tuning),
        )
