--- group by one column
select s, count(*) from parity group by s limit 50
-- by hand
select s, count(*) from parity group by s
--- group by two columns
select s, b, sum(qty), avg(amount) from parity group by s, b limit 50
-- by hand
select s, b, sum(qty), avg(amount) from parity group by s, b
--- group by places
select s, b, count(*) from parity group by 1, 2 limit 50
-- by hand
select s, b, count(*) from parity group by s, b
--- group by an alias
select upper(s) as big, count(*) from parity group by big limit 50
-- by hand
select upper(s) as big, count(*) from parity group by big
--- group by an expression
-- differs: whole-number arithmetic
select qty % 2, count(*) from parity group by qty % 2 limit 50
-- by hand
select qty % 2, count(*) from parity group by qty % 2
--- the key need not be shown
select count(*) from parity group by s limit 50
-- by hand
select count(*) from parity group by s
--- a key without an aggregate
select s from parity group by s limit 50
-- by hand
select s from parity group by s
--- having
select s, count(*) from parity group by s having count(*) > 9 limit 50
-- by hand
select s, count(*) from parity group by s having count(*) > 9
--- having with another aggregate
select s, count(*) from parity group by s having sum(qty) > 30 and max(id) > 5 limit 50
-- by hand
select s, count(*) from parity group by s having sum(qty) > 30 and max(id) > 5
--- filtered aggregates
select sum(qty) filter (where s = 'red'), count(*) filter (where b = true) from parity
-- by hand
select sum(qty) filter (where s = 'red'), count(*) filter (where b) from parity
--- a filtered distinct count
-- differs: types of MIN, MAX, MINMAXRANGE, MODE
select distinctcount(i) filter (where id < 4), minmaxrange(i) filter (where id < 4) from parity
-- by hand
select count(distinct i) filter (where id < 4), max(i) filter (where id < 4) - min(i) filter (where id < 4) from parity
--- case inside of an aggregate
select sum(case when s = 'red' then qty else 0 end) from parity
-- by hand
select sum(case when s = 'red' then qty else 0 end) from parity
--- case as a value
select id, case when i > 5 then 'big' when i < 0 then 'negative' else 'small' end from parity where id < 8 order by id
-- by hand
select id, case when i > 5 then 'big' when i < 0 then 'negative' else 'small' end from parity where id < 8 order by id
--- case as a key
select case when qty > 2 then 'many' else 'few' end as size, count(*) from parity group by size limit 50
-- by hand
select case when qty > 2 then 'many' else 'few' end as size, count(*) from parity group by size
--- case of numbers
select id, case when b = true then 1 else 0 end from parity where id < 4 order by id
-- by hand
select id, case when b then 1 else 0 end from parity where id < 4 order by id
--- case by value
select id, case s when 'red' then 1 when 'green' then 2 else 3 end from parity where id < 4 order by id
-- by hand
select id, case s when 'red' then 1 when 'green' then 2 else 3 end from parity where id < 4 order by id
--- the default limit holds for groups
select id, count(*) from parity group by id order by id
-- by hand
select id, 1 from parity order by id limit 10
--- a group limit by an option
select id, count(*) from parity group by id order by id limit 100 option(minSegmentGroupTrimSize=5)
-- by hand
select id, count(*) from parity group by id order by id
--- many groups
select id, s, name, count(*), sum(qty) from parity group by id, s, name limit 1000
-- by hand
select id, s, name, 1, qty from parity
--- group by a boolean
select b, count(*) from parity group by b limit 10
-- by hand
select b, count(*) from parity group by b
--- group by a list counts each element
select tags, count(*) from parity group by tags limit 50
-- by hand
select unnest(tags) as tag, count(*) from parity group by tag
--- order by an aggregate that is not shown
select s from parity group by s order by max(id) desc limit 3
-- by hand
select s from parity group by s order by max(id) desc limit 3
--- having by an alias
select s, count(*) as n from parity group by s having n > 9 order by n desc, s
-- by hand
select s, count(*) as n from parity group by s having count(*) > 9 order by n desc, s
--- a page of groups
-- differs: OFFSET behind GROUP BY
select id, sum(qty) from parity group by id order by id limit 5 offset 10
-- by hand
select id, qty from parity order by id limit 5 offset 10
--- several aggregates of a condition
select b, count(*), sum(qty), min(amount), max(amount), avg(amount), distinctcount(s) from parity where id between 3 and 30 and s in ('red', 'green', 'blue') group by b limit 10
-- by hand
select b, count(*), sum(qty), min(amount), max(amount), avg(amount), count(distinct s) from parity where id between 3 and 30 and s in ('red', 'green', 'blue') group by b
--- by day and a second key
select todatetime(datetrunc('DAY', ts), 'yyyy-MM-dd') as day_, s, sum(amount) from parity group by day_, s order by day_, s limit 50
-- by hand
select ymd, s, sum(amount) from parity group by ymd, s order by ymd, s
--- an expression of keys and aggregates
-- differs: types of MIN, MAX, MINMAXRANGE, MODE
select qty, sum(amount) / count(*), max(id) from parity where qty > 0 group by qty order by qty
-- by hand
select qty, avg(amount), max(id) from parity where qty > 0 group by qty order by qty
--- aggregates of expressions
-- differs: types of MIN, MAX, MINMAXRANGE, MODE
select sum(qty * amount), avg(i + qty), max(length(s)) from parity where id < 5
-- by hand
select sum(qty * amount), avg(i + qty), max(length(s)) from parity where id < 5
--- a key by case
select case when hour(ts) < 12 then 'morning' else 'evening' end as part, count(*) from parity group by part limit 10
-- by hand
select case when ts // 3600000 % 24 < 12 then 'morning' else 'evening' end as part, count(*) from parity group by part
--- groups by a float
select f, count(*) from parity group by f order by f limit 20
-- by hand
select f, count(*) from parity group by f order by f
--- groups by a timestamp
select moment, count(*) from parity where id < 4 group by moment order by moment
-- by hand
select moment, 1 from parity where id < 4 order by moment
--- groups by a big decimal sum
select s, sum(amount), sum(f) from parity where id < 10 group by s limit 10
-- by hand
select s, sum(amount), sum(f::double) from parity where id < 10 group by s
--- distinct lists show each element
select distinct tags from parity order by tags limit 10
-- by hand
select distinct unnest(tags) as tag from parity order by tag
--- filters in groups
-- differs: SQL that Pinot 0.11 does not answer
select s, sum(qty) filter (where b) from parity group by s order by s
-- by hand
select s, sum(qty) filter (where b) from parity group by s order by s
