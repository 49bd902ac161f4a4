"""Rewriting is pure: what each rule makes of a statement, without a table."""

from __future__ import annotations

import pytest
from sqlglot import exp

from hybrid.errors import QueryError
from hybrid.schema.types import DataType
from hybrid.sql.coerce import coerce_timestamps
from hybrid.sql.functions import rewrite_functions
from hybrid.sql.names import result_name
from hybrid.sql.patterns import parse_time, split_zone
from hybrid.sql.shape import name_columns
from hybrid.sql.statement import parse_statement
from hybrid.sql.times import TimeContext
from tests.shared_duckdb import plain_duckdb

TYPES = {
    "i": DataType.INT, "l": DataType.LONG, "f": DataType.FLOAT, "d": DataType.DOUBLE, "p": DataType.BIG_DECIMAL,
    "s": DataType.STRING, "t": DataType.TIMESTAMP, "r": DataType.BYTES,
}  # fmt: skip


def rewritten(sql: str) -> str:
    tree = parse_statement(sql).tree
    rewrite_functions(tree, TimeContext(1_000_000, TYPES))
    coerce_timestamps(tree, TYPES)
    return tree.sql("duckdb")


def value(expression: str) -> object:
    found = plain_duckdb().execute(rewritten(f"select {expression}")).fetchone()
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("i + 1", "CAST(i AS BIGINT) + 1"),
        ("f * 2", "CAST(f AS DOUBLE) * 2"),
        ("d + 1", "d + 1"),
        ("i * 2.5", "CAST(i AS BIGINT) * CAST(2.5 AS DOUBLE)"),
        ("p * 2.5", "p * 2.5"),
        ("-i", "-CAST(i AS BIGINT)"),
        ("i > 2.5", "i > 2.5"),
        ("f = 15.948", "f = 15.948"),
        ("t + interval 1 day", "t + INTERVAL '1' DAY"),
        ("max(i) - min(i)", "CAST(max(i) AS BIGINT) - CAST(min(i) AS BIGINT)"),
        ("div(i, 2)", "((i) / (2))"),
        ("2.5", "CAST(2.5 AS DOUBLE)"),
        ("cast(d as int)", "CAST(trunc(d) AS INT)"),
        ("cast(i as int)", "CAST(i AS INT)"),
        ("cast(t as long)", "CAST(epoch_ms(date_trunc('millisecond', t)) AS BIGINT)"),
        ("cast(d as big_decimal)", "CAST(CAST(d AS TEXT) AS DECIMAL(38, 18))"),
        ("cast(l as timestamp)", "make_timestamp_ms(CAST(l AS BIGINT))"),
        ("s = 5", "s = '5'"),
        ("s in (1, 'a')", "s IN ('1', 'a')"),
        ("r = 'ff'", "r = unhex('ff')"),
        ("s like 'a%'", "s ILIKE 'a%'"),
        ("s not like 'a'", "s NOT ILIKE 'a'"),
        ("now()", "1000000"),
        ("distinctcount(i) filter (where i > 1)", "CAST(COUNT(DISTINCT i) FILTER(WHERE i > 1) AS INT)"),
        ("distinctcount(i) over (partition by s)", "CAST(COUNT(DISTINCT i) OVER (PARTITION BY s) AS INT)"),
        ("minmaxrange(d) over ()", "(max(d) OVER () - min(d) OVER ())"),
    ],
)
def test_what_becomes_of_an_expression(expression: str, expected: str) -> None:
    assert rewritten(f"select {expression} from x").lower() == f"select {expected} from x".lower()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("round(17, 5)", 15),
        ("round(-17, 5)", -15),
        ("rounddecimal(-2.5)", -2.0),
        ("rounddecimal(2.345, 2)", 2.35),
        ("divide(1, 0, 7)", 7.0),
        ("log(1)", 0.0),
        ("1 / 0", float("inf")),
        ("mod(-7, 4)", -3),
        ("lpad('abcdef', 3, 'x')", "abcdef"),
        ("lpad('a', 3, 'xy')", "xya"),
        ("length(lpad('a', 1000000000, 'x'))", 10_000),
        ("repeat('ab', '-', 3)", "ab-ab-ab"),
        ("length(repeat('ab', 1000000000))", 10_002),
        ("repeat('', 5)", ""),
        ("strrpos('hello', 'l')", 3),
        ("strrpos('hello', 'q')", -1),
        ("hammingdistance('abc', 'ab')", -1),
        ("encodeurl('a b~*é')", "a+b%7E*%C3%A9"),
        ("decodeurl('a+b%26')", "a b&"),
        ("cast('5.7' as int)", 5),
        ("datetrunc('day', -1)", -86_400_000),
        ("toepochdays(-1)", 0),
        ("toepochminutesbucket(1632463351999, 15)", 1813848),
        ("dateadd('month', 1, 1632463351000)", 1635055351000),
        ("datediff('day', 1632463351000, 1632700000000)", 2),
        ("todatetime(1632463351000, 'yyyy-MM-dd HH:mm:ss Z')", "2021-09-24 06:02:31 +0000"),
        ("todatetime(1632463351000, 'xxxx-ww e')", "2021-38 5"),
        ("millisecond(1632463351007)", 7),
        ("fromdatetime('24/Sep/2021:06:02:31 +0900', 'dd/MMM/yyyy:HH:mm:ss Z')", 1632430951000),
        (
            "datetimeconvert(1632463351000, '1:MILLISECONDS:EPOCH', "
            "'1:DAYS:SIMPLE_DATE_FORMAT:HH:mm tz(Asia/Tokyo)', '1:HOURS')",
            "15:00",
        ),
        ("json_extract_scalar('{\"a b\": 1}', '$[''a b'']', 'INT')", 1),
        ("json_extract_scalar('no json', '$.a', 'INT', 7)", 7),
        ("bytestohex(toutf8('hi'))", "6869"),
        ("histogram(3, 0, 10, 2)", [1.0, 0.0]),
        ("percentileest(2.7, 50)", 2),
        ("countmv([1, 2])", 2),
        ("distinctcountmv([1, 1])", 1),
        ("percentilemv([1, 2, 3], 50)", 2.0),
    ],
)
def test_values(expression: str, expected: object) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("COUNT(*)", "count(*)"),
        ("COUNT(fare)", "count(fare)"),
        ("count(1)", "count(*)"),
        ("count(a + 1)", "count(plus(a,'1'))"),
        ("count(fare) filter (where a > 1)", "count(fare)"),
        ("Sum(a + b)", "sum(plus(a,b))"),
        ("sum(a) / count(*)", "divide(sum(a),count(*))"),
        ("a - b * 2.5", "minus(a,times(b,'2.5'))"),
        ("-a", "minusprefix(a)"),
        ("1 + 2 + a", "plus('3.0',a)"),
        ("3 / 2", "'1.5'"),
        ("12345678.9", "'1.23456789E7'"),
        ("1e-5", "'1.0E-5'"),
        ("1e3", "'1000.0'"),
        ("'it''s'", "'it's'"),
        ("not a = 5", "not(equals(a,'5'))"),
        ("a = 1 and b = 2 and c", "and(equals(a,'1'),equals(b,'2'),c)"),
        ("a not in (1, 2)", "not_in(a,'1','2')"),
        ("a not like 'x'", "not(like(a,'x'))"),
        ("a is not null", "is_not_null(a)"),
        (
            "case when a > 5 then 'x' when b < 3 then 'z' else 'y' end",
            "case(greater_than(a,'5'),less_than(b,'3'),'x','z','y')",
        ),
        ("case a when 1 then 2 else 3 end", "case(equals(a,'1'),'2','3')"),
        ("DATE_TRUNC('DAY', ts)", "datetrunc('DAY',ts)"),
        ("PERCENTILE(a, 95)", "percentile(a, 95.0)"),
        ("percentile(a, 50) + 1", "plus(percentile(a,'50'),'1')"),
        ("count(distinct a)", "distinctcount(a)"),
        ("mode(a, 'MAX')", "mode(a)"),
        ("trim(s)", "trim('BOTH',' ',s)"),
        ("first_with_time(a, ts, 'int')", "firstwithtime(a,ts,'INT')"),
        ("cast(a as LONG)", "cast(a,'LONG')"),
        ("t.a", "a"),
        ("row_number() over (order by a)", "row_number() OVER (ORDER BY a)"),
        ("a between 1 and 5", "between(a,'1','5')"),
    ],
)
def test_names(expression: str, name: str) -> None:
    assert result_name(parse_statement(f"select {expression} from t").tree.expressions[0]) == name


