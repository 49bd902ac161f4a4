--- defaults stand for missing values
select i, s, l, f, d, b, name from parity where id in (5, 11, 17, 38) order by id
-- by hand
select i, s, l, f, d, b, name from parity where id in (5, 11, 17, 38) order by id
--- defaults of lists bytes and times
-- differs: JSON columns
select moment, doc, raw, tags, nums from parity where id in (23, 29, 35) order by id
-- by hand
select moment, doc, raw, tags, nums from parity where id in (23, 29, 35) order by id
--- defaults of metrics
select price, qty, amount from parity where id = 35
-- by hand
select price, qty, amount from parity where id = 35
--- is null finds nothing without null handling
select count(*) from parity where i is null
-- by hand
select 0
--- is not null finds all
select count(*) from parity where s is not null
-- by hand
select 40
--- the default is a value like others
select count(*) from parity where s = 'null'
-- by hand
select count(*) from parity where s = 'null'
--- a default is grouped
select s, count(*) from parity group by s order by s
-- by hand
select s, count(*) from parity group by s order by s
--- defaults are summed
-- differs: types of MIN, MAX, MINMAXRANGE, MODE
select sum(i), min(l), sum(qty) from parity
-- by hand
select sum(i), min(l), sum(qty) from parity
--- count and sum of no rows
select count(*), distinctcount(s) from parity where id < 0
-- by hand
select 0, 0
--- sum of no rows
-- differs: aggregates of no rows
select sum(i) from parity where id < 0
-- by hand
select null
--- min max avg of no rows
-- differs: aggregates of no rows
select min(i), max(i), avg(i) from parity where id < 0
-- by hand
select null, null, null
--- groups of no rows
select s, sum(i) from parity where id < 0 group by s
-- by hand
select s, sum(i) from parity where id < 0 group by s
--- coalesce
-- differs: SQL that Pinot 0.11 does not answer
select coalesce(s, 'x') from parity where id = 5
-- by hand
select 'null'
