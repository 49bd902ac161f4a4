"""The visible rows of one table in the cache, and what keeps them so.

One relation holds what `FROM table` shows: on an append table every visible row, on an upsert table the winner of each
key; keys whose winner is a delete marker stand in a second relation, so that an older row that comes late stays dead.
Of a table that folds both hold all visible rows, which every statement folds anew.
Rows lie newest first, so that DuckDB finds the newest and a range of times by its zone maps; keys have an index.
Both relations are one generation, which is left for another one where all rows are laid anew (`generation.py`,
`fold.py`).

What moves it on, each in one transaction:

    rows of the stream     those that the boundary does not cover are added; on an upsert table those that win, in
                           place of the ones they beat
    an OFFLINE commit      realtime rows that the new boundary covers leave; rows of added files come in the same way

A few rows of the stream wait beside the relation for others to be laid with (`waiting.py`).

Why that is the same as asking the files (R5): a key's winner is the greatest of its visible rows, and a move takes
away only rows whose greatest it brings back. Where rows leave without such (a replacement, a boundary that falls), the
whole is built anew; `follow_offline` says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.lake.log import Commit, DataFile
from hybrid.query.cache.background_rebuild import BackgroundRebuild
from hybrid.query.cache.database import CacheDatabase
from hybrid.query.cache.read_view import CommitSeqlock, ReadView
from hybrid.query.cache.stream_batch import StreamBatch
from hybrid.query.cache.stream_commits import is_onward, staged_sql
from hybrid.query.cache.table_snapshot import TableSnapshot, among, build_snapshot, columns
from hybrid.query.cache.write_buffer import WriteBuffer
from hybrid.query.connection import identifier
from hybrid.query.error_mapping import is_evolution
from hybrid.query.plan import QueryTable
from hybrid.query.prune import choose_offline, choose_realtime
from hybrid.query.revision import PinnedHalves, TableRevision
from hybrid.query.scan import FILE, Scan, winners_sql
from hybrid.query.tailrows import TailRows
from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.columns import OFFSET, OP, bookkeeping
from hybrid.table.coverage_sql import frontier_sql, visible_realtime_sql
from hybrid.table.effective import EffectiveBoundary, effective_boundary
from hybrid.table.state import OfflineState, RealtimeState

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# So many rows of the stream are few: readers may wait for them, and an index finds their keys and not a scan.
_FEW = 1000
# The writer's temporary relations: rows that come, those of them that win, rows that are laid anew.
_STAGED, _WON, _LAID = _TEMPORARY = ("staged", "won", "laid")
# A text column whose ENUM was widened so often stays text.
_WIDENED_MAX = 3
# Rows come and go at the end of the relation; when as many have as this share of it, it is laid anew.
_FOLD_SHARE, _FOLD_ROWS_MIN = 0.5, 200_000
# So many folds in a row that came to nothing: then the stream waits for one.
_FOLDS_LOST_MAX = 3


class CachedRows:
    """One table's rows. All methods but `current`, `settled` and `is_at` are its one writer's."""

    def __init__(self, database: CacheDatabase, table: QueryTable, name: str) -> None:
        self.table = table
        self._spec = table.spec
        self._name, self._rooms = name, count(1)
        self._database = database
        self._write = database.cursor()
        self._incoming = StreamBatch(self._write, f"{name} stream", table.spec)
        self._laid = TableSnapshot(identifier(f"cache {name} 0"))
        self._fold: BackgroundRebuild | None = None
        self._folds_lost = 0
        self._current: ReadView | None = None
        self._pace = CommitSeqlock()
        self.waiting = WriteBuffer()  # those that readers see before they are laid
        self._docs = 0
        self._boundary: Boundary | None = None
        self._effective: EffectiveBoundary | None = None
        self._offline_version: int | None = None
        self._realtime_version: int | None = None
        self._realtime: RealtimeState | None = None
        self._positions: Mapping[PartitionKey, int] = {}
        # Up to where readers see the stream.
        self.shown: Mapping[PartitionKey, int] = {}
        self._widened: Counter[str] = Counter()
        self._files: dict[str, int] = {}
        self._segments: set[str] = set()
        self._grown: frozenset[str] | None = None

    # Readers

    @property
    def current(self) -> ReadView | None:
        """What the last commit left; None before the first build. Who pins a reader looks at it meanwhile."""
        return self._current

    def settled(self, takes_s: float, *, may_wait: bool = True) -> tuple[int, ReadView] | None:
        """What a statement sees that runs now, if `is_at` says so afterwards; None when it takes too long for that."""
        if self._pace.number % 2 and may_wait:  # a commit goes on: a transaction of one's own takes longer
            self._database.await_commit()
        number, served = self._pace.number, self._current
        return None if served is None or number % 2 or not self._pace.leaves(takes_s) else (number, served)

    def is_at(self, number: int) -> bool:
        """Whether nothing was committed since `settled` gave this number."""
        return self._pace.number == number

    @property
    def is_waiting(self) -> bool:
        """Whether rows that readers see wait to be laid."""
        current = self._current
        return current is not None and current.waiting is not None

    # The writer

    @property
    def positions(self) -> Mapping[PartitionKey, int]:
        """The next offset after the last row taken, by partition."""
        return self._positions

    @property
    def versions(self) -> tuple[int | None, int | None]:
        """The versions of OFFLINE and REALTIME that the rows are of."""
        return self._offline_version, self._realtime_version

    @property
    def realtime(self) -> RealtimeState:
        """The state of the REALTIME half as followed."""
        assert self._realtime is not None
        return self._realtime

    def build(self, halves: PinnedHalves) -> None:
        """Reads everything from the files of a pinned pair of halves."""
        self._abandon_fold()
        self._pin(halves)
        offline = list(halves.offline.files) if halves.offline else []
        realtime = [file for file in halves.realtime.files if self._is_data(file)] if halves.realtime else []
        shown = choose_offline(offline, self._effective, ()).read
        known = sorted({*self._positions, *halves.boundary.frontier})
        beyond = choose_realtime(self._spec, realtime, self._effective, known, ()).read
        self._files = {file.path: number for number, file in enumerate(shown, start=1)}
        self._laid = replace(self._laid, enums={})
        self._segments = {file.segment for file in (*offline, *realtime)}
        self._docs = sum(file.rows for file in (*offline, *realtime))
        self._stage(shown, beyond)
        self._lay(self._temporary(_STAGED))

    def take(self, rows: TailRows | None, positions: Mapping[PartitionKey, int]) -> None:
        """Adds rows of the stream, which follow those at `self.positions`."""
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
        marks = self._spec.folds and rows.has_deletes
        if not self._spec.picks_winners and not marks and rows.count <= _FEW:
            with self._incoming.holding(rows):
                self._append()
            return
        with self._incoming.holding(rows), self._commit():
            if not self._spec.picks_winners:
                self._insert(self._come, self._incoming.run, marks=marks)
            elif len(self._spec.primary_key) == 1 and rows.count <= _FEW:
                self._merge_few(rows.has_deletes)
            else:
                self._put_aside(_STAGED, f"SELECT {columns(self._spec, OP, FILE)} FROM {self._come}")
                self._merge()

    def lay_waiting(self) -> None:
        """Lays the rows that wait for it. Readers saw them before."""
        rows = self.waiting.take()
        if rows is not None:
            with self._incoming.holding(rows):
                self._append()

    def follow_realtime(self, commit: Commit) -> bool:
        """Takes note of a REALTIME commit; rows that the stream has not brought yet come from its files.

        False: the difference does not tell what the half holds now.
        """
        self.lay_waiting()
        files = [file for file in commit.added if self._is_data(file)]
        foreign = commit.state is None
        if commit.removed or not commit.is_plain or (foreign and files):
            return False
        state = commit.state if isinstance(commit.state, RealtimeState) else self.realtime
        missing = {key: at for key, at in state.offsets.items() if at > self._positions.get(key, 0)}
        if missing:
            # All of the commit's offsets follow those of the one before it, so the positions cut its files in two.
            self._stage((), files, f" WHERE {OFFSET} >= {frontier_sql(self._positions)}")
        # Staging may lay the rows anew, at the revision they are of: what follows is the next one's.
        self._realtime, self._realtime_version = state, commit.version
        self._segments |= {file.segment for file in files}
        self._positions = {**self._positions, **missing}
        if not missing:
            self._publish()
        else:
            with self._commit():
                self._docs += self._merge()
        return True

    def follow_offline(self, commit: Commit) -> bool:
        """Takes over an OFFLINE commit. False: the difference does not tell what is visible now."""
        self._abandon_fold()
        self.lay_waiting()
        if not commit.is_plain or not is_onward(self._spec, self._files, self._boundary, commit):
            return False
        first = max(self._files.values(), default=0) + 1
        if commit.added:
            self._stage(commit.added, (), first=first)
        # Staging may lay the rows anew, at the revision they are of: what follows is the next one's.
        removed = [self._files.pop(path) for path in commit.removed]
        if removed:
            left = {Path(path).parent for path in self._files}
            emptied = {Path(path).parent for path in commit.removed} - left
            self._segments -= {folder.name.partition("=")[2] for folder in emptied}
        if self._boundary is not None and isinstance(commit.state, OfflineState):
            self._boundary = commit.state.boundary
            self._effective = effective_boundary(self._boundary, None, self._spec.boundary_lag_ms)
        self._offline_version = commit.version
        self._files.update({file.path: number for number, file in enumerate(commit.added, start=first)})
        self._segments |= {file.segment for file in commit.added}
        self._docs += sum(file.rows for file in commit.added)
        with self._commit():
            if removed:
                self._docs -= self._delete(f"{FILE} IN ({', '.join(map(str, removed))})")
            if self._effective is not None:
                self._delete(f"{FILE} = 0 AND NOT ({visible_realtime_sql(self._effective)})")
            if commit.added:
                self._merge()
        return True

    def fold(self, *, may_begin: bool = True) -> bool:
        """Has the rows laid anew when many have come and gone, beside other work; whether newly laid ones are there."""
        if self._fold is not None:
            return not self._fold.is_alive() and self._turn_to_fold(self._fold)
        if not may_begin or self._laid.changed < max(_FOLD_ROWS_MIN, _FOLD_SHARE * self._laid.rows):
            return False
        self.lay_waiting()
        if self._folds_lost >= _FOLDS_LOST_MAX:
            self._relay({})
            return True
        room, plain = self._next_room(), self._plain()
        self._fold = BackgroundRebuild(self._database, self._spec, self._laid, room, plain, lambda: self.shown)
        self._fold.start()
        return False

    def forget(self) -> None:
        """Gives the memory back, until the next build."""
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

    def _may_wait(self, rows: TailRows, texts: Mapping[str, Collection[str]]) -> bool:
        """Whether rows may wait: few, of which all are visible and none beats another, while nobody needs all laid."""
        return (
            self.waiting.has_room(rows)
            and not self._spec.picks_winners
            and not self._spec.folds
            and self._fold is None  # which looks at the relation for what the stream brings
            and (self._effective is None or self._effective.covers_none_from(self._positions))
            and all(self._laid.enums[name].issuperset(found) for name, found in texts.items())
        )

    def _is_data(self, file: DataFile) -> bool:
        return file.segment not in bookkeeping(self._spec.name)

    @property
    def _come(self) -> str:
        """The rows of the stream that are taken in, but for those that the boundary covers."""
        hidden = "" if self._effective is None else f" WHERE {visible_realtime_sql(self._effective)}"
        return f"(SELECT *, 0 AS {FILE} FROM ({self._incoming.select}){hidden})"

    def _temporary(self, part: str) -> str:
        return f"temp.main.{identifier(f'{self._name} {part}')}"

    def _put_aside(self, part: str, select: str) -> None:
        """Keeps rows in a temporary relation of the writer's."""
        self._run(f"CREATE OR REPLACE TEMP TABLE {self._temporary(part)} AS {select}")

    def _stage(
        self, offline: Sequence[DataFile], realtime: Sequence[DataFile], where: str = "", first: int = 1
    ) -> None:
        """Puts visible rows of files aside, outside of any transaction: reading them takes long."""
        import duckdb

        scan = Scan(
            self._spec, None, offline, realtime, None, self._effective, (), self._grown is not None, self._grown
        )
        try:
            self._put_aside(_STAGED, staged_sql(scan, first, where))
        except duckdb.Error as error:
            if not is_evolution(str(error), self._spec.schema.column_names):
                raise
            self._put_aside(_STAGED, staged_sql(replace(scan, evolved=True), first, where))
        if enums := self._laid.enums:
            names = ", ".join(f"list(DISTINCT {identifier(name)})" for name in enums)
            found = self._write.execute(f"SELECT {names} FROM {self._temporary(_STAGED)}").fetchone() or ()
            self._widen({name: set(one or ()) - {None} for name, one in zip(enums, found, strict=True)})

    def _relay(self, more: Mapping[str, Collection[str]]) -> None:
        """Lays the rows that are there anew; ENUMs take `more` texts too."""
        self._put_aside(_LAID, self._laid.select(self._spec))
        self._lay(self._temporary(_LAID), more)

    def _widen(self, texts: Mapping[str, Collection[str]]) -> None:
        """Sees to it that the ENUMs hold these texts. A column that keeps bringing new ones stays text."""
        new = {name: set(found) - self._laid.enums[name] for name, found in texts.items()}
        if any(new.values()):
            self._widened.update(name for name, found in new.items() if found)
            self._relay(new)

    def _lay(self, source: str, more: Mapping[str, Collection[str]] | None = None) -> None:
        """A new generation of the rows from staged ones; ENUMs take `more` texts too."""
        self._abandon_fold()
        plain = self._plain()
        if more:  # of what is about to come only the texts of these columns are known
            plain |= set(self._spec.schema.column_names) - self._laid.enums.keys()
        room, bytes_max = self._next_room(), self._database.bytes_max
        self._turn_to(build_snapshot(self._write, self._spec, room, source, bytes_max, more=more, plain=plain))
        self._write.execute(f"DROP TABLE {source}")

    def _turn_to_fold(self, fold: BackgroundRebuild) -> bool:
        self._fold, laid = None, fold.finish(self._laid)
        if laid is not None:
            self._turn_to(laid)
        elif fold.found_no_room:
            self._laid = replace(self._laid, changed=0)  # they stay, until as many have come again
        else:
            self._folds_lost = _FOLDS_LOST_MAX
        return laid is not None

    def _turn_to(self, laid: TableSnapshot) -> None:
        """Lets readers see another generation, and the one before go."""
        left, self._laid = self._laid, laid
        try:
            served = self._served()
        except BaseException:
            self._laid = left
            self._write.execute(f"DETACH {laid.room}")
            raise
        with self._showing(served):
            pass
        self._folds_lost = 0
        self._incoming.forget()
        self._write.execute(f"DETACH DATABASE IF EXISTS {left.room}")

    def _abandon_fold(self) -> None:
        """Before rows change otherwise than by the stream."""
        if self._fold is not None:
            self._fold.abandon()
            self._fold = None
            self._folds_lost += 1

    def _next_room(self) -> str:
        return identifier(f"cache {self._name} {next(self._rooms)}")

    def _plain(self) -> set[str]:
        """The text columns that are not laid as ENUMs any more."""
        return {name for name, times in self._widened.items() if times > _WIDENED_MAX}

    def _append(self) -> None:
        """Adds a few rows that come by one statement, a transaction of its own: after each one waits for Python."""
        with self._showing(self._served()):
            self._insert(self._come, self._incoming.run, marks=False)

    def _merge(self) -> int:
        """Brings the staged rows in, which may be many, and lets go of them; how many came in."""
        if not self._spec.picks_winners:
            rows = self._insert(self._temporary(_STAGED), self._run, marks=self._spec.folds)
        else:
            won = self._temporary(_WON)
            there = self._laid.select(self._spec, among(self._spec, self._temporary(_STAGED)))
            both = (
                f"SELECT *, 0 AS _hy_fresh FROM ({there}) "
                f"UNION ALL SELECT {columns(self._spec, OP, FILE)}, 1 FROM {self._temporary(_STAGED)}"
            )
            best = f"SELECT * FROM ({both}){winners_sql(self._spec, ', _hy_fresh')}"
            self._put_aside(_WON, f"SELECT * EXCLUDE (_hy_fresh) FROM ({best}) WHERE _hy_fresh = 1")
            self._delete(among(self._spec, won))
            rows = self._insert(won, self._run)
            self._write.execute(f"DROP TABLE {won}")
        self._write.execute(f"DROP TABLE {self._temporary(_STAGED)}")
        return rows

    def _merge_few(self, deletes: bool) -> None:
        """The same for a few rows of the stream, whose keys are looked up by the index."""
        relations = [self._laid.relation, self._laid.marks] if self._laid.marked else [self._laid.relation]
        beaten = self._incoming.contend(self._come, relations, self._run)
        if beaten:
            self._delete(self._incoming.near(beaten), beaten)
        if self._incoming.count:
            self._insert(self._come, self._incoming.run, marks=deletes)

    def _insert(self, source: str, run: Callable[[str], DuckDBPyConnection], *, marks: bool = True) -> int:
        """Adds rows; how many, with delete markers. `marks` and `run` as a generation takes them."""
        before, self._laid = self._laid, self._laid.insert(self._spec, source, run, marks=marks)
        return self._laid.changed - before.changed

    def _delete(self, where: str, parameters: Sequence[object] = ()) -> int:
        """Takes rows out; how many, without delete markers."""
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
        """What is committed inside of it readers see as `served`, when it has ended and not before."""
        with self._database.commits:
            self._pace.begins()
            try:
                yield
            except BaseException:
                self._pace.failed()
                raise
            self._current = served
            self._pace.ended()
        self.shown = self._positions

    def _publish(self) -> None:
        """Lets readers know of a newer revision with the same rows."""
        self._current = self._served()
        self.shown = self._positions

    def _served(self) -> ReadView:
        state, effective, laid = self._realtime, self._effective, self._laid
        consuming = state.consuming_names() if state is not None else frozenset()
        return ReadView(
            laid.relation,
            laid.marks if self._spec.folds and laid.marked else None,
            laid.index,
            tuple(laid.enums),
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
        )
