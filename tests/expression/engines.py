"""The corpus through the engines: DuckDB as queries ask it, Python as transforms do.

A value that an engine refuses for one row (an overflow, a text that is no number) is `ERROR`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from hybrid.errors import QueryError, UsageError
from hybrid.expression.parse import parse_expression
from hybrid.lake.collect import collect_rows
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.exact_decimals import with_exact_decimals
from hybrid.sql.coerce import coerce_timestamps
from hybrid.sql.functions import rewrite_functions
from hybrid.sql.row_sql import row_condition
from hybrid.sql.statement import parse_statement
from hybrid.sql.times import TimeContext
from tests.expression.odd_rows import COUNT, odd_arrow, odd_records, odd_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NOW_MS = 1_637_490_000_000
ERROR = "<error>"
# Values by row; None for an engine that refuses the expression as a whole.
Values = list[object] | None
_FOLDER = Path(__file__).parent


def lines_of(name: str) -> list[str]:
    """The lines of a file beside this one, without comments."""
    lines = (_FOLDER / name).read_text(encoding="utf-8").split("\n")
    return [line for line in lines if line and not line.startswith("#")]


def by_query(expressions: Sequence[str]) -> dict[str, Values]:
    """What DuckDB gives."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("given", odd_arrow())
        connection.execute("CREATE TABLE odd AS SELECT * REPLACE (timezone('UTC', t) AS t) FROM given")
        return {text: _queried(connection, text) for text in expressions}


def by_transform(expressions: Sequence[str]) -> dict[str, Values]:
    """What transforms give."""
    records = odd_records()
    return {text: _transformed(text, records) for text in expressions}


def by_correction(workbench: CommitContext, queried: Mapping[str, Values]) -> dict[str, Values]:
    """What Spark gives for row expressions, in the rows for which a query gives a value.

    All are in one job, and one that fails is in a job of its own. Nothing is compiled: it would take longer.
    """
    session = workbench.spark.newSession()
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    frame = session.createDataFrame(odd_arrow()).repartition(1).cache()
    found: dict[str, Values] = dict.fromkeys(queried)
    written = {text: sql for text in queried if (sql := _row_sql(text)) is not None}
    asked = {text: f"CASE WHEN {_rows_with_values(queried[text])} THEN {sql} END" for text, sql in written.items()}
    try:
        _corrected(frame, asked, found)
    finally:
        frame.unpersist()
    return found


def is_same(one: object, other: object) -> bool:
    """Equal values of the same kind; doubles to the last digit or two, decimals exactly; -0.0 is 0.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float | Decimal) and isinstance(other, int | float | Decimal):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other or (isinstance(one, float) and math.isclose(one, other, rel_tol=4e-16))
    return one == other


def _queried(connection: duckdb.DuckDBPyConnection, text: str) -> Values:
    try:
        tree = parse_statement(f"SELECT {text} FROM odd").tree
        fields = odd_table().schema.fields
        types = {field.name: field.data_type for field in fields if field.single_value}
        rewrite_functions(tree, TimeContext(NOW_MS, types, frozenset({"tags"})))
        coerce_timestamps(tree, types)
    except QueryError:
        return None
    value = tree.selects[0].sql("duckdb")
    try:
        return [_plain(row[0]) for row in connection.execute(f"SELECT {value} FROM odd ORDER BY id").fetchall()]
    except duckdb.Error:
        return _tried(connection, value)


def _tried(connection: duckdb.DuckDBPyConnection, value: str) -> Values:
    """The values where some row fails: TRY gives NULL there, and a struct of NULL for a row without a value."""
    try:
        found = connection.execute(f"SELECT TRY(struct_pack(value := {value})) FROM odd ORDER BY id").fetchall()
    except duckdb.Error:
        return None
    values = [ERROR if row[0] is None else _plain(row[0]["value"]) for row in found]
    return None if all(one is ERROR for one in values) else values


def _row_sql(text: str) -> str | None:
    try:
        return row_condition(f"CASE WHEN TRUE THEN {text} END", odd_table(), "--where", now_ms=NOW_MS)
    except UsageError:
        return None


def _rows_with_values(queried: Values) -> str:
    failing = [str(row) for row, value in enumerate(queried or ()) if value is ERROR]
    return f"id NOT IN ({', '.join(failing)})" if failing else "TRUE"


def _corrected(frame: DataFrame, asked: Mapping[str, str], found: dict[str, Values]) -> None:
    """Fills in the values. Where the job fails, each half of the expressions is a job."""
    from pyspark.errors import PySparkException

    try:
        values = _in_one_job(frame, list(asked.values()))
    except PySparkException as error:
        items = list(asked.items())
        half = len(items) // 2
        if half:
            _corrected(frame, dict(items[:half]), found)
            _corrected(frame, dict(items[half:]), found)
        else:
            found[items[0][0]] = [f"{ERROR} {str(error)[:200]}"] * COUNT
        return
    found.update(zip(asked, values, strict=True))


def _in_one_job(frame: DataFrame, columns: Sequence[str]) -> list[list[object]]:
    named = [f"{sql} AS c{number}" for number, sql in enumerate(columns)]
    chosen = with_exact_decimals(frame, lambda exact: exact.selectExpr("id AS _id", *named))
    rows = sorted(collect_rows(chosen), key=lambda row: int(row["_id"]))
    return [[_plain(row[f"c{number}"]) for row in rows] for number in range(len(columns))]


def _transformed(text: str, records: Sequence[dict[str, object]]) -> Values:
    try:
        expression = parse_expression(text)
    except ValueError:
        return None
    values: list[object] = []
    for record in records:
        try:
            values.append(_plain(expression.evaluate(record, NOW_MS)))
        except (ValueError, TypeError, ArithmeticError, LookupError):
            values.append(ERROR)
    return values


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat()
    return bytes(value) if isinstance(value, bytearray | memoryview) else value
