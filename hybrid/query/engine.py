"""The query engine: `run` answers a statement, `explain` describes how. At one revision, without a JVM."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.clock import wall_clock_ms
from hybrid.errors import QueryError
from hybrid.query.ast_allow_list import check_statement
from hybrid.query.column_hints import with_place
from hybrid.query.connection import load_duckdb
from hybrid.query.database_pool import databases
from hybrid.query.execution import Attempt, Fetched, Limits, fetch, parsed, timeout_by, timeout_of, to_result
from hybrid.query.memory_budget import MemoryBudget
from hybrid.query.options import AS_OF_OPTION, Engine, engine_of
from hybrid.query.plan import PinnedTable, QueryPlan, plan_query
from hybrid.query.query_table import QueryTable, TableSource
from hybrid.query.result import QueryResult, QueryStats
from hybrid.query.spool import BatchSink, pass_rows, spool
from hybrid.query.tail import KafkaTail, TailSource
from hybrid.runtime.json_values import epoch_ms
from hybrid.sql.parameters import BoundValues, Parameters, bind
from hybrid.sql.shape import has_default_limit, set_limit
from hybrid.sql.statement import Statement, parse_statement
from hybrid.sql.tokens import check_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hybrid.query.cache.cache_reader import CachedAnswers
    from hybrid.query.explain import Explanation
    from hybrid.query.spark.run import SparkSource

__all__ = ["QueryOptions", "QueryResult", "QueryTable", "TableSource", "explain", "run"]


_ROWS_ALL = 2**62


@dataclass(frozen=True)
class QueryOptions:
    """How to answer a statement. `timeout_ms` None: no limit (a statement's own `SET timeoutMs` wins).

    Over files a statement takes at most `memory_bytes` of memory, and spills to the folder `spill`. A result of more
    than `rows_max` rows is a QueryError (None: no limit). `whole`: without Pinot's default LIMIT. `as_of` is a revision
    or a time (None: now; a statement's own `SET asOf` wins). `cache` is asked before the files. Before the engine
    begins, `running` receives a function that interrupts the statement for good, with a QueryError. The statement's
    time began at `began` (monotonic; None: when it is run). A `sink` receives the rows in batches, and the result holds
    none. `bytes_max` limits the bytes of the result, `timeout_max_ms` the statement's own timeout. The memory is taken
    from `budget` while the statement runs. `params` are the values of the statement's parameters. `spark` returns
    the context with Spark's session of this process, for `SET engine = 'spark'` (None: it has none).
    """

    timeout_ms: int | None = None
    rows_max: int | None = None
    whole: bool = False
    tail: TailSource = field(default_factory=KafkaTail)
    now_ms: Callable[[], int] = wall_clock_ms
    memory_bytes: int | None = None
    spill: Path | None = None
    running: Callable[[Callable[[], None]], None] = lambda interrupt: None
    cache: CachedAnswers | None = None
    as_of: str | None = None
    began: float | None = None
    sink: BatchSink | None = None
    bytes_max: int | None = None
    timeout_max_ms: int | None = None
    budget: MemoryBudget | None = None
    params: Parameters | None = None
    spark: SparkSource | None = None

    @property
    def asked_cache(self) -> CachedAnswers | None:
        """The cache, unless the options exclude it: it has only the newest revision, with Pinot's default LIMIT."""
        return None if self.whole or self.as_of is not None else self.cache

    @property
    def limits(self) -> Limits:
        """The limits of the statement."""
        return Limits(self.timeout_ms, self.rows_max, self.began, self.bytes_max, self.timeout_max_ms)


def run(sql: str, tables: TableSource, options: QueryOptions | None = None) -> QueryResult:
    """Answers a statement. QueryError (with Pinot's code) when it cannot."""
    try:
        return _run(sql, tables, options)
    except QueryError as error:
        if error.column is None and error.place is None:
            raise
        raise with_place(error, sql, tables, bind(sql, (options or QueryOptions()).params)) from error.__cause__


def _run(sql: str, tables: TableSource, options: QueryOptions | None) -> QueryResult:
    check_text(sql)
    options = options or QueryOptions()
    started = time.monotonic() if options.began is None else options.began
    now_ms = options.now_ms()
    bound = bind(sql, options.params)
    cache = options.asked_cache
    if cache is not None:
        cached = cache.answer(sql, now_ms, options.limits, options.running, bound)
        if cached is not None:
            return cached
    try:
        return _from_files(sql, bound, tables, options, started, now_ms)
    except QueryError as error:
        # A purge may have deleted the files of the planned versions. A new plan reads the newest versions, or, for time
        # travel, reports which files are missing.
        from hybrid.query.error_mapping import is_missing_file
        from hybrid.query.spark.errors import is_missing_file_of_spark

        if not (is_missing_file(error.__cause__) or is_missing_file_of_spark(error.__cause__)):
            raise
    return _from_files(sql, bound, tables, options, started, now_ms)


def _from_files(
    sql: str, bound: BoundValues | None, tables: TableSource, options: QueryOptions, started: float, now_ms: int
) -> QueryResult:
    """Answers from files, as of the revision of the options, by default the newest."""
    statement = parse_statement(sql, bound)
    if options.whole:
        statement = _without_default_limit(statement)
    tail = _bounded_tail(statement, options, started)
    plan = plan_query(statement, tables, tail, now_ms, load_duckdb, options.as_of)
    if plan.is_behind(tables):
        return _from_files(sql, bound, tables, options, started, now_ms)
    engine = engine_of(statement.options)
    if plan.rewritten.statement.explain:
        return _explained(plan, options, bound, now_ms)
    if engine is Engine.SPARK:
        fetched = _by_spark(plan, bound, options, started, now_ms)
    else:
        fetched = _by_duckdb(plan, options, started)
    if options.cache is not None and plan.as_of is None:
        for pinned in plan.tables:
            options.cache.note(pinned.table, pinned.shown)
    used_ms = round((time.monotonic() - started) * 1000)
    stats = replace(_stats(plan), time_used_ms=used_ms, fresh_ms=_fresh_ms(plan, now_ms))
    return to_result(plan.rewritten, fetched, plan.revision, plan.warnings, stats)


def _by_duckdb(plan: QueryPlan, options: QueryOptions, started: float) -> Fetched:
    timeout_ms = timeout_of(plan.rewritten, options.limits)
    with (
        _open(plan, options, started) as connection,
        Attempt(connection, plan.rewritten, timeout_ms, started) as interrupt,
    ):
        options.running(interrupt)
        check_statement(connection, plan.rewritten.sql, [ref.ref.relation for ref in plan.refs])
        return _fetch(connection, plan, options)


def _by_spark(
    plan: QueryPlan, bound: BoundValues | None, options: QueryOptions, started: float, now_ms: int
) -> Fetched:
    from hybrid.query.spark.run import run_by_spark, started_spark
    from hybrid.query.spark.statement import write_statement

    timeout_ms = timeout_of(plan.rewritten, options.limits)
    statement = write_statement(plan, bound, now_ms)
    limits = Limits(timeout_ms, options.rows_max, started, options.bytes_max)
    return run_by_spark(statement, plan, started_spark(options.spark), limits, options.running, options.sink)


def run_at_once(sql: str, options: QueryOptions) -> QueryResult | None:
    """Answers a statement if the cache can do so briefly and without waiting; None: call `run`."""
    check_text(sql)
    cache = options.asked_cache
    return None if cache is None else cache.at_once(sql, options.limits, bind(sql, options.params))


def explain(sql: str, tables: TableSource, options: QueryOptions | None = None) -> Explanation:
    """Explains how a statement would be answered. Reads only the logs and the tail."""
    options = options or QueryOptions()
    bound, now_ms = bind(sql, options.params), options.now_ms()
    statement = parse_statement(sql, bound)
    started = time.monotonic() if options.began is None else options.began
    tail = _bounded_tail(statement, options, started)
    return _explain(plan_query(statement, tables, tail, now_ms, as_of=options.as_of), options, bound, now_ms)


def _bounded_tail(statement: Statement, options: QueryOptions, started: float) -> TailSource:
    """The tail, read for at most half of the statement's time: the other half is for the answer.

    On a server it is limited by what the cache is behind. Time travel needs exactly the offsets of its revision.
    """
    tail, timeout_ms = options.tail, timeout_by(statement.options, options.limits)
    if not isinstance(tail, KafkaTail):
        return tail
    if options.cache is not None and options.as_of is None and AS_OF_OPTION not in statement.options:
        tail = tail.limited_by(options.cache.tail_limit)
    return tail if timeout_ms is None else tail.ending_by(started + timeout_ms / 2000)


def _without_default_limit(statement: Statement) -> Statement:
    """The statement with a LIMIT beyond any result, where Pinot's default would apply."""
    if not has_default_limit(statement.tree):
        return statement
    return replace(statement, tree=set_limit(statement.tree, _ROWS_ALL))


def _explain(plan: QueryPlan, options: QueryOptions, bound: BoundValues | None, now_ms: int) -> Explanation:
    from hybrid.query.explain import explain_plan

    explanation = explain_plan(plan) if options.cache is None else explain_plan(plan, options.cache.stream_words)
    if engine_of(plan.rewritten.statement.options) is Engine.DUCKDB:
        return explanation
    from hybrid.query.spark.statement import write_statement

    statement = write_statement(plan, bound, now_ms)
    return explanation.by_spark(statement.sql, [relation.sql for relation in statement.relations])


def _explained(plan: QueryPlan, options: QueryOptions, bound: BoundValues | None, now_ms: int) -> QueryResult:
    from hybrid.query.explain import explanation_rows

    names, rows = explanation_rows(_explain(plan, options, bound, now_ms))
    result = QueryResult(names, ["STRING"] * len(names), rows, plan.revision, list(plan.warnings))
    if options.sink is None:
        return result
    pass_rows(result, options.sink)
    return replace(result, rows=())


@contextmanager
def _open(plan: QueryPlan, options: QueryOptions, started: float) -> Iterator[DuckDBPyConnection]:
    folders = [folder.absolute() for pinned in plan.tables for folder in pinned.folders]
    timeout_ms = timeout_of(plan.rewritten, options.limits)
    until = None if timeout_ms is None else started + timeout_ms / 1000
    with ExitStack() as stack:
        memory_bytes = options.memory_bytes
        if options.budget is not None:
            memory_bytes = stack.enter_context(options.budget.share(memory_bytes, until))
        yield stack.enter_context(databases.connection(folders, memory_bytes, options.spill))


def _fetch(connection: DuckDBPyConnection, plan: QueryPlan, options: QueryOptions) -> Fetched:
    import duckdb

    def take(sql: str) -> Fetched:
        if options.sink is not None:
            return spool(connection, sql, plan, options.rows_max, options.sink)
        return fetch(connection, parsed(connection, sql), options.rows_max, (), options.bytes_max)

    for pinned in plan.tables:
        if pinned.tail_rows is not None:
            pinned.tail_rows.load(connection, pinned.tail_name)
    if options.sink is not None and not options.sink.can_restart:
        return take(plan.full_sql(evolved=True))  # there can be no second attempt once rows were sent
    try:
        return take(plan.full_sql())
    except duckdb.Error as error:
        # Older files may lack columns that were added later. Reading by name costs the footer of every file, so it is
        # a second attempt.
        from hybrid.query.error_mapping import is_evolution

        if not is_evolution(str(error), plan.rewritten.columns()):
            raise
    return take(plan.full_sql(evolved=True))


def _fresh_ms(plan: QueryPlan, now_ms: int) -> int:
    """An instant up to which the answer holds all of Kafka's rows: now, or a commit's where the tail is not complete.

    0 when none is known.
    """
    seen = [_seen_ms(pinned, plan, now_ms) for pinned in plan.tables if pinned.halves.realtime is not None]
    return min(seen, default=now_ms)


def _seen_ms(pinned: PinnedTable, plan: QueryPlan, now_ms: int) -> int:
    tail, half = pinned.tail, pinned.halves.realtime
    if half is None or (tail.positions and plan.as_of is None and not (tail.is_capped or tail.warnings)):
        return now_ms
    if pinned.table.spec.stream is None:
        return epoch_ms(half.realtime.act.at)
    return half.realtime.complete_ms or 0


def _stats(plan: QueryPlan) -> QueryStats:
    read, there, consuming = set[str](), set[str](), set[str]()
    docs = total = size = tail = 0
    for ref in plan.refs:
        files = ref.files_there()
        consuming |= ref.consuming()
        there |= {file.segment for file in files}
        read |= {file.segment for file in (*ref.offline.read, *ref.realtime.read)}
        docs += ref.rows_read
        total += sum(file.rows for file in files) + ref.tail_rows
        size += sum(file.bytes for file in (*ref.offline.read, *ref.realtime.read))
        tail += ref.tail_rows
    processed = len(read | consuming)
    counts = (len(there | consuming), processed, processed, len(consuming), docs, total)
    return QueryStats(*counts, bytes_read=size, tail_rows=tail)
