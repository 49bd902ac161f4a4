"""Plans a statement for DuckDB: pins the halves of its tables, chooses files, and reads the tails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import NO_SUCH_TABLE, VALIDATION, QueryError, StreamError
from hybrid.kafka.clients import import_clients
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.log_entries import DataFile
from hybrid.lake.plans import rows_folder
from hybrid.query.options import AS_OF_OPTION, PLAN_OPTION
from hybrid.query.plan_preview import as_planned, find_staged
from hybrid.query.prune import FileChoice, choose_offline, choose_realtime, prunable_columns
from hybrid.query.query_table import QueryTable, TableSource
from hybrid.query.revision import LaterRows, PinnedHalves, Revision, TableRevision, all_grown, pin_halves
from hybrid.query.rewrite import Relation, Resolved, Rewritten, resolve, rewrite
from hybrid.query.scan import Scan, relation_sql
from hybrid.query.tail import Tail, TailSource
from hybrid.query.tailrows import TailRows, tail_decoder, tail_rows
from hybrid.sql.predicates import Comparison, comparisons_on
from hybrid.sql.statement import Statement
from hybrid.sql.tables import RESERVED, TableMention
from hybrid.table.boundary import PartitionKey
from hybrid.table.columns import bookkeeping
from hybrid.table.effective import EffectiveBoundary
from hybrid.table.plans import Plan
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    from hybrid.query.time_travel import QueriedMoment


@dataclass(frozen=True)
class PinnedTable:
    """One table at its revision. `tail_rows` is None when the tail holds no row; `tail_name` is its relation.

    `plan` is the backfill whose staged rows are seen. `later` holds rows of an old revision's tail that are committed
    by now.
    """

    table: QueryTable
    halves: PinnedHalves
    tail: Tail
    tail_rows: TailRows | None
    tail_name: str
    plan: str | None = None
    later: LaterRows = field(default_factory=LaterRows)

    @cached_property
    def effective(self) -> EffectiveBoundary | None:
        """The boundary in effect; None on a table with one half."""
        return self.halves.effective(self.table.spec.boundary_lag_ms)

    @property
    def shown(self) -> Mapping[PartitionKey, int]:
        """The offsets up to which the stream is shown, whether the tail could be read or not."""
        committed = self.halves.realtime.realtime.offsets if self.halves.realtime is not None else {}
        return {**committed, **self.revision.tail}

    @property
    def grown(self) -> frozenset[str] | None:
        """The columns that rows may lack, as `PinnedHalves.grown`, the tail's rows included."""
        return all_grown((self.halves.grown, self.later.grown))

    @property
    def may_hold_deletes(self) -> bool:
        """Whether the rows include deletes that remove equal rows (tables without a key)."""
        if not self.table.spec.nets_deletes or self.halves.realtime is None:
            return False
        in_tail = self.tail_rows is not None and self.tail_rows.has_deletes
        return in_tail or max(self.halves.deletes, self.later.deletes) > 0

    @property
    def revision(self) -> TableRevision:
        """The table's part of the statement's revision."""
        offline, realtime = self.halves.offline, self.halves.realtime
        return TableRevision(
            self.table.spec.name,
            offline.version if offline else None,
            realtime.version if realtime else None,
            self.halves.boundary,
            self.tail.positions,
            self.effective.limit_ms if self.effective is not None else None,
            self.plan,
        )

    @property
    def folders(self) -> list[Path]:
        """The folders of its files."""
        halves = [half.path for half in (self.halves.offline, self.halves.realtime) if half is not None]
        return [*halves, *([rows_folder(self.table.layout, self.plan)] if self.plan is not None else [])]


