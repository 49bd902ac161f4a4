"""The orders recipe played in Chromium over a live server with real Kafka: by clicks, and its correction by keyboard.

Only topic and events come from outside, as they do for whoever uses the console.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from hybrid.kafka.topics import create_topic
from tests.console.browser import HOSTILE, LiveConsole
from tests.serve.orders import DATA

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
DONE_MS = 120_000  # a first run of Spark on a busy machine
TABLE = "orders"
FIRST, CORRECTED = ["14", "780.08"], ["14", "888.692"]
AUTHOR, REASON = HOSTILE[1], f"prices were net {HOSTILE[0]}"


def test_from_pasted_files_to_the_corrected_result_and_its_revert(console: LiveConsole) -> None:
    """Create, watch events arrive, query, move, plan, compare, run, query, revert, query: in one browser window."""
    create_topic(console.broker, TABLE)
    with console.page("/") as page:
        page.set_default_timeout(30_000)
        create_by_pasting(page, console.broker)
        watch_events_arrive(page, console)
        assert result_of(page) == FIRST
        move_one_bucket(page)
        plan_by_files(page)
        run_and_follow(page)
        assert result_of(page) == CORRECTED
        take_back(page)
        assert result_of(page) == FIRST


def create_by_pasting(page: Page, broker: str) -> None:
    """The files of Pinot as they are; the brokers in them are of another machine."""
    page.get_by_role("link", name=re.compile("^(New|Create a) table$")).first.click()
    for label, file in (
        ("Schema", "orders_schema.json"),
        ("REALTIME config", "orders_table.json"),
        ("OFFLINE config", "orders_offline_table.json"),
    ):
        page.get_by_label(label, exact=True).fill((DATA / file).read_text())
    page.get_by_label("Brokers").fill(broker)
    page.get_by_test_id("check-table").click()
    page.get_by_test_id("plan-diff").wait_for()
    page.get_by_test_id("create-table").click()
    page.wait_for_url(f"**/ui/tables/{TABLE}")


def watch_events_arrive(page: Page, console: LiveConsole) -> None:
    """On the overview, then on the timeline, neither of which is loaded again."""
    page.get_by_role("link", name="hybrid: overview").click()
    card = page.locator(f"[data-testid=table-card][data-table={TABLE}]")
    card.wait_for()
    console.produce(TABLE, (DATA / "events.jsonl").read_bytes().splitlines())
    card.locator("dd", has_text=re.compile("^14$")).wait_for()
    card.get_by_role("link", name=TABLE, exact=True).click()
    page.locator("[data-testid=timeline][data-ready]").wait_for()
    page.locator("#stored dd").first.wait_for()


def result_of(page: Page) -> list[str]:
    """Rows and amount of all orders, asked on the query page from the table's own."""
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Query").click()
    page.locator("[data-page=query][data-ready]").wait_for()
    page.get_by_test_id("sql-editor").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(f"select count(*), sum(amount) from {TABLE}")
    page.keyboard.press("Control+Enter")
    page.locator('[data-part=outcome][aria-busy="false"]').wait_for()
    cells = page.get_by_test_id("result-table").locator('tr[data-row="0"] td')
    cells.first.wait_for()
    found = cells.all_inner_texts()
    return [found[0], f"{float(found[1]):.6g}"]


def open_table(page: Page) -> None:
    """The timeline, by the menu of tables."""
    page.locator("summary", has_text="Tables").click()
    page.locator(".menu-list").get_by_role("link", name=TABLE, exact=True).click()
    page.locator("[data-testid=timeline][data-ready]").wait_for()


def move_one_bucket(page: Page) -> None:
    """Preview, then move; the bucket and the boundary appear by themselves."""
    open_table(page)
    page.locator("summary", has_text="Move").click()
    page.get_by_test_id("preview-move").click()
    page.locator("#done").get_by_text("Would move 7 rows in 1 bucket").wait_for(timeout=DONE_MS)
    assert page.get_by_test_id("bucket").count() == 0
    page.locator("summary", has_text="Move").click()
    page.get_by_test_id("move").click()
    page.locator("#done").get_by_text("Moved 7 rows in 1 bucket").wait_for(timeout=DONE_MS)
    page.locator("[data-testid=bucket][data-state=present]").wait_for()
    page.get_by_test_id("boundary").wait_for()
    page.locator("#facts").get_by_text("2021-09-24 08:00:00").wait_for()


def plan_by_files(page: Page) -> None:
    """The bucket on the timeline leads to the form; the corrected file of the recipe is the change."""
    page.locator("[data-testid=bucket][data-state=present]").click()
    page.get_by_test_id("select-backfill").click()
    page.wait_for_url("**/backfills?**")
    assert page.get_by_label("From", exact=True).input_value() == "2021-09-24T06:00:00Z"
    page.get_by_text("Rows of a statement, files").click()
    page.get_by_label("Files").set_input_files(DATA / "corrected" / "orders.json")
    page.get_by_label("Reason").fill(REASON)
    page.get_by_label("Your name").fill(AUTHOR)
    page.get_by_test_id("plan-backfill").click()
    page.wait_for_url(re.compile("/backfills/backfill-"), timeout=DONE_MS)
    assert page.get_by_role("heading", level=1).inner_text() == "rows of orders.json"
    numbers = page.get_by_test_id("bucket").locator("td.num").all_inner_texts()
    assert numbers == ["7", "7", "+7", "\N{MINUS SIGN}7", "0"]
    page.locator("#result .differences").wait_for()
    before, after = (float(page.locator(f"#result {tag}").inner_text()) for tag in ("del", "ins"))
    assert (f"{before:.6g}", f"{after:.6g}") == (FIRST[1], CORRECTED[1])


