"""The page of segments in Chromium, over a live server with data arriving."""

from __future__ import annotations

import pytest

from tests.console.browser import DATA, PHONE, LiveConsole, check_accessibility

pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def orders(console: LiveConsole) -> str:
    """The recipe's table, of which two segments are sealed and one is consuming."""
    return console.create_orders("segments_orders")


def test_segments_are_chosen_by_half_and_state(console: LiveConsole, orders: str) -> None:
    """By clicks and by keyboard, from a page that has waited for the first commit; the choice is in the address."""
    with console.page(f"/ui/tables/{orders}") as page:
        page.get_by_role("navigation", name=orders).get_by_role("link", name="Segments").click()
        rows = page.get_by_test_id("segment-row")
        rows.first.wait_for()
        _await_segments(console, orders, 3)
        page.reload()
        assert rows.count() == 3 and "3 of 3, with 14 rows" in page.locator(".page-head").inner_text()
        page.get_by_label("State").select_option("CONSUMING")
        page.get_by_test_id("filter").click()
        page.wait_for_url(lambda url: "state=CONSUMING" in url)
        assert rows.count() == 1 and "partition 0, offsets 10 to" in rows.inner_text()
        consuming = rows.locator("td").first.inner_text().split()[0]

        console.produce(orders, (DATA / "events.jsonl").read_bytes().splitlines()[:3])
        _await_segments(console, orders, 4)
        page.reload()
        assert rows.count() == 1 and consuming not in rows.inner_text()

        page.get_by_role("link", name="Show all").press("Enter")
        page.wait_for_url(f"**/ui/tables/{orders}/segments")
        assert rows.count() == 4 and consuming in rows.nth(2).inner_text()
        page.get_by_label("Half").select_option("REALTIME")
        page.get_by_label("State").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "half=REALTIME" in url)
        assert rows.count() == 4


def _await_segments(console: LiveConsole, table: str, count: int) -> None:
    console.await_true(
        lambda: len(console.ok("POST", "/verbs/segments", {"table": table})) == count, f"there are {count} segments"
    )


def test_what_is_not_there_is_said(console: LiveConsole, orders: str) -> None:
    """A choice that nothing matches, and a table that does not exist."""
    with console.page(f"/ui/tables/{orders}/segments?half=OFFLINE", size=PHONE) as page:
        page.get_by_text("No segment matches").wait_for()
        page.get_by_role("link", name="Show all").click()
        page.get_by_test_id("segment-row").first.wait_for()
    with console.page("/ui/tables/segments_order/segments") as page:
        assert orders in page.get_by_test_id("error").inner_text()


def test_the_page_is_accessible(console: LiveConsole, orders: str) -> None:
    for query in ("", "?half=OFFLINE"):
        check_accessibility(console, f"/ui/tables/{orders}/segments{query}")
