"""The pages of ingestion and of tasks in Chromium, over a live server with data arriving."""

from __future__ import annotations

import pytest

from tests.console.browser import HOSTILE, PHONE, LiveConsole, check_accessibility

pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(300)]
DONE_MS = 60_000


@pytest.fixture(scope="module")
def orders(console: LiveConsole) -> str:
    """The recipe's table, whose topic also has messages that nobody can read."""
    name = console.create_orders("ingestion_orders")
    console.produce(name, [text.encode() for text in HOSTILE])
    console.await_true(
        lambda: len(console.ok("POST", "/verbs/rejected", {"table": name})) == len(HOSTILE), "messages are rejected"
    )
    return name


def test_ingestion_is_paused_resumed_and_sealed(console: LiveConsole, orders: str) -> None:
    """By clicks; what was done is followed without a reload, and a rejected row opens by keyboard."""
    with console.page(f"/ui/tables/{orders}/ingestion") as page:
        row = page.get_by_test_id("partition")
        row.wait_for()
        assert page.get_by_test_id("rejected-row").count() == len(HOSTILE)
        page.get_by_label("Why it is paused").fill("new <b>producers</b>")
        page.wait_for_timeout(2500)  # an update of the page leaves what was typed
        page.get_by_test_id("pause").click()
        page.get_by_test_id("resume").wait_for()
        page.locator("#live").get_by_text("is paused (new <b>producers</b>)").wait_for()
        page.get_by_test_id("resume").click()
        page.get_by_test_id("pause").wait_for()
        page.get_by_test_id("seal").click()
        page.locator("#done .state-good").wait_for(timeout=DONE_MS)

        raw = page.get_by_test_id("rejected-row").first.locator("summary")
        raw.focus()
        page.keyboard.press("Enter")
        assert page.locator(".raw pre").first.inner_text() == HOSTILE[0]
        page.get_by_test_id("preview-replay").click()
        page.locator("#replayed").get_by_text("Dry run").wait_for(timeout=DONE_MS)


def test_tasks_are_chosen_and_lead_to_their_run(console: LiveConsole, orders: str) -> None:
    with console.page("/ui/tasks", size=PHONE) as page:
        page.get_by_test_id("task-row").first.wait_for()
        page.get_by_label("Table", exact=True).select_option(orders)
        page.get_by_label("State", exact=True).select_option("DONE")
        page.get_by_test_id("filter").click()
        page.wait_for_url(lambda url: f"table={orders}" in url and "state=DONE" in url)
        assert {row.get_attribute("data-state") for row in page.get_by_test_id("task-row").all()} == {"DONE"}
        page.get_by_test_id("task-row").first.get_by_role("link").first.click()
        page.wait_for_url(lambda url: "/ui/runs/" in url)


def test_pages_are_accessible(console: LiveConsole, orders: str) -> None:
    for path in (f"/ui/tables/{orders}/ingestion", "/ui/tasks"):
        check_accessibility(console, path, lambda page: page.locator("#live").wait_for())
