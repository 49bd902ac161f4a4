--- division of ints
select id, i / 2 from parity where id < 8 order by id
-- by hand
select id, i / 2 from parity where id < 8 order by id
--- division of longs
select id, ts / 1000 from parity where id < 3 order by id
-- by hand
select id, ts / 1000 from parity where id < 3 order by id
--- division of aggregates
select sum(qty) / count(*) from parity
-- by hand
select sum(qty) / count(*) from parity
--- the function div
select div(i, 2), divide(qty, 4) from parity where id = 1
-- by hand
select i / 2, qty / 4 from parity where id = 1
--- division by zero
select i / 0 from parity where id = 0
-- by hand
select 'Infinity'::double
--- division of zero by zero
select i / 0 from parity where id = 3
-- by hand
select 'NaN'::double
--- division of a negative by zero
select i / 0 from parity where id = 2
-- by hand
select '-Infinity'::double
--- modulo
-- differs: whole-number arithmetic
select id, i % 5, mod(i, 5) from parity where id < 5 order by id
-- by hand
select id, i % 5, i % 5 from parity where id < 5 order by id
--- sums of ints
-- differs: whole-number arithmetic
select id, i + 1, i - 1, i * 2 from parity where id < 5 order by id
-- by hand
select id, i + 1, i - 1, i * 2 from parity where id < 5 order by id
--- a product beyond 32 bits
-- differs: whole-number arithmetic
select i * i from parity where id = 7
-- by hand
select i::bigint * i from parity where id = 7
--- a sum beyond 32 bits
-- differs: whole-number arithmetic
select i * 100000 + 5 from parity where id = 7
-- by hand
select i::bigint * 100000 + 5 from parity where id = 7
--- floats are computed as doubles
select id, f * 2, f + 1 from parity where id < 6 order by id
-- by hand
select id, f::double * 2, f::double + 1 from parity where id < 6 order by id
--- a sum of products of floats
select sum(f * f) from parity where id < 6
-- by hand
select sum(f::double * f) from parity where id < 6
--- decimals in arithmetic are doubles
select id, i * 2.5, d + 0.25 from parity where id < 3 order by id
-- by hand
select id, i * 2.5::double, d + 0.25::double from parity where id < 3 order by id
--- negation
-- differs: SQL that Pinot 0.11 does not answer
select id, -i, -d from parity where id < 3 order by id
-- by hand
select id, -i, -d from parity where id < 3 order by id
--- abs ceil floor
-- differs: whole-number arithmetic
select abs(i), ceil(d), floor(d) from parity where id = 1
-- by hand
select abs(i), ceil(d), floor(d) from parity where id = 1
--- abs of an int
-- differs: whole-number arithmetic
select abs(i) from parity where id = 2
-- by hand
select abs(i) from parity where id = 2
--- exp ln log
select exp(d), ln(d), log(d) from parity where id = 0
-- by hand
select exp(d), ln(d), ln(d) from parity where id = 0
--- log2 log10 sqrt power
select log2(d), log10(d), sqrt(d), power(d, 2) from parity where id = 0
-- by hand
select log2(d), log10(d), sqrt(d), power(d, 2) from parity where id = 0
--- sign
select sign(d), sign(i) from parity where id = 1
-- by hand
select sign(d), sign(i) from parity where id = 1
--- least and greatest
select least(d, amount), greatest(d, amount) from parity where id < 3 order by id
-- by hand
select least(d, amount), greatest(d, amount) from parity where id < 3 order by id
--- rounddecimal
select rounddecimal(d, 2), rounddecimal(d) from parity where id in (1, 5) order by id
-- by hand
select round(d, 2), case id when 1 then 0 else 123 end from parity where id in (1, 5) order by id
--- truncate
select truncate(d), truncate(d, 1) from parity where id in (1, 5) order by id
-- by hand
select trunc(d), trunc(d, 1) from parity where id in (1, 5) order by id
--- round to a bucket
select round(ts, 60000) from parity where id < 3 order by id
-- by hand
select ts // 60000 * 60000 from parity where id < 3 order by id
--- trigonometry
select sin(d), cos(d), atan2(d, 1) from parity where id = 0
-- by hand
select sin(d), cos(d), atan2(d, 1) from parity where id = 0
--- the functions add sub mult
-- differs: SQL that Pinot 0.11 does not answer
select add(i, 1), sub(i, 1), mult(i, 2), plus(i, 1), minus(i, 1), times(i, 2) from parity where id = 1
-- by hand
select i + 1, i - 1, i * 2, i + 1, i - 1, i * 2 from parity where id = 1
--- arithmetic of big decimals
select price + 1 from parity where id = 0
-- by hand
select price + 1 from parity where id = 0
--- a computed condition
select id from parity where i * 2 > 10 and i + qty < 20 order by id limit 50
-- by hand
select id from parity where i::bigint * 2 > 10 and i + qty < 20 order by id
--- comparing two columns
select id from parity where i > qty order by id limit 50
-- by hand
select id from parity where i > qty order by id
--- aggregates in arithmetic
-- differs: types of MIN, MAX, MINMAXRANGE, MODE
select max(qty) - min(qty), sum(qty) * 2 + 1 from parity
-- by hand
select max(qty) - min(qty), sum(qty) * 2 + 1 from parity