@dataclass(frozen=True)
class RefPlan:
    """What one table reference reads. `later` chooses among the files of `PinnedTable.later`."""

    ref: TableMention
    pinned: PinnedTable
    offline: FileChoice
    realtime: FileChoice
    later: FileChoice
    comparisons: Sequence[Comparison]
    scan: Scan

    @property
    def tail_rows(self) -> int:
        """The number of tail rows that the reference reads; for rows committed by now, all rows of their files."""
        rows = self.pinned.tail_rows
        uncommitted = rows.count if self.scan.tail is not None and rows is not None else 0
        return uncommitted + sum(file.rows for file in self.later.read)

    @property
    def reads_offline(self) -> bool:
        """Whether the reference includes offline rows."""
        return self.ref.half is not Half.REALTIME

    @property
    def reads_realtime(self) -> bool:
        """Whether the reference includes realtime rows, the tail's among them."""
        return self.ref.half is not Half.OFFLINE

    @property
    def rows_read(self) -> int:
        """The number of rows in the files read and in the tail."""
        return sum(file.rows for file in (*self.offline.read, *self.realtime.read)) + self.tail_rows

    def files_there(self) -> list[DataFile]:
        """The files of the halves that the reference includes, without rejected rows."""
        offline, realtime = self.pinned.halves.offline, self.pinned.halves.realtime
        files = list(offline.files) if offline and self.reads_offline else []
        if realtime and self.reads_realtime:
            others = bookkeeping(self.pinned.table.spec.name)
            files += [file for file in realtime.files if file.segment not in others]
        return files

    def consuming(self) -> set[str]:
        """The consuming segments that the reference includes, those of the tail's rows among them."""
        realtime = self.pinned.halves.realtime
        if realtime is None or not self.reads_realtime:
            return set()
        rows = self.pinned.tail_rows
        in_tail = rows.segments if rows is not None else frozenset()
        return {*in_tail, *realtime.realtime.consuming_names()}


@dataclass(frozen=True)
class QueryPlan:
    """A statement at one revision, and what each of its table references reads. `as_of` None: the newest revision."""

    rewritten: Rewritten
    tables: Sequence[PinnedTable]
    refs: Sequence[RefPlan]
    warnings: Sequence[str] = ()
    as_of: QueriedMoment | None = None

    @property
    def revision(self) -> Revision:
        """The revision that the answer belongs to."""
        return Revision(tuple(pinned.revision for pinned in self.tables))

    def full_sql(self, *, evolved: bool = False) -> str:
        """The SQL for DuckDB; `evolved` reads files by column name."""
        scans = (replace(plan.scan, evolved=evolved or plan.scan.evolved) for plan in self.refs)
        return self.rewritten.over(map(Relation, map(relation_sql, scans)))

    def is_behind(self, source: TableSource) -> bool:
        """Whether column types were widened between reading a table's definition and pinning its halves.

        Then files of the pinned versions may hold values that the types of the plan cannot.
        """
        return any(
            pinned.halves.widened and source.open(pinned.table.spec.name).spec.schema != pinned.table.spec.schema
            for pinned in self.tables
        )


def plan_query(
    statement: Statement,
    source: TableSource,
    tail: TailSource,
    now_ms: int,
    meanwhile: Callable[[], None] = lambda: None,
    as_of: str | None = None,
) -> QueryPlan:
    """Plans a statement as of a revision or time, by default the newest. QueryError for what cannot be answered.

    A statement's own `SET asOf` wins. `meanwhile` is called while the tails are read, so that other preparations do not
    wait for Kafka.
    """
    resolved = resolve(statement, source)
    staged = find_staged(statement.options.get(PLAN_OPTION), resolved.tables.values())
    target_moment = _wanted(resolved, as_of, now_ms)
    if sum(Half.REALTIME in table.spec.halves for table in resolved.tables.values()) > 1:
        import_clients()  # before each table's thread does
    pinning = [
        _Pinning(table, place, resolved.refs, tail, now_ms, target_moment)
        for place, table in enumerate(resolved.tables.values())
    ]
    meanwhile()
    rewritten = rewrite(resolved, now_ms)
    pinned = dict(zip(resolved.tables, (with_staged(waiting.pinned(), staged) for waiting in pinning), strict=True))
    plans = [_plan_ref(ref, pinned[ref.table]) for ref in resolved.refs]
    warnings = [*(warning for table in pinned.values() for warning in table.tail.warnings), *rewritten.statement.notes]
    if target_moment is not None:
        from hybrid.query.time_travel import refuse_missing

        for plan in plans:
            refuse_missing(plan.ref.table, (*plan.offline.read, *plan.realtime.read, *plan.later.read))
    return QueryPlan(rewritten, list(pinned.values()), plans, warnings, target_moment)


def _wanted(resolved: Resolved, as_of: str | None, now_ms: int) -> QueriedMoment | None:
    options = resolved.statement.options
    text = options.get(AS_OF_OPTION, as_of)
    if text is None:
        return None
    if PLAN_OPTION in options:
        message = "asOf: a backfill's plan stands on the table as it is now; SET plan and asOf do not go together."
        raise QueryError(message, pinot_code=VALIDATION)
    from hybrid.query.time_travel import QueriedMoment

    moment = QueriedMoment.parse(text, now_ms)
    moment.refuse_others(resolved.tables)
    return moment


