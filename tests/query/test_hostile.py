"""SQL must not reach files, settings, extensions, other databases or the network. Every line here is refused, and each
of the three fences is tried alone too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hybrid.errors import QueryError
from hybrid.query.connection import locked_connection
from hybrid.query.guard import check_statement
from tests.query.halves import Halves

HOSTILE = """
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
select * from orders; -- ; attach 'FILE'
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
""".strip().splitlines()

# Refused as a whole because a second statement stands in them; a comment behind a semicolon is nothing.
HARMLESS = {"select * from orders; -- ; attach 'FILE'"}


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Halves:
    from tests.query.halves import Row, orders_spec

    built = Halves.create(tmp_path_factory.mktemp("hostile"), orders_spec())
    built.commit_realtime([Row({"order_id": 1, "customer": "a", "amount": 1.0, "ts": 1}, 1, 0)])
    return built


@pytest.mark.parametrize("sql", HOSTILE)
def test_hostile_sql_is_refused(halves: Halves, ask: Callable[..., Any], tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("s3cret\n1\n", encoding="utf-8")
    if sql in HARMLESS:
        assert ask(halves, sql.replace("FILE", str(secret))).rows
        return
    with pytest.raises(QueryError) as raised:
        ask(halves, sql.replace("FILE", str(secret)))
    assert "s3cret" not in str(raised.value)
    assert raised.value.pinot_code in {150, 190, 700, 710}, str(raised.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.csv"]


@pytest.mark.parametrize(
    "sql",
    [
        "select * from orders, read_text('x')",
        "select getenv('HOME') from t",
        "select current_setting('x')",
        "select * from 'x.csv'",
        "select * from other",
        "select * from main.t",
        "select 1; select 2",
        "attach 'x'",
        "copy t to 'x'",
        "select * from t at (version => 1)",
        "select list_transform([1], lambda x: nextval('s'))",
        "select * from (values (1)) v, range(3)",
        "select main.read_text('x') from t",
        "from (show tables)",
        "from (pivot t on a)",
    ],
)
def test_the_guard_alone_refuses(sql: str) -> None:
    with pytest.raises(QueryError):
        check_statement(duckdb.connect(), sql, ["t"])


@pytest.mark.parametrize(
    "sql",
    [
        "select sum(a) filter (where b > 1) over (partition by c) from t x join t y using (a) where a like 'x%'",
        "with a as (select * from t) select * from a union all select * from a order by 1 limit 2",
        "select * from t, unnest(t.tags) u(x) where x in (1, 2) and a between 1 and 2 and b is not null",
        "select case when a then 1 end, a::int, a[1], {'k': 1}, [1, 2], a || b, -a, not a, interval 1 day from t",
        "select extract(year from a), date_trunc('day', a), json_extract_string(a, '$.b'), a ->> 'b', a ~ 'x' from t",
        "select * from (values (1)) v(a), t where exists (select 1 from t) and a > all (select b from t)",
    ],
)
def test_the_guard_lets_plain_reading_pass(sql: str) -> None:
    check_statement(duckdb.connect(), sql, ["t"])


def test_the_connection_alone_reaches_nothing(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "a.csv").write_text("x\n1\n", encoding="utf-8")
    (tmp_path / "secret.csv").write_text("x\n1\n", encoding="utf-8")
    orders = object()  # a Python variable is no table
    connection = locked_connection([tmp_path / "open"])
    assert connection.execute(f"select * from '{tmp_path}/open/a.csv'").fetchall() == [(1,)]
    for sql in (
        f"select * from '{tmp_path}/secret.csv'",
        f"select * from '{tmp_path}/open/../secret.csv'",
        f"copy (select 1) to '{tmp_path}/x.csv'",
        f"attach '{tmp_path}/x.db'",
        "install httpfs",
        "load httpfs",
        "set threads = 1",
        "set enable_external_access = true",
        "reset allowed_directories",
        "select * from orders",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(sql)
    assert orders is not None
    connection.close()
