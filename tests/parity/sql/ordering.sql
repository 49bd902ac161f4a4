--- the default limit is ten
select id from parity order by id
-- by hand
select id from parity order by id limit 10
--- a limit with an offset
select id from parity order by id limit 5 offset 3
-- by hand
select id from parity order by id limit 5 offset 3
--- offset before the comma
select id from parity order by id limit 3, 5
-- by hand
select id from parity order by id limit 5 offset 3
--- limit zero
select id from parity limit 0
-- by hand
select id from parity limit 0
--- descending
select id, ts from parity order by ts desc limit 5
-- by hand
select id, ts from parity order by ts desc limit 5
--- two keys and ties
select i, id from parity order by i desc, id limit 50
-- by hand
select i, id from parity order by i desc, id
--- by text capitals come first
select distinct name from parity order by name limit 50
-- by hand
select distinct name from parity order by name
--- by an expression
select id from parity order by i * 2 desc, id limit 6
-- by hand
select id from parity order by i::bigint * 2 desc, id limit 6
--- by an alias
-- differs: whole-number arithmetic
select id, qty * 2 as twice from parity order by twice desc, id limit 6
-- by hand
select id, qty * 2 as twice from parity order by twice desc, id limit 6
--- by a column that is not shown
select s from parity order by id desc limit 5
-- by hand
select s from parity order by id desc limit 5
--- by a place
select s, id from parity order by 2 limit 5
-- by hand
select s, id from parity order by id limit 5
--- negative infinity comes first
select d from parity order by d, id limit 3
-- by hand
select d from parity order by d, id limit 3
--- by a boolean
select b, id from parity order by b, id limit 50
-- by hand
select b, id from parity order by b, id
--- by a timestamp
select id from parity order by moment limit 3
-- by hand
select id from parity order by moment limit 3
--- beyond the last row
select id from parity order by id limit 10 offset 38
-- by hand
select id from parity order by id limit 10 offset 38
--- groups by an aggregate
select s, sum(qty) from parity group by s order by sum(qty) desc, s
-- by hand
select s, sum(qty) from parity group by s order by sum(qty) desc, s
