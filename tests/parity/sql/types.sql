--- one column of each type
select id, i, l, f, d, s, b, ts, hr, ymd from parity order by id limit 50
-- by hand
select id, i, l, f, d, s, b, ts, hr, ymd from parity order by id
--- a star has the columns in alphabetical order
-- differs: JSON columns
select * from parity where id = 4
-- by hand
select amount, b, d, doc, f, hr, i, id, l, moment, name, nums, price, qty, raw, s, tags, ts, ymd from parity where id = 4
--- timestamps
select id, moment from parity where id < 4 order by id
-- by hand
select id, moment from parity where id < 4 order by id
--- big decimals
select id, price from parity where id < 8 order by id
-- by hand
select id, price from parity where id < 8 order by id
--- bytes
select id, raw from parity where id < 4 order by id
-- by hand
select id, raw from parity where id < 4 order by id
--- json
-- differs: JSON columns
select id, doc from parity where id < 4 order by id
-- by hand
select id, doc from parity where id < 4 order by id
--- lists
select id, tags, nums from parity where id < 5 order by id
-- by hand
select id, tags, nums from parity where id < 5 order by id
--- sum min max avg
select sum(i), avg(i), sum(l), sum(f), sum(amount), avg(amount) from parity where id < 5
-- by hand
select sum(i), avg(i), sum(l), sum(f), sum(amount), avg(amount) from parity where id < 5
--- min and max of an int
-- differs: types of MIN, MAX, MINMAXRANGE, MODE
select min(i), max(i) from parity where id < 30
-- by hand
select min(i), max(i) from parity where id < 30
--- min and max of a long
-- differs: types of MIN, MAX, MINMAXRANGE, MODE
select min(ts), max(ts) from parity
-- by hand
select min(ts), max(ts) from parity
--- min and max of a float
-- differs: types of MIN, MAX, MINMAXRANGE, MODE
select min(f), max(f) from parity where id < 10
-- by hand
select min(f), max(f) from parity where id < 10
--- min and max of a double
select min(d), max(d) from parity where id < 10
-- by hand
select min(d), max(d) from parity where id < 10
--- range of an int
-- differs: types of MIN, MAX, MINMAXRANGE, MODE
select minmaxrange(i) from parity where id < 5
-- by hand
select max(i) - min(i) from parity where id < 5
--- count of a column counts rows
-- differs: name of `count(column)`
select count(i), count(*), count(1) from parity
-- by hand
select count(i), count(*), count(1) from parity
--- sum of a big decimal
select sum(price) from parity where id < 3
-- by hand
select sum(price) from parity where id < 3
--- sumprecision
-- differs: precise sums and quotients of BIG_DECIMAL
select sumprecision(price) from parity where id < 8
-- by hand
select sum(price) from parity where id < 8
--- casts
select id, cast(d as long), cast(f as long), cast(i as double), cast(i as string), cast(s as varchar), cast(qty as int) from parity where id < 4 order by id
-- by hand
select id, trunc(d)::bigint, trunc(f)::bigint, i::double, i::varchar, s, qty::int from parity where id < 4 order by id
--- cast of a negative double goes to zero
select cast(d as long) from parity where id = 1
-- by hand
select trunc(d)::bigint from parity where id = 1
--- cast of a timestamp
select cast(moment as long) from parity where id = 1
-- by hand
select epoch_ms(moment) from parity where id = 1
--- cast of a long to timestamp
select cast(ts as timestamp) from parity where id = 1
-- by hand
select make_timestamp_ms(ts) from parity where id = 1
--- cast of a boolean
select cast(b as string), cast(b as int) from parity where id < 2 order by id
-- by hand
select b::varchar, b::int from parity where id < 2 order by id
--- cast to float
select cast(d as float) from parity where id = 2
-- by hand
select d::float from parity where id = 2
--- cast to big decimal
select cast(d as big_decimal) from parity where id = 0
-- by hand
select d::decimal(38, 18) from parity where id = 0
--- cast of a double to text
select cast(d as string) from parity where id in (0, 1, 5) order by id
-- by hand
select d::varchar from parity where id in (0, 1, 5) order by id
--- cast of a large double to text
-- differs: DOUBLEs as text
select cast(d as string) from parity where id in (3, 4) order by id
-- by hand
select d::varchar from parity where id in (3, 4) order by id
--- literals
-- differs: constants
select 5, 2.5, 'text', true from parity limit 1
-- by hand
select 5, 2.5::double, 'text', true
--- a literal without a table
select 1
-- by hand
select 1
--- arithmetic without a table
-- differs: whole-number arithmetic
select 1 + 1, 7 / 2, 7 % 4
-- by hand
select 2.0, 3.5, 3.0
--- a comparison as a value
select id, i > 5, s = 'red' from parity where id < 3 order by id
-- by hand
select id, i > 5, s = 'red' from parity where id < 3 order by id
--- no rows
-- differs: answers without rows
select id, s from parity where id < 0
-- by hand
select id, s from parity where id < 0
--- column names without regard to case
-- differs: SQL that Pinot 0.11 does not answer
select ID, Sum(QTY) from parity where Id < 3 group by iD order by id
-- by hand
select id, sum(qty) from parity where id < 3 group by id order by id
--- an alias
select id as "the id", s label from parity where id = 1
-- by hand
select id, s from parity where id = 1
--- a table prefix
select parity.id, sum(parity.qty) from parity where parity.id < 3 group by parity.id order by parity.id
-- by hand
select id, sum(qty) from parity where id < 3 group by id order by id
--- big decimals as text
select cast(price as string) from parity where id in (1, 2) order by id
-- by hand
select case id when 1 then '0.1' else '-3.25' end from parity where id in (1, 2) order by id
--- a quotient of a big decimal
-- differs: precise sums and quotients of BIG_DECIMAL
select price / 2, truncate(price, 1) from parity where id < 3 order by id
-- by hand
select price / 2, trunc(price, 1) from parity where id < 3 order by id
--- the latest timestamp
-- differs: types of MIN, MAX, MINMAXRANGE, MODE
select max(moment) from parity
-- by hand
select max(moment) from parity
