"""SHOW TABLES, SHOW COLUMNS and DESCRIBE are answered from the definitions: in Python, by HTTP, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.cli.main import run
from hybrid.errors import NotFoundError, QueryError
from hybrid.operations.catalog_statements import answer_from_definitions
from tests.operations.tables.test_change import given
from tests.serve.app import App, lay_orders

COLUMNS = [("order_id", "INT"), ("customer", "STRING"), ("amount", "FLOAT"), ("ts", "LONG")]


@pytest.fixture
def hy(home: Path) -> Hybrid:
    found = hybrid.connect(home)
    found.create_table(given("INT"))
    return found


@pytest.mark.parametrize("sql", ["SHOW TABLES", "show tables;", "\n Show\tTables ; "])
def test_tables(hy: Hybrid, sql: str) -> None:
    found = hy.query(sql)
    assert (found.column_names, found.rows) == (("table", "halves"), [("orders", "OFFLINE")])


@pytest.mark.parametrize(
    "sql",
    ["DESCRIBE orders", "desc orders;", "describe table orders", 'SHOW COLUMNS FROM "orders"', "show columns in orders",
     "DESCRIBE orders_OFFLINE"],
)  # fmt: skip
def test_columns(hy: Hybrid, sql: str) -> None:
    found = hy.query(sql)
    assert found.column_names == ("column", "type", "role")
    assert sorted(row[:2] for row in found.rows) == sorted(COLUMNS)
    assert {row[0]: row[2] for row in found.rows if row[2]} == {"ts": "time"}


@pytest.mark.parametrize("sql", ["DESCRIBE ordrs", "show columns from ordrs"])
def test_a_table_that_does_not_exist(hy: Hybrid, sql: str) -> None:
    with pytest.raises(QueryError, match=r"Table 'ordrs' does not exist\. Did you mean 'orders'\?") as caught:
        hy.query(sql)
    assert caught.value.pinot_code == 190


@pytest.mark.parametrize(
    "sql",
    ["SELECT 1", "DESCRIBE SELECT * FROM orders", "SHOW TABLES FROM x", "DESCRIBE orders; DROP TABLE orders",
     "SHOW ALL TABLES", 'DESCRIBE "orders" x', "DESCRIBE", f"DESCRIBE {'a' * 2000}"],
)  # fmt: skip
def test_other_statements_are_left_to_the_engine(hy: Hybrid, sql: str) -> None:
    assert answer_from_definitions(hy.context, sql) is None


def test_the_past_is_not_asked(hy: Hybrid) -> None:
    with pytest.raises(QueryError):
        hy.query("SHOW TABLES", as_of="2021-09-24T08:00:00Z")


def test_a_home_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        hybrid.connect(tmp_path / "none").query("SHOW TABLES")


def test_the_command_line(hy: Hybrid, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--home", str(hy.home), "query", "SHOW TABLES", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"table": "orders", "halves": "OFFLINE"}]


def test_http(tmp_path: Path) -> None:
    app = App(tmp_path / "home")
    try:
        lay_orders(app.home)
        shown = app.ok("POST", "/query/sql", {"sql": "show tables"})
        assert shown["resultTable"]["rows"] == [["orders", "REALTIME, OFFLINE"]] and not shown["exceptions"]
        assert len(app.ok("GET", "/query/sql?sql=describe%20orders")["resultTable"]["rows"]) == len(COLUMNS)
        failed = app.ok("POST", "/query/sql", {"sql": "describe ordrs"})
        assert failed["exceptions"][0]["errorCode"] == 190
    finally:
        app.close()
