"""The Query page in Chromium: typing, completion, rows, errors, cancel, chart, downloads, history, links, axe."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from tests.console.browser import axe_violations
from tests.console.browsing import Browsing
from tests.serve.app import App, orders_app
from tests.serve.test_queries import SLOW

pytestmark = [pytest.mark.browser, pytest.mark.slow]
MANY = """with recursive t(n) as (select 0 union all select n + 1 from t where n < 99),
u as (select 100 * a.n + b.n + 1 as n from t a, t b)
select n, n * 1.5 as half, case when n % 3 = 0 then null else concat('row ', n) end as word
from u order by n limit 20000"""
EVIL = '<img src=x onerror="window.hacked=1">'


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """One application for all tests: statements change nothing, and the browser knows its scripts."""
    with closing(orders_app(tmp_path_factory.mktemp("query"))) as made:
        yield made


@pytest.fixture
def query(orders: App, browsing: Browsing) -> Any:
    """The Query page over a home with the table orders."""
    page = browsing.open(f"{orders.url}/ui/query")
    ready(page)
    return page


def ready(page: Any) -> None:
    """Wait until the page's script has built the editor."""
    page.locator("[data-page=query][data-ready]").wait_for(timeout=20_000)


def run(page: Any, sql: str) -> None:
    """Replace the text of the editor, and run it."""
    page.get_by_test_id("sql-editor").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(sql)
    page.get_by_test_id("run-query").click()
    page.locator('[data-part=outcome][aria-busy="false"]').wait_for(timeout=20_000)


def cells(page: Any) -> list[list[str]]:
    """The values of the rows in the document."""
    rows: list[list[str]] = page.eval_on_selector_all(
        "[data-testid=result-table] tr[data-row]",
        "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent))",
    )
    return rows


def test_typing_completion_rows_and_the_link(query: Any, orders: App, browsing: Browsing) -> None:
    editor = query.get_by_test_id("sql-editor")
    editor.click()
    query.keyboard.type("select cus")
    query.locator(".cm-tooltip-autocomplete").get_by_text("customer", exact=True).wait_for()
    query.keyboard.press("Tab")  # at once, before a completion may be taken by accident
    query.locator(".cm-tooltip-autocomplete").wait_for(state="detached")
    query.keyboard.type(", order_id, null as n, amount from ord")
    query.locator(".cm-tooltip-autocomplete").get_by_text("orders_OFFLINE").wait_for()
    query.keyboard.press("Tab")
    query.locator(".cm-tooltip-autocomplete").wait_for(state="detached")
    query.keyboard.type(" order by 2")
    query.keyboard.press("Escape")
    query.keyboard.press("Control+Enter")
    query.get_by_test_id("result-table").wait_for()
    assert cells(query) == [["ada", str(number), "NULL", f"{number * 1.5}"] for number in (1, 2, 3, 4)]
    assert query.locator("td.is-number").count() == 8 and query.locator("td.is-null").count() == 4
    assert query.locator("[data-part=revision]").inner_text().startswith("orders[OFFLINE=")
    assert "2 of 3 segments" in query.locator("[data-part=read]").inner_text()
    assert query.locator(".sql-keyword").all_inner_texts()[:1] == ["select"]

    link = query.url
    assert "select+customer%2C+order_id" in link
    other = browsing.open(link)
    other.get_by_test_id("result-table").wait_for(timeout=20_000)
    assert len(cells(other)) == 4
    query.reload()
    query.get_by_test_id("result-table").wait_for(timeout=20_000)
    assert query.locator("[role=tab].query-tab").count() == 1

    query.locator("[data-part=history]").click()
    assert "4 rows" in query.locator("[data-part=history-list]").inner_text()
    query.locator("[data-part=history-filter]").fill("no such statement")
    query.locator("[data-part=history-empty]").wait_for()
    query.locator("[data-part=history-clear]").click()
    query.keyboard.press("Escape")


