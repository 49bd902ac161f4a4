"""Answers statements from the cache: at the newest revision, or not at all.

None is the answer for what the files have to answer: halves as they are stored, virtual columns, EXPLAIN, and any table
whose rows are not known to be the newest. So the cache can be slow, late or gone, and never wrong.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from hybrid.errors import QueryError
from hybrid.query.asof import AS_OF_OPTION
from hybrid.query.cache.cache import Cache, CachedTable
from hybrid.query.cache.database import NoRoom, Unanswered
from hybrid.query.cache.served import Served
from hybrid.query.cache.template import Template, Templates
from hybrid.query.connection import identifier, quoted
from hybrid.query.execution import Attempt, Fetched, Limits, fetch, timeout_of, to_result
from hybrid.query.fold import folded_sql
from hybrid.query.guard import check_statement
from hybrid.query.plan import PLAN_OPTION, QueryTable, Relation, Rewritten, resolve, rewrite
from hybrid.query.result import QueryResult, QueryStats
from hybrid.query.revision import Revision
from hybrid.spec.table_config import TableSpec
from hybrid.spec.types import DataType
from hybrid.sql.predicates import comparisons_on
from hybrid.sql.statement import parse_statement
from hybrid.sql.tables import TableRef
from hybrid.table.boundary import PartitionKey
from hybrid.table.columns import ARRIVAL, OP, OP_ROW

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Values of an IN list that are looked up by an index; with more DuckDB scans.
_LOOKED_UP_MAX = 100
_SMALL_S = 0.02
# What takes no longer may be asked for `at_once`, and what it takes at most then, ms.
_BRIEF_S, _BRIEF_MS_MAX = 0.01, 20
# Options that ask for other rows than those of the newest revision.
_ELSEWHERE = frozenset({PLAN_OPTION, AS_OF_OPTION})
# Columns are looked up by values of their own kind only: others are converted, one way or the other.
_LOOKED_UP = {DataType.INT: int, DataType.LONG: int, DataType.STRING: str}
Running = Callable[[Callable[[], None]], None]


Answered = tuple[Fetched, Sequence[Served]]


class _Asked(NamedTuple):
    """A statement over tables that are fresh, and what it may take."""

    template: Template
    values: Sequence[str]
    tables: Sequence[CachedTable]
    timeout_ms: int | None
    rows_max: int | None
    running: Running
    started: float


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
        timeout_ms = timeout_of(template.rewritten, limits.timeout_ms)
        until = math.inf if timeout_ms is None else started + timeout_ms / 1000
        asked = _Asked(template, values, tables, timeout_ms, limits.rows_max, running, started)

        def found() -> Answered | None:
            # The commit that came between has a while until the next one.
            return self._by_itself(asked) or self._by_itself(asked) or self._pinned(asked)

        return self._told(asked, lambda table: table.meet(until), found, started)

    def at_once(self, sql: str, limits: Limits) -> QueryResult | None:
        """The same for a statement that is over in a moment and waits for nothing, or None: `answer` may have it.

        It has run before, in so little time, and is interrupted when it takes longer now. Any thread may ask that has
        nothing better to do for that while.
        """
        known = self._templates.known(sql)
        if known is None or known[0].took_s > _BRIEF_S or (limits.timeout_ms or math.inf) <= _BRIEF_MS_MAX:
            return None
        template, values = known
        if any(table.spec.connectors for table in template.rewritten.tables.values()):
            return None  # whose definition the catalog is asked for
        tables = self._tables(template.rewritten, self._cache.current)
        if tables is None:
            return None
        started = time.monotonic()
        asked = _Asked(template, values, tables, _BRIEF_MS_MAX, limits.rows_max, lambda interrupt: None, started)
        try:
            began = started if limits.began is None else limits.began
            return self._told(asked, lambda table: table.met(), lambda: self._by_itself(asked, may_wait=False), began)
        except QueryError:  # it takes too long, or fails, which `answer` tells
            template.took_s = math.inf  # until it has run to its end
            return None

    def _told(
        self,
        asked: _Asked,
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
        except Unanswered:
            return None  # or the statement names what there never was: the files know
        # Rows that were lost meanwhile are laid anew as the commits have them, which may be less than was met.
        if found is None or losses != [table.follower.losses for table in asked.tables]:
            return None
        fetched, served = found
        fresh_ms = min(one for one in seen if one is not None)
        stats = _stats(served, round((time.monotonic() - began) * 1000), fresh_ms)
        revision = Revision(tuple(one.revision for one in served))
        return replace(to_result(asked.template.rewritten, fetched, revision, (), stats), source="cache")

    def note(self, table: QueryTable, shown: Mapping[PartitionKey, int]) -> None:
        """The files have answered, for lack of an answer, up to these offsets: what follows must not show less."""
        followed = self._cache.if_followed(table.spec.name)
        if followed is not None and followed.table.layout == table.layout:
            followed.follower.note(shown)

    def _by_itself(self, asked: _Asked, *, may_wait: bool = True) -> Answered | None:
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

    def _pinned(self, asked: _Asked) -> Answered | None:
        """Runs it in a transaction, which sees all tables at revisions that are known; None when one is not newest."""
        rows = [table.follower.rows for table in asked.tables]
        with self._cache.database.pinned_reader(lambda: [one.current for one in rows]) as (reader, found):
            served = [one for one in found if one is not None]
            if len(served) < len(found) or not _are_newest(asked.tables, served):
                return None
            return self._run(reader, asked, served), served

    def _run(self, reader: DuckDBPyConnection, asked: _Asked, served: Sequence[Served]) -> Fetched:
        template, rewritten = asked.template, asked.template.rewritten
        known = [(one.relation, one.marks) for one in served]  # a relation's columns and indexes stay as they are
        over = template.over  # of another thread, at another revision, as soon as one looks away
        if over is None or over[0] != known:
            over = template.over = known, rewritten.over(_relations(rewritten, asked.tables, served))
        sql, numbers = template.fill(over[1], asked.values)
        self._check(reader, template)
        asked.running(reader.interrupt)
        started = time.monotonic()
        with Attempt(reader, rewritten, asked.timeout_ms, asked.started):
            fetched = fetch(reader, self._cache.database.parsed(sql), asked.rows_max, numbers)
        template.took_s = time.monotonic() - started
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


def _are_newest(tables: Sequence[CachedTable], served: Sequence[Served]) -> bool:
    """Whether no OFFLINE commit follows what is seen of each table."""
    return all(table.follower.is_newest(one.revision.offline) for table, one in zip(tables, served, strict=True))


def _relations(rewritten: Rewritten, tables: Sequence[CachedTable], served: Sequence[Served]) -> Iterator[Relation]:
    by_name = {table.table.spec.name: one for table, one in zip(tables, served, strict=True)}
    for ref in rewritten.refs:
        one, spec = by_name[ref.table], rewritten.tables[ref.table].spec
        few = _few(ref, spec, one.indexed)
        if spec.folds:
            rows = f"({_to_fold(spec, one, few)})"
            yield Relation(f"SELECT {_columns(rewritten, spec, one)} FROM ({folded_sql(spec, rows)})", whole=bool(few))
            continue
        select = f"SELECT {_columns(rewritten, spec, one)} FROM {one.relation}"
        yield Relation(f"{select} WHERE {few}", whole=True) if few else Relation(select)


def _to_fold(spec: TableSpec, served: Served, few: str | None) -> str:
    """The rows of a table that folds, those of a few keys by `few`, delete markers among them."""
    names = [*(identifier(field.name) for field in spec.schema.fields), *ARRIVAL]
    where = f" WHERE {few}" if few else ""
    parts = [f"SELECT {', '.join(names)}, '{OP_ROW}' AS {OP} FROM {served.relation}{where}"]
    if served.marks is not None:
        parts.append(f"SELECT {', '.join(names)}, {OP} FROM {served.marks}{where}")
    return " UNION ALL ".join(parts)


def _few(ref: TableRef, spec: TableSpec, indexed: Sequence[str]) -> str | None:
    """A condition that finds the only rows a statement can need by an index, or None.

    It stands by itself, for DuckDB uses an index only where nothing else filters: no other condition, no ORDER BY.
    """
    for comparison in comparisons_on(ref, indexed):
        field = spec.schema.find(comparison.column)
        kind = _LOOKED_UP.get(field.data_type) if field is not None else None
        fits = kind is not None and all(type(value) is kind for value in comparison.values)
        if fits and comparison.op in {"=", "in"} and len(comparison.values) <= _LOOKED_UP_MAX:
            values = [quoted(value) if isinstance(value, str) else str(value) for value in comparison.values]
            return f"{identifier(comparison.column)} IN ({', '.join(values)})"
    return None


def _columns(rewritten: Rewritten, spec: TableSpec, served: Served) -> str:
    """The columns it can need: planning takes longer with each.

    Those that lie as ENUM become text where more is done with them than an ENUM does alike.
    """
    texts = {name for name in served.enums if name.lower() not in rewritten.shown}
    named = rewritten.named
    needed = [name for name in sorted(spec.schema.column_names) if named is None or name.lower() in named]
    return ", ".join(
        f"{identifier(name)}::VARCHAR AS {identifier(name)}" if name in texts else identifier(name)
        for name in needed or spec.schema.column_names[:1]
    )


def _stats(served: Sequence[Served], used_ms: int, fresh_ms: int) -> QueryStats:
    segments, docs = sum(one.segments for one in served), sum(one.docs for one in served)
    consuming = sum(one.consuming for one in served)
    return QueryStats(segments, segments, segments, consuming, docs, docs, used_ms, fresh_ms)
