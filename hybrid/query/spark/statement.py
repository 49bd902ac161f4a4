"""A planned statement as Spark SQL: bound by DuckDB over empty relations first, then written for Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from hybrid.query.ast_allow_list import check_statement
from hybrid.query.database_pool import databases
from hybrid.query.error_mapping import query_error
from hybrid.query.plan import QueryPlan
from hybrid.query.query_table import QueryTable
from hybrid.query.rewrite import Resolved, fields_by_name, resolve, values_checked
from hybrid.query.spark.bound_types import BoundTypes, create_empty, described
from hybrid.query.spark.relations import SparkRelation, spark_relation
from hybrid.sql.coerce import coerce_timestamps
from hybrid.sql.functions import rewrite_functions
from hybrid.sql.parameters import BoundValues
from hybrid.sql.scopes import note_column_types
from hybrid.sql.shape import hide_virtual, set_limit
from hybrid.sql.spark_functions import refuse_unlisted
from hybrid.sql.spark_statement import spark_statement
from hybrid.sql.statement import parse_statement
from hybrid.sql.times import TimeContext


@dataclass(frozen=True)
class SparkStatement:
    """A statement for Spark: its SQL over the views of its relations, and DuckDB's name and type of each column."""

    sql: str
    relations: Sequence[SparkRelation]
    columns: Sequence[tuple[str, str]]


class _PlannedTables:
    """The tables of a plan as the source of the second resolution, so that both see the same definitions."""

    def __init__(self, plan: QueryPlan) -> None:
        self._tables = plan.rewritten.tables

    def names(self) -> list[str]:
        return list(self._tables)

    def open(self, name: str) -> QueryTable:
        return self._tables[name]


def write_statement(plan: QueryPlan, bound: BoundValues | None, now_ms: int) -> SparkStatement:
    """The statement of a plan for Spark. QueryError for what DuckDB or Spark does not run.

    It needs no JVM.
    """
    import duckdb

    rewritten = plan.rewritten
    statement = parse_statement(rewritten.statement.text, bound)
    refuse_unlisted(statement.tree, statement.text)
    resolved = resolve(statement, _PlannedTables(plan))
    try:
        with databases.connection([]) as connection:
            create_empty(connection, {ref.ref.relation: ref.scan for ref in plan.refs})
            check_statement(connection, rewritten.sql, [ref.ref.relation for ref in plan.refs])
            columns = described(connection, rewritten.sql)
            tree = _rewritten(resolved, plan, now_ms)
            types = BoundTypes(connection, rewritten.columns())
            with values_checked():
                sql = spark_statement(tree, statement.text, types)
    except duckdb.Error as error:
        raise query_error(error, rewritten.columns(), None) from error
    return SparkStatement(sql, [spark_relation(ref) for ref in plan.refs], columns)


@values_checked()
def _rewritten(resolved: Resolved, plan: QueryPlan, now_ms: int) -> exp.Query:
    """The tree with Pinot's functions as those of row expressions, which have forms in Spark."""
    tree, tables = resolved.statement.tree, resolved.tables
    fields = fields_by_name(table.spec for table in tables.values())
    types = {name: column.data_type for name, column in fields.items() if column.single_value}
    lists = frozenset(name for name, column in fields.items() if not column.single_value)
    note_column_types(tree, types)
    rewrite_functions(tree, TimeContext(now_ms, types, lists, rows=True))
    coerce_timestamps(tree, types)
    hide_virtual(resolved.refs)
    rows_max = plan.rewritten.rows_max
    return tree if rows_max is None else set_limit(tree, rows_max + 1)
