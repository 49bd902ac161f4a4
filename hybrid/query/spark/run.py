"""Runs a planned statement by Spark, within its time and limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hybrid.errors import VALIDATION, QueryError
from hybrid.query.execution import Fetched, Limits
from hybrid.query.plan import QueryPlan
from hybrid.query.spark.relations import create_views, with_defaults
from hybrid.query.spark.results import RowCursor, fetched, fitting
from hybrid.query.spark.session import statement_session, stoppable
from hybrid.query.spark.statement import SparkStatement
from hybrid.query.spool import BatchSink, spool_rows

if TYPE_CHECKING:
    from hybrid.lake.commit_context import CommitContext

SparkSource = Callable[[], "CommitContext"]
Running = Callable[[Callable[[], None]], None]


def run_by_spark(
    statement: SparkStatement,
    plan: QueryPlan,
    bench: CommitContext,
    limits: Limits,
    running: Running,
    sink: BatchSink | None,
) -> Fetched:
    """The rows of a statement, or with a `sink` only its columns: the sink gets the rows. QueryError when it fails.

    `limits` has the time that the statement has, and when that began. `running` gets the function that cancels it.
    """
    session = statement_session(bench.session)
    with stoppable(session, limits.timeout_ms, limits.began) as interrupt:
        running(interrupt)
        create_views(bench, session, plan, [with_defaults(relation) for relation in statement.relations])
        frame = fitting(session.sql(statement.sql), statement.columns)
        if sink is None:
            return fetched(frame, statement.columns, limits.rows_max, limits.bytes_max)
        return spool_rows(RowCursor(frame, statement.columns), statement.columns, plan, limits.rows_max, sink)


def started_spark(source: SparkSource | None) -> CommitContext:
    """The context with the session of this process. QueryError where the process runs no Spark, as a server's."""
    if source is None:
        raise QueryError(
            "A server answers by DuckDB alone: engine = 'spark' runs in the process of its user.",
            pinot_code=VALIDATION,
            hint='hybrid query --engine spark "select ..."',
        )
    return source()