def run_and_follow(page: Page) -> None:
    """From the plan to its end, without loading the page again; the bucket leads to its run."""
    page.get_by_test_id("run-backfill").click()
    page.locator("#work[data-state=DONE]").wait_for(timeout=DONE_MS)
    page.locator("[data-testid=bucket] .state-good").wait_for()
    assert page.get_by_test_id("bucket").get_by_role("link", name="Run").count() == 1
    page.locator("#trail q").first.wait_for()
    trail = page.locator("#trail").inner_text()
    assert REASON in trail and AUTHOR in trail


def take_back(page: Page) -> None:
    """The correction on the timeline leads to its backfill, whose revert is confirmed by typing."""
    open_table(page)
    page.locator("[data-testid=bucket][data-state=corrected]").wait_for()
    page.locator("#facts").get_by_role("link", name=re.compile("^backfill-")).click()
    page.get_by_test_id("confirm").fill(TABLE[:-1])
    assert page.get_by_test_id("revert").is_disabled()
    page.get_by_test_id("confirm").press("End")
    page.keyboard.type(TABLE[-1])
    page.get_by_test_id("revert").click()
    page.locator("#work[data-state=REVERTED]").wait_for(timeout=DONE_MS)
    page.locator("#result .state-good").get_by_text("Equal").wait_for()


def test_a_backfill_by_keyboard_only(console: LiveConsole) -> None:
    """From a range of the timeline to its revert, and everything on the way."""
    table = console.create_orders("by_keyboard")
    console.move_all(table)

    def total() -> list[float]:
        (row,) = console.server.rows(f"select count(*), sum(amount) from {table}")
        return [row[0], round(row[1], 3)]

    before = total()
    window = "start=2021-09-24T06:00:00Z&end=2021-09-24T07:00:00Z"
    with console.page(f"/ui/tables/{table}/backfills?{window}") as page:
        page.set_default_timeout(30_000)
        fill_by_keyboard(
            page,
            {
                "Update": "amount = amount + 1",
                "Where": "order_id = 1",
                "Reason": f"net {HOSTILE[0]}",
                "Your name": "Eve",
            },
        )
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(f"/ui/tables/{table}/backfills/backfill-"), timeout=DONE_MS)
        page.get_by_test_id("plan-diff").wait_for()
        page.locator(".result-said").get_by_text("1 changed").wait_for()
        row = page.locator("#result tbody tr").inner_text()
        assert f"{before[1]:.6g}" in row and f"{before[1] + 1:.6g}" in row and "+1 (" in row, row
        assert page.locator("#samples-heading").is_visible()
        assert "13.29 → 14.29" in page.locator(".differences").last.inner_text()
        assert page.get_by_test_id("bucket").first.locator("td").last.inner_text().startswith("○ Waiting")
        assert total() == before

        tab_to(page, "run-backfill")
        page.keyboard.press("Enter")
        page.locator("#work[data-state=DONE]").wait_for(timeout=DONE_MS)
        assert total() == [before[0], before[1] + 1]
        page.locator("[data-testid=bucket] .state-good").first.wait_for()
        run = page.get_by_test_id("bucket").first.get_by_role("link", name="Run").get_attribute("href")
        assert run is not None and run.startswith("/ui/runs/")
        focus = "document.activeElement.closest('#work') !== null || document.activeElement === document.body"
        assert page.evaluate(focus)

        tab_to(page, "confirm", 80)
        page.keyboard.type(table[:-1])
        assert page.get_by_test_id("revert").is_disabled()
        page.keyboard.type(table[-1])
        tab_to(page, "revert")
        page.keyboard.press("Enter")
        page.locator("#work[data-state=REVERTED]").wait_for(timeout=DONE_MS)
        page.locator("#result .state-good").get_by_text("Equal").wait_for()
        trail = page.locator("#trail").inner_text()
        assert "Revert" in trail and HOSTILE[0] in trail and "Eve" in trail
        assert page.evaluate("window.hacked") is None
    assert total() == before


def fill_by_keyboard(page: Page, fields: Mapping[str, str]) -> None:
    """Fields of a form, by their labels and in their order."""
    for label, text in fields.items():
        tab_to(page, label)
        page.keyboard.type(text)


def tab_to(page: Page, name: str, keys_max: int = 60) -> None:
    """Press Tab until an element has the focus whose label, text or test id is `name`."""
    for _ in range(keys_max):
        page.keyboard.press("Tab")
        found = page.evaluate(
            "() => { const e = document.activeElement;"
            " return [e.dataset.testid, e.labels?.[0]?.textContent.trim(), e.textContent.trim()]; }"
        )
        if name in found:
            return
    raise AssertionError(f"Tab does not reach {name}")