def test_group_by_means_the_result_of_that_name() -> None:
    tree = parse_statement("select upper(s) as s, count(*) as n from t group by s").tree
    name_columns(tree)
    assert tree.sql("duckdb") == "SELECT UPPER(s) AS s, COUNT(*) AS n FROM t GROUP BY (UPPER(s))"


def test_rewriting_is_a_function_of_statement_types_and_moment() -> None:
    sql = "select datetrunc('DAY', ts) as d, distinctcount(i) from x where s = 5 and ts > ago('P1D') group by d"
    assert rewritten(sql) == rewritten(sql)


@pytest.mark.parametrize("pattern", ["yyyy-QQ", "SSSSSSSSSS", "VV"])
def test_letters_that_are_not_known(pattern: str) -> None:
    with pytest.raises(QueryError, match="not supported"):
        parse_time(exp.Literal.string("1"), pattern)


@pytest.mark.parametrize(
    ("pattern", "zone", "written"),
    [
        ("HH Z''ZZ", "UTC", "02 +0000'+00:00"),
        ("HH:mm'Z'", "UTC", "02:30Z"),
        ("HH:mmX", "UTC", "02:30Z"),
        ("HH:mmXXX", "Asia/Kolkata", "08:00+05:30"),
        ("HH:mmXX", "America/New_York", "21:30-0500"),
        ("HH:mm ZZ", "Asia/Tokyo", "11:30 +09:00"),
        ("ss.S", "UTC", "07.9"),
        ("ss.SS", "UTC", "07.98"),
        ("ss.SSS", "UTC", "07.987"),
        ("ss.SSSSSS", "UTC", "07.987000"),
    ],
)
def test_patterns_read_what_they_write(pattern: str, zone: str, written: str) -> None:
    """X9: what a pattern writes it reads again."""
    millis = 1_700_015_407_987  # 2023-11-15T02:30:07.987Z
    quoted = pattern.replace("'", "''")
    assert value(f"TODATETIME({millis}, '{quoted}', '{zone}')") == written
    whole = f"yyyy-MM-dd {pattern}" if "HH" in pattern else f"yyyy-MM-dd HH:mm:{pattern}"
    form = whole.replace("'", "''")
    again = value(f"FROMDATETIME(TODATETIME({millis}, '{form}', '{zone}'), '{form}', '{zone}')")
    kept = 60_000 if "ss" not in pattern else 10 ** (3 - min(3, pattern.count("S")))
    if "Z''" not in pattern:
        assert again == millis // kept * kept


def test_the_zone_of_a_pattern() -> None:
    assert split_zone("yyyy-MM-dd tz(Asia/Tokyo)") == ("yyyy-MM-dd", "Asia/Tokyo")
    assert split_zone("yyyy-MM-dd") == ("yyyy-MM-dd", "UTC")


@pytest.mark.parametrize(
    "expression",
    [
        "percentile(a)",
        "percentile(a, 101)",
        "mode(a, 'AVG')",
        "histogram(a, 0, 10, 0)",
        "printf(a, 1)",
        "printf('%10000d', 1)",
        "printf('%*d', 5, 1)",
        "format('{:{}}', 1, 5)",
        "datetrunc('fortnight', a)",
        "ago('yesterday')",
        "toepochdaysbucket(a, 0)",
        "datetrunc(a, a)",
        "json_extract_scalar(a, '$.a', 'THING')",
        "text_match(a, 'b')",
        "distinctcount()",
        "now(1)",
    ],
)
def test_what_is_refused(expression: str) -> None:
    with pytest.raises(QueryError) as raised:
        rewritten(f"select {expression} from x")
    assert raised.value.pinot_code == 700