def with_staged(pinned: PinnedTable, staged: Plan | None) -> PinnedTable:
    """The table as it will be after the plan of a backfill; unchanged if the plan is of another table."""
    if staged is None or staged.table != pinned.table.spec.name or pinned.halves.offline is None:
        return pinned
    offline = as_planned(pinned.halves.offline, pinned.table.layout, staged)
    return replace(pinned, halves=replace(pinned.halves, offline=offline), plan=staged.id)


def _refuse_halves_to_come(refs: Iterable[TableMention], halves: PinnedHalves) -> None:
    for ref in refs:
        if ref.half is not None and (halves.offline if ref.half is Half.OFFLINE else halves.realtime) is None:
            raise QueryError(f"asOf: table '{ref.table}' had no {ref.half} half then.", pinot_code=NO_SUCH_TABLE)


class _Pinning:
    """Pins a table's halves at once and reads its tail in the background; for time travel reads both at once."""

    def __init__(
        self,
        table: QueryTable,
        place: int,
        refs: Sequence[TableMention],
        source: TailSource,
        now_ms: int,
        as_of: QueriedMoment | None,
    ) -> None:
        self._table, self._place, self._now_ms = table, place, now_ms
        self._tail: Tail | BaseException = Tail()
        self._thread = None
        self._later = LaterRows()
        own = [ref for ref in refs if ref.table == table.spec.name]
        reads_realtime = any(ref.half is not Half.OFFLINE for ref in own)
        if as_of is not None:
            from hybrid.query.time_travel import PastTable

            past = PastTable(table.spec, table.layout, table.brokers).pin(as_of, source, with_tail=reads_realtime)
            _refuse_halves_to_come(own, past.halves)
            self._halves, self._tail, self._later, self._state = past.halves, past.tail, past.later, past.state
            return
        self._halves = pin_halves(table.spec, table.layout)
        realtime = self._halves.realtime
        self._state = realtime.realtime if realtime is not None else None
        if realtime is not None and reads_realtime:
            self._thread = threading.Thread(target=self._read, args=(source, realtime.realtime), daemon=True)
            self._thread.start()

    def pinned(self) -> PinnedTable:
        """The table at its revision; waits for the tail."""
        if self._thread is not None:
            self._thread.join()
        if isinstance(self._tail, BaseException):
            raise self._tail
        try:
            rows = self._rows()
        except StreamError as error:  # a schema registry does not answer; committed rows do not need it
            rows, self._tail = None, self._tail.without_messages(str(error))
        name = f"{RESERVED}tail_{self._place}"
        return PinnedTable(self._table, self._halves, self._tail, rows, name, later=self._later)

    def _read(self, source: TailSource, state: RealtimeState) -> None:
        try:
            tail = source.read(self._table.spec, state, self._table.brokers)
            self._tail = tail if self._table.pause_offsets is None else tail.held_by(self._table)
        except BaseException as error:  # raised again where the tail is waited for
            self._tail = error

    def _rows(self) -> TailRows | None:
        if self._state is None or isinstance(self._tail, BaseException) or not self._tail.messages:
            return None
        spec = self._table.spec
        return tail_rows(tail_decoder(spec), spec, self._state, self._tail.messages, self._now_ms)


def _plan_ref(ref: TableMention, pinned: PinnedTable) -> RefPlan:
    spec, halves = pinned.table.spec, pinned.halves
    comparisons = comparisons_on(ref, prunable_columns(spec))
    boundary = pinned.effective if ref.half is None else None
    offline = choose_offline(_files(halves.offline, ref, Half.OFFLINE), boundary, comparisons)
    realtime = later = FileChoice(())
    if halves.realtime is not None and ref.half is not Half.OFFLINE:
        partitions = sorted({*halves.realtime.realtime.offsets, *halves.boundary.frontier, *pinned.later.ends})
        realtime = choose_realtime(spec, halves.realtime.files, boundary, partitions, comparisons)
        later = choose_realtime(spec, pinned.later.files, boundary, partitions, comparisons)
    tail = pinned.tail_name if pinned.tail_rows is not None and ref.half is not Half.OFFLINE else None
    scan = Scan(
        spec,
        ref.half,
        offline.read,
        realtime.read,
        tail,
        boundary,
        ref.virtual,
        evolved=pinned.grown is not None,
        added=pinned.grown,
        nets=pinned.may_hold_deletes,
        later=later.read,
        ends=pinned.later.ends,
    )
    return RefPlan(ref, pinned, offline, realtime, later, comparisons, scan)


def _files(snapshot: HalfSnapshot | None, ref: TableMention, half: Half) -> Sequence[DataFile]:
    return snapshot.files if snapshot is not None and ref.half in {None, half} else ()
