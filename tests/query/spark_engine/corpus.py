"""Statements for both engines: each function that Spark runs, each shape of a statement, and what Spark refuses."""

from __future__ import annotations

# Over the table of tests/parity: aggregations, in one statement for all rows and in one with groups.
AGGREGATES = """
count(*)
count(s)
count(distinct i)
sum(i)
sum(l % 1000)
sum(qty)
sum(qty) / count(*)
sum(qty) * 2 + 1
sum(amount)
sum(case when i > 3 then 1 else 0 end)
sum(price)
sum(distinct qty)
avg(i)
avg(qty)
avg(amount)
avg(price)
min(s)
max(name)
min(i)
max(moment)
min(amount)
max(b)
max(price)
count_if(i > 3)
distinctcount(s)
distinctcountbitmap(i)
segmentpartitioneddistinctcount(i)
distinctcountsmarthll(name)
distinctsum(qty)
distinctavg(qty)
minmaxrange(qty)
firstwithtime(id, ts, 'INT')
lastwithtime(name, ts, 'STRING')
sumprecision(price)
mode(qty)
mode(s, 'MAX')
histogram(qty, 0, 20, 4)
boolagg(b)
bool_and(b)
bool_or(b)
stddev(amount)
stddevpop(qty)
stddev_samp(qty)
variance(qty)
varpop(qty)
var_samp(amount)
covarpop(qty, id)
covar_samp(amount, id)
exprmin(name, ts)
exprmax(id, ts)
arg_min(name, ts)
arg_max(name, ts)
min_by(s, ts)
max_by(s, ts)
any_value(1)
countmv(tags)
summv(nums)
minmv(nums)
maxmv(nums)
avgmv(nums)
distinctcountmv(tags)
distinctcountbitmapmv(nums)
distinctcounthllmv(nums)
percentile(qty, 50)
percentile95(amount)
percentileest(ts, 90)
percentilerawest(qty, 99)
percentilesmarttdigest(amount, 25)
percentilemv(nums, 50)
count(*) filter (where b)
sum(qty) filter (where i > 3)
max(amount) filter (where s = 'red') + 1
percentile(qty, 75) filter (where b)
""".strip().splitlines()
# Over the table of row expressions, besides the corpus of tests/sql/rows.
SCALARS = r"""
arraySum([1, 2, 3])
arrayAverage([1, 2])
toDateTime(l, 'yyyy-MM-dd HH:mm:ss.SSS')
toDateTime(t, 'EEE, d MMM yyyy hh:mm a', 'Asia/Tokyo')
toDateTime(t, 'yyyy-MM-dd''T''HH:mm:ssZZ', 'Europe/Berlin')
toDateTime(t, 'SSSSSS')
fromDateTime('2021-11-21 10:20:30', 'yyyy-MM-dd HH:mm:ss')
fromDateTime('21/Nov/2021', 'dd/MMM/yyyy')
fromDateTime('20211121', 'yyyyMMdd')
fromDateTime('2021-3-7 4:05', 'yyyy-MM-dd HH:mm')
fromDateTime('10:30', 'HH:mm')
fromDateTime('2021-11-21 10:20 +0900', 'yyyy-MM-dd HH:mm Z')
fromDateTime('2021-11-21 10:20Z', 'yyyy-MM-dd HH:mmZ')
fromDateTime('2021-10-31 02:30', 'yyyy-MM-dd HH:mm', 'Europe/Berlin')
fromDateTime('2021-03-28 02:30', 'yyyy-MM-dd HH:mm', 'Europe/Berlin')
dateTimeConvert(l, '1:MILLISECONDS:EPOCH', '1:DAYS:EPOCH', '1:DAYS')
dateTimeConvert(l, 'EPOCH|MILLISECONDS', 'EPOCH|SECONDS', '15:MINUTES')
dateTimeConvert(l, '1:MILLISECONDS:EPOCH', 'SIMPLE_DATE_FORMAT|yyyy-MM-dd HH:mm', '15:MINUTES')
dateTimeConvert(l, '1:MILLISECONDS:EPOCH', '1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd tz(Europe/Berlin)', '1:DAYS')
dateTimeConvert('2021-11-21', 'SIMPLE_DATE_FORMAT|yyyy-MM-dd', 'EPOCH|DAYS', '1:DAYS')
dateTimeConvert(l, 'EPOCH', 'TIMESTAMP', '1:HOURS')
split('a,,b,', ',')
strrpos('banana', 'an')
strrpos(s, 'q')
repeat(s, 2)
repeat(s, '-', 3)
codePoint(s)
encodeUrl('a b&c=d/~*ü')
decodeUrl('a+b%26c%C3%BC')
toUtf8(s)
fromUtf8(toUtf8('aü'))
toBase64(r)
fromBase64('YWI')
bytesToHex(r)
hexToBytes('00fF')
hex(r)
unhex('ff')
sha(r)
sha1(toUtf8('a'))
jsonFormat(j)
toJsonMapStr(j)
sin(d)
cos(d)
tan(d)
asin(0.5)
acos(-0.5)
acos(2)
sqrt(-1)
exp(1000)
cast(1.1 as float)
atan(d)
atan2(d, 2)
sinh(1)
cosh(1)
tanh(1)
cbrt(27)
degrees(d)
radians(d)
pi()
leftSubStr(s, -1)
extract(year from t)
extract(dow from t)
extract(second from t)
t + interval '1' month
t - interval 36 hour
cast(t as string)
cast(t as date)
cast('2021-11-21 10:20:30.5' as timestamp)
cast(b as string)
cast(d as string)
cast(f as string)
cast(1e300 as string)
cast(1e-7 as string)
cast('nan' as double)
cast(-0.0 as double)
try_cast('1d' as double)
try_cast('0x1p3' as double)
try_cast('x' as int)
d || '|' || f || '|' || p
case i when 7.0 then 1 else 2.5 end
coalesce(i, 2.5)
coalesce(f, 1)
greatest(f, 2.5)
if(b, i, l)
i = f
f = 15.948
f in (15.948, 1)
f between 15.947 and 15.949
b = 1
i = '7'
t = '2021-11-21 10:20:30.4'
t > '2021-11-21T12:00:00+09:00'
least(i, l, d)
i % 3 - l % 7
(i + 2147483647) * 2
9223372036854775807 - 1
l // 7
cast(null as int)
null
'it''s \n a sign'
s like '_b\,%'
s not like '%B%'
s ilike 'AB%'
case when null then 1 end
dateDiff('year', 1582934400000, 1614470400000)
dateDiff('month', 1612051200000, 1614470400000)
dateDiff('month', 1614470400000, 1612051200000)
dateDiff('quarter', 1612051200000, 1619740800000)
toDateTime(253402300800000, 'yyyy')
regexp_like('éb', '\bb')
regexp_like('a b', 'a\sb$')
regexpExtract('foo=bar', '(\w+)=(\w+)', 2)
jsonPathString('{"a": 1} x', '$.a', 'none')
jsonPathString('{"a": 1.50}', '$.a')
jsonPathString('[1, {"b": null}]', '$[1]')
[i, 2, null]
tags
r
p * 2.5 / 7
p + 0.1
p % 5
-p
""".strip().splitlines()
SHAPES = """
select id, i, l, f, d, s, name, b, moment, doc, raw, tags, nums, price, qty, amount, ts from parity order by id limit 50
select * from parity where id < 4 order by id
select * exclude (doc, raw) from parity order by id desc limit 3
select p.* exclude (tags) from parity p where p.id = 3
select $segmentName, $partition, $offset, $docId, $hostName, id from parity order by id limit 40
select count(*) from parity where $offset >= 20 and $docId > 3
select id from parity_REALTIME order by id limit 50
select distinct s, b from parity order by s desc, b
select s, count(*) from parity group by s having count(*) > 1 order by 2 desc, 1
select s as k, sum(qty) from parity group by k order by k nulls first
select datetrunc('DAY', ts) as day, count(*) as n, sum(amount) from parity group by day order by day
select datetrunc('MONTH', ts, 'MILLISECONDS', 'Europe/Berlin') as m, count(*) from parity group by 1 order by 1
select upper(s), count(distinct name) from parity group by upper(s) order by distinctcount(name), 1 limit 20
select i % 3 as r, max(qty) - min(qty) from parity group by i % 3 order by r
select 1, 'a', 2.5, true, null, 1e3, -7
select 1 + 1 as two where 1 = 0
select tags, count(*) from parity group by tags order by tags limit 20
select distinct tags from parity limit 20
select t, count(*) from parity, unnest(tags) u(t) group by t order by t
select id from parity where tags = 'x' and nums <> 3 order by id
select id from parity where i in (select qty from parity where b) order by id limit 50
select id from parity where i not in (select qty from parity where id < 5) order by id limit 50
select id from parity p where exists (select 1 from parity q where q.qty = p.i) order by id limit 50
select (select max(qty) from parity) - qty as below from parity order by id limit 5
select id, (select count(*) from parity q where q.s = p.s) as same from parity p order by id limit 9
with a as (select s, sum(qty) as q from parity group by s), b as (select max(q) as m from a)
  select a.s, a.q, b.m from a join b on a.q <= b.m order by 1 limit 20
with a(k, n) as (select s, count(*) from parity group by s) select k, n from a where n > 2 order by k
select t.s, t.n * 2 from (select s, count(*) as n from parity group by s) t where t.n > 2 order by 1
select x.id, y.id from parity x join parity y on x.qty = y.i where x.id < 20 order by 1, 2 limit 40
select x.id, y.id from parity x left join parity y on x.i = y.id and y.b order by 1, 2 limit 50
select x.id, y.id from parity x right join parity y on x.i = y.id where y.id < 9 order by 2, 1 limit 50
select x.id, y.id from parity x full join (select * from parity where id < 5) y on x.id = y.id + 37 order by 1, 2
  limit 60
select count(*) from parity x, parity y where x.id = y.id + 1
select x.id, qty from (select id, s from parity) x join (select id, qty from parity) y using (id) order by 1 limit 5
select id from parity x semi join (select id as other from parity where b) y on x.id = y.other order by id limit 50
select id from parity x anti join (select id as other from parity where b) y on x.id = y.other order by id limit 50
select count(*) from parity x cross join (select id from parity where id < 3) y
select id from parity where id < 3 union all select id from parity where id < 2 order by id
select s from parity where id < 9 union select name from parity where id < 3 order by 1 limit 30
select i from parity intersect select id from parity order by 1 limit 30
select id from parity except select i from parity order by 1 limit 50
select id, row_number() over (order by ts desc, id) as r from parity order by id limit 10
select id, s, rank() over (partition by s order by qty) as r, dense_rank() over (partition by s order by qty) as d
  from parity order by id limit 40
select id, percent_rank() over (order by id), cume_dist() over (order by id), ntile(3) over (order by id) from parity
  order by id limit 12
select id, lag(qty) over (order by id) as a, lead(qty, 2, 0) over (order by id) as b,
  first_value(name) over (partition by s order by id) as c, last_value(qty) over (order by id) as d from parity
  order by id limit 40
select id, sum(qty) over (order by id rows between 2 preceding and current row) as a,
  avg(amount) over (partition by s) as b, count(*) filter (where b) over (partition by s) as c,
  max(qty) over (order by id rows between unbounded preceding and 1 following) as d from parity order by id limit 40
select id, sum(qty) over (order by hr range between 3 preceding and 3 following) as a from parity order by id limit 40
select s, sum(sum(qty)) over (order by s) as running from parity group by s order by s
select b.n, count(p.id) from generate_series(0, 12, 3) as b(n) left join parity p on p.id >= b.n and p.id < b.n + 3
  group by 1 order by 1
select n from range(5) as r(n) order by n desc
select id from parity order by s nulls first, id desc limit 7 offset 5
select id from parity order by d desc, f asc, id limit 40
select id from parity order by i * 2 desc, id limit 4
select d, count(*) from parity group by d order by d limit 40
select minmaxrangemv(nums), percentilemv(nums, 90) from parity where id < 9
select count(*) from parity where s = 'nothing'
select s, count(*) from parity where s = 'nothing' group by s
select sum(qty), avg(qty), min(s), max(b), stddevpop(qty), percentile(qty, 50) from parity where false
set dropResults = true; select id, s from parity
select case when i > 5 then 'high' when i > 2 then 'mid' else 'low' end as band, count(*) from parity
  group by 1 order by 1
select parity.id from parity where not (s = 'red' or i > 5) and (b = true or qty > 2) order by parity.id limit 30
select json_extract_scalar(doc, '$.k', 'STRING') as k, count(*) from parity group by k order by k limit 9
select name from parity where regexp_like(name, '^[a-c]') and name like '%a%' order by name limit 20
select count(*) from parity where moment between '2021-09-01' and '2021-10-01' and moment > 1632463351000
"""
# A statement that Spark refuses, and what the error names.
REFUSED = {
    "select current_date from parity": "CURRENT_DATE",
    "select distinctcounthll(s) from parity": "DISTINCTCOUNTHLL: it approximates",
    "select percentiletdigest(qty, 50) from parity": "PERCENTILETDIGEST: it approximates",
    "select percentilekll(qty, 50) from parity": "PERCENTILEKLL: it approximates",
    "select approx_count_distinct(s) from parity": "APPROX_COUNT_DISTINCT: it approximates",
    "select first(s) from parity": "FIRST: it depends on the order of rows",
    "select array_agg(s) from parity": "ARRAY_AGG: it depends on the order of rows",
    "select string_agg(s, ',') from parity": "STRING_AGG: it depends on the order of rows",
    "select random() from parity": "RANDOM: it gives other values",
    "select levenshtein(s, 'red') from parity": "LEVENSHTEIN",
    "select hammingdistance(s, 'red') from parity": "HAMMINGDISTANCE",
    "select normalize(s) from parity": "NORMALIZE",
    "select printf('%d', i) from parity": "PRINTF",
    "select median(qty) from parity": "MEDIAN",
    "select row_number() over () from parity": "needs an ORDER BY in its window",
    "select lag(id) over (partition by s) from parity": "needs an ORDER BY in its window",
    "select id from parity qualify row_number() over (order by id) = 1": "the clause QUALIFY",
    "select distinct on (s) s, id from parity": "DISTINCT ON",
    "select s, count(*) from parity group by all": "GROUP BY ALL",
    "select s, count(*) from parity group by cube (s)": "CUBE",
    "select id from parity asof join (select 1 as t) x on parity.ts >= x.t": "ASOF",
    "select id from parity natural join (select 1 as id) x": "NATURAL",
    "with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select n from r": "WITH RECURSIVE",
    "select * from parity x join parity y using (id)": "a star over a join with USING",
    "select * replace (1 as id) from parity": "REPLACE",
    "select id from parity union all select amount from parity": "a set operation of INTEGER and DOUBLE",
    "select id from parity limit 10 %": "LIMIT 10",
    "select id from parity limit (1 + 1)": "a computed LIMIT",
    "select id from parity using sample 3": "SAMPLE",
    "select today() from parity": "TODAY",
    "select regexpreplace(s, 'e*', '-') from parity": "matches the empty text",
    "select todatetime(ts, 'xxxx-ww') from parity": "for which Spark has no letter",
    "select fromdatetime('2021-12', 'yyyy-DDD') from parity": "by rules that Spark does not have",
    "select try_cast(s as timestamp) from parity": "use FROMDATETIME",
    "select id from parity where regexp_like(s, name)": "The regular expression must be a quoted constant",
    "select {'a': 1} from parity": "{'a': 1}",
    "select list_transform(nums, x -> x + 1) from parity": "LIST_TRANSFORM",
    "select unnest(tags), unnest(nums) from parity": "several lists at once",
    "select gapfill(hr, '1:HOURS:EPOCH', '453462', '453466', '1:HOURS') as t from parity": "GAPFILL",
}


def shapes() -> list[str]:
    """The statements of SHAPES; a line that begins with blanks belongs to the statement before it."""
    return SHAPES.strip().replace("\n  ", " ").splitlines()
