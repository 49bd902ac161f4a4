import pytest

from hybrid.errors import QueryError
from hybrid.sql import statement
from hybrid.sql.statement import parse_statement


@pytest.mark.parametrize(
    ("sql", "where"),
    [
        ("select * frm orders", "line 1, column 14, near 'orders'"),
        ("select 'abc from t", "line 1, column 8"),
        ("select a from t\nwhere x = = 3", "line 2, column 11, near '= 3'"),
        ("select a from t where (a=1", "line 1, column 27, at the end"),
        ("select a from t where", "line 1, column 22, at the end"),
        ("select /* x", "line 1, column 8"),
        ("select 1;\nselect 2", "line 2, column 1, near 'select 2'"),
        ("drop table x", "line 1, column 1, near 'drop table x'"),
        ("explain select 1", "line 1, column 1"),
        ("select {: 1}", "line 1, column 1, near 'select {: 1}'"),
        ("set a; select 1", "line 1, column 1"),
    ],
)
def test_what_cannot_be_read_says_where(sql: str, where: str) -> None:
    with pytest.raises(QueryError) as raised:
        parse_statement(sql)
    assert raised.value.pinot_code == 150
    assert where in str(raised.value)


@pytest.mark.parametrize("sql", ["", " ;; ", "-- nothing", "set a = 1;"])
def test_nothing_is_no_statement(sql: str) -> None:
    with pytest.raises(QueryError, match="no statement"):
        parse_statement(sql)


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("selct 1 from t", "Did you mean SELECT instead of 'selct'?"),
        ("select count(*) form t", "Did you mean FROM instead of 'form'?"),
        ("select a from t wher b = 1", "Did you mean WHERE instead of 'wher'?"),
        ("select a, count(*) from t grop by a", "Did you mean GROUP instead of 'grop'?"),
        ("select a from t where b = 'x' oder by a", "Did you mean ORDER instead of 'oder'?"),
        ("select a from t limt 10", "Did you mean LIMIT instead of 'limt'?"),
        ("select a from t where order_id order_id = 1", None),
        ("select 'form' from t t t", None),
        ("select * from orders where", None),
        ("select * from orders )", None),
        ("delete from t", statement._HINT),
    ],
)
def test_a_misspelled_keyword_is_named(sql: str, hint: str | None) -> None:
    with pytest.raises(QueryError) as raised:
        parse_statement(sql)
    assert raised.value.hint == hint


def test_options_before_and_behind() -> None:
    read = parse_statement(
        "SET timeoutMs = 100; set a='b'; select 1 from t where x = 'OPTION(' option(timeoutMs=5, q=z);"
    )
    assert read.options == {"timeoutms": "5", "a": "b", "q": "z"}
    assert read.tree.sql("duckdb") == "SELECT 1 FROM t WHERE x = 'OPTION('"


def test_a_quoted_option_may_hold_any_sign() -> None:
    read = parse_statement("select 1 option(asOf='t[REALTIME=3 tail={a@1,b@2}]', x = 'y')")
    assert read.options == {"asof": "t[REALTIME=3 tail={a@1,b@2}]", "x": "y"}
    with pytest.raises(QueryError, match="OPTION is written"):
        parse_statement("select 1 option(x='a=b', 'c=d')")


def test_explain_plan_for() -> None:
    assert parse_statement("explain plan for select 1").explain
    assert not parse_statement("select 1").explain


def test_parentheses_around_the_statement_change_nothing() -> None:
    assert (
        parse_statement("((with a as (select 1) select * from a))").tree.sql() == "WITH a AS (SELECT 1) SELECT * FROM a"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "select " + "(" * 5000 + "1" + ")" * 5000,
        "select " + "+".join(["a"] * 1000),
        "select a" + "::int" * 1000,
        "select " + "abs(" * 300 + "a" + ")" * 300,
        "select a" + "= a " * 1000,
    ],
)
def test_deep_nesting_is_an_error_and_not_a_crash(sql: str) -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        parse_statement(sql)


@pytest.mark.slow
def test_what_stands_side_by_side_is_not_deep() -> None:
    parse_statement("select 1 where " + " and ".join(["a = 1"] * 1000))
    parse_statement("select " + "+".join(["a"] * 100))


@pytest.mark.slow
def test_a_statement_has_a_length() -> None:
    with pytest.raises(QueryError, match="longer than 50000 words at line 1, column"):
        parse_statement("select " + "1," * 60_000)
