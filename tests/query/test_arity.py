"""A known function with the wrong arguments says what it takes: every function that a statement may call."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from hybrid.errors import QueryError
from hybrid.query.ast_allow_list import check_statement
from hybrid.query.error_mapping import query_error
from hybrid.schema.dialect import canonical
from hybrid.sql import aggregates, arithmetic, times
from hybrid.sql.allowed import AGGREGATES, CALLABLE, WINDOWS
from hybrid.sql.functions import SCALARS, argument_counts, rewrite_functions
from hybrid.sql.statement import parse_statement
from hybrid.sql.times import TimeContext

NAMES = sorted({*CALLABLE, *SCALARS, *aggregates.RULES, *times.RULES, *arithmetic.NAMES})
# These have words of their own for what they are given, in any number.
OWN_WORDS = {"format", "printf", "grouping", "grouping_id", "json_object", "list_zip"}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def answer(connection: duckdb.DuckDBPyConnection, sql: str) -> str | None:
    """The error of a statement in the product's words; None when it runs."""
    try:
        tree = parse_statement(sql).tree
        rewrite_functions(tree, TimeContext(1, {}))
        check_statement(connection, tree.sql("duckdb"), ())
        connection.execute(tree.sql("duckdb"))
    except QueryError as error:
        return str(error)
    except duckdb.Error as error:
        return str(query_error(error, (), 1))
    return None


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["", "1, 2, 3, 4, 5, 6, 7, 8, 9"])
def test_every_known_function_says_what_it_takes(connection: duckdb.DuckDBPyConnection, arguments: str) -> None:
    wrong = []
    for name in NAMES:
        behind = " over () from (select 1)" if name in AGGREGATES | WINDOWS | set(aggregates.RULES) else ""
        found = answer(connection, f"select {name}({arguments}){behind}")
        said = found is None or "takes" in found or "cannot take" in found
        if not said and name not in OWN_WORDS:
            wrong.append((name, found))
    assert wrong == []


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("JSON_EXTRACT_SCALAR('{}', '$.a')", "JSON_EXTRACT_SCALAR takes 3 or 4 arguments, not 2."),
        ("plus(1)", "PLUS takes 2 arguments, not 1."),
        ("div(1)", "DIV takes 2 or 3 arguments, not 1."),
        ("abs(1, 2)", "ABS takes 1 argument, not 2."),
        ("hour(1, 'UTC', 3)", "HOUR takes 1 or 2 arguments, not 3."),
        ("now(1)", "NOW takes no arguments, not 1."),
        ("concat_ws()", "CONCAT_WS takes 2 or more arguments, not 0."),
        ("coalesce()", "COALESCE takes 1 or more arguments, not 0."),
        ("distinct_count(1, 2)", "DISTINCT_COUNT takes 1 argument, not 2."),
        ("array_append(1)", "ARRAY_APPEND takes (arr, el); these arguments do not fit."),
        ("abs([1])", "ABS cannot take (INT_ARRAY); it takes (INT) or (LONG)"),
        ("lag(1, 2, 3, 4) over ()", "Cannot read it: LAG takes 1 to 3 arguments at line 1"),
        ("trim()", "Cannot read it: TRIM takes 1 or 2 arguments at line 1"),
    ],
)
def test_what_a_call_takes(connection: duckdb.DuckDBPyConnection, call: str, sentence: str) -> None:
    assert (answer(connection, f"select {call}") or "").startswith(sentence)


@pytest.mark.slow
def test_no_suggestion_is_the_name_itself(connection: duckdb.DuckDBPyConnection) -> None:
    for name in (name for name in NAMES if argument_counts(canonical(name))):
        count = max(argument_counts(canonical(name))) + 1
        found = answer(connection, f"select {name}({', '.join('1' * count)})") or ""
        assert "does not exist" not in found, found
