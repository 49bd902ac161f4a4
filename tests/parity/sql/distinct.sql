--- distinct
select distinct s from parity limit 50
-- by hand
select distinct s from parity
--- distinct pairs
select distinct s, b from parity limit 50
-- by hand
select distinct s, b from parity
--- distinct with order
select distinct i from parity order by i desc limit 4
-- by hand
select distinct i from parity order by i desc limit 4
--- the default limit holds for distinct
select distinct id from parity order by id
-- by hand
select distinct id from parity order by id limit 10
--- distinctcount
select distinctcount(s), distinctcount(i), distinctcount(d) from parity
-- by hand
select count(distinct s), count(distinct i), count(distinct d) from parity
--- distinct_count
select distinct_count(s) from parity
-- by hand
select count(distinct s) from parity
--- count distinct
select count(distinct s) from parity
-- by hand
select count(distinct s) from parity
--- distinctcount in groups
select b, distinctcount(s) from parity group by b limit 10
-- by hand
select b, count(distinct s) from parity group by b
--- distinctcountbitmap
select distinctcountbitmap(id) from parity
-- by hand
select count(distinct id) from parity
--- segmentpartitioneddistinctcount
select segmentpartitioneddistinctcount(id) from parity
-- by hand
select count(distinct id) from parity
--- distinctcountsmarthll
select distinctcountsmarthll(id) from parity
-- by hand
select count(distinct id) from parity
--- distinctcounthll
-- differs: approximate functions
select distinctcounthll(s) from parity
-- by hand
select approx_count_distinct(s) from parity
--- distinctcounthll of more
-- differs: approximate functions
select distinctcounthll(id) from parity
-- by hand
select approx_count_distinct(id) from parity
--- distinctcountthetasketch
-- differs: approximate functions
select distinctcountthetasketch(id) from parity
-- by hand
select approx_count_distinct(id) from parity
--- percentile
select percentile(id, 50), percentile(id, 95), percentile(id, 0), percentile(id, 100) from parity
-- by hand
select 20, 38, 0, 39
--- percentile95
select percentile95(id), percentile50(qty) from parity
-- by hand
select 38, 3
--- percentile with a fraction
select percentile(id, 99.9), percentile(id, 2.5) from parity
-- by hand
select 39, 1
--- percentile in groups
select s, percentile(id, 50) from parity group by s limit 10
-- by hand
select s, list_sort(list(id))[count(*) // 2 + 1] from parity group by s
--- percentileest
select percentileest(id, 50), percentileest90(id) from parity
-- by hand
select 20, 36
--- percentiletdigest
select percentiletdigest(id, 50) from parity
-- by hand
select 19.5
--- percentilesmarttdigest
select percentilesmarttdigest(id, 50) from parity
-- by hand
select 20
--- mode
-- differs: types of MIN, MAX, MINMAXRANGE, MODE
select mode(qty) from parity where id < 6
-- by hand
select 1
--- mode of ties
-- differs: types of MIN, MAX, MINMAXRANGE, MODE
select mode(id), mode(id, 'MAX') from parity
-- by hand
select 0, 39
--- percentile of a float
select percentile(f, 50) from parity where id < 5
-- by hand
select 1.5
--- firstwithtime lastwithtime
select firstwithtime(s, ts, 'STRING'), lastwithtime(s, ts, 'STRING') from parity
-- by hand
select arg_min(s, ts), arg_max(s, ts) from parity
--- lastwithtime in groups
select s, lastwithtime(id, ts, 'INT') from parity group by s limit 10
-- by hand
select s, arg_max(id, ts) from parity group by s
--- lastwithtime with types
select lastwithtime(i, ts, 'LONG'), lastwithtime(amount, ts, 'DOUBLE'), lastwithtime(f, ts, 'FLOAT'), lastwithtime(b, ts, 'BOOLEAN') from parity
-- by hand
select arg_max(i, ts)::bigint, arg_max(amount, ts), arg_max(f, ts), arg_max(b, ts) from parity
--- first_with_time
select first_with_time(qty, ts, 'LONG') from parity where s = 'blue'
-- by hand
select arg_min(qty, ts) from parity where s = 'blue'
--- histogram
select histogram(id, 0, 40, 4) from parity
-- by hand
select [10.0, 10.0, 10.0, 10.0]
--- aggregates of lists
-- differs: types of MIN, MAX, MINMAXRANGE, MODE
select countmv(tags), distinctcountmv(tags), summv(nums), minmv(nums), maxmv(nums), avgmv(nums) from parity where id < 9
-- by hand
select sum(len(tags)), 4, sum(list_sum(nums)), min(list_min(nums)), max(list_max(nums)), sum(list_sum(nums)) / sum(len(nums)) from parity where id < 9
