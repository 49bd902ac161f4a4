import pytest

from hybrid.config.table_config import Half
from hybrid.errors import QueryError
from hybrid.sql.statement import parse_statement
from hybrid.sql.tables import TableMention, resolve_tables

NAMES = ["orders", "lines", "orders_archive"]


def refs(sql: str) -> list[TableMention]:
    return resolve_tables(parse_statement(sql).tree, NAMES)


def test_halves_and_case() -> None:
    found = refs("select * from ORDERS o, orders_realtime, lines_OFFLINE, default.lines")
    assert [(ref.table, ref.half) for ref in found] == [
        ("orders", None), ("orders", Half.REALTIME), ("lines", Half.OFFLINE), ("lines", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("with orders as (select * from orders) select * from orders", ["orders"]),
        ("with a as (select 1) select * from a", []),
        ("with recursive a as (select 1 union all select * from a) select * from a", []),
        ("with a as (select 1), b as (select * from A, lines) select * from b", ["lines"]),
        ("select * from (with a as (select 1) select * from a) x, orders", ["orders"]),
        ("select 1 where exists (select 1 from orders union select 1 from lines)", ["orders", "lines"]),
    ],
)
def test_a_cte_hides_a_table_where_it_is_in_scope(sql: str, tables: list[str]) -> None:
    assert [ref.table for ref in refs(sql)] == tables


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("select * from evnts", 190, "Table 'evnts' does not exist."),
        ("select * from order", 190, "Did you mean 'orders'?"),
        ("select $1 from orders", 700, "Parameter '1' has no value."),
        ("select $segmentNam from orders", 710, "Did you mean '$segmentName'?"),
        ("select * from ordrs", 190, "Did you mean 'orders'?"),
        ("select * from ordrs_REALTIME", 190, "Did you mean 'orders_REALTIME'?"),
        ("select * from (with c as (select 1) select * from c) x, c", 190, "Table 'c'"),
        ("select * from 'x.parquet'", 190, "'x.parquet'"),
        ('select * from "x.csv"', 190, "'x.csv'"),
        ("select * from information_schema.tables", 190, "'information_schema.tables'"),
        ("select * from a.b.orders", 190, "'a.b.orders'"),
        ("select * from read_csv('x')", 150, "is a function"),
        ("select * from glob(3)", 150, "is a function"),
        ("select * from orders _hy_rel_1", 150, "reserved"),
        ("with _hy_rel_0 as (select 1) select * from orders", 150, "reserved"),
    ],
)
def test_what_is_no_table(sql: str, code: int, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        refs(sql)
    assert raised.value.pinot_code == code
    assert message in str(raised.value)


def test_virtual_columns_belong_to_the_nearest_select_that_fits() -> None:
    found = refs(
        "select o.$SEGMENTNAME from orders o join lines l on o.a = l.a "
        "where exists (select 1 from orders_archive where $offset = 1 and l.$partition = 2)"
    )
    assert {ref.table: ref.virtual for ref in found} == {
        "orders": {"$segmentName"}, "lines": {"$partition"}, "orders_archive": {"$offset"},
    }  # fmt: skip