def test_the_statement_under_the_cursor_tabs_and_time_travel(query: Any) -> None:
    query.get_by_test_id("sql-editor").fill("select 1 as one;\nselect 2 as two;\n")
    query.keyboard.press("Control+Home")
    query.keyboard.press("Control+Enter")
    query.get_by_role("columnheader", name="one").wait_for()
    query.keyboard.press("ArrowDown")
    query.keyboard.press("Control+Enter")
    query.get_by_role("columnheader", name="two").wait_for()

    query.get_by_label("New tab").click()
    run(query, "select count(*) from orders")
    query.locator("[data-part=pin]").click()
    assert query.get_by_label("As of").input_value().startswith("orders[")
    run(query, "select count(*) from orders")
    assert cells(query) == [["4"]] and "as_of=orders" in query.url
    query.locator("[data-part=plan]").fill("nope")
    run(query, "select count(*) from orders")
    assert "no backfill plan 'nope'" in query.get_by_test_id("error").inner_text()

    query.locator(".query-tab").nth(0).click()
    assert (
        query.get_by_label("As of").input_value() == ""
        and "select 2" in query.get_by_test_id("sql-editor").inner_text()
    )
    query.get_by_test_id("sql-editor").click()
    query.keyboard.press("Control+z")
    assert "count" not in query.get_by_test_id("sql-editor").inner_text()
    query.get_by_label("Close this tab").click()
    assert query.locator(".query-tab").count() == 1
    query.reload()
    ready(query)
    assert query.locator("[data-part=plan]").input_value() == "nope"


def test_errors_are_marked_in_the_editor(query: Any) -> None:
    run(query, "select 'é😀', nope\nfrom orders")
    assert "'nope'" in query.get_by_test_id("error").inner_text()
    assert query.locator(".sql-error").inner_text() == "nope"
    run(query, "select order_id\nfrom orders wher order_id = 1 1")
    assert "line 2, column" in query.get_by_test_id("error").inner_text()
    assert query.locator(".sql-error").count() == 1
    query.get_by_test_id("sql-editor").press("End")
    query.keyboard.type(" ")
    assert query.locator(".sql-error").count() == 0
    run(query, "select 1")
    assert query.get_by_test_id("error").count() == 0
    run(query, "  ")
    assert "no statement" in query.get_by_test_id("error").inner_text()


def test_a_long_statement_is_cancelled(query: Any, orders: App) -> None:
    query.get_by_test_id("sql-editor").fill(SLOW)
    query.keyboard.press("Control+Enter")
    query.locator("[data-part=elapsed]", has_text=re.compile(r"[1-9]\d\d ms|\d s$")).wait_for()
    query.get_by_role("button", name="Cancel").click()
    query.get_by_text(re.compile("Cancelled after")).wait_for(timeout=10_000)
    until = time.monotonic() + 10
    while orders.app.state.context.queries._running and time.monotonic() < until:
        time.sleep(0.05)
    assert orders.app.state.context.queries._running == {}
    run(query, "select 1 as fine")
    assert cells(query) == [["1"]]


def test_ten_thousand_rows_scroll(query: Any) -> None:
    run(query, MANY)
    assert query.locator("[data-part=rows]").inner_text() == "10,000 rows"
    assert query.locator("tr[data-row]").count() < 100
    query.locator("td", has_text="row 1").first.click()
    assert query.locator("[data-part=cell-text]").inner_text() == "row 1"
    query.keyboard.press("Control+End")
    query.locator("tr[data-row='9999']").wait_for()
    assert cells(query)[-1] == ["10000", "15000.0", "row 10000"]
    query.keyboard.press("ArrowUp")
    assert query.locator("[data-part=cell-text]").inner_text() == "NULL"
    query.keyboard.press("ArrowUp")
    query.keyboard.press("Control+c")
    query.locator(".toast").first.wait_for()
    assert query.evaluate("navigator.clipboard.readText()") == "row 9998"
    slowest = query.evaluate(
        """async () => {
          const scroller = document.querySelector(".grid-scroller"), gaps = [];
          let last = performance.now();
          for (let step = 0; step < 60; step++) {
            scroller.scrollTop = step * 4001;
            await new Promise(requestAnimationFrame);
            const now = performance.now();
            gaps.push(now - last);
            last = now;
          }
          return gaps.sort((one, other) => one - other)[30];
        }"""
    )
    assert slowest < 100  # a median frame, on a busy machine
    run(query, "with recursive t(n) as (select 1 union all select n + 1 from t where n < 50) select n from t")
    assert "Only the first 10" in query.locator("[data-part=warnings]").inner_text()
    query.locator("[data-part=more]").click()
    query.locator("[data-part=rows]", has_text="50 rows").wait_for()


