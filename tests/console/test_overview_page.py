"""The overview and the timeline in Chromium, over a live server with data arriving."""

from __future__ import annotations

import json

import pytest

from tests.console.browser import HOSTILE, PHONE, LiveConsole, axe_violations, check_accessibility

pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def orders(console: LiveConsole) -> str:
    """The recipe's table; nothing has moved yet."""
    return console.create_orders("overview_orders")


def test_the_overview_follows_what_arrives(console: LiveConsole, orders: str) -> None:
    """A card for the table; more rows appear without a reload; an unchanged page is not sent again."""
    with console.page("/") as page:
        card = page.locator(f"[data-testid=table-card][data-table={orders}]")
        card.wait_for()
        lines = [
            json.dumps({"order_id": 100 + n, "order_status": text, "ts": "1632463351000"}).encode()
            for n, text in enumerate(HOSTILE)
        ]
        console.produce(orders, lines)
        card.get_by_text("19", exact=True).wait_for(timeout=30_000)
        statuses: list[int] = []
        page.on("response", lambda response: statuses.append(response.status))
        page.wait_for_timeout(6000)
        assert statuses.count(304) > statuses.count(200), statuses
        card.get_by_role("link", name=orders).first.click()
        page.locator("[data-testid=timeline][data-ready]").wait_for()


def test_a_hidden_page_asks_for_nothing(console: LiveConsole, orders: str) -> None:
    with console.page("/") as page:
        page.locator("[data-testid=table-card]").first.wait_for()
        page.evaluate("Object.defineProperty(document, 'visibilityState', {value: 'hidden'})")
        page.wait_for_timeout(500)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.wait_for_timeout(4000)
        assert asked == []


def test_the_timeline_is_moved_by_clicks_and_keys(console: LiveConsole, orders: str) -> None:
    """Move a bucket; the boundary appears; hover, select, zoom and pan; the range leads to a backfill."""
    with console.page(f"/ui/tables/{orders}") as page:
        page.locator("[data-testid=timeline][data-ready]").wait_for()
        assert page.locator("[data-testid=lane-realtime]").count() == 1
        page.locator("summary", has_text="Move").click()
        page.get_by_test_id("move").click()
        page.locator("[data-testid=bucket]").first.wait_for(timeout=60_000)
        assert page.locator("[data-testid=boundary]").count() == 1
        bucket = page.locator("[data-testid=bucket][data-state=present]").first
        bucket.hover()
        tip = page.locator("[data-part=tip]")
        tip.wait_for()
        assert "Rows" in tip.inner_text() and orders in tip.inner_text()
        bucket.click()
        link = page.get_by_test_id("select-backfill")
        href = link.get_attribute("href")
        assert href is not None and href.startswith(
            f"/ui/tables/{orders}/backfills?start=2021-09-24T06%3A00%3A00Z&end="
        )

        stage = page.locator("[data-part=stage]")
        stage.press("Escape")
        assert link.is_hidden()
        stage.press("ArrowRight")
        assert "Rows" in page.locator("[data-part=said]").inner_text()
        stage.press("Enter")
        assert link.is_visible() and link.get_attribute("href") == href
        window = page.locator("[data-part=window]").inner_text()
        stage.press("+")
        page.wait_for_function(
            "before => document.querySelector('[data-part=window]').textContent !== before", arg=window
        )
        page.wait_for_url(lambda url: "?start=" in url)
        stage.press("0")
        page.wait_for_url(lambda url: url.endswith(f"/ui/tables/{orders}"))
        page.get_by_text("The same as a table").click()
        assert page.locator("[data-part=rows] tbody tr").count() >= 2


def test_each_partition_has_its_tail(console: LiveConsole) -> None:
    """What a paused table does not commit, for each partition, by mouse and keys; it goes when it is committed."""
    name = console.create_orders("tail_orders", partitions=2)
    place = f"/ui/tables/{name}/ingestion.json"
    console.await_true(lambda: console.ok("GET", place)["totals"]["lag"] == 0, "all is committed")
    console.ok("POST", "/verbs/pause", {"table": name})
    lines = [json.dumps({"order_id": number, "ts": "1632463351000"}).encode() for number in range(60)]
    console.produce(name, lines)
    with console.page(f"/ui/tables/{name}") as page:
        tails = page.get_by_test_id("tail")
        tails.nth(1).wait_for(timeout=30_000)
        assert tails.count() == 2 and page.locator(".legend").get_by_text("In Kafka, not committed").count() == 1
        tails.first.hover()
        assert "Messages" in page.locator("[data-part=tip]").inner_text()
        page.locator("[data-part=stage]").press("ArrowRight")
        page.locator("[data-part=stage]").press("End")
        assert "Tail 1. Messages" in page.locator("[data-part=said]").inner_text()
        assert axe_violations(page) == []
        console.ok("POST", "/verbs/resume", {"table": name})
        tails.first.wait_for(state="detached", timeout=60_000)


def test_a_changed_scheme_stays(console: LiveConsole, orders: str) -> None:
    with console.page("/", scheme="light") as page:
        switch = page.get_by_role("button", name="Colour scheme")
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        switch.click()
        switch.click()
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.reload()
        assert light != dark == page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_the_server_may_go_and_come_back(console: LiveConsole, orders: str) -> None:
    """A page whose server does not answer says so, once, and keeps what it shows."""
    with console.page("/", loses_server=True) as page:
        page.locator("[data-testid=table-card]").first.wait_for()
        page.context.route("**/*", lambda route: route.abort())
        page.get_by_text("The server does not answer").wait_for()
        page.context.unroute_all()
        page.get_by_text("The server answers again").wait_for()
        assert page.locator("[data-testid=table-card]").count() >= 1


def test_an_unknown_table_says_what_is_meant(console: LiveConsole, orders: str) -> None:
    with console.page("/ui/tables/overview_order", size=PHONE) as page:
        assert orders in page.get_by_test_id("error").inner_text()


@pytest.mark.parametrize("path", ["/", "/ui/tables/overview_orders", "/ui/tables/none", "/ui/sign-in"])
def test_pages_are_accessible(console: LiveConsole, orders: str, path: str) -> None:
    check_accessibility(console, path)
