"""Expressions over one row and rows to try them on: what `row_sql` says to Spark, and what a query says to DuckDB."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa

from hybrid.config.schema_json import parse_schema
from hybrid.config.table_config import Half, TableSpec
from hybrid.sql.coerce import coerce_timestamps
from hybrid.sql.functions import rewrite_functions
from hybrid.sql.statement import parse_statement
from hybrid.sql.times import TimeContext

NOW_MS = 1_637_490_000_000
_TYPES = {
    "i": "INT", "l": "LONG", "f": "FLOAT", "d": "DOUBLE", "p": "BIG_DECIMAL", "b": "BOOLEAN", "s": "STRING",
    "t": "TIMESTAMP", "r": "BYTES", "j": "JSON",
}  # fmt: skip
_SCHEMA = {
    "schemaName": "things",
    "dimensionFieldSpecs": [
        *({"name": name, "dataType": kind} for name, kind in _TYPES.items()),
        {"name": "tags", "dataType": "STRING", "singleValueField": False},
        {"name": "odd-name", "dataType": "INT"},
    ],
}


def things(*, null_handling: bool = True, ignores_case: bool = False, **more: object) -> TableSpec:
    """A table with a column of each type."""
    schema = parse_schema({**_SCHEMA, **more}, "things.json")
    return TableSpec(
        "things", schema, frozenset({Half.OFFLINE}), None, None, None, None,
        null_handling=null_handling, ignores_case=ignores_case,
    )  # fmt: skip


def rows() -> pa.Table:
    """A row of plain values, one of awkward ones, one of nulls."""
    moment = datetime(2021, 11, 21, 10, 20, 30, 400_000, UTC)
    columns = {
        "i": [7, -7, None],
        "l": [1_637_490_030_400, -5, None],
        "f": [15.948, -2.5, None],
        "d": [114.99999999999999, -2.5, None],
        "p": [Decimal("12.500000000000000000"), Decimal("-3.000000000000000000"), None],
        "b": [True, False, None],
        "s": ["Ab,c", "", None],
        "t": [moment, datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC), None],
        "r": [b"\xff\x00", b"", None],
        "j": ['{"a": {"x y": 5}, "b": "2.5", "c": [1, 2]}', "no json", None],
        "tags": [["red", "BLUE"], ["green"], None],
        "odd-name": [1, 0, None],
    }
    schema = pa.schema([pa.field(field.name, field.arrow_type()) for field in things().schema.fields])
    return pa.table(columns, schema=schema)


def query_sql(expressions: list[str]) -> str:
    """What DuckDB runs for a query that shows these expressions of the rows."""
    tree = parse_statement(f"select {', '.join(expressions)} from things").tree
    fields = things().schema.fields
    types = {field.name: field.data_type for field in fields if field.single_value}
    rewrite_functions(tree, TimeContext(NOW_MS, types, frozenset({"tags"})))
    coerce_timestamps(tree, types)
    return tree.sql("duckdb")


# Conditions and values; a value stands in CASE so that it may stand where a condition is wanted.
CONDITIONS = """
i = 7
i <> 7 and not b or s = ''
i > 2.5
i = '7'
i in (7, '8')
i not in (1, 2)
i between -7 and 0
i is null
i is not null
s is not distinct from null
i is distinct from 7
b
not b
b = true
b = 1
b = 'false'
b is true
f = 15.948
f > 15.9
d >= 114.9
p = 12.5
p > '12'
l > 1637490000000
s = 'Ab,c'
s = 5
s like 'a%'
s not like 'a_,%'
s like 'a\\%'
s > 'A'
"s" || 'x' = 'Ab,cx'
t > 1637490000000
t >= '2021-11-21T10:20:30.400Z'
t < '2021-11-21 12:20:31'
t in ('2021-11-21 10:20:30.4', 5)
t between '2021-01-01' and '2022-01-01'
t > ago('P1D')
t < now()
t > now() - 3600000
r = 'ff00'
r <> 'ff'
tags = 'red'
tags <> 'red'
tags in ('BLUE', 'x')
tags like 'blu%'
"odd-name" = 1
things.i = 7
regexpLike(s, '^a')
regexp_like(s, '^a', 'c')
startsWith(s, 'Ab')
ends_with(s, 'c')
contains(s, ',')
isNull(s)
isNotNull(s)
coalesce(b, false)
i / 0 > 5
l / i > 100
""".strip().splitlines()
VALUES = r"""
i / 2
i / 0
-7 / (i - 7)
i * 1.2
p * 1.2
p / 3
f * 2
f + d
i % 4
mod(i, 4)
plus(i, 1)
sub(i, 1)
minus(i, 1)
add(i, 1)
mult(i, 3)
times(i, 1000000000)
div(i, 2)
divide(i, 0, -1)
-i
- (i - 1)
abs(i)
ceil(d)
ceiling(d)
floor(d)
round(d)
round(i, 5)
roundDecimal(d)
roundDecimal(d, 1)
truncate(d)
truncate(d, 1)
sqrt(abs(i))
exp(1)
ln(abs(i))
log(abs(i))
log2(8)
log10(1000)
pow(i, 2)
power(2, 0.5)
sign(i)
least(i, 3)
greatest(i, l)
coalesce(s, 'none')
nullif(i, 7)
ifnull(i, 0)
if(i > 0, 'plus', 'minus')
case i when 7 then 'seven' else 'other' end
case when i > 0 then d end
cast(d as int)
cast(d as long)
cast('2.9' as int)
cast(i as string)
cast(p as string)
cast(s as varchar)
cast(l as timestamp)
cast(t as long)
cast(i as double)
cast(i as big_decimal)
cast(i as boolean)
try_cast(s as int)
lower(s)
upper(s)
length(s)
reverse(s)
concat(s, 'x')
concat(s, 'x', '-')
concat_ws('-', s, 'x')
substr(s, 1)
substr(s, 1, 3)
substr(s, -2)
substring(s, 2, 2)
trim('  a ')
trim(both 'x' from 'xax')
trim(leading from ' a ')
ltrim('  a')
rtrim('a  ')
replace(s, 'b', '\')
remove(s, 'b')
strpos(s, 'c')
splitPart(s, ',', 1)
splitPart(s, ',', 2)
split_part('a.b', '.', 0)
lpad(s, 6, '*')
rpad(s, 2, '*')
leftSubStr(s, 2)
rightSubStr(s, 2)
regexpReplace(s, '([a-z])', '<\1>$')
regexpExtract(s, '([A-Z])(b)')
regexpExtract(s, '([A-Z])(b)', 2)
md5(s)
sha256(s)
'it''s a \ sign'
'${spark.app.name} ${spark:x} $x {y}'
'\n \u0041 \% \_ % "x"'
jsonExtractScalar(j, '$.a[''x y'']', 'INT')
jsonExtractScalar(j, '$.b', 'STRING', 'none')
jsonPathString(j, '$.b')
jsonPathLong(j, '$.c[1]', -1)
jsonPathDouble(j, '$.b')
arrayLength(tags)
arrayMin(tags)
arrayMax(tags)
now() - ago('PT1H')
dateTrunc('day', l)
dateTrunc('week', t)
dateTrunc('month', l, 'MILLISECONDS', 'Europe/Berlin', 'DAYS')
timeConvert(l, 'MILLISECONDS', 'HOURS')
toTimestamp(l)
fromTimestamp(t)
dateAdd('day', 3, l)
timestampAdd('hour', -1, t)
dateDiff('hour', t, '2021-11-22 00:00:00'::timestamp)
timestampDiff('month', 0, l)
year(t)
year(l, 'Asia/Tokyo')
yearOfWeek(t)
yow(t)
quarter(t)
month(t)
monthOfYear(t)
week(t)
weekOfYear(t)
day(t)
dayOfMonth(t)
dayOfWeek(t)
dow(t)
dayOfYear(t)
doy(t)
hour(t)
minute(t)
second(t)
millisecond(t)
toEpochSeconds(t)
toEpochMinutes(l)
toEpochHours(l)
toEpochDays(l)
fromEpochSeconds(i)
fromEpochMinutes(i)
fromEpochHours(i)
fromEpochDays(i)
toEpochSecondsRounded(l, 10)
toEpochMinutesRounded(l, 15)
toEpochHoursRounded(l, 2)
toEpochDaysRounded(l, 7)
toEpochSecondsBucket(l, 10)
toEpochMinutesBucket(l, 15)
toEpochHoursBucket(l, 2)
toEpochDaysBucket(l, 7)
fromEpochSecondsBucket(i, 10)
fromEpochMinutesBucket(i, 15)
fromEpochHoursBucket(i, 2)
fromEpochDaysBucket(i, 7)
""".strip().splitlines()
