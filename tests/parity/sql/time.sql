--- datetrunc by unit
select id, datetrunc('DAY', ts), datetrunc('HOUR', ts), datetrunc('WEEK', ts), datetrunc('MONTH', ts), datetrunc('QUARTER', ts), datetrunc('YEAR', ts) from parity where id < 3 order by id
-- by hand
select id, epoch_ms(date_trunc('day', make_timestamp_ms(ts))), epoch_ms(date_trunc('hour', make_timestamp_ms(ts))), epoch_ms(date_trunc('week', make_timestamp_ms(ts))), epoch_ms(date_trunc('month', make_timestamp_ms(ts))), epoch_ms(date_trunc('quarter', make_timestamp_ms(ts))), epoch_ms(date_trunc('year', make_timestamp_ms(ts))) from parity where id < 3 order by id
--- datetrunc of hours
select id, datetrunc('DAY', hr, 'HOURS') from parity where id < 20 order by id limit 20
-- by hand
select id, hr // 24 * 24 from parity where id < 20 order by id
--- datetrunc with a zone
select id, datetrunc('DAY', ts, 'MILLISECONDS', 'Asia/Tokyo') from parity where id < 20 order by id limit 20
-- by hand
select id, (ts + 32400000) // 86400000 * 86400000 - 32400000 from parity where id < 20 order by id
--- datetrunc into another unit
select datetrunc('DAY', ts, 'MILLISECONDS', 'UTC', 'DAYS') as d, count(*) from parity group by d limit 20
-- by hand
select ts // 86400000 as t, count(*) from parity group by t
--- datetrunc with daylight saving
-- differs: constants
select datetrunc('DAY', 1616893200000, 'MILLISECONDS', 'Europe/Berlin') from parity limit 1
-- by hand
select 1616886000000
--- date_trunc of a timestamp
select datetrunc('DAY', moment) from parity where id = 3
-- by hand
select epoch_ms(date_trunc('day', moment)) from parity where id = 3
--- datetrunc before 1970
select datetrunc('DAY', l) from parity where id in (5, 6) order by id
-- by hand
select epoch_ms(date_trunc('day', make_timestamp_ms(l))) from parity where id in (5, 6) order by id
--- datetrunc as a key
select datetrunc('DAY', ts), sum(qty) from parity group by datetrunc('DAY', ts) order by datetrunc('DAY', ts)
-- by hand
select ts // 86400000 * 86400000 as t, sum(qty) from parity group by t order by t
--- todatetime
select id, todatetime(ts, 'yyyy-MM-dd HH:mm:ss') from parity where id < 4 order by id
-- by hand
select id, strftime(make_timestamp_ms(ts), '%Y-%m-%d %H:%M:%S') from parity where id < 4 order by id
--- todatetime with quotes and millis
select todatetime(ts, 'yyyy-MM-dd''T''HH:mm:ss.SSS') from parity where id = 3
-- by hand
select strftime(make_timestamp_ms(ts), '%Y-%m-%dT%H:%M:%S.%g') from parity where id = 3
--- todatetime with names
select todatetime(ts, 'EEE, d MMM yyyy h:mm a'), todatetime(ts, 'EEEE MMMM') from parity where id = 3
-- by hand
select strftime(make_timestamp_ms(ts), '%a, %-d %b %Y %-I:%M %p'), strftime(make_timestamp_ms(ts), '%A %B') from parity where id = 3
--- todatetime with a zone
select todatetime(ts, 'yyyy-MM-dd HH:mm', 'Asia/Tokyo') from parity where id = 3
-- by hand
select strftime(make_timestamp_ms(ts + 32400000), '%Y-%m-%d %H:%M') from parity where id = 3
--- todatetime with an offset
select todatetime(ts, 'yyyy-MM-dd HH:mm Z') from parity where id = 3
-- by hand
select strftime(make_timestamp_ms(ts), '%Y-%m-%d %H:%M +0000') from parity where id = 3
--- todatetime as a key
select todatetime(ts, 'yyyy-MM-dd') as d, count(*) from parity group by d order by d
-- by hand
select ymd, count(*) from parity group by ymd order by ymd
--- todatetime by day of the year and week
select todatetime(ts, 'D'), todatetime(ts, 'xxxx-ww e') from parity where id = 3
-- by hand
select strftime(make_timestamp_ms(ts), '%-j'), strftime(make_timestamp_ms(ts), '%G-%V %u') from parity where id = 3
--- fromdatetime
select id, fromdatetime(ymd, 'yyyy-MM-dd') from parity where id < 4 order by id
-- by hand
select id, epoch_ms(ymd::timestamp) from parity where id < 4 order by id
--- fromdatetime with a zone
select fromdatetime(ymd, 'yyyy-MM-dd', 'Asia/Tokyo') from parity where id = 3
-- by hand
select epoch_ms(ymd::timestamp) - 32400000 from parity where id = 3
--- fromdatetime in a condition
select count(*) from parity where ts >= fromdatetime('2021-09-25', 'yyyy-MM-dd')
-- by hand
select count(*) from parity where ts >= 1632528000000
--- fromdatetime with an offset
select count(*) from parity where ts < fromdatetime('25/Sep/2021:09:00:00 +0900', 'dd/MMM/yyyy:HH:mm:ss Z')
-- by hand
select count(*) from parity where ts < 1632528000000
--- fromdatetime of what is no date
select fromdatetime(s, 'yyyy-MM-dd') from parity where id = 0
-- by hand: error
--- datetimeconvert to days
select id, datetimeconvert(ts, '1:MILLISECONDS:EPOCH', '1:DAYS:EPOCH', '1:DAYS') from parity where id < 4 order by id
-- by hand
select id, ts // 86400000 from parity where id < 4 order by id
--- datetimeconvert to a pattern
select id, datetimeconvert(ts, '1:MILLISECONDS:EPOCH', '1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd', '1:DAYS') from parity where id < 4 order by id
-- by hand
select id, ymd from parity where id < 4 order by id
--- datetimeconvert to a pattern with a zone
select datetimeconvert(ts, '1:MILLISECONDS:EPOCH', '1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd HH:mm tz(Asia/Tokyo)', '1:HOURS') from parity where id = 3
-- by hand
select strftime(make_timestamp_ms((ts + 32400000) // 3600000 * 3600000), '%Y-%m-%d %H:%M') from parity where id = 3
--- datetimeconvert from a pattern
select datetimeconvert(ymd, '1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd', '1:MILLISECONDS:EPOCH', '1:DAYS') from parity where id = 3
-- by hand
select epoch_ms(ymd::timestamp) from parity where id = 3
--- datetimeconvert to quarters of an hour
select datetimeconvert(ts, '1:MILLISECONDS:EPOCH', '15:MINUTES:EPOCH', '30:MINUTES') as q, count(*) from parity where id < 8 group by q limit 20
-- by hand
select ts // 1800000 * 2 as q, count(*) from parity where id < 8 group by q
--- datetimeconvert from hours
select datetimeconvert(hr, '1:HOURS:EPOCH', '1:MILLISECONDS:EPOCH', '1:HOURS') from parity where id = 3
-- by hand
select hr * 3600000::bigint from parity where id = 3
--- datetimeconvert granularity
select datetimeconvert(ts, '1:MILLISECONDS:EPOCH', '1:MILLISECONDS:EPOCH', '15:MINUTES') from parity where id < 4 order by id
-- by hand
select ts // 900000 * 900000 from parity where id < 4 order by id
--- timeconvert
select timeconvert(ts, 'MILLISECONDS', 'HOURS') from parity where id < 4 order by id
-- by hand
select ts // 3600000 from parity where id < 4 order by id
--- parts of a time
select year(ts), quarter(ts), month(ts), week(ts), day(ts), hour(ts), minute(ts), second(ts) from parity where id = 3
-- by hand
select 2021, 3, 9, 38, 24, 10, 32, 31
--- more parts of a time
select yearofweek(ts), yow(ts), dayofweek(ts), dow(ts), dayofyear(ts), doy(ts), monthofyear(ts), weekofyear(ts), dayofmonth(ts), millisecond(ts) from parity where id = 3
-- by hand
select 2021, 2021, 5, 5, 267, 267, 9, 38, 24, 411
--- parts in a zone
select hour(ts, 'Asia/Tokyo'), day(ts, 'America/Los_Angeles') from parity where id in (0, 3) order by id
-- by hand
select (ts // 3600000 + 9) % 24, case id when 0 then 23 else 24 end from parity where id in (0, 3) order by id
--- parts as keys
select hour(ts), count(*) from parity group by hour(ts) limit 50
-- by hand
select ts // 3600000 % 24 as h, count(*) from parity group by h
--- toepoch
select toepochseconds(ts), toepochminutes(ts), toepochhours(ts), toepochdays(ts) from parity where id = 3
-- by hand
select ts // 1000, ts // 60000, ts // 3600000, ts // 86400000 from parity where id = 3
--- toepoch before 1970
select toepochdays(l), toepochseconds(l) from parity where l < 0 and l > -100000000 order by id
-- by hand
select trunc(l / 86400000)::bigint, trunc(l / 1000)::bigint from parity where l < 0 and l > -100000000 order by id
--- toepoch rounded and in buckets
select toepochsecondsrounded(ts, 10), toepochminutesrounded(ts, 15), toepochminutesbucket(ts, 15), toepochhoursbucket(ts, 6) from parity where id = 3
-- by hand
select ts // 10000 * 10, ts // 900000 * 15, ts // 900000, ts // 21600000 from parity where id = 3
--- fromepoch
-- differs: constants
select fromepochhours(hr), fromepochdays(18894), fromepochminutesbucket(100, 15) from parity where id = 3
-- by hand
select hr * 3600000::bigint, 18894 * 86400000::bigint, 100 * 15 * 60000 from parity where id = 3
--- dateadd
select dateadd('day', 3, ts), dateadd('month', 1, ts), dateadd('hour', -5, ts) from parity where id = 3
-- by hand
select ts + 3 * 86400000, ts + 30 * 86400000::bigint, ts - 5 * 3600000 from parity where id = 3
--- datediff
select datediff('day', ts, 1632700000000), datediff('hour', 1632700000000, ts), datediff('month', ts, 1732700000000) from parity where id = 3
-- by hand
select 2, -61, 38
--- totimestamp fromtimestamp
select totimestamp(ts), fromtimestamp(moment) from parity where id = 3
-- by hand
select make_timestamp_ms(ts), epoch_ms(moment) from parity where id = 3
--- ago and now
select count(*) from parity where ts < ago('P1D') and ts < now()
-- by hand
select 40
--- ago with hours and minutes
select count(*) from parity where ts > ago('PT2H30M')
-- by hand
select 0
--- arithmetic with now
select count(*) from parity where ts < now() - 3600000
-- by hand
select 40
--- a timestamp compared with text
select id from parity where moment >= '2021-09-26 00:00:00' and moment < '2021-09-29 00:00:00' order by id
-- by hand
select id from parity where moment >= '2021-09-26' and moment < '2021-09-29' order by id
--- a timestamp compared with millis
select id from parity where moment between 1632549751001 and 1632722551003 order by id
-- by hand
select id from parity where moment between make_timestamp_ms(1632549751001) and make_timestamp_ms(1632722551003) order by id
--- a timestamp in a list
select id from parity where moment in (1632549751001, 1632722551003) order by id
-- by hand
select id from parity where moment in (make_timestamp_ms(1632549751001), make_timestamp_ms(1632722551003)) order by id
--- parts of a timestamp
select year(moment), hour(moment) from parity where id = 3
-- by hand
select year(moment), hour(moment) from parity where id = 3
--- todatetime of a timestamp
select todatetime(moment, 'yyyy-MM-dd') from parity where id = 3
-- by hand
select strftime(moment, '%Y-%m-%d') from parity where id = 3
--- todatetime with hours of half days
select todatetime(ts, 'hh:mm:ss a'), todatetime(ts, 'yy/M/d H:m:s') from parity where id in (0, 6) order by id
-- by hand
select strftime(make_timestamp_ms(ts), '%I:%M:%S %p'), strftime(make_timestamp_ms(ts), '%y/%-m/%-d %-H:%-M:%-S') from parity where id in (0, 6) order by id
--- datetrunc in seconds and minutes
select datetrunc('MINUTE', ts), datetrunc('SECOND', ts), datetrunc('HOUR', toepochseconds(ts), 'SECONDS') from parity where id = 3
-- by hand
select ts // 60000 * 60000, ts // 1000 * 1000, ts // 3600000 * 3600 from parity where id = 3
--- weeks at the turn of the year
-- differs: constants
select week(fromdatetime('2021-01-01', 'yyyy-MM-dd')), yearofweek(1609459200000), week(1609718400000) from parity limit 1
-- by hand
select 53, 2020, 1
--- datetimeconvert of weeks of hours
select datetimeconvert(ts, '1:MILLISECONDS:EPOCH', '1:HOURS:EPOCH', '6:HOURS') as h, count(*) from parity group by h order by h
-- by hand
select ts // 21600000 * 6 as h, count(*) from parity group by h order by h
--- datetimeconvert between patterns
select datetimeconvert(ymd, '1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd', '1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd', '1:DAYS') from parity where id = 3
-- by hand
select replace(ymd, '-', '') from parity where id = 3
--- a day in another zone
select datetrunc('DAY', ts, 'MILLISECONDS', 'America/New_York') as t, count(*) from parity group by t order by t
-- by hand
select (ts - 14400000) // 86400000 * 86400000 + 14400000 as t, count(*) from parity group by t order by t
