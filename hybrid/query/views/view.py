"""A view: a table at one revision as code that runs without this product and returns the rows of a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hybrid.errors import UsageError, suggestion
from hybrid.query.query_table import QueryTable
from hybrid.query.views.for_duckdb import duckdb_code
from hybrid.query.views.for_polars import polars_code
from hybrid.query.views.for_spark import spark_code
from hybrid.query.views.reads import ViewReads, ViewTime, view_reads
from hybrid.runtime.sentence_repr import shown_as

ENGINES: Mapping[str, Callable[[ViewReads], str]] = {
    "spark": spark_code,
    "duckdb": duckdb_code,
    "polars": polars_code,
}


@shown_as("{0.table}: {0.engine}")
@dataclass(frozen=True)
class TableView:
    """Python code for an engine. Its variable `view` holds the rows of `table` at `revision`, lazily."""

    table: str
    engine: str
    revision: str
    code: str


def table_view(
    table: QueryTable, engine: str, now_ms: int, as_of: str | None = None, *, timeout_ms: int | None = None
) -> TableView:
    """The newest commits of a table, or a revision or time, as code for one of ENGINES.

    UsageError for another engine. QueryError when files do not hold the revision, or `timeout_ms` is over.
    """
    code = ENGINES.get(engine)
    if code is None:
        engines = ", ".join(ENGINES)
        raise UsageError(f"There is no view for '{engine}': it is one of {engines}.{suggestion(engine, ENGINES)}")
    reads = view_reads(table, now_ms, as_of, ViewTime(timeout_ms))
    return TableView(table.spec.name, engine, reads.revision, code(reads))
