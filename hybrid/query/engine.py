"""`run` answers a statement, `explain` says how it would be answered. One revision, no JVM."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.errors import QueryError
from hybrid.query.connection import load_duckdb, locked_connection
from hybrid.query.explain import Explanation, explain_plan, explanation_rows
from hybrid.query.failures import is_evolution, query_error
from hybrid.query.guard import check_statement
from hybrid.query.plan import QueryPlan, QueryTable, TableSource, plan_query
from hybrid.query.result import QueryResult, QueryStats
from hybrid.query.tail import KafkaTail, TailSource
from hybrid.query.types import convert_rows, converter, wire_type
from hybrid.spec.types import DataType
from hybrid.sql.statement import parse_statement

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Explanation", "QueryOptions", "QueryResult", "QueryTable", "TableSource", "explain", "run"]


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class QueryOptions:
    """How to answer. `timeout_ms` None: no limit (a statement's own `SET timeoutMs` wins); `spill`: for large sorts.

    `running` is told how to interrupt the statement once it runs; an interrupted one is a QueryError (503).
    """

    timeout_ms: int | None = None
    tail: TailSource = field(default_factory=KafkaTail)
    now_ms: Callable[[], int] = _wall_clock_ms
    spill: Path | None = None
    running: Callable[[Callable[[], None]], None] = lambda interrupt: None


def run(sql: str, tables: TableSource, options: QueryOptions | None = None) -> QueryResult:
    """The answer to a statement. QueryError (with Pinot's code) when there is none."""
    options = options or QueryOptions()
    started, now_ms = time.monotonic(), options.now_ms()
    statement = parse_statement(sql)
    plan = plan_query(statement, tables, options.tail, now_ms, load_duckdb)
    if statement.explain:
        return _explained(plan)
    with _open(plan, options) as connection:
        check_statement(connection, plan.sql, [ref.ref.relation for ref in plan.refs])
        options.running(connection.interrupt)
        result = _execute(connection, plan, _timeout_ms(plan, options))
    used_ms = round((time.monotonic() - started) * 1000)
    return replace(result, stats=replace(_stats(plan), time_used_ms=used_ms, fresh_ms=_fresh_ms(plan, now_ms)))


def explain(sql: str, tables: TableSource, options: QueryOptions | None = None) -> Explanation:
    """How a statement would be answered now. Nothing but the logs and the tail is read."""
    options = options or QueryOptions()
    return explain_plan(plan_query(parse_statement(sql), tables, options.tail, options.now_ms()))


def _explained(plan: QueryPlan) -> QueryResult:
    names, rows = explanation_rows(explain_plan(plan))
    return QueryResult(names, ["STRING"] * len(names), rows, plan.revision, list(plan.warnings))


@contextmanager
def _open(plan: QueryPlan, options: QueryOptions) -> Iterator[DuckDBPyConnection]:
    halves = [half for pinned in plan.tables for half in (pinned.halves.offline, pinned.halves.realtime)]
    connection = locked_connection([half.path.absolute() for half in halves if half is not None], options.spill)
    try:
        for pinned in plan.tables:
            if pinned.tail_rows is not None:
                pinned.tail_rows.load(connection, pinned.tail_name)
        yield connection
    finally:
        connection.close()


def _timeout_ms(plan: QueryPlan, options: QueryOptions) -> int | None:
    written = plan.statement.options.get("timeoutms")
    if written is None:
        return options.timeout_ms
    if not written.isdigit() or int(written) == 0:
        raise QueryError(f"timeoutMs must be a number of milliseconds, not '{written}'.", pinot_code=700)
    return int(written)


def _execute(connection: DuckDBPyConnection, plan: QueryPlan, timeout_ms: int | None) -> QueryResult:
    import duckdb

    try:
        with _deadline(connection, timeout_ms):
            rows = _fetch(connection, plan)
    except duckdb.Error as error:
        raise query_error(error, plan.columns(), timeout_ms) from error
    described = [(str(column[0]), str(column[1])) for column in connection.description or ()]
    return _result(plan, described, rows)


def _fetch(connection: DuckDBPyConnection, plan: QueryPlan) -> list[Any]:
    import duckdb

    try:
        return connection.execute(plan.full_sql()).fetchall()
    except duckdb.Error as error:
        # Older files lack columns that were added later. Reading by name costs the footer of every file: only then.
        if not is_evolution(str(error), plan.columns()):
            raise
    return connection.execute(plan.full_sql(evolved=True)).fetchall()


def _result(plan: QueryPlan, described: Sequence[tuple[str, str]], rows: list[Any]) -> QueryResult:
    warnings = list(plan.warnings)
    if plan.rows_max is not None and len(rows) > plan.rows_max:
        rows = rows[: plan.rows_max]
        warnings.append(f"Only the first {plan.rows_max} rows are shown, as in Pinot: add LIMIT to the query for more.")
    types = [_wire(name, kind, plan) for name, kind in described]
    converters = [converter(kind, wire) for (_, kind), wire in zip(described, types, strict=True)]
    names = [name for name, _ in described]
    return QueryResult(names, types, convert_rows(rows, converters), plan.revision, warnings)


def _wire(name: str, kind: str, plan: QueryPlan) -> str:
    wire = wire_type(kind)
    return "JSON" if wire == "STRING" and plan.stored.get(name) is DataType.JSON else wire


@contextmanager
def _deadline(connection: DuckDBPyConnection, timeout_ms: int | None) -> Iterator[None]:
    if timeout_ms is None:
        yield
        return
    timer = threading.Timer(timeout_ms / 1000, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _fresh_ms(plan: QueryPlan, now_ms: int) -> int:
    """Up to when everything that Kafka had is in the answer: now, or the last commit of a half without its tail."""
    halves = [(pinned.halves.realtime, pinned.tail) for pinned in plan.tables]
    seen = [
        now_ms if tail.positions else _instant_ms(half.realtime.act.at) for half, tail in halves if half is not None
    ]
    return min(seen, default=now_ms)


def _instant_ms(iso: str) -> int:
    return int(datetime.fromisoformat(iso).timestamp() * 1000)


def _stats(plan: QueryPlan) -> QueryStats:
    read, there, consuming, docs, total = set[str](), set[str](), set[str](), 0, 0
    for ref in plan.refs:
        files = ref.files_there()
        consuming |= ref.consuming()
        there |= {file.segment for file in files}
        read |= {file.segment for file in (*ref.offline.read, *ref.realtime.read)}
        docs += ref.rows_read
        total += sum(file.rows for file in files) + ref.tail_rows
    processed = len(read | consuming)
    return QueryStats(len(there | consuming), processed, processed, len(consuming), docs, total)
