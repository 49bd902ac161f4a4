"""Overview, timeline, segments, ingestion and tasks in Chromium, over one live server with data arriving."""

from __future__ import annotations

import json

import pytest

from tests.console.browser import HOSTILE, PHONE, LiveConsole, axe_violations, check_accessibility
from tests.serve.orders import DATA

pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(300)]
DONE_MS = 60_000


@pytest.fixture(scope="module")
def orders(console: LiveConsole) -> str:
    """The recipe's table, whose topic also has messages that nobody can read; nothing has moved yet."""
    name = console.create_orders("live_orders")
    console.produce(name, [text.encode() for text in HOSTILE])
    console.await_true(
        lambda: len(console.ok("POST", "/verbs/rejected", {"table": name})) == len(HOSTILE), "messages are rejected"
    )
    return name


@pytest.fixture(scope="module")
def segmented(console: LiveConsole) -> str:
    """The recipe's table, of which two segments are sealed and one is consuming."""
    return console.create_orders("segmented_orders")


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
        for _ in range(3):
            with page.expect_response(lambda response: response.status == 304):
                pass
        assert statuses.count(304) > statuses.count(200), statuses
        card.get_by_role("link", name=orders).first.click()
        page.locator("[data-testid=timeline][data-ready]").wait_for()


def test_a_hidden_page_asks_for_nothing(console: LiveConsole, orders: str) -> None:
    with console.page("/", own_context=True) as page:
        page.locator("[data-testid=table-card]").first.wait_for()
        page.clock.install()
        page.reload()
        page.locator("[data-testid=table-card]").first.wait_for()
        page.evaluate("Object.defineProperty(document, 'visibilityState', {value: 'hidden', configurable: true})")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.clock.run_for(60_000)
        assert asked == []
        page.evaluate("Object.defineProperty(document, 'visibilityState', {value: 'visible'})")
        with page.expect_request("**/*", timeout=10_000):  # it asks when it is seen again
            page.clock.run_for(10_000)


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
        page.locator("[data-part=rows] tbody tr").nth(1).wait_for()  # the list is made by an event behind the click


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
    with console.page("/ui/tables/live_order", size=PHONE) as page:
        assert orders in page.get_by_test_id("error").inner_text()


def test_segments_are_chosen_by_half_and_state(console: LiveConsole, segmented: str) -> None:
    """By clicks and by keyboard, from a page that has waited for the first commit; the choice is in the address."""
    with console.page(f"/ui/tables/{segmented}") as page:
        page.get_by_role("navigation", name=segmented).get_by_role("link", name="Segments").click()
        rows = page.get_by_test_id("segment-row")
        rows.first.wait_for()
        _await_segments(console, segmented, 3)
        page.reload()
        assert rows.count() == 3 and "3 of 3, with 14 rows" in page.locator(".page-head").inner_text()
        page.get_by_label("State").select_option("CONSUMING")
        page.get_by_test_id("filter").click()
        page.wait_for_url(lambda url: "state=CONSUMING" in url)
        assert rows.count() == 1 and "partition 0, offsets 10 to" in rows.inner_text()
        consuming = rows.locator("td").first.inner_text().split()[0]

        console.produce(segmented, (DATA / "events.jsonl").read_bytes().splitlines()[:3])
        _await_segments(console, segmented, 4)
        page.reload()
        assert rows.count() == 1 and consuming not in rows.inner_text()

        page.get_by_role("link", name="Show all").press("Enter")
        page.wait_for_url(f"**/ui/tables/{segmented}/segments")
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


def test_segments_that_are_not_there_are_told(console: LiveConsole, segmented: str) -> None:
    """A choice that nothing matches, and a table that does not exist."""
    with console.page(f"/ui/tables/{segmented}/segments?half=OFFLINE", size=PHONE) as page:
        page.get_by_text("No segment matches").wait_for()
        page.get_by_role("link", name="Show all").click()
        page.get_by_test_id("segment-row").first.wait_for()
    with console.page("/ui/tables/segmented_order/segments") as page:
        assert segmented in page.get_by_test_id("error").inner_text()


def test_ingestion_is_paused_resumed_and_sealed(console: LiveConsole, orders: str) -> None:
    """By clicks; what was done is followed without a reload, and a rejected row opens by keyboard."""
    with console.page(f"/ui/tables/{orders}/ingestion") as page:
        row = page.get_by_test_id("partition")
        row.wait_for()
        assert page.get_by_test_id("rejected-row").count() == len(HOSTILE)
        page.get_by_label("Why it is paused").fill("new <b>producers</b>")
        with page.expect_response(lambda response: response.url.endswith("/ingestion")):
            pass  # an update of the page leaves what was typed
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
        cells = page.get_by_test_id("position").locator("td")
        cells.first.wait_for()
        assert cells.all_inner_texts()[1:] == ["14", "0", "14", "0"]
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


@pytest.mark.parametrize(
    "path",
    [
        "/", "/ui/tables/live_orders", "/ui/tables/none", "/ui/sign-in", "/ui/tasks",
        "/ui/tables/live_orders/ingestion", "/ui/tables/live_orders/ingestion/reset?place=earliest",
        "/ui/tables/segmented_orders/segments", "/ui/tables/segmented_orders/segments?half=OFFLINE",
    ],
)  # fmt: skip
def test_pages_are_accessible(console: LiveConsole, orders: str, segmented: str, path: str) -> None:
    check_accessibility(console, path)
