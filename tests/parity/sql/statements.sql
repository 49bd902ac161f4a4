--- the number of the row
select $docId, id from parity where $docId < 3 order by id
-- by hand
select id, id from parity where id < 3 order by id
--- one segment
select count(*) from parity where $segmentName <> 'x'
-- by hand
select 40
--- segments and machines
select distinctcount($segmentName), distinctcount($hostName) from parity
-- by hand
select 1, 1
--- rows of another machine
select id from parity where $hostName = 'nobody'
-- by hand
select id from parity where false
--- a virtual column that is not there
-- differs: `$` columns that do not exist
select $nothing from parity
-- by hand: error
--- the half by its name
select count(*) from parity_REALTIME
-- by hand
select 40
--- set before
set timeoutMs = 20000; select count(*) from parity
-- by hand
select 40
--- set of an option that has no effect
set skipUpsert = true; set enableNullHandling = false; select count(*) from parity
-- by hand
select 40
--- option behind
select count(*) from parity option(timeoutMs=20000)
-- by hand
select 40
--- two options behind
select count(*) from parity where id < 5 limit 10 option(timeoutMs=20000, skipUpsert=true)
-- by hand
select 5
--- a semicolon behind
select count(*) from parity;
-- by hand
select 40
--- explain
-- differs: EXPLAIN PLAN FOR
explain plan for select count(*) from parity where s = 'red'
-- by hand: none
--- a table that is not there
select count(*) from nowhere
-- by hand: error
--- a column that is not there
select nothing from parity
-- by hand: error
--- a column that is not there in a condition
select id from parity where nothing = 1
-- by hand: error
--- a function that is not there
-- differs: codes of errors
select nosuchfunction(id) from parity
-- by hand: error
--- no sql
selec id from parity
-- by hand: error
--- an unclosed quote
select 'abc from parity
-- by hand: error
--- an unclosed parenthesis
select (id from parity
-- by hand: error
--- nothing
select
-- by hand: error
--- two statements
select 1 from parity; select 2 from parity
-- by hand: error
--- an insert
insert into parity values (1)
-- by hand: error
--- a drop
drop table parity
-- by hand: error
--- a text that is no number
select id from parity where i = 'abc'
-- by hand: error
--- a sum of text
select sum(s) from parity
-- by hand: error
--- a column beside an aggregate
-- differs: codes of errors
select s, count(*) from parity
-- by hand: error
--- an aggregate in a condition
select id from parity where count(*) > 1
-- by hand: error
--- a percentile without its number
-- differs: codes of errors
select percentile(id) from parity
-- by hand: error
--- a percentile beyond 100
-- differs: codes of errors
select percentile(id, 101) from parity
-- by hand: error
--- a unit that is not there
-- differs: codes of errors
select datetrunc('fortnight', ts) from parity where id = 0
-- by hand: error
--- a period that cannot be read
-- differs: codes of errors
select count(*) from parity where ts > ago('yesterday')
-- by hand: error
--- a negative limit
select id from parity limit -1
-- by hand: error
--- a negative timeout
-- differs: codes of errors
select count(*) from parity option(timeoutMs=-1)
-- by hand: error
--- text_match
-- differs: codes of errors
select count(*) from parity where text_match(s, 'red')
-- by hand: error
--- a join
-- differs: SQL that Pinot 0.11 does not answer
select a.id from parity a join parity b on a.id = b.id order by a.id limit 3
-- by hand
select 0 union all select 1 union all select 2
--- a subquery in FROM
-- differs: SQL that Pinot 0.11 does not answer
select count(*) from (select id from parity where id < 3) x
-- by hand
select 3
--- a subquery in a condition
-- differs: SQL that Pinot 0.11 does not answer
select count(*) from parity where id in (select id from parity where id < 3)
-- by hand
select 3
--- with
-- differs: SQL that Pinot 0.11 does not answer
with x as (select id from parity where id < 3) select count(*) from x
-- by hand
select 3
--- a window
-- differs: SQL that Pinot 0.11 does not answer
select id, row_number() over (order by id) from parity where id < 3 order by id
-- by hand
select id, id + 1 from parity where id < 3 order by id
--- a union
-- differs: SQL that Pinot 0.11 does not answer
select id from parity where id = 1 union all select id from parity where id = 2
-- by hand
select 1 union all select 2
