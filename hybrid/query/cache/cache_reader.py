"""Answers statements from the cache: at the newest revision, or not at all.

None is the answer for what the files have to answer: halves as they are stored, virtual columns, EXPLAIN, and any table
whose rows are not known to be the newest. So the cache can be slow, late or gone, and never wrong.
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
from hybrid.query.cache.read_view import ReadView
from hybrid.query.cache.relations import BoundStatement, BufferNotFlushed
from hybrid.query.cache.template import Template, Templates
from hybrid.query.execution import Attempt, Fetched, Limits, fetch, timeout_of, to_result
from hybrid.query.plan import PLAN_OPTION, QueryTable, Rewritten, resolve, rewrite
from hybrid.query.result import QueryResult, QueryStats
from hybrid.query.revision import Revision
from hybrid.query.time_travel import AS_OF_OPTION
from hybrid.sql.statement import parse_statement
from hybrid.table.boundary import PartitionKey

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SMALL_S = 0.02
# What takes no longer may be asked for `at_once`, and what it takes at most then, ms.
_BRIEF_S, _BRIEF_MS_MAX = 0.01, 20
_BRIEF_ROWS_MAX = 1000
# Options that ask for other rows than those of the newest revision.
_ELSEWHERE = frozenset({PLAN_OPTION, AS_OF_OPTION})
# How long a statement waits for rows to be laid: their writer does it within some milliseconds.
_LAID_S_MAX = 2.0
Running = Callable[[Callable[[], None]], None]


Answered = tuple[Fetched, Sequence[ReadView]]


class _CachedStatement(NamedTuple):
    """A statement over tables that are fresh, and what it may take."""

    template: Template
    values: Sequence[str]
    tables: Sequence[CachedTable]
    timeout_ms: int | None
    rows_max: int | None
    bytes_max: int | None
    running: Running
    started: float


def _nobody(interrupt: Callable[[], None]) -> None:
    """Is told how to interrupt a statement that is over before anybody could."""


class CachedAnswers:
    """What the query engine asks first."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._templates = Templates(self._rewrite)

    def sizes(self) -> Sequence[tuple[str, int, int]]:
        """What the cache takes: bytes in memory and on disk, by kind."""
        return self._cache.database.sizes()

    def answer(self, sql: str, now_ms: int, limits: Limits, running: Running) -> QueryResult | None:
        """The answer to a statement, or None. QueryError when the statement is wrong or fails."""
        started = time.monotonic() if limits.began is None else limits.began
        template, values = self._templates.find(sql, now_ms, self._is_current)
        tables = self._tables(template.rewritten, self._cache.table)
        if tables is None:
            return None
        timeout_ms = timeout_of(template.rewritten, limits)
        until = math.inf if timeout_ms is None else started + timeout_ms / 1000
        asked = _CachedStatement(
            template, values, tables, timeout_ms, limits.rows_max, limits.bytes_max, running, started
        )

        def found() -> Answered | None:
            try:
                return self._found(asked)
            except BufferNotFlushed:
                laid_by = min(until, time.monotonic() + _LAID_S_MAX)
                for table in tables:
                    table.follower.await_laid(laid_by - time.monotonic())
                return self._found(asked)

        return self._told(asked, lambda table: table.meet(until), found, started)

    def at_once(self, sql: str, limits: Limits) -> QueryResult | None:
        """The same for a statement that is over in a moment and waits for nothing, or None: `answer` may have it.

        It has run before, in so little time, and is interrupted when it takes longer now. DuckDB interrupts between
        vectors of rows only, so all that it computes is of constant cost per row. Any thread may ask that has
        nothing better to do for that while.
        """
        known = self._templates.known(sql)
        if known is None or known[0].took_s > _BRIEF_S or (limits.timeout_ms or math.inf) <= _BRIEF_MS_MAX:
            return None
        template, values = known
        if template.rows > _BRIEF_ROWS_MAX or not template.constant_cost:
            return None
        if any(table.spec.connectors for table in template.rewritten.tables.values()):
            return None  # whose definition the catalog is asked for
        tables = self._tables(template.rewritten, self._cache.current)
        if tables is None:
            return None
        started = time.monotonic()
        rows_max = min(limits.rows_max or _BRIEF_ROWS_MAX, _BRIEF_ROWS_MAX)
        asked = _CachedStatement(template, values, tables, _BRIEF_MS_MAX, rows_max, limits.bytes_max, _nobody, started)
        try:
            began = started if limits.began is None else limits.began
            return self._told(asked, lambda table: table.met(), lambda: self._by_itself(asked, may_wait=False), began)
        except QueryError:  # it takes too long, or fails, which `answer` tells
            template.took_s = math.inf  # until it has run to its end
            return None

    def _told(
        self,
        asked: _CachedStatement,
        meet: Callable[[CachedTable], int | None],
        find: Callable[[], Answered | None],
        began: float,
    ) -> QueryResult | None:
        """What is found after the tables were met, as a result."""
        losses = [table.follower.losses for table in asked.tables]
        seen = [meet(table) for table in asked.tables]  # before the rows are seen, never after
        if None in seen:
            return None
        try:
            found = find()
        except (BufferNotFlushed, Unanswered):
            return None  # or the statement names what there never was: the files know
        # Rows that were lost meanwhile are laid anew as the commits have them, which may be less than was met.
        if found is None or losses != [table.follower.losses for table in asked.tables]:
            return None
        fetched, served = found
        fresh_ms = min(one for one in seen if one is not None)
        stats = _stats(served, round((time.monotonic() - began) * 1000), fresh_ms)
        revision = Revision(tuple(one.revision for one in served))
        return to_result(asked.template.rewritten, fetched, revision, (), stats, "cache")

    def note(self, table: QueryTable, shown: Mapping[PartitionKey, int]) -> None:
        """The files have answered, for lack of an answer, up to these offsets: what follows must not show less."""
        followed = self._cache.if_followed(table.spec.name)
        if followed is not None and followed.table.layout == table.layout:
            followed.follower.note(shown)

    def _found(self, asked: _CachedStatement) -> Answered | None:
        # The commit that came between has a while until the next one.
        return self._by_itself(asked) or self._by_itself(asked) or self._pinned(asked)

    def _by_itself(self, asked: _CachedStatement, *, may_wait: bool = True) -> Answered | None:
        """Runs it by itself; None when a commit came between, for then nobody knows of which revision the rows are.

        A transaction that tells takes as long as a small statement, so it is left out for those where commits are rare.
        """
        if asked.template.took_s > _SMALL_S:
            return None
        takes_s = asked.template.took_s
        settled = [table.follower.rows.settled(takes_s, may_wait=may_wait) for table in asked.tables]
        served = [one[1] for one in settled if one is not None]
        if len(served) < len(settled) or not _are_newest(asked.tables, served):
            return None
        try:
            with self._cache.database.reader() as reader:
                fetched = self._run(reader, asked, served)
        except NoRoom:
            raise  # there will be none in a transaction either
        except Unanswered:
            return None  # its relation was laid anew
        for table, one in zip(asked.tables, settled, strict=True):
            if one is None or not table.follower.rows.is_at(one[0]):
                return None
        return fetched, served

    def _pinned(self, asked: _CachedStatement) -> Answered | None:
        """Runs it in a transaction, which sees all tables at revisions that are known; None when one is not newest."""
        rows = [table.follower.rows for table in asked.tables]
        with self._cache.database.pinned_reader(lambda: [one.current for one in rows]) as (reader, found):
            served = [one for one in found if one is not None]
            if len(served) < len(found) or not _are_newest(asked.tables, served):
                return None
            return self._run(reader, asked, served), served

    def _run(self, reader: DuckDBPyConnection, asked: _CachedStatement, served: Sequence[ReadView]) -> Fetched:
        template, rewritten = asked.template, asked.template.rewritten
        known = [(one.relation, one.marks) for one in served]  # a relation's columns and indexes stay as they are
        by_name = {table.table.spec.name: one for table, one in zip(asked.tables, served, strict=True)}
        over = template.over  # of another thread, at another revision, as soon as one looks away
        if over is None or over[0] != known:
            over = template.over = known, BoundStatement(rewritten, by_name)
        along = over[1].along(by_name, template.given(asked.values))
        beside = [value for rows in along for row in rows for value in row]
        sql, numbers = template.fill(over[1].sql(along), asked.values, len(beside))
        self._check(reader, template)
        started = time.monotonic()
        with Attempt(reader, rewritten, asked.timeout_ms, asked.started) as interrupt:
            asked.running(interrupt)
            fetched = fetch(
                reader, self._cache.database.parsed(sql), asked.rows_max, [*beside, *numbers], asked.bytes_max
            )
        template.took_s = time.monotonic() - started
        template.rows = len(fetched.rows)
        return fetched

    def _rewrite(self, sql: str, now_ms: int) -> Rewritten:
        return rewrite(resolve(parse_statement(sql), _Followed(self._cache)), now_ms)

    def _is_current(self, rewritten: Rewritten) -> bool:
        for name, table in rewritten.tables.items():
            followed = self._cache.table(name)
            if followed is None or followed.table is not table:
                return False
        return True

    def _tables(self, rewritten: Rewritten, find: Callable[[str], CachedTable | None]) -> list[CachedTable] | None:
        """The statement's tables, if they are what they were; None when it asks for more than their visible rows."""
        if rewritten.statement.explain or not rewritten.refs or rewritten.statement.options.keys() & _ELSEWHERE:
            return None
        if any(ref.half is not None or ref.virtual for ref in rewritten.refs):
            return None
        found = []
        for name, table in rewritten.tables.items():
            followed = find(name)
            if followed is None or followed.table is not table:
                return None
            found.append(followed)
        return found

    def _check(self, reader: DuckDBPyConnection, template: Template) -> None:
        """The second fence. What a template lets in its gaps are literals, so it is asked once for each."""
        if template.checked:
            return
        rewritten = template.rewritten
        check_statement(reader, rewritten.sql, [ref.relation for ref in rewritten.refs])
        template.checked = True


class _Followed:
    """The tables as they are followed: one object each, for as long as its definition is the same."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def names(self) -> list[str]:
        return self._cache.source.names()

    def open(self, name: str) -> QueryTable:
        followed = self._cache.table(name)
        return followed.table if followed is not None else self._cache.source.open(name)


def _are_newest(tables: Sequence[CachedTable], served: Sequence[ReadView]) -> bool:
    """Whether no OFFLINE commit follows what is seen of each table."""
    return all(table.follower.is_newest(one.revision.offline) for table, one in zip(tables, served, strict=True))


def _stats(served: Sequence[ReadView], used_ms: int, fresh_ms: int) -> QueryStats:
    segments, docs = sum(one.segments for one in served), sum(one.docs for one in served)
    consuming = sum(one.consuming for one in served)
    return QueryStats(segments, segments, segments, consuming, docs, docs, used_ms, fresh_ms)
