"""Answers statements from the cache: at the newest revision, or not at all.

None means that the files have to answer: for stored halves, virtual columns, EXPLAIN, and any table whose rows may not
be the newest. So the cache can be slow, late or gone, and never wrong.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hybrid.errors import QueryError
from hybrid.query.ast_allow_list import check_statement
from hybrid.query.cache.cache import Cache, CachedTable
from hybrid.query.cache.database import NoRoom, Unanswered
from hybrid.query.cache.follower import StreamStatus
from hybrid.query.cache.read_view import ReadView
from hybrid.query.cache.relations import BoundStatement, BufferNotFlushed
from hybrid.query.cache.template import Template, Templates
from hybrid.query.execution import Attempt, Fetched, Limits, fetch, timeout_of, to_result
from hybrid.query.options import AS_OF_OPTION, ENGINE_OPTION, PLAN_OPTION, Engine
from hybrid.query.query_table import QueryTable
from hybrid.query.result import QueryResult, QueryStats
from hybrid.query.revision import Revision
from hybrid.query.rewrite import Rewritten, resolve, rewrite
from hybrid.query.tail import TailLimit
from hybrid.sql.parameters import BoundValues
from hybrid.sql.statement import parse_statement
from hybrid.table.boundary import PartitionKey

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# How many rows `at_once` gives at most.
_BRIEF_ROWS_MAX = 1000
# Options that ask for rows of another revision, or of a plan.
_ELSEWHERE = frozenset({PLAN_OPTION, AS_OF_OPTION})
# How long a statement waits for a flush of the write buffer: the writer does it within some milliseconds.
_LAID_S_MAX = 2.0
Running = Callable[[Callable[[], None]], None]


Answered = tuple[Fetched, Sequence[ReadView]]


class _CachedStatement(NamedTuple):
    """A statement over cached tables, and its limits."""

    template: Template
    values: Sequence[str]
    tables: Sequence[CachedTable]
    timeout_ms: int | None
    rows_max: int | None
    bytes_max: int | None
    running: Running
    started: float


def _nobody(interrupt: Callable[[], None]) -> None:
    """Ignores the interrupt of a statement that ends before anybody could use it."""


def _is_elsewhere(options: Mapping[str, str]) -> bool:
    """Whether a statement's options ask for what the cache does not have, or another engine."""
    return bool(options.keys() & _ELSEWHERE) or options.get(ENGINE_OPTION, Engine.DUCKDB).lower() != Engine.DUCKDB


