--- in
select id from parity where s in ('red', 'blue') and id < 10 order by id limit 50
-- by hand
select id from parity where s in ('red', 'blue') and id < 10 order by id
--- not in
select id from parity where i not in (3, 7) and id < 10 order by id limit 50
-- by hand
select id from parity where i not in (3, 7) and id < 10 order by id
--- between
select id from parity where i between 0 and 7 and id < 16 order by id limit 50
-- by hand
select id from parity where i between 0 and 7 and id < 16 order by id
--- not between
select id from parity where i not between 0 and 7 and id < 16 order by id limit 50
-- by hand
select id from parity where i not between 0 and 7 and id < 16 order by id
--- and or not
select id from parity where not (s = 'red' or i > 5) and (b = true or qty > 2) order by id limit 50
-- by hand
select id from parity where not (s = 'red' or i > 5) and (b or qty > 2) order by id
--- not equal both ways
select count(*) from parity where s <> 'red' and i != 3
-- by hand
select count(*) from parity where s <> 'red' and i <> 3
--- a number as text
select id from parity where i = '7' or ts > '1632660000000' order by id limit 50
-- by hand
select id from parity where i = 7 or ts > 1632660000000 order by id
--- a text column compared with a number
select count(*) from parity where s = 5
-- by hand
select 0
--- a text column in numbers
select count(*) from parity where name in (1, 2)
-- by hand
select 0
--- an int compared with a fraction
select count(*) from parity where i > 2.5 and i < 7.5
-- by hand
select count(*) from parity where i in (3, 5, 7)
--- an int equal to a fraction
-- differs: answers without rows
select count(*) from parity where i = 2.5
-- by hand
select 0
--- a float equal to its decimal
-- differs: FLOAT and BIG_DECIMAL in conditions
select id from parity where f = 15.948 and id < 12 order by id
-- by hand
select id from parity where f = 15.948::float and id < 12 order by id
--- a float in a list
select id from parity where f in (0.1, 15.948) and id < 12 order by id
-- by hand
select id from parity where f in (0.1::float, 15.948::float) and id < 12 order by id
--- a float above its decimal
select count(*) from parity where f > 15.948
-- by hand
select count(*) from parity where f > 15.948::float
--- a double equal to its decimal
select id from parity where d = 0.1 order by id limit 50
-- by hand
select id from parity where d = 0.1 order by id
--- a float compared with a double column
select count(*) from parity where f < d
-- by hand
select count(*) from parity where f::double < d
--- a long beyond 53 bits
select id from parity where l = 9007199254740993 order by id limit 3
-- by hand
select id from parity where l = 9007199254740993 order by id limit 3
--- a boolean alone
select count(*) from parity where b
-- by hand
select count(*) from parity where b
--- a boolean as text or number
select count(*) from parity where b = 'true' and b = 1 and b <> 0
-- by hand
select count(*) from parity where b
--- not a boolean
select count(*) from parity where not b
-- by hand
select count(*) from parity where not b
--- bytes
select id from parity where raw = 'deadbeef' and id < 12 order by id
-- by hand
select id from parity where raw = unhex('deadbeef') and id < 12 order by id
--- bytes in a list
select count(*) from parity where raw in ('00ff', '01')
-- by hand
select count(*) from parity where raw in (unhex('00ff'), unhex('01'))
--- a big decimal
-- differs: FLOAT and BIG_DECIMAL in conditions
select id from parity where price = 12.5 and id < 12 order by id
-- by hand
select id from parity where price = 12.5 and id < 12 order by id
--- a big decimal above
select id from parity where price > 0.1 and id < 8 order by id
-- by hand
select id from parity where price > 0.1 and id < 8 order by id
--- text between
select count(*) from parity where s between 'a' and 'h'
-- by hand
select count(*) from parity where s between 'a' and 'h'
--- text above
select count(*) from parity where name >= 'b'
-- by hand
select count(*) from parity where name >= 'b'
--- a list holds a value
select id from parity where tags = 'x' and id < 8 order by id
-- by hand
select id from parity where list_contains(tags, 'x') and id < 8 order by id
--- a list holds one of several
select id from parity where tags in ('w', 'z') and id < 8 order by id
-- by hand
select id from parity where list_has_any(tags, ['w', 'z']) and id < 8 order by id
--- a list of numbers holds a larger one
select id from parity where nums > 4 and id < 8 order by id
-- by hand
select id from parity where len(list_filter(nums, lambda x: x > 4)) > 0 and id < 8 order by id
--- length of a list
select id, arraylength(tags) from parity where id < 4 order by id
-- by hand
select id, len(tags) from parity where id < 4 order by id
--- sums of lists
select id, arraysum(nums), arraymin(nums), arraymax(nums), arrayaverage(nums) from parity where id < 4 order by id
-- by hand
select id, list_sum(nums), list_min(nums), list_max(nums), list_avg(nums) from parity where id < 4 order by id
--- a constant condition
-- differs: SQL that Pinot 0.11 does not answer
select count(*) from parity where 1 = 1
-- by hand
select 40
--- a false condition
-- differs: SQL that Pinot 0.11 does not answer
select count(*) from parity where 1 = 2
-- by hand
select 0
--- a quoted identifier and a quote in text
select count(*) from parity where "s" = 'it''s'
-- by hand
select 0
--- comments
select /* one */ count(*) -- two
from parity
-- by hand
select 40
--- a list does not hold a value
select id from parity where tags <> 'x' and id < 8 order by id
-- by hand
select id from parity where not list_contains(tags, 'x') and id < 8 order by id
--- a list holds none of several
select id from parity where tags not in ('x', 'w') and id < 8 order by id
-- by hand
select id from parity where not list_has_any(tags, ['x', 'w']) and id < 8 order by id
--- a list matches a pattern
select id from parity where tags like 'Y' and id < 8 order by id
-- by hand
select id from parity where list_contains(tags, 'y') and id < 8 order by id
--- a list of numbers between
select id from parity where nums between 2 and 3 and id < 8 order by id
-- by hand
select id from parity where list_has_any(nums, [2, 3]) and id < 8 order by id
--- nested conditions and functions
select id from parity where (upper(substr(s, 0, 1)) = 'R' and (qty = 1 or qty = 5)) or not (id < 38) order by id limit 50
-- by hand
select id from parity where (s[1] in ('r', 'R') and qty in (1, 5)) or id >= 38 order by id
--- a condition on a computed fraction
select id from parity where amount / qty > 5.5 and id < 20 order by id limit 20
-- by hand
select id from parity where amount / qty > 5.5 and id < 20 order by id
--- negative numbers
select id from parity where i = -7 and amount < -5 order by id
-- by hand
select id from parity where i = -7 and amount < -5 order by id
--- a float below and above
select count(*) from parity where f >= 1.5 and f < 15.9
-- by hand
select count(*) from parity where f >= 1.5::float and f < 15.9::float
--- a time between two texts of days
select count(*) from parity where ymd between '2021-09-25' and '2021-09-26'
-- by hand
select count(*) from parity where ymd in ('2021-09-25', '2021-09-26')
--- a number in a list of texts
select id from parity where id in ('1', '2') order by id
-- by hand
select id from parity where id in (1, 2) order by id
--- an empty text
select count(*) from parity where name = ''
-- by hand
select count(*) from parity where name = ''
