"""Query parameters are literals of the parsed statement: each kind of value, hostile ones, and every place."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from hybrid.errors import QueryError
from hybrid.sql.parameter_values import json_parameters
from hybrid.sql.parameters import bind, parameter_names, slots_of
from hybrid.sql.statement import parse_statement

HOSTILE = [
    "x' OR '1'='1", "'; DROP TABLE orders; --", "\\'", "\\", "''", "/*", "*/ OR 1=1 --", ":x", "$x", "?", '"', "0",
    "NULL", "a\nb", "é\U0001f600", "$$", "E'\\x27'", "{{x}}", "%s", "'hybrid mark 0'", "", "1); SELECT 1; (",
]  # fmt: skip


class Named(str):
    """A text that `str()` writes otherwise, as members of some enums."""

    def __str__(self) -> str:
        return "Status.OPEN"


def written(sql: str, params: Any) -> str:
    return parse_statement(sql, bind(sql, params)).tree.sql("duckdb")


def refused(sql: str, params: Any) -> QueryError:
    with pytest.raises(QueryError) as raised:
        parse_statement(sql, bind(sql, params))
    return raised.value


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (1, "1"), (-5, "-5"), (2**63, "9223372036854775808"), (1.5, "1.5"), (1e300, "1e+300"), (-0.25, "-0.25"),
        (float("nan"), "CAST('NaN' AS DOUBLE)"), (float("-inf"), "CAST('-Infinity' AS DOUBLE)"),
        (True, "TRUE"), (False, "FALSE"), (None, "NULL"), ("ada", "'ada'"), ("o'hara", "'o''hara'"), ("", "''"),
        (Named("open"), "'open'"), (Decimal("1.20"), "CAST('1.20' AS BIG_DECIMAL)"),
        (Decimal("1E+3"), "CAST('1000' AS BIG_DECIMAL)"), (Decimal("0E+999999"), "CAST('0' AS BIG_DECIMAL)"),
        (date(2021, 9, 24), "CAST('2021-09-24 00:00:00' AS TIMESTAMP)"),
        (datetime(2021, 9, 24, 7, 0, 0, 250), "CAST('2021-09-24 07:00:00.000250' AS TIMESTAMP)"),
        (datetime(2021, 9, 24, 7, tzinfo=timezone(timedelta(hours=2))), "CAST('2021-09-24 05:00:00' AS TIMESTAMP)"),
        (b"\x00\xff", "'00ff'"), (bytearray(b"a"), "'61'"),
        ({"type": "LONG", "value": "9"}, "9"), ({"type": "STRING", "value": "9"}, "'9'"),
        ({"type": "double", "value": "NaN"}, "CAST('NaN' AS DOUBLE)"),
        ({"type": "BIG_DECIMAL", "value": 0.1}, "CAST('0.1' AS BIG_DECIMAL)"),
        ({"type": "TIMESTAMP", "value": -1}, "CAST('1969-12-31 23:59:59.999000' AS TIMESTAMP)"),
        ({"type": "TIMESTAMP", "value": "2021-09-24T07:00:00+02:00"}, "CAST('2021-09-24 05:00:00' AS TIMESTAMP)"),
        ({"type": "BYTES", "value": "00FF"}, "'00ff'"), ({"type": "BOOLEAN", "value": True}, "TRUE"),
        ({"type": "LONG", "value": None}, "NULL"),
    ],
)  # fmt: skip
def test_a_value_is_its_typed_literal(value: Any, literal: str) -> None:
    for sql in ("select a from t where b = :x", "select a from t where b = $x", "select a from t where b = ?"):
        params = [value] if "?" in sql else {"x": value}
        assert written(sql, params) == f"SELECT a FROM t WHERE b = {literal}"
        # What a client sends as JSON means the same.
        assert written(sql, json.loads(json.dumps(json_parameters(params)))) == written(sql, params)


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_text_stays_one_literal(value: str) -> None:
    sql = "select ':x', \":x\" /* :x */ from t where a = :x and f(:x) in (:x, 'y') -- :x"
    tree = parse_statement(sql, bind(sql, {"x": value})).tree
    texts = [node.this for node in tree.find_all(exp.Literal)]
    assert sorted(texts) == sorted([":x", value, value, value, "y"])
    plain = parse_statement(sql, bind(sql, {"x": "plain"})).tree
    assert [type(node) for node in tree.walk()] == [type(node) for node in plain.walk()]
    assert parse_statement(tree.sql("duckdb")).tree.sql("duckdb") == tree.sql("duckdb")


@pytest.mark.slow
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_text_arrives_as_it_is(value: str) -> None:
    sql = "select a from t where a = :x"
    (literal,) = parse_statement(sql, bind(sql, {"x": value})).tree.find_all(exp.Literal)
    assert literal.is_string and literal.this == value


@pytest.mark.slow
def test_lists_are_the_values_of_in() -> None:
    sql = "select a from t where a in (:x) and not b in (1, $x, 9) and c in :x"
    assert written(sql, {"x": [2, -3]}).endswith("a IN (2, -3) AND NOT b IN (1, 2, -3, 9) AND c IN (2, -3)")
    assert written(sql, {"x": ()}).endswith("WHERE FALSE AND NOT b IN (1, 9) AND FALSE")
    assert written("select a not in (:x) from t", {"x": []}) == "SELECT NOT FALSE FROM t"
    assert written(sql, {"x": {None}}).endswith("a IN (NULL) AND NOT b IN (1, NULL, 9) AND c IN (NULL)")
    days = {"x": {"type": "TIMESTAMP", "value": ["2021-09-24", 0]}}
    assert "CAST('2021-09-24 00:00:00' AS TIMESTAMP), CAST('1970-01-01 00:00:00' AS TIMESTAMP)" in written(sql, days)
    for place in ("select :x", "select a from t where a = :x", "select a from t limit :x", "select f(:x) from t"):
        assert str(refused(place, {"x": [1]})).startswith(
            "Parameter 'x' is a list, which can stand only in IN (...) at"
        )
    for nested in ([[1]], {"type": "LONG", "value": [[1]]}, [{"type": "LONG", "value": [1]}]):
        assert "is a list that holds lists" in str(refused(sql, {"x": nested}))
    assert "more than 25000 values" in str(refused("select a in (:x)", {"x": [1] * 25_001}))
    assert "1000000 characters" in str(refused("select :x", {"x": "a" * 1_000_001}))


def test_values_stand_wherever_literals_do() -> None:
    sql = """select f(:n, :n), a -:n, - :n, :n::int, :n ^ 2, case when a = :n then :n end, (:n)
        from t join u on t.a = :n where a between :n and :n and b like :s and c is not null
        group by 1 having count(*) > :n limit :one offset :one"""
    assert written(sql, {"n": -2, "s": "a%", "one": 1}) == (
        "SELECT F(-2, -2), a - (-2), -(-2), CAST(-2 AS INT), POWER((-2), 2), CASE WHEN a = -2 THEN -2 END, (-2) "
        "FROM t JOIN u ON t.a = -2 WHERE a BETWEEN -2 AND -2 AND b LIKE 'a%' AND NOT c IS NULL "
        "GROUP BY 1 HAVING COUNT(*) > -2 LIMIT 1 OFFSET 1"
    )
    assert written("select :from, :date, :limit", dict.fromkeys(["from", "date", "limit"], 1)) == "SELECT 1, 1, 1"
    assert (
        written("select ?::int + ? from t where a = ?", [1, 2, "?"]) == "SELECT CAST(1 AS INT) + 2 FROM t WHERE a = '?'"
    )
    assert parse_statement("explain plan for select :x", bind("explain plan for select :x", {"x": 1})).explain


@pytest.mark.parametrize(
    "sql",
    [
        "select * from :x", "select * from t join :x on 1 = 1", "select * from t, :x", "select * from t as :x",
        "select a :x from t", "select a as :x from t", "select t.:x from t", "select :x.a from t",
        "with :x as (select 1) select 1", "select * from (values (1)) v(:x)", "select cast(a as :x) from t",
        "select * exclude (:x) from t", "select a collate :x from t", "select a[:x] from t",
        "select extract(:x from ts) from t", "select {'a': :x}", "select * from unnest(:x)", "select a is :x from t",
        "select a from t order by :x", "select a from t order by (:x) desc", "select a from t group by b, :x",
        "select sum(a) over (partition by :x) from t", "select a from t using sample :x",
        "set timeoutMs = :x; select 1", "set :x = 1; select 1", "select 1 option(timeoutMs = :x)",
        "select 1 option(:x = 1)",
    ],
)  # fmt: skip
def test_what_is_no_value_is_refused_by_name(sql: str) -> None:
    for value in (1, -1, "a", "a' b", None, True, date(2021, 9, 24)):
        error = refused(sql, {"x": value})
        assert str(error).startswith("Parameter 'x' cannot stand") and error.pinot_code == 150
        assert f"line 1, column {sql.index(':x') + 1}, near ':x" in str(error)
        assert error.hint == "A parameter is a value. Names of tables and columns are written in the statement."


@pytest.mark.parametrize(
    ("sql", "params", "message"),
    [
        ("select :x", None, "Parameter 'x' has no value."),
        ("select $x", None, "Parameter 'x' has no value."),
        ("select ?", None, "A parameter '?' has no value."),
        ("select :customer", {"custmer": 1}, "Parameter 'customer' has no value. Did you mean 'custmer'?"),
        ("select :a", {"a": 1, "b": 2}, "The statement has no parameter 'b'."),
        ("select ':a'", {"a": 1}, "The statement has no parameter 'a'."),
        ("select ?", [1, 2], "The statement has 1 parameter '?', and 2 values came."),
        ("select :x", [1], "Parameter 'x' has no value: a list gives values to '?' only."),
        ("select ?", {"x": 1}, "A '?' takes its value from a list, not from values by name."),
        ("select :x", "x", "Parameters are given by name or as a list, not as a str."),
        ("select :x", {"x": object()}, "Parameter 'x' has the Python type object, which is no value of a statement."),
        ("select :x", {"x": "a\0"}, "Parameter 'x' holds the character NUL, which no statement can hold."),
        ("select :x", {"x": "\ud800"}, "Parameter 'x' holds half of a character."),
        ("select :x", {"x": 10**38}, "Parameter 'x' has more than 38 digits."),
        ("select :x", {"x": Decimal("NaN")}, "Parameter 'x' is NaN, which is no BIG_DECIMAL."),
        ("select :x", {"x": Decimal("1e-19")}, "Parameter 'x' does not fit BIG_DECIMAL: at most 20 digits before the"),
        ("select :x", {"x": Decimal("1e999999")}, "Parameter 'x' does not fit BIG_DECIMAL: at most 20 digits"),
        ("select :x", {"x": {"a": 1}}, "Parameter 'x' is an object; one is written {"),
        ("select :x", {"x": {"type": "FOO", "value": 1}}, "Parameter 'x' has the type 'FOO'; types are INT, LONG,"),
        ("select :x", {"x": {"type": "TIMESTAMP", "value": "soon"}}, "Parameter 'x' is no TIMESTAMP: 'soon'."),
        ("select :x", {"x": {"type": "TIMESTAMP", "value": 10**30}}, "Parameter 'x' is no TIMESTAMP: '1000"),
        ("select :x", {"x": {"type": "LONG", "value": 1.5}}, "Parameter 'x' is no LONG: '1.5'."),
        ("select :x", {"x": {"type": "BYTES", "value": "xx"}}, "Parameter 'x' is no BYTES: 'xx'."),
        ("select :x", {"x": {"type": "BOOLEAN", "value": "yes"}}, "Parameter 'x' is no BOOLEAN: 'yes'."),
        ("select :x", {"x": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2)))}, "Parameter 'x' lies outside"),
    ],
)  # fmt: skip
def test_missing_surplus_and_wrong_values_are_named(sql: str, params: Any, message: str) -> None:
    error = refused(sql, params)
    assert str(error).startswith(message) and error.pinot_code == 700


def test_what_is_no_parameter_stays_what_it_was() -> None:
    assert slots_of("select a[1:b], a:b, ':x', \"$x\", $segmentName, $DOCID -- :x\n /* ? */ from t") == ()
    assert parameter_names("select :a, $b, :a") == {"a", "b"}
    assert written("select a[1:b] from t", {}) == written("select a[1:b] from t", None)
    assert parse_statement("select $segmentNam from t").tree.find(exp.Column).name == "$segmentNam"
    assert written("select $segmentName from t where b = $x", {"x": 1}) == "SELECT $segmentName FROM t WHERE b = 1"


def test_an_error_names_the_place_in_the_text_as_it_was_written() -> None:
    error = refused("select a from t\nwhere b = :x and c = = 3", {"x": "long text " * 20})
    assert "line 2, column 22, near '= 3'" in str(error)


def test_utc_is_meant_without_a_zone() -> None:
    naive, aware = datetime(2021, 9, 24, 7), datetime(2021, 9, 24, 7, tzinfo=UTC)
    assert written("select :x", {"x": naive}) == written("select :x", {"x": aware})