class CachedAnswers:
    """The cache as the query engine asks it, before the files."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._optimistic_s_max = cache.tuning.optimistic_s_max
        self._brief_s, self._brief_ms_max = cache.tuning.brief_s, cache.tuning.brief_ms_max
        self._templates = Templates(self._rewrite)

    def sizes(self) -> Sequence[tuple[str, int, int]]:
        """The cache's bytes in memory and on disk, by kind."""
        return self._cache.database.sizes()

    def answer(
        self, sql: str, now_ms: int, limits: Limits, running: Running, bound: BoundValues | None = None
    ) -> QueryResult | None:
        """The answer to a statement, or None. QueryError when the statement is wrong or fails."""
        started = time.monotonic() if limits.began is None else limits.began
        template, values = self._templates.find(sql, now_ms, self._is_current, bound)
        tables = self._tables(template.rewritten, self._cache.table)
        if tables is None:
            return None
        timeout_ms = timeout_of(template.rewritten, limits)
        until = math.inf if timeout_ms is None else started + timeout_ms / 1000
        cached_statement = _CachedStatement(
            template, values, tables, timeout_ms, limits.rows_max, limits.bytes_max, running, started
        )

        def found() -> Answered | None:
            try:
                return self._found(cached_statement)
            except BufferNotFlushed:
                laid_by = min(until, time.monotonic() + _LAID_S_MAX)
                for table in tables:
                    table.follower.await_laid(laid_by - time.monotonic())
                return self._found(cached_statement)

        return self._told(cached_statement, lambda table: table.meet(until), found, started)

    def at_once(self, sql: str, limits: Limits, bound: BoundValues | None = None) -> QueryResult | None:
        """The answer to a brief statement without any waiting, or None: then `answer` may have it.

        The statement has run before in little time, and is interrupted when it takes longer now. DuckDB interrupts
        between vectors of rows only, so everything it computes must have a constant cost per row. It blocks the
        calling thread, which may be any.
        """
        entry = self._templates.known(sql, bound)
        if entry is None or entry[0].took_s > self._brief_s or (limits.timeout_ms or math.inf) <= self._brief_ms_max:
            return None
        template, values = entry
        if template.rows > _BRIEF_ROWS_MAX or not template.constant_cost:
            return None
        if any(table.spec.connectors for table in template.rewritten.tables.values()):
            return None  # the definition of such a table is in the catalog, which would have to be asked
        tables = self._tables(template.rewritten, self._cache.current)
        if tables is None:
            return None
        started = time.monotonic()
        rows_max = min(limits.rows_max or _BRIEF_ROWS_MAX, _BRIEF_ROWS_MAX)
        cached_statement = _CachedStatement(
            template, values, tables, self._brief_ms_max, rows_max, limits.bytes_max, _nobody, started
        )
        try:
            began = started if limits.began is None else limits.began
            return self._told(
                cached_statement,
                lambda table: table.met(),
                lambda: self._by_itself(cached_statement, may_wait=False),
                began,
            )
        except QueryError:  # a timeout or an error: `answer` reports it
            template.took_s = math.inf  # until it has run to its end
            return None

    def _told(
        self,
        asked: _CachedStatement,
        meet: Callable[[CachedTable], int | None],
        find: Callable[[], Answered | None],
        began: float,
    ) -> QueryResult | None:
        """The result of `find`, after `meet` has awaited that each table is fresh."""
        losses = [table.follower.losses for table in asked.tables]
        seen = [meet(table) for table in asked.tables]  # before the rows are read, never after
        if None in seen:
            return None
        try:
            answer = find()
        except (BufferNotFlushed, Unanswered):
            return None  # or the statement names a relation that never existed: the files report it
        # If the rows were invalidated meanwhile, the rebuild may hold less of the stream than `meet` has promised.
        if answer is None or losses != [table.follower.losses for table in asked.tables]:
            return None
        if any(table.stop.is_set() for table in asked.tables):
            return None  # its successor has taken over what was shown until then
        fetched, served = answer
        fresh_ms = min(instant_ms for instant_ms in seen if instant_ms is not None)
        stats = _stats(served, round((time.monotonic() - began) * 1000), fresh_ms)
        revision = Revision(tuple(view.revision for view in served))
        rewritten = asked.template.rewritten
        return to_result(rewritten, fetched, revision, rewritten.statement.notes, stats, "cache")

    def note(self, table: QueryTable, shown: Mapping[PartitionKey, int]) -> None:
        """Records up to which offsets an answer from the files has shown the stream: none may show less afterwards."""
        followed = self._cache.if_followed(table.spec.name)
        if followed is not None and followed.table.layout == table.layout:
            followed.follower.note(shown)

    def tail_limit(self, table: str) -> TailLimit | None:
        """How much of a table's tail a statement over files reads; None: all, because nothing follows the table."""
        followed = self._cache.if_followed(table)
        return None if followed is None else followed.follower.tail_limit

    def streams(self) -> Mapping[str, StreamStatus]:
        """How the stream of each followed table is read."""
        statuses = {name: table.follower.stream_status for name, table in self._cache.followed().items()}
        return {name: status for name, status in statuses.items() if status is not None}

    def stream_words(self, table: str) -> str | None:
        """How the stream of a table is read, for people; None when nothing follows it."""
        followed = self._cache.if_followed(table)
        status = None if followed is None else followed.follower.stream_status
        return None if status is None else status.mode.words

    def _found(self, asked: _CachedStatement) -> Answered | None:
        # After a commit has interfered, the next one is likely to be some time away, so a second attempt pays.
        return self._by_itself(asked) or self._by_itself(asked) or self._pinned(asked)

    def _by_itself(self, asked: _CachedStatement, *, may_wait: bool = True) -> Answered | None:
        """Runs the statement optimistically, without a transaction; None when a commit interfered.

        Then the revision of the rows is unknown. A transaction that pins it takes as long as a small statement, so
        small statements go without one where commits are rare.
        """
        if asked.template.took_s > self._optimistic_s_max:
            return None
        takes_s = asked.template.took_s
        settled = [table.follower.rows.settled(takes_s, may_wait=may_wait) for table in asked.tables]
        served = [entry[1] for entry in settled if entry is not None]
        if len(served) < len(settled) or not _are_newest(asked.tables, served):
            return None
        try:
            with self._cache.database.reader() as reader:
                fetched = self._run(reader, asked, served)
        except NoRoom:
            raise  # a transaction would have no more room
        except Unanswered:
            return None  # a rebuild has replaced its relation
        for table, entry in zip(asked.tables, settled, strict=True):
            if entry is None or not table.follower.rows.is_at(entry[0]):
                return None
        return fetched, served

    def _pinned(self, asked: _CachedStatement) -> Answered | None:
        """Runs the statement in a transaction that pins the tables' revisions; None when one is not the newest."""
        rows = [table.follower.rows for table in asked.tables]
        with self._cache.database.pinned_reader(lambda: [table_rows.current for table_rows in rows]) as (reader, views):
            served = [view for view in views if view is not None]
            if len(served) < len(views) or not _are_newest(asked.tables, served):
                return None
            return self._run(reader, asked, served), served

    def _run(self, reader: DuckDBPyConnection, asked: _CachedStatement, served: Sequence[ReadView]) -> Fetched:
        template, rewritten = asked.template, asked.template.rewritten
        relations = [(view.relation, view.marks) for view in served]  # a relation's columns and indexes never change
        by_name = {table.table.spec.name: view for table, view in zip(asked.tables, served, strict=True)}
        bound = template.over  # read once: another thread may replace it at any time
        if bound is None or bound[0] != relations:
            bound = template.over = relations, BoundStatement(rewritten, by_name, self._cache.tuning)
        parsed = self._cache.database.parsed
        self._check(reader, template)
        started = time.monotonic()
        with Attempt(reader, rewritten, asked.timeout_ms, asked.started) as interrupt:
            asked.running(interrupt)
            along = bound[1].along(
                by_name,
                template.given(asked.values),
                lambda select, parameters: fetch(reader, parsed(select), None, parameters).rows,
            )
            own = [value for found in along for value in found.parameters]
            sql, numbers = template.fill(bound[1].sql(along), asked.values, len(own))
            parameters = [*own, *numbers]
            fetched = fetch(reader, parsed(sql), asked.rows_max, parameters, asked.bytes_max, bound[1].rows)
        template.took_s = time.monotonic() - started
        template.rows = len(fetched.rows)
        return fetched

    def _rewrite(self, sql: str, now_ms: int, bound: BoundValues | None) -> Rewritten:
        return rewrite(resolve(parse_statement(sql, bound), _Followed(self._cache)), now_ms)

    def _is_current(self, rewritten: Rewritten) -> bool:
        for name, table in rewritten.tables.items():
            followed = self._cache.table(name)
            if followed is None or followed.table is not table:
                return False
        return True

    def _tables(self, rewritten: Rewritten, find: Callable[[str], CachedTable | None]) -> list[CachedTable] | None:
        """The statement's tables, if their definitions are unchanged. None when it needs more than visible rows."""
        if rewritten.statement.explain or not rewritten.refs or _is_elsewhere(rewritten.statement.options):
            return None
        if any(ref.half is not None or ref.virtual for ref in rewritten.refs):
            return None
        tables = []
        for name, table in rewritten.tables.items():
            followed = find(name)
            if followed is None or followed.table is not table:
                return None
            tables.append(followed)
        return tables

    def _check(self, reader: DuckDBPyConnection, template: Template) -> None:
        """Checks the AST against the allow-list, once per template, because only literals vary in a template."""
        if template.checked:
            return
        rewritten = template.rewritten
        check_statement(reader, rewritten.sql, [ref.relation for ref in rewritten.refs])
        template.checked = True


class _Followed:
    """A table source that gives each followed table as one object for as long as its definition is unchanged."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def names(self) -> list[str]:
        return self._cache.source.names()

    def open(self, name: str) -> QueryTable:
        followed = self._cache.table(name)
        return followed.table if followed is not None else self._cache.source.open(name)


def _are_newest(tables: Sequence[CachedTable], served: Sequence[ReadView]) -> bool:
    """Whether no OFFLINE commit follows the read view of any table."""
    return all(table.follower.is_newest(view.revision.offline) for table, view in zip(tables, served, strict=True))


def _stats(served: Sequence[ReadView], used_ms: int, fresh_ms: int) -> QueryStats:
    segments, docs = sum(view.segments for view in served), sum(view.docs for view in served)
    consuming = sum(view.consuming for view in served)
    return QueryStats(segments, segments, segments, consuming, docs, docs, used_ms, fresh_ms)
