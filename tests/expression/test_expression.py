"""Expressions of transforms and filters: every function, nulls, errors in rows, and what is refused."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.errors import HybridError
from hybrid.expression import functions
from hybrid.expression.parse import parse_expression
from hybrid.schema.jsontext import JsonFloat, parse_json

NOW = 1_700_000_000_000
TS = 1_632_463_351_123  # 2021-09-24T06:02:31.123Z, a Friday
RECORD: dict[str, Any] = {
    "a": 7, "b": 2, "neg": -7, "f": JsonFloat("1.50"), "s": "Hello", "num": "42", "csv": ",x,,y,", "n": None,
    "yes": True, "no": False, "ts": TS, "day": "2021-09-24", "o": {"x": {"y": 3}, "t": "2.5", "list": [1, None, 2]},
    "o.dotted": "plain", "js": '{"a": [1, 2.50, {"b": "deep"}], "t": "12", "yes": true}', "list": ["p", "q"],
    "bytes": b"\x01\xff", "dec": Decimal("1.25"), "at": datetime(2021, 9, 24, 6, 2, 31, tzinfo=UTC),
    "dated": date(2021, 9, 24), "nan": math.nan,
}  # fmt: skip


def value(text: str, record: dict[str, Any] | None = None, now_ms: int | None = NOW) -> Any:
    return parse_expression(text).evaluate(RECORD if record is None else record, now_ms)


ARITHMETIC = [
    ("a + b * 3", 13), ("(a + b) * 3", 27), ("a - b", 5), ("-a", -7), ("a / b", 3.5), ("6 / 2", 3.0), ("a % b", 1),
    ("neg % b", -1), ("f * 2", 3.0), ("num + 1", 43), ("yes + 1", 2), ("a / 0", math.inf), ("neg / 0", -math.inf),
    ("9007199254740993 + 0", 9007199254740993), ("plus(a, b)", 9), ("ADD(a, b)", 9), ("minus(a, b)", 5),
    ("sub(a, b)", 5), ("times(a, b)", 14), ("mult(a, b)", 14), ("divide(a, b)", 3.5), ("div(a, 0, -1)", -1.0),
    ("int_div(a, b)", 3), ("intDiv(7.5, 2)", 3), ("mod(neg, 4)", -3), ("mod(7.5, 2)", 1.5), ("abs(neg)", 7),
    ("negate(a)", -7), ("sign(neg)", -1.0), ("ceil(1.2)", 2.0), ("ceiling(a)", 7), ("floor(-1.2)", -2.0),
    ("round(1632463351123, 60000)", 1632463320000), ("roundDecimal(2.5)", 3.0), ("roundDecimal(1.005, 2)", 1.01),
    ("truncate(-1.99, 1)", -1.9), ("truncate(1.99)", 1.0), ("power(2, 10)", 1024.0), ("pow(10, 400)", math.inf),
    ("sqrt(9)", 3.0), ("exp(0)", 1.0), ("exp(1000)", math.inf), ("ln(1)", 0.0), ("log(0)", -math.inf), ("log2(8)", 3.0),
    ("log10(1000)", 3.0), ("least(a, b, 3)", 2), ("greatest(a, f, b)", 7), ("dec * 2", Decimal("2.50")),
    ("dec * 0.1", Decimal("0.125")), ("dec = 1.2500000000000000000001", False), ("-dec", Decimal("-1.25")),
    ("f * 0.5", 0.75), ("dec * f", 1.875), ("ceil(f)", 2.0), ("least(a, null, 9)", 7), ("round(-7, 5)", -5),
    ("substring('hello', 0, 2)", "h"), ("substring('hello', -2, 1)", "l"), ("roundDecimal(-2.5)", -2.0),
    ("pow(0, -1)", math.inf),
    ("at + 0", 1632463351000), ("1e3 + .5", 1000.5),
]  # fmt: skip
CONDITIONS = [
    ("a = 7", True), ("a == 7.0", True), ("num = 42", True), ("s = 'Hello'", True), ("s <> 'x'", True),
    ("a != 7", False), ("'10' < '9'", True), ("num > 9", True), ("a >= 7", True), ("a <= 6", False), ("a < b", False),
    ("yes = 'true'", True), ("'false' = no", True), ("yes = 1", True), ("list = list", True), ("o = 5", False),
    ("nan = nan", True), ("nan >= 1", True), ("bytes = bytes", True), ("f = 1.5", True), ("dec = 1.25", True),
    ("equals(a, 7)", True), ("notEquals(a, 7)", False), ("less_than(b, a)", True), ("lessThanOrEqual(b, 2)", True),
    ("greaterThan(a, b)", True), ("greaterThanOrEqual(b, a)", False),
    ("a BETWEEN 8 AND 9", False), ("a NOT BETWEEN 8 AND 9", True), ("a IN (1, '7')", True), ("a NOT IN (1, 2)", True),
    ("a IN (1, n)", None), ("a NOT IN (1, n)", None), ("n IN (1)", None), ("strcmp('a', 'b') < 0", True),
    ("strcmp(s, 'Hello')", 0), ("yes AND no", False), ("yes OR no", True), ("NOT yes", False), ("n AND no", False),
    ("n AND yes", None), ("n OR yes", True), ("n OR no", None), ("NOT n", None), ("no AND 1 / 'x' = 1", False),
    ("not(no)", True),
    ("n IS NULL", True), ("a IS NOT NULL", True), ("missing IS NULL", True), ("yes IS TRUE", True),
    ("n IS FALSE", False), ("isNull(n)", True), ("is_not_null(n)", False), ("a IS DISTINCT FROM n", True),
    ("n IS NOT DISTINCT FROM n", True), ("isDistinctFrom(a, 7)", False), ("isNotDistinctFrom(a, 8)", False),
    ("coalesce(n, missing, b)", 2), ("coalesce(n)", None), ("nullIf(a, 7)", None), ("nullIf(a, 8)", 7),
    ("ifNull(n, 7)", 7), ("nullIf(n, 7)", None), ("nullIf(a, n)", 7),
    ("CASE WHEN a > 9 THEN 'big' WHEN a > 5 THEN 'mid' ELSE 'x' END", "mid"),
    ("CASE a WHEN 7 THEN 1 END", 1), ("CASE WHEN no THEN 1 END", None), ("CASE WHEN n THEN 1 ELSE 2 END", 2),
    ("CASE WHEN yes THEN 1 ELSE 'x' + 1 END", 1), ("arrayLength(list)", 2), ("array_length(a)", 1), ("TRUE", True),
    ("NULL", None), ("'it''s'", "it's"), ("-5", -5),
]  # fmt: skip
TEXTS = [
    ("upper(s)", "HELLO"), ("lower(s)", "hello"), ("trim('  x ')", "x"), ("trim(BOTH 'H' FROM s)", "ello"),
    ("trim(TRAILING 'lo' FROM s)", "He"), ("trim(LEADING '' FROM s)", "Hello"), ("ltrim('  x ')", "x "),
    ("rtrim('  x ')", "  x"), ("length(s)", 5), ("reverse(s)", "olleH"), ("substr(s, 1)", "ello"),
    ("substr(s, 1, 3)", "el"), ("substr(s, 1, -1)", "ello"), ("substr(s, -3)", "llo"), ("substr(s, 3, 99)", "lo"),
    ("substr(s, 4, 2)", ""), ("substring(s, 2)", "ello"), ("substring(s, 2, 3)", "ell"),
    ("SUBSTRING(s FROM 2 FOR 2)", "el"), ("left(s, 2)", "He"), ("leftSubStr(s, -1)", ""), ("right(s, 2)", "lo"),
    ("rightSubStr(s, 99)", "Hello"), ("concat(s, a)", "Hello7"), ("concat(s, f, '-')", "Hello-1.50"),
    ("concatWS('-', s, yes)", "Hello-true"), ("replace(s, 'l', 'L')", "HeLLo"),
    ("replace(s, '', 'x')", "Hello"), ("remove(s, 'l')", "Heo"), ("repeat('ab', 3)", "ababab"),
    ("repeat('ab', '-', 2)", "ab-ab"), ("repeat('ab', 0)", ""), ("split(csv, ',')", ["x", "y", ""]),
    ("split('a b', '')", ["a", "b"]), ("split('', ',')", []), ("stringToArray('a,b,c', ',', 2)", ["a", "b,c"]),
    ("splitPart(csv, ',', 0)", "x"), ("splitPart(csv, ',', -2)", "y"), ("splitPart(csv, ',', 9)", "null"),
    ("splitPart('a,b,c', ',', 2, 1)", "b,c"), ("startsWith(s, 'He')", True), ("ends_with(s, 'x')", False),
    ("contains(s, 'ell')", True), ("strpos(s, 'l')", 2), ("strpos(s, 'l', 2)", 3), ("strpos(s, 'z')", -1),
    ("strrpos(s, 'l')", 3), ("lpad(num, 5, '0')", "00042"), ("rpad(num, 5, 'xy')", "42xyx"),
    ("lpad(s, 2, '0')", "Hello"),
    ("lpad(num, 4, '')", "  42"), ("codepoint('A')", 65), ("chr(228)", "ä"), ("normalize('a\u0308')", "ä"),
    ("encodeUrl('a b&~*')", "a+b%26%7E*"), ("decodeUrl('a+b%26')", "a b&"), ("toUtf8('ä')", b"\xc3\xa4"),
    ("fromUtf8(toUtf8('ä'))", "ä"), ("toAscii('aä')", b"a?"), ("fromAscii('61')", "a"), ("toBase64(bytes)", "Af8="),
    ("fromBase64('Af8=')", b"\x01\xff"), ("hexToBytes('01ff')", b"\x01\xff"), ("bytesToHex(bytes)", "01ff"),
    ("md5(toUtf8('a'))", "0cc175b9c0f1b6a831c399e269772661"), ("sha('61')", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
    ("sha256(toUtf8('a'))", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
    ("substr(sha512(toUtf8('a')), 0, 8)", "1f40fc92"), ("upper(nan)", "NAN"), ("concat(1 / 0, '')", "Infinity"),
    ("upper(dated)", "2021-09-24"), ("length('😀')", 1),
    ("s LIKE 'h%o'", True), ("s LIKE 'H_llo'", True), ("s LIKE 'H'", False), ("s NOT LIKE '%z%'", True),
    ("'50%' LIKE '50\\%'", True), ("n NOT LIKE 'x'", None), ("like(s, 'hello')", True),
    ("regexpLike(s, 'l+')", True), ("REGEXP_LIKE(s, 'HELLO', 'i')", True), ("regexpLike(s, 'hello', 'c')", False),
    ("regexpExtract(s, 'l+')", "ll"), ("regexpExtract(s, '(H)(e)', 2)", "e"), ("regexpExtract(s, 'z')", ""),
    ("regexpExtract(s, 'z', 0, 'none')", "none"), ("regexpExtract(s, '(H)', 5, 'none')", "none"),
    ("regexpReplace(s, 'l', 'L')", "HeLLo"), ("regexpReplace(s, '(l)', '<$1>')", "He<l><l>o"),
    ("regexpReplace(s, 'l', '\\$')", "He$$o"), ("regexpReplace(s, 'l', 'L', 3)", "HelLo"),
    ("regexpReplace(s, 'l', 'L', 0, 1)", "HelLo"), ("regexpReplace(s, 'z', 'L', 0, 1)", "Hello"),
    ("regexpReplace(s, '(?P<x>l)', '${x}!')", "Hel!l!o"),
]  # fmt: skip
JSONS = [
    ("o.x.y", 3), ('"o.x.y"', 3), ("o.dotted", "plain"), ("o.none.y", None), ("s.x", None), ("a.b.c.d.e.f", None),
    ("jsonPath(js, '$.a[2].b')", "deep"), ("jsonPath(o, '$.x')", {"y": 3}), ("jsonPath(o, '$')", RECORD["o"]),
    ("jsonPath(js, '$.none')", None), ("jsonPath(o, '$.list[*]')", [1, 2]), ("jsonPath(o, '$[''x''].y')", 3),
    ("jsonPath(o, '$.x.*')", [3]), ("jsonPath(js, '$.a[-1][\"b\"]')", "deep"),
    ("jsonPathString(js, '$.a[1]')", "2.5"), ("jsonPathString(js, '$.a')", '[1,2.50,{"b":"deep"}]'),
    ("jsonPathString(js, '$.none')", None), ("jsonPathString(js, '$.none', 'x')", "x"),
    ("jsonPathString(s, '$.a', 'x')", "x"), ("jsonPathString(n, '$.a', 'x')", "x"), ("jsonPathString(n, '$.a')", None),
    ("jsonPathLong(js, '$.a[1]')", 2), ("jsonPathLong(js, '$.t')", 12), ("jsonPathLong(js, '$.yes', -1)", -1),
    ("jsonPathLong(js, '$.none')", None), ("jsonPathLong(js, '$.a', 5)", 5), ("jsonPathLong(n, '$.a')", None),
    ("jsonPathLong(js, '$.none', 5)", 5), ("jsonPathDouble(js, '$.a[1]')", 2.5), ("jsonPathDouble(o, '$.t')", 2.5),
    ("jsonPathDouble(o, '$.none')", None), ("jsonPathDouble(js, '$.x', 0.5)", 0.5),
    ("jsonPathArray(o, '$.list')", [1, None, 2]),
    ("jsonPathArray(o, '$.t')", ["2.5"]), ("jsonPathArray(o, '$.none')", None),
    ("jsonPathArrayDefaultEmpty(s, '$.a')", []), ("jsonPathArrayDefaultEmpty(n, '$.a')", []),
    ("jsonPathArrayDefaultEmpty(js, '$.none')", []), ("jsonPathArrayDefaultEmpty(o, '$.t')", ["2.5"]),
    ("jsonPathExists(js, '$.a')", True), ("jsonPathExists(s, '$.a')", False),
    ("json_extract_scalar(js, '$.t', 'INT')", 12), ("jsonExtractScalar(js, '$.none', 'INT', -1)", -1),
    ("jsonExtractScalar(js, '$.a[2].b', 'STRING')", "deep"), ("jsonExtractScalar(js, '$.yes', 'BOOLEAN')", True),
    ("jsonExtractScalar(n, '$.a', 'LONG')", None), ("jsonFormat(o.x)", '{"y":3}'), ("jsonFormat(s)", '"Hello"'),
    ("toJsonMapStr(o.x)", '{"y":3}'), ("toJsonMapStr(n)", "null"), ("isJson(js)", True), ("isJson(s)", False),
    ("jsonStringToArray('[1]')", [1]), ("jsonStringToArray('{}')", None),
    ("jsonStringToListOrMap('[2]')", [2]), ("jsonExtractObject(o)", RECORD["o"]), ("jsonExtractObject(s)", None),
    ("jsonPathString(jsonStringToMap(js), '$.t')", "12"),
]  # fmt: skip
CASTS = [
    ("CAST(num AS INT)", 42), ("CAST('12.7' AS INTEGER)", 12), ("CAST(-1.5 AS LONG)", -1), ("CAST(f AS BIGINT)", 1),
    ("CAST('2021-09-24 06:02:31' AS LONG)", 1632463351000), ("CAST(yes AS INT)", 1), ("CAST(a AS DOUBLE)", 7.0),
    ("CAST(a AS FLOAT)", 7.0), ("CAST(f AS STRING)", "1.50"), ("CAST(a AS VARCHAR)", "7"),
    ("CAST(a AS BOOLEAN)", True), ("CAST('false' AS BOOLEAN)", False),
    ("CAST(ts AS TIMESTAMP)", datetime(2021, 9, 24, 6, 2, 31, 123000, tzinfo=UTC)),
    ("CAST(f AS BIG_DECIMAL)", Decimal("1.5")), ("CAST(num AS DECIMAL)", Decimal(42)), ("CAST('0a' AS BYTES)", b"\x0a"),
    ("CAST('[1, 2]' AS JSON)", "[1,2]"), ("CAST(n AS INT)", None), ("a::STRING", "7"),
]  # fmt: skip
TIMES = [
    ("now()", NOW), ("ago('PT1H')", NOW - 3_600_000), ("ago('P1DT2M')", NOW - 86_520_000), ("AGO('-PT1S')", NOW + 1000),
    ("toEpochSeconds(ts)", 1632463351), ("toEpochMinutes(ts)", 27207722), ("to_epoch_hours(ts)", 453462),
    ("toEpochDays(ts)", 18894), ("toEpochSecondsRounded(ts, 10)", 1632463350),
    ("toEpochMinutesRounded(ts, 10)", 27207720),
    ("toEpochHoursRounded(ts, 2)", 453462), ("toEpochDaysRounded(ts, 7)", 18893),
    ("toEpochSecondsBucket(ts, 10)", 163246335),
    ("toEpochMinutesBucket(ts, 5)", 5441544), ("toEpochHoursBucket(ts, 2)", 226731), ("toEpochDaysBucket(ts, 7)", 2699),
    ("fromEpochSeconds(1632463351)", 1632463351000), ("fromEpochMinutes(2)", 120_000), ("fromEpochHours(2)", 7_200_000),
    ("fromEpochDays('2')", 172_800_000), ("fromEpochSecondsBucket(3, 10)", 30_000),
    ("fromEpochMinutesBucket(3, 5)", 900_000),
    ("fromEpochHoursBucket(1, 2)", 7_200_000), ("fromEpochDaysBucket(1, 7)", 604_800_000), ("toEpochSeconds(-1)", 0),
    ("toDateTime(ts, 'yyyy-MM-dd HH:mm:ss')", "2021-09-24 06:02:31"), ("toEpochSeconds(at)", 1632463351),
    ("toDateTime(ts, 'yyyyMMdd HH Z', 'Asia/Tokyo')", "20210924 15 +0900"), ("toDateTime(ts, 'HH', '+02:00')", "08"),
    ("fromDateTime(day, 'yyyy-MM-dd')", 1632441600000),
    ("fromDateTime(day, 'yyyy-MM-dd', 'Europe/Berlin')", 1632434400000),
    ("fromDateTime('x', 'yyyy', 'UTC', -1)", -1),
    ("fromDateTime('2021-09-24T06:02:31Z', 'yyyy-MM-dd''T''HH:mm:ss''Z''')", 1632463351000),
    ("toTimestamp(ts)", datetime(2021, 9, 24, 6, 2, 31, 123000, tzinfo=UTC)), ("fromTimestamp(at)", 1632463351000),
    ("fromTimestamp('2021-09-24 06:02:31')", 1632463351000),
    ("fromIso8601('2021-09-24T08:02:31+02:00')", 1632463351000),
    ("toIso8601(ts)", "2021-09-24T06:02:31.123Z"), ("toIso8601(0)", "1970-01-01T00:00:00Z"),
    ("dateTrunc('second', ts)", 1632463351000), ("date_trunc('MINUTE', ts)", 1632463320000),
    ("dateTrunc('hour', ts)", 1632463200000), ("dateTrunc('day', ts)", 1632441600000),
    ("dateTrunc('week', ts)", 1632096000000),
    ("dateTrunc('month', ts)", 1630454400000), ("dateTrunc('quarter', ts)", 1625097600000),
    ("dateTrunc('year', ts)", 1609459200000), ("dateTrunc('millisecond', ts)", TS),
    ("dateTrunc('day', ts, 'MILLISECONDS', 'Europe/Berlin')", 1632434400000),
    ("dateTrunc('hour', 1632463351, 'SECONDS')", 1632463200),
    ("dateTrunc('day', ts, 'MILLISECONDS', 'UTC', 'DAYS')", 18894),
    ("dateTrunc('hour', 1635640200000, 'MILLISECONDS', 'Europe/Berlin')", 1635638400000),
    ("timeConvert(18894, 'DAYS', 'HOURS')", 453456),
    ("dateTimeConvert(ts, '1:MILLISECONDS:EPOCH', '1:SECONDS:EPOCH', '1:MINUTES')", 1632463320),
    ("dateTimeConvert(ts, '1:MILLISECONDS:EPOCH', '1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd', '1:DAYS')", "20210924"),
    ("dateTimeConvert(day, '1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd', '1:DAYS:EPOCH', '1:DAYS')", 18894),
    ("dateTimeConvert('1632463351', 'EPOCH|SECONDS', 'SIMPLE_DATE_FORMAT|HH:mm|Asia/Tokyo', 'MINUTES|15')", "15:00"),
    ("dateTimeConvert(f, '1:SECONDS:EPOCH', 'TIMESTAMP', '1:SECONDS')", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
    ("dateTimeConvert(ts, '1:MILLISECONDS:EPOCH', '1:MILLISECONDS:EPOCH', '1:DAYS', 'Europe/Berlin')", 1632434400000),
    ("dateTimeConvert(ts, '1:MILLISECONDS:EPOCH', '1:MILLISECONDS:EPOCH', '6:HOURS', 'UTC')", 1632463200000),
    ("dateTimeConvert(ts, '1:MILLISECONDS:EPOCH', '1:MILLISECONDS:EPOCH', '100:MILLISECONDS', 'UTC')", 1632463351100),
    ("dateTimeConvert(ts, '1:MILLISECONDS:EPOCH', '1:MILLISECONDS:EPOCH', '10:DAYS', 'UTC')", 1632182400000),
    ("timestampAdd('hours', 2, ts)", TS + 7_200_000), ("dateAdd('MONTH', 5, ts)", 1645682551123),
    ("timestampAdd('month', 1, 1612051200000)", 1614470400000), ("timestampAdd('year', -1, ts)", 1600927351123),
    ("timestampDiff('day', 0, ts)", 18894), ("dateDiff('month', 1630454400000, ts)", 0),
    ("timestampAdd('month', 1, 253399536000000)", 253402128000000),  # into December 9999
    ("timestampDiff('month', ts, 253402300799999)", 95739), ("dateDiff('year', 253402214400000, ts)", -7978),
    ("timestampDiff('year', ts, 0)", -51), ("timestampDiff('month', 1612051200000, 1614470400000)", 1),
    ("year(ts)", 2021), ("yearOfWeek(1609459200000)", 2020), ("yow(ts)", 2021), ("quarter(ts)", 3), ("month(ts)", 9),
    ("monthOfYear(ts)", 9), ("week(ts)", 38), ("weekOfYear(ts)", 38), ("dayOfYear(ts)", 267), ("doy(ts)", 267),
    ("day(ts)", 24), ("dayOfMonth(ts)", 24), ("dayOfWeek(ts)", 5), ("dow(ts)", 5), ("hour(ts)", 6),
    ("hour(ts, 'Asia/Tokyo')", 15), ("minute(ts)", 2), ("second(ts)", 31), ("millisecond(ts)", 123),
    ("EXTRACT(HOUR FROM ts)", 6),
]  # fmt: skip
EVERY: list[tuple[str, Any]] = [*ARITHMETIC, *CONDITIONS, *TEXTS, *JSONS, *CASTS, *TIMES]


@pytest.mark.parametrize(("text", "expected"), EVERY, ids=[text for text, _ in EVERY])
def test_values(text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected and isinstance(found, bool) == isinstance(expected, bool)
    assert type(found) is type(expected) or isinstance(expected, str)


def test_what_is_not_equal_to_itself() -> None:
    for text in ("0 / 0", "f % 0", "sqrt(-1)", "ln(-1)", "pow(-1, 0.5)", "sign(nan)"):
        assert math.isnan(value(text)), text
    assert value("concat(o, '!')") == '{"x":{"y":3},"t":"2.5","list":[1,null,2]}!'
    assert json.loads(value("CAST(o AS STRING)")) == RECORD["o"]


def test_every_function_is_called_above() -> None:
    written = " ".join(text for text, _ in EVERY).replace("_", "").lower()
    names = [name for rules in functions.FAMILIES.values() for name in rules]
    assert [name for name in names if f"{name.lower()}(" not in written] == []


SAMPLES = {
    "step": "5", "date_pattern": "'yyyy'", "json_path": "'$.a'", "_replacement": "'y'",
    "cased_regex": "'x'", "regex_first": "'x'", "regex_all": "'x'", "like": "'x'",
    "trunc_unit": "'day'", "unit_ns": "'DAYS'", "time_format": "'EPOCH'", "granularity": "'1:DAYS'",
    "data_type": "'INT'",
}  # fmt: skip
NULL_IS_NULL = [
    name for rules in functions.FAMILIES.values() for name, rule in rules.items() if not (rule.nulls or rule.clock)
]


@pytest.mark.parametrize("name", NULL_IS_NULL)
def test_a_null_gives_a_null(name: str) -> None:
    rule = functions.rule_of(name, next(count for count in range(9) if accepts(name, count)))
    given = [
        SAMPLES[rule.constants[place].__name__] if place in rule.constants else "n" for place in range(rule.fewest)
    ]
    assert value(f"{name}({', '.join(given)})") is None


def accepts(name: str, count: int) -> bool:
    try:
        functions.rule_of(name, count)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("s + 1", '"Hello" is not a number'), ("o * 2", "is not a number"),
        ("a AND yes", "7 is neither true nor false"),
        ("NOT s", '"Hello" is neither true nor false'), ("s > 5", '"Hello", which is compared with 5, is not a number'),
        ("o < o", "is not a number"),
        ("toEpochDays('soon')", '"soon" is not a whole number'), ("intDiv(a, 0)", "it divides by zero"),
        ("toEpochDays(1 / 0)", "Infinity is not a whole number"), ("md5(s)", "toUtf8(text)"),
        ("chr(-1)", "is not a code point"),
        ("fromDateTime(s, 'yyyy')", '"Hello" does not fit the date pattern'), ("codepoint('')", "no first character"),
        ("toDateTime(9999999999999999, 'yyyy')", "is not a time in the years 1 to 9999"),
        ("repeat(s, 1000000)", "too long"),
        ("lpad(s, 9999999, ' ')", "too long"), ("fromBase64('!')", "is not Base64"), ("decodeUrl('%ff')", "decode"),
        ("jsonPathString(s, '$.a')", '"Hello" is not JSON'), ("jsonPathLong(js, '$.a')", "is not a number"),
        ("jsonExtractScalar(js, '$.a', 'INT')", "is not an INT"), ("CAST(s AS INT)", '"Hello" is not an INT'),
        ("CAST(s AS LONG)", '"Hello" is not a LONG'), ("CAST(list AS INT)", "is not an INT"),
        ("year('x')", "whole number"),
        ("roundDecimal(1, 999)", "no number of decimal places"),
        ("regexpReplace(s, 'l', 'L', 99)", "has no character 99"),
        ("regexpReplace(s, 'l', '$7')", "no such group"), ("fromIso8601(s)", "is not a time in ISO 8601"),
        ("dateTimeConvert(s, 'EPOCH', 'EPOCH', '1:DAYS')", "is not a time in the format 'EPOCH'"),
        ("pow(2, 2) + huge", "too large"), ("CAST(huge AS LONG)", "is not a LONG"),
    ],
)  # fmt: skip
def test_what_fails_on_a_row(text: str, words: str) -> None:
    with pytest.raises(Exception) as caught:
        value(text, {**RECORD, "huge": 10**400})
    assert words in str(caught.value)
    str(caught.value).encode()


def test_without_a_clock_now_is_an_error() -> None:
    for text in ("now()", "ago('P1D')"):
        with pytest.raises(ValueError, match="it is not known what counts as now"):
            value(text, now_ms=None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("uper(s)", "function 'uper' does not exist. Did you mean 'upper'?"),
        ("TO_EPOCH_DAY(ts)", "Did you mean 'toEpochDays'?"), ("frobnicate()", "function 'frobnicate' does not exist"),
        ("upper(s, s)", "upper takes 1 argument, not 2"), ("concat(s)", "concat takes 2 to 3 arguments, not 1"),
        ("coalesce()", "coalesce takes 1 or more arguments, not 0"), ("now(1)", "now takes 0 arguments, not 1"),
        ("round(a)", "roundDecimal(x) rounds to a whole number"), ("rand()", "a row must be the same however often"),
        ("caseWhen(yes, 1)", "write CASE WHEN"), ("stPoint(1, 2)", "geometry"),
        ("lookup('t', 'c')", "join when you query"),
        ("Groovy({x + y}, x, y)", 'Groovy scripts are not run; write "x + y"'),
        ("groovy({firstName + ' ' + lastName}, firstName, lastName)", "write \"concat(firstName, lastName, ' ')\""),
        ("Groovy({return x == null ? 0 : x * 2;}, x)", 'write "CASE WHEN x IS NULL THEN 0 ELSE x * 2 END"'),
        ("Groovy({name.toUpperCase()}, name)", 'write "upper(name)"'),
        ("Groovy({a != 'x' && b > 1}, a, b)", "write \"a <> 'x' AND b > 1\""),
        ("Groovy({def y = x.split(','); y[0]}, x)", "write it with Pinot's built-in functions"),
        ("a + ", "it cannot be read at its end"), ("upper(s", "it cannot be read at its end"),
        ("a from b", "it cannot be read near 'from'"), ("'open", "a quote is not closed"),
        ("a, b", "not one expression"),
        ("a), (b", "not one expression"), ("", "not one expression"),
        ("-- nothing", "not one expression"), ("(SELECT 1)", "is not supported in a transform or filter"),
        ("a || b", "'a || b' is not supported"), ("a[1]", "is not supported"), ("count(*)", "does not exist"),
        ("a IN (SELECT 1)", "IN takes a list of values"), ("a.b(c)", "is not a field"), ("a b", "is not supported"),
        ("current_timestamp", "is not supported"), ("CAST(a AS FROB)", "'FROB' is not a type"),
        ("toDateTime(ts, s)", "toDateTime: 's' must be a constant"), ("toDateTime(ts, 5)", "5 is not a quoted text"),
        ("toDateTime(ts, 'yyyy-qq')", "the letters 'qq' are not supported"),
        ("year(ts, 'Europe/Berln')", "not a time zone"),
        ("dateTrunc('dya', ts)", "'dya' is not a unit. Did you mean 'day'?"), ("ago('1h')", "write it like 'P1D'"),
        ("dateTrunc('day', ts, 'SECOND')", "Did you mean 'SECONDS'?"),
        ("round(a, 0)", "0 is not a whole number from 1 on"),
        ("round(a, b)", "'b' must be a constant"), ("round(a, 1.5)", "1.5 is not a whole number"),
        ("jsonPathString(js, '$..a')", "'$..a' is not a JSON path"), ("jsonPath(js, 'a')", "is not a JSON path"),
        ("jsonPath(js, '$.a[?(@.b)]')", "is not a JSON path"), ("regexpLike(s, '(')", "cannot be read: missing )"),
        ("regexpReplace(s, 'l', 'a$')", "a '$' that names no group"),
        ("regexpLike(s, 'l', 'x')", "without regard to case"),
        ("dateTimeConvert(ts, '1:MILLIS:EPOCH', 'EPOCH', '1:DAYS')", "'MILLIS' is not a time unit. Did you mean"),
        ("dateTimeConvert(ts, 'EPOCH', 'EPOCH', 'often')", "time unit"),
        ("jsonExtractScalar(js, '$.a', 'INTS')", "'INT'?"),
        ("dateTimeConvert(ts, 'EPOCH', 'EPOCH', '1 DAY')", "not a granularity"), ("a + " * 3000 + "a", "at most 10000"),
        ("(" * 3000 + "a" + ")" * 3000, "it nests too deep"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_expression(text)
    assert words in str(caught.value) and not str(caught.value).endswith(".")


def test_the_fields_that_are_read() -> None:
    assert parse_expression("CASE WHEN a.b > 1 THEN \"odd name\" ELSE concat(c, a.b) END").fields == (
        "a.b", "odd name", "c",
    )  # fmt: skip
    assert parse_expression("1 + 2").fields == ()


CALLS = [text for text, _ in EVERY]


@pytest.mark.slow
@given(
    st.dictionaries(
        st.sampled_from([*RECORD]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.decimals() | st.binary(),
            lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=2), below, max_size=3),
            max_leaves=4,
        ),
    ),
    st.sampled_from(CALLS),
)
def test_any_record_gives_a_value_or_an_error_that_can_be_told(record: dict[str, object], text: str) -> None:
    try:
        first = value(text, record)
    except (ValueError, TypeError, ArithmeticError, LookupError, HybridError) as error:
        str(error).encode("utf-8", "backslashreplace")
        return
    assert repr(value(text, record)) == repr(first)


def test_messages_numbers_keep_their_text() -> None:
    record = parse_json('{"price": 1.10, "big": 12345678901234567890.5}')
    assert isinstance(record, dict)
    assert value("concat(price, '')", record) == "1.10" and value("price * 2", record) == 2.2
    assert value("big", record) == "12345678901234567890.5"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("upper('straße ŉ ᾀ')", "STRAẞE ŉ ᾈ"), ("lower('İSTANBUL ΟΔΟΣ')", "istanbul οδοσ"),
        ("concatWS('-', n, s, 'x', n)", "Hello-x"), ("concat(n, 'x')", None),
        ("fromBase64('YWI')", b"ab"), (r"'a\b' LIKE 'a\b'", True), (r"'a_b' LIKE 'a\_b'", True),
        (r"'axb' LIKE 'a\_b'", False), (r"regexpLike('é', '\w')", False),
        (r"regexpReplace('ab', '(a)', '<\1$1>')", "<aa>b"),
        (r"regexpReplace('ab', 'a', '\\')", "\\b"),
    ],
)  # fmt: skip
def test_texts_have_the_values_of_queries(text: str, wanted: object) -> None:
    assert value(text) == wanted


def test_what_a_list_of_values_equals() -> None:
    record = {"tags": ["red", "BLUE", None]}
    found = [value(text, record) for text in ("tags = 'red'", "tags <> 'red'", "tags <> 'x'", "tags in ('x', 'BLUE')")]
    assert found == [True, False, True, True]


def test_bytes_and_times_are_compared_with_texts() -> None:
    record = {"r": b"\xff\x00", "t": datetime(2021, 11, 21, 10, 20, 30, 400_000, UTC)}
    assert value("r = 'ff00'", record) is True
    assert value("t = '2021-11-21T11:20:30.4+01:00'", record) is True
    assert value("t < '2021-11-21 10:20:30.400001'", record) is True
    assert value("cast(t as string)", record) == "2021-11-21 10:20:30.4"
    with pytest.raises(ValueError, match="soon"):
        value("t > 'soon'", record)


def test_midnight_that_occurs_twice_is_the_one_of_the_instant() -> None:
    zoned = "dateTrunc('day', at, 'MILLISECONDS', 'America/Havana')"
    first, second = 1_699_156_800_000, 1_699_160_400_000  # 04:00 and 05:00 UTC are both 00:00 in Havana
    assert [value(zoned, {"at": at}) for at in (first, second - 1, second, second + 3_600_000)] == [
        first, first, second, second,
    ]  # fmt: skip
