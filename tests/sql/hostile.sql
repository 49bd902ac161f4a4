--- what was tried first
select * from 'FILE'
select * from "FILE"
select * from read_csv('FILE')
select * from read_text('FILE')
select * from read_blob('FILE')
select * from read_parquet('FILE')
select * from parquet_scan('FILE')
select * from parquet_metadata('FILE')
select * from read_json_auto('FILE')
select * from glob('/etc/*')
select * from sniff_csv('FILE')
select * from orders, lateral (select * from read_text('FILE')) x
select * from orders, read_text('FILE')
select (select content from read_text('FILE'))
select * from (select * from read_text('FILE')) x
with a as (select * from read_text('FILE')) select * from a
with a as materialized (from read_text('FILE')) select * from a
select * from orders union all select * from read_text('FILE')
from read_text('FILE')
from 'FILE'
select read_text('FILE')
select * from query('select 1')
select * from query_table('orders')
select * from json_execute_serialized_sql('x')
select json_execute_serialized_sql('x')
select json_serialize_sql('select 1')
select current_setting('temp_directory')
select getenv('HOME')
select getvariable('x')
select nextval('x')
select currval('x')
select setseed(1)
select write_log('x')
select sleep_ms(100000)
select pg_sleep(1000)
select current_query()
select current_user
select current_schemas(true)
select version()
select current_database()
select * from duckdb_settings()
select * from duckdb_secrets()
select * from duckdb_functions()
select * from pragma_version()
select * from pragma_table_info('orders')
select * from duckdb_tables
select * from pg_catalog.pg_tables
select * from information_schema.tables
select * from sqlite_master
select * from memory.main.orders
select * from temp.orders
select * from main._hy_rel_0
select * from _hy_rel_0
select * from orders where 1 in (select 1 from _hy_tail_0)
attach 'FILE' as x
attach 'FILE'
detach memory
copy orders to 'FILE'
copy (select 1) to 'FILE'
export database '/tmp/x'
import database '/tmp/x'
install httpfs
load httpfs
load 'FILE'
set threads = 1
pragma version
pragma database_list
call pragma_version()
create table x as select 1
create view x as select 1
create secret (type s3)
create macro f() as 1
insert into orders values (1)
insert into orders select * from orders
update orders set amount = 1
delete from orders
drop table orders
alter table orders add column x int
truncate orders
vacuum
checkpoint
begin transaction
use memory
describe orders
summarize orders
show tables
prepare p as select 1
execute p
explain analyze select 1
select 1; select 2
select 1; drop table orders
set a = 1; attach 'FILE'
select 1 into x
select * into x from orders
select /* ; */ 1; /* */ copy (select 1) to 'FILE'
select $1
select ?
select :name
select @x
select #1
select columns('.*')  from read_text('FILE')
pivot orders on customer
select * from orders pivot (sum(amount) for customer in ('a'))
unpivot orders on amount into name n value v
with a as (insert into orders values (1) returning *) select * from a
with a as (delete from orders returning *) select * from a
select * from orders at (version => 1)
select * from (describe orders)
select * from (summarize orders)
select * from (show tables)
select * from (pragma version)
select * from (copy orders to 'FILE')
select * from main.read_text('FILE')
select main.read_text('FILE')
select system.main.current_setting('temp_directory')
select 'FILE'.read_text()
select [x for x in read_text('FILE')]
select list_transform([1], x -> getenv('HOME'))
select list_transform([1], lambda x: getenv('HOME'))
select orders.read_text('FILE') from orders
select _hy_offset from orders
select _hy_raw from orders_REALTIME
select "_hy_segment" from orders
values (1)
table orders
--- files by other names
select * from read_ndjson('FILE')
select * from read_ndjson_auto('FILE')
select * from read_json('FILE')
select * from read_json_objects('FILE')
select * from read_csv_auto('FILE')
select * from read_xlsx('FILE')
select * from delta_scan('FILE')
select * from iceberg_scan('FILE')
select * from sqlite_scan('FILE', 'x')
select * from postgres_scan('host=x', 'y', 'z')
select * from mysql_scan('host=x', 'y', 'z')
select * from st_read('FILE')
select * from arrow_scan(1, 2, 3)
select * from pandas_scan(1)
select * from python_map_function(1)
select * from parquet_schema('FILE')
select * from parquet_kv_metadata('FILE')
select * from parquet_file_metadata('FILE')
select * from parquet_bloom_probe('FILE', 'x', 1)
select * from read_duckdb('FILE')
select * from "READ_TEXT"('FILE')
select * from "read_text" ('FILE') as x(a)
select * from/**/read_text/**/('FILE')
SELECT * FROM ReAd_TeXt('FILE')
select * from read_text(['FILE'])
select * from read_text('FILE') limit 1 offset 0
select * from read_csv('FILE', header = true, delim = ',')
select * from 'file://FILE'
select * from "file://FILE"
select * from 'https://example.com/x.parquet'
select * from 's3://bucket/x.parquet'
select * from 'FILE' as t
select * from FILE
select * from orders join 'FILE' on true
select * from orders left join read_text('FILE') t on t.size = orders.order_id
select * from orders cross join 'FILE'
select * from orders, 'FILE'
select * from orders natural join 'FILE'
select * from orders asof join 'FILE' x on orders.ts >= x.ts
select * from orders positional join 'FILE'
select * from orders semi join 'FILE' x on true
select * from orders anti join 'FILE' x on true
--- files from inside of a statement
select * from orders where order_id in (select size from read_text('FILE'))
select * from orders where exists (from read_text('FILE'))
select case when true then (select content from read_text('FILE')) end from orders
select sum(amount) filter (where (select true from read_text('FILE'))) from orders
select row_number() over (order by (select content from read_text('FILE'))) from orders
select * from orders order by (select content from read_text('FILE'))
select * from orders limit (select size from read_text('FILE'))
select * from orders offset (select size from read_text('FILE'))
select count(*) from orders group by (select content from read_text('FILE'))
select count(*) from orders having (select true from read_text('FILE'))
select * from orders qualify (select true from read_text('FILE'))
select * from (values ((select content from read_text('FILE')))) v(a)
select * from orders where amount > any (select size from read_text('FILE'))
select array(select content from read_text('FILE'))
select [(select content from read_text('FILE'))]
select {'a': (select content from read_text('FILE'))}
select coalesce(null, (select content from read_text('FILE')))
select * from unnest((select list(content) from read_text('FILE')))
select * from orders tablesample (select 1 from read_text('FILE'))
with recursive a as (select 1 x union all select size from read_text('FILE')) select * from a
with a(x) as (from read_text('FILE')), b as (from a) from b
with orders as (from read_text('FILE')) select * from orders
select * from orders union (from read_text('FILE'))
select * from orders intersect select * from 'FILE'
select * from orders except select * from 'FILE'
select * from (from 'FILE')
select * from (select * from (select * from (select * from read_blob('FILE'))))
(select * from read_text('FILE'))
((from 'FILE'))
explain plan for select * from read_text('FILE')
explain plan for drop table orders
set timeoutMs = 100; select * from read_text('FILE')
select * from read_text('FILE') option(timeoutMs=100)
select * from orders where customer like (select content from read_text('FILE'))
select list_transform(['FILE'], x -> (select content from read_text(x)))
select try(read_text('FILE'))
select (from read_text('FILE') select content)
--- functions that reach out
select getenv('PATH') from orders
select GETENV('PATH')
select "getenv"('PATH')
select system.getenv('PATH')
select pg_catalog.current_setting('threads')
select current_setting('allowed_directories')
select set_config('threads', '1')
select txid_current()
select pg_backend_pid()
select in_search_path('memory', 'main')
select current_schema()
select session_user
select has_table_privilege('orders', 'select')
select pg_get_viewdef(1)
select pg_typeof(1)
select current_connection_id()
select current_transaction_id()
select json_deserialize_sql('{}')
select json_serialize_plan('select 1')
select sql_auto_complete('sel')
select * from sql_auto_complete('sel')
select * from duckdb_extensions()
select * from duckdb_databases()
select * from duckdb_logs
select * from duckdb_logs()
select * from duckdb_temporary_files()
select * from duckdb_memory()
select * from duckdb_variables()
select * from duckdb_secret_types()
select * from duckdb_keywords()
select * from pragma_storage_info('orders')
select * from pragma_database_size()
select * from pragma_user_agent()
select * from which_secret('s3://x', 's3')
select * from checkpoint()
select * from force_checkpoint()
select * from enable_logging()
select * from enable_profiling()
select * from test_all_types()
select * from repeat_row(1, num_rows = 1000000000)
select * from generate_series(1, 1000000000000)
select * from seq_scan('orders')
select * from summary((select 1))
select * from show_tables
select * from pg_class
select * from main.duckdb_tables
select * from system.information_schema.tables
select icu_sort_key('a', 'b') from orders
select hex(getenv('PATH')) from orders
select upper(current_query()) from orders
select error(1, 2)
select write_log('FILE')
select parse_path('FILE'), getvariable('a')
select range(1000000000)
select generate_series(1, 1000000000)
select list_resize([1], 1000000000)
select bitstring('1', 2000000000)
select printf('%1000000000d', 1)
select format('{:1000000000}', 1)
select printf(customer, 1) from orders
--- statements that act
attach database 'FILE' as x (type sqlite)
attach if not exists 'FILE'
attach or replace 'FILE' as orders
detach database if exists memory
copy orders from 'FILE'
copy (select * from orders) to 'FILE' (format parquet)
copy from database a to b
export database 'FILE' (format csv)
force install httpfs
install 'FILE'
install httpfs from 'http://example.com'
update extensions
set global threads = 1
set session threads = 1
set variable x = 1
set schema = 'x'
set enable_external_access = true
set allowed_directories = ['/']
reset allowed_directories
reset all
pragma enable_profiling
pragma enable_external_access = true
pragma export_database('FILE')
call dbgen(sf = 1)
call force_checkpoint()
create or replace table orders as select 1
create temp table x as select * from orders
create table if not exists x (a int)
create schema x
create type x as enum ('a')
create sequence x
create index x on orders (amount)
create function f(a) as a
create persistent secret x (type s3)
drop view orders
drop schema main cascade
insert or replace into orders values (1)
merge into orders using orders o on false when not matched then insert values (1)
replace into orders values (1)
comment on table orders is 'x'
grant select on orders to x
analyze
commit
rollback
abort
deallocate x
load spatial
do 'x'
import 'FILE'
.shell ls
.read FILE
\copy orders to FILE
select 1 from orders; attach 'FILE'
select 1;;select 2
;;attach 'FILE'
/* select 1 */ attach 'FILE'
-- select 1
with x as (attach 'FILE') select 1
with x as (copy orders to 'FILE') select * from x
with x as (update orders set amount = 1 returning *) select * from x
select * from (attach 'FILE')
select * from (insert into orders values (1) returning *)
select * from (from orders) for update
select * from orders for share
--- names and parameters
select $2 from orders
select $x from orders
select ?1 from orders
select * from orders where order_id = $1
select * from orders where order_id = :a
select * from orders where order_id = @a
select #2 from orders
select * from _hy_rel_1
select * from "_hy_tail_0"
with _hy_tail_0 as (select 1) select * from _hy_tail_0
select * from orders as _hy_rel_0
select x from orders, (select 1 x) _hy_x
select _hy_segment from orders
select _HY_OFFSET from orders
select orders._hy_op from orders
select * replace (_hy_raw as amount) from orders
select columns('_hy.*') from orders
select * from orders where _hy_partition = 0
select * from orders order by _hy_offset
select * from memory.orders
select * from main.main.orders
select * from temp.main.orders
select * from orders at (timestamp => now())
select * from orders version as of 1
select current_catalog
select @@version