def test_the_chart_keeps_its_settings(query: Any) -> None:
    sql = "select customer, order_id, amount, ts from orders order by order_id"
    run(query, sql)
    query.get_by_role("tab", name="Chart").click()
    query.locator(".query-chart canvas").wait_for()
    assert (
        query.get_by_label("Kind").input_value() == "bar" and query.get_by_label("Across").input_value() == "customer"
    )
    query.get_by_label("Kind").select_option("line")
    query.get_by_label("Across").select_option("order_id")
    query.get_by_label("order_id", exact=True).uncheck()
    run(query, sql)
    query.locator(".query-chart canvas").wait_for()
    assert (
        query.get_by_label("Kind").input_value() == "line" and query.get_by_label("Across").input_value() == "order_id"
    )
    assert query.locator(".query-chart").get_attribute("aria-label") == "line chart of amount by order_id"
    query.reload()
    query.locator(".query-chart canvas").wait_for(timeout=20_000)
    assert query.locator(".query-chart").get_attribute("aria-label") == "line chart of amount by order_id"
    run(query, "select customer from orders")
    assert "needs a column of numbers" in query.locator("[data-part=chart]").inner_text()


def test_the_plan_shows_what_was_read(query: Any) -> None:
    run(query, "select count(*) from orders where amount > 1.2")
    query.get_by_role("tab", name="Plan").click()
    query.locator("svg.plan-drawing").wait_for()
    assert query.locator(".plan-read").count() >= 1 and query.locator(".plan-pruned").count() >= 1
    assert query.locator(".plan-boundary").count() == 1
    text = query.locator("[data-part=plan-drawing]").inner_text()
    assert "Boundary" in text and "1970-01-01T00:00:02.001Z" in text and "pruned" in text


def test_downloads_and_copies(query: Any, orders: App) -> None:
    run(query, "select order_id, customer from orders order by 1")
    for name, check in (("CSV", _is_csv), ("Parquet", _is_parquet)):
        query.locator("summary", has_text="Download").click()
        with query.expect_download() as caught:
            query.get_by_role("link", name=name, exact=True).click()
        check(Path(caught.value.path()).read_bytes())
    run(query, f"select order_id, customer from orders where customer <> '{'x' * 9000}' order by 1")
    query.locator("summary", has_text="Download").click()
    with query.expect_download() as caught:
        query.get_by_role("link", name="CSV", exact=True).click()
    _is_csv(Path(caught.value.path()).read_bytes())
    assert query.url.endswith("/ui/query")  # too long for a link
    query.locator("summary", has_text="Copy as").click()
    query.get_by_role("button", name="curl").click()
    copied = query.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("curl -sS ") and f"{orders.url}/query/sql" in copied


def _is_csv(content: bytes) -> None:
    assert content.decode().splitlines() == ["order_id,customer", "1,ada", "2,ada", "3,ada", "4,ada"]


def _is_parquet(content: bytes) -> None:
    assert pq.read_table(io.BytesIO(content)).num_rows == 4


def test_hostile_texts_are_inert(query: Any, orders: App, browsing: Browsing) -> None:
    name = EVIL.replace('"', '""')
    run(query, f"""select '{EVIL}' as "{name}", 1 as n""")
    assert cells(query) == [[EVIL, "1"]]
    query.locator("td", has_text="onerror").click()
    for view in ("Chart", "Plan", "Table"):
        query.get_by_role("tab", name=view, exact=True).click()
    run(query, f'select "{name}" from orders')
    assert "onerror" in query.get_by_test_id("error").inner_text()
    query.locator("[data-part=history]").click()
    query.keyboard.press("Escape")
    linked = browsing.open(
        f"{orders.url}/ui/query?sql={quote('</textarea><script>window.hacked=1</script>')}&as_of={quote(EVIL)}"
    )
    ready(linked)
    for page in (query, linked):
        assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 320)])
def test_axe_finds_nothing(orders: App, browsing: Browsing, scheme: str, width: int) -> None:
    page = browsing.open(f"{orders.url}/ui/query", scheme=scheme, width=width, for_axe=True)
    ready(page)
    assert axe_violations(page) == []
    run(page, "select customer, order_id, null as n, amount from orders;\nselect 1")
    page.keyboard.press("Tab")
    for view in ("Table", "Chart", "Plan"):
        page.get_by_role("tab", name=view, exact=True).click()
        page.wait_for_timeout(300)
        assert axe_violations(page) == [], view
    run(page, "select nope from orders")
    page.locator("[data-part=history]").click()
    assert axe_violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_without_scripts(orders: App, browsing: Browsing) -> None:
    page = browsing.open(f"{orders.url}/ui/query", scripts=False)
    page.get_by_test_id("sql-editor").fill("select order_id from orders order by 1")
    page.get_by_test_id("run-query").click()
    values = page.get_by_test_id("result-table").locator("td")
    values.first.wait_for()
    assert values.all_inner_texts() == ["1", "2", "3", "4"]
