"""The Query page on the server: its view models, its twin, and its rows without scripts."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import pytest

from hybrid.home.accounts import Accounts, Right
from hybrid.serve.console.query_page import ROWS_WITHOUT_SCRIPTS, AskedStatement, cell_of, table_of, vocabulary
from tests.serve.app import App, lay_orders

PAGE = {"Accept": "text/html"}


def test_the_words_of_the_editor() -> None:
    found = vocabulary()
    assert {"SELECT", "FROM", "QUALIFY"} <= {*found["keywords"]} and "$segmentName" in found["virtual"]
    assert {"count", "datetrunc"} <= {*found["functions"]} and not {"!=", "read_parquet"} & {*found["functions"]}
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in found["functions"])


def test_the_plan_follows_the_statement() -> None:
    asked = AskedStatement("select 1 -- x", "", "it's")
    assert asked.arguments() == {"sql": "select 1 -- x\n;\nSET plan = 'it''s'", "as_of": None}
    assert AskedStatement("select 1", "2021-01-01", "").arguments() == {"sql": "select 1", "as_of": "2021-01-01"}


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, "INT", "NULL"),
        ("NULL", "STRING", "NULL"),
        (1.0, "DOUBLE", "1.0"),
        (9_007_199_254_740_993, "LONG", "9007199254740993"),
        (["a", None], "STRING_ARRAY", '["a", null]'),
        (True, "BOOLEAN", "true"),
        ("x" * 500, "STRING", "x" * 400 + "…"),
    ],
)
def test_a_cell(value: Any, kind: str, text: str) -> None:
    found = cell_of(value, kind)
    assert found["text"] == text and found["is_null"] == (value is None)
    assert found["is_number"] == (kind in {"INT", "DOUBLE", "LONG"})


def test_a_table_shows_the_first_rows() -> None:
    result = {
        "columns": ["a"], "types": ["INT"], "rows": [[number] for number in range(500)], "warnings": ["w"],
        "revision": "r", "source": "files",
    }  # fmt: skip
    found = table_of(result)
    assert len(found["rows"]) == ROWS_WITHOUT_SCRIPTS and found["row_count"] == 500
    assert found["columns"] == [{"name": "a", "type": "int", "is_number": True}]


def address(sql: str, **more: str) -> str:
    """The query of an address."""
    return "&".join(f"{name}={quote(value)}" for name, value in {"sql": sql, **more}.items())


@pytest.mark.slow
def test_the_twin_and_the_page(orders: App) -> None:
    empty = orders.get("/ui/query.json")
    assert empty == {"sql": "", "as_of": "", "plan": "", "result": None}
    found = orders.get(f"/ui/query.json?{address('select order_id from orders order by 1')}")
    assert found["result"]["rows"] == [[1], [2], [3], [4]] and found["result"]["revision"].startswith("orders[")
    earlier = orders.get(f"/ui/query.json?{address('select count(*) from orders', as_of=found['result']['revision'])}")
    assert earlier["result"]["rows"] == [[4]] and earlier["as_of"] == found["result"]["revision"]
    by_header = orders.ok("GET", f"/ui/query?{address('select 1')}", headers={"Accept": "application/json"})
    assert by_header["result"]["rows"] == [[1]]
    status, sentence = orders.refused("GET", f"/ui/query.json?{address('select nope from orders')}")
    assert status == 400 and "'nope' does not exist" in sentence
    assert orders.refused("GET", f"/ui/query.json?{address('select 1 from orders', plan='x')}")[0] == 400

    plain = orders.ok("GET", "/ui/query", headers=PAGE)
    assert 'data-testid="sql-editor"' in plain and 'data-testid="result-table"' not in plain
    filled = orders.ok("GET", f"/ui/query?{address('select 1 </textarea><script>')}", headers=PAGE)
    assert "select 1 &lt;/textarea&gt;&lt;script&gt;" in filled and 'data-testid="result-table"' not in filled


@pytest.mark.slow
def test_the_page_without_scripts(orders: App) -> None:
    sql = "select '<img src=x onerror=alert(1)>' as \"<b>\", order_id, null as n from orders order by 2 limit 2"
    page = orders.ok("GET", f"/ui/query?{address(sql, html='1')}", headers=PAGE)
    assert 'data-testid="result-table"' in page and "<img src=x" not in page and "<b></span>" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page and page.count(">NULL<") == 2
    failed = orders.ok("GET", f"/ui/query?{address('select <nope> from orders', html='1')}", headers=PAGE)
    assert 'data-testid="error"' in failed and "<nope>" not in failed
    islands = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert json.loads(islands[0])["keywords"]


@pytest.mark.slow
def test_read_accounts_query(app: App) -> None:
    lay_orders(app.home)
    _, secret = Accounts(app.home.home).add("reader", Right.READ)
    headers = {"Authorization": f"Bearer {secret}"}
    found = app.ok("GET", f"/ui/query.json?{address('select count(*) from orders')}", headers=headers)
    assert found["result"]["rows"] == [[4]]
    assert 'data-testid="run-query"' in app.ok("GET", "/ui/query", headers={**headers, **PAGE})
    assert app.call("GET", f"/ui/query.json?{address('select 1')}")[0] == 401
