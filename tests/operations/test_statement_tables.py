"""The tables that a statement names."""

from __future__ import annotations

import pytest

from hybrid.errors import QueryError
from hybrid.operations.statement_tables import may_name, tables_of_statement

TABLES = ["orders", "customers", "a_b"]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("select 1 from orders", ["orders"]),
        ("select 1 from customers c join Orders_OFFLINE o on c.id = o.id, default.orders", ["customers", "orders"]),
        ("explain plan for select 1 from \"orders\" where x in (select y from a_b)", ["orders", "a_b"]),
        ("with orders as (select 1 from customers) select * from orders", ["customers"]),
        ("select 'orders', orders from customers", ["customers"]),
        ("describe orders_REALTIME", ["orders"]),
        ("show columns from customers", ["customers"]),
        ("select 1", []),
    ],
)  # fmt: skip
def test_tables_of_a_statement(sql: str, names: list[str]) -> None:
    assert list(tables_of_statement(sql, None, TABLES).names) == names
    assert all(may_name(sql, frozenset([name])) for name in names)


def test_options_and_parameters() -> None:
    sql = "select 1 from orders where id = :id option(timeoutMs = 7)"
    assert tables_of_statement(sql, {"id": 1}, TABLES).options == {"timeoutms": "7"}


@pytest.mark.parametrize(
    ("sql", "code"), [("select 1 from nothing, orders", 190), ("select from", 150), ("select :id from orders", 700)]
)
def test_statements_without_an_answer(sql: str, code: int) -> None:
    with pytest.raises(QueryError) as error:
        tables_of_statement(sql, {}, TABLES)
    assert error.value.pinot_code == code


def test_a_statement_without_the_word_is_not_parsed() -> None:
    assert not may_name("select ordersx, my_orders from a where b = 'ORDER'", frozenset(TABLES))
    assert may_name("select 1 from ORDERS_offline", frozenset(TABLES))
