"""The corpus through the engines: DuckDB as queries ask it, Python as transforms do.

A value that an engine refuses for one row (an overflow, a text that is no number) is `ERROR`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import duckdb

from hybrid.errors import QueryError
from hybrid.spec.expression.parse import parse_expression
from hybrid.sql.coerce import coerce_timestamps
from hybrid.sql.functions import rewrite_functions
from hybrid.sql.statement import parse_statement
from hybrid.sql.times import Context
from tests.expressions.odd_rows import COUNT, odd_arrow, odd_records, odd_table

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
        rewrite_functions(tree, Context(NOW_MS, types, frozenset({"tags"})))
        coerce_timestamps(tree, types)
    except QueryError:
        return None
    sql = tree.sql("duckdb")
    try:
        return [_plain(row[0]) for row in connection.execute(f"{sql} ORDER BY id").fetchall()]
    except duckdb.Error:
        values = [_queried_alone(connection, f"{sql} WHERE id = {row}") for row in range(COUNT)]
        return None if all(value is ERROR for value in values) else values


def _queried_alone(connection: duckdb.DuckDBPyConnection, sql: str) -> object:
    try:
        row = connection.execute(sql).fetchone()
    except duckdb.Error:
        return ERROR
    assert row is not None
    return _plain(row[0])


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
