-- The rows of rows.jsonl as Pinot stores them, by hand: a missing value is its column's default.
create table parity as
select
  id,
  coalesce(i, -2147483648)::integer as i,
  coalesce(l, -9223372036854775808)::bigint as l,
  coalesce(f, '-Infinity'::float)::float as f,
  coalesce(d, '-Infinity'::double) as d,
  coalesce(s, 'null') as s,
  coalesce(name, 'null') as name,
  coalesce(b, false) as b,
  make_timestamp_ms(coalesce(moment, 0)) as moment,
  coalesce(doc::varchar, 'null') as doc,
  unhex(coalesce(raw, '')) as raw,
  coalesce(tags, ['null']) as tags,
  coalesce(nums, [-2147483648]::integer[]) as nums,
  coalesce(price, '0')::decimal(38, 18) as price,
  coalesce(qty, 0)::bigint as qty,
  coalesce(amount, 0)::double as amount,
  ts, hr, ymd
from read_json('ROWS', format = 'newline_delimited', columns = {
  id: 'INTEGER', i: 'INTEGER', l: 'BIGINT', f: 'FLOAT', d: 'DOUBLE', s: 'VARCHAR', name: 'VARCHAR', b: 'BOOLEAN',
  moment: 'BIGINT', doc: 'JSON', raw: 'VARCHAR', tags: 'VARCHAR[]', nums: 'INTEGER[]', price: 'VARCHAR',
  qty: 'BIGINT', amount: 'DOUBLE', ts: 'BIGINT', hr: 'INTEGER', ymd: 'VARCHAR'
});
