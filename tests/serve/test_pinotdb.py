"""pinotdb, as it comes: cursors, parameters, SQLAlchemy with reflection, the asynchronous client, errors."""

import asyncio
import re
import time
from collections.abc import Iterator
from typing import Any

import pinotdb
import pytest
import sqlalchemy as sa
from pinotdb.exceptions import DatabaseError

from hybrid.home.accounts import Accounts, Right
from tests.serve.app import App


@pytest.fixture
def cursor(orders: App) -> Iterator[Any]:
    connection = pinotdb.connect(host="127.0.0.1", port=orders.port, path="/query/sql", scheme="http")
    yield connection.cursor()
    connection.close()


@pytest.fixture
def engine(orders: App) -> Iterator[sa.Engine]:
    made = sa.create_engine(
        f"pinot://127.0.0.1:{orders.port}/query/sql?controller={orders.url}/", pool_pre_ping=True
    )  # fmt: skip
    yield made
    made.dispose()


@pytest.mark.slow
def test_a_cursor(cursor: Any) -> None:
    cursor.execute("select order_id, customer, amount from orders where amount > 2 order by order_id")
    assert [one[0] for one in cursor.description] == ["order_id", "customer", "amount"]
    assert cursor.fetchone() == [2, "ada", 3.0]
    assert cursor.fetchmany(1) == [[3, "ada", 4.5]]
    assert cursor.fetchall() == [[4, "ada", 6.0]]
    assert cursor.query_stats["numServersResponded"] == 1


@pytest.mark.slow
def test_parameters(cursor: Any) -> None:
    cursor.execute("select count(*) from orders where customer = %(who)s and order_id in (%(ids)s)",
                   {"who": "ada", "ids": [1, 2, 9]})  # fmt: skip
    assert list(cursor) == [[2]]
    cursor.execute("select count(*) from orders where customer = %(who)s", {"who": "o'hara"})
    assert list(cursor) == [[0]]
    cursor.execute("select count(*) from orders", queryOptions="timeoutMs=5000")
    assert list(cursor) == [[4]]


@pytest.mark.slow
def test_errors(cursor: Any) -> None:
    with pytest.raises(DatabaseError, match="'ordes' does not exist"):
        cursor.execute("select * from ordes")
    with pytest.raises(DatabaseError, match="150"):
        cursor.execute("selec")


@pytest.mark.slow
def test_the_asynchronous_client(orders: App) -> None:
    async def ask() -> list[Any]:
        connection = pinotdb.connect_async(host="127.0.0.1", port=orders.port, path="/query/sql")
        async with connection as cursor:
            await cursor.execute("select max(ts) from orders")
            return list(cursor.fetchall())

    assert [list(row) for row in asyncio.run(ask())] == [[4000]]


@pytest.mark.slow
def test_reflection(engine: sa.Engine) -> None:
    seen = sa.inspect(engine)
    assert seen.get_schema_names() == ["default"] and seen.get_table_names() == ["orders"]
    assert seen.has_table("orders") and not seen.has_table("ordes")
    assert {one["name"] for one in seen.get_columns("orders")} == {"order_id", "customer", "amount", "ts"}
    assert seen.get_pk_constraint("orders")["constrained_columns"] == []


@pytest.mark.slow
def test_statements_by_sqlalchemy(engine: sa.Engine) -> None:
    orders = sa.Table("orders", sa.MetaData(), autoload_with=engine)
    wanted = sa.select(orders.c.customer, sa.func.count().label("orders")).group_by(orders.c.customer)
    with engine.connect() as connection:
        assert connection.execute(wanted).all() == [("ada", 4)]
        some = sa.select(orders.c.order_id).where(orders.c.ts >= 2000).order_by(orders.c.order_id.desc()).limit(2)
        assert connection.execute(some).scalars().all() == [4, 3]
        assert connection.execute(sa.text("select 1")).scalar() == 1


@pytest.mark.slow
def test_ping(engine: sa.Engine) -> None:
    with engine.connect() as first:
        first.execute(sa.text("select count(*) from orders"))
    with engine.connect() as again:  # the pool pings before it hands out the same connection
        assert again.execute(sa.text("select count(*) from orders")).scalar() == 4


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/query/sql", "/query", "/sql"])
def test_refusals_are_shown(orders: App, path: str) -> None:
    def refusal(statement: str, **more: Any) -> str:
        connection = pinotdb.connect(host="127.0.0.1", port=orders.port, path=path, scheme="http", **more)
        with pytest.raises(DatabaseError) as caught:
            connection.cursor().execute(statement)
        connection.close()
        assert "only -1 responded" not in str(caught.value)
        return re.sub(r"['\n]\s+['\n]\s*|\x27\s*\n\s*\x27", "", str(caught.value))[-3000:]

    assert "is longer than 16777216 bytes" in refusal("select '" + "x" * 20_000_000 + "'")  # 413
    assert "1000000" in refusal("select '" + "x" * 2_000_000 + "'")  # 400
    assert "at least" in refusal("")
    accounts = Accounts(orders.home.home)
    _, secret = accounts.add("ada", Right.READ)
    time.sleep(1.1)
    assert "those who name an account" in refusal("select 1")  # 401
    wrong = refusal("select 1", username="ada", password="wrong")
    assert "No account has this secret" in wrong and "180" in wrong
    assert "wrong" not in wrong.replace("select 1", "")
    connection = pinotdb.connect(
        host="127.0.0.1", port=orders.port, path=path, scheme="http", username="ada", password=secret
    )
    connection.cursor().execute("select count(*) from orders")
    connection.close()


@pytest.mark.slow
def test_aggregates_of_big_decimals_are_numbers(cursor: Any, engine: sa.Engine) -> None:
    price = "cast(amount as big_decimal)"
    sql = f"select sum({price}), min({price}), max({price}), avg({price}), distinctsum({price}) from orders"
    cursor.execute(sql)
    assert list(cursor) == [[15.0, 1.5, 6.0, 3.75, 15.0]]
    with engine.connect() as connection:
        assert connection.execute(sa.text(f"select sum({price}) * 2 from orders")).scalar_one() == 30.0
