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


def test_a_stream_is_reset_after_its_preview(console: LiveConsole) -> None:
    """By clicks, from the page of ingestion: two messages are read again, and nothing before the name was typed."""
    name = console.create_orders("reset_orders")
    path = f"/ui/tables/{name}/ingestion"
    console.await_true(lambda: console.ok("GET", f"{path}.json")["totals"]["lag"] == 0, "all is committed")
    with console.page(path) as page:
        page.get_by_test_id("pause").click()
        page.get_by_test_id("to-reset").click()
        assert page.get_by_test_id("position").locator("td").all_inner_texts()[1:] == ["14", "0", "14", "0"]
        page.get_by_label("Offsets by partition").fill("0:12")
        assert page.get_by_label("Offsets", exact=True).is_checked()
        page.get_by_test_id("preview-reset").click()
        page.wait_for_url(lambda url: "place=offsets" in url and "offsets=0%3A12" in url)
        assert "2 offsets are read again" in page.get_by_test_id("reset-preview").inner_text()
        assert "12 \N{EN DASH} 13" in page.get_by_test_id("reset-partition").inner_text()
        button = page.get_by_test_id("reset")
        assert button.is_disabled() and page.locator("#plan .note-warn").count() == 0
        page.get_by_test_id("confirm").fill(name)
        button.click()
        page.locator("#done .state-good").wait_for(timeout=DONE_MS)
        page.goto(console.url + path)
        page.get_by_test_id("resume").click()
    count = f"select count(*) from {name}"
    console.await_true(lambda: console.server.rows(count) == [[16]], "two messages are there twice")


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
    check_accessibility(console, f"/ui/tables/{orders}/ingestion/reset?place=earliest")
