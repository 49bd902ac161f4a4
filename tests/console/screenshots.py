"""Pictures of the console for README and docs: `make screenshots` plays orders of two days and writes docs/images."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from tests.console.browser import CHROMIUM, LiveConsole
from tests.serve.server import Server
from tests.watchdog import running_broker

if TYPE_CHECKING:
    from playwright.sync_api import Page

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
WIDTH = 1280
BYTES_MAX = 150_000
TABLE, PARTITIONS, SEGMENT_ROWS, WORK_S = "orders", 3, 400, 600.0
HOUR_MS, BUCKET_MS = 3_600_000, 7_200_000
START_MS = 1_632_441_600_000  # 2021-09-24, as in the recipe
HOURS_MOVED, HOURS_MORE = 48, 5
NO_ORDERS = (30, 31)  # hours that are missing
STATUSES = ("OPEN", "IN_TRANSIT", "COMPLETED", "CANCELLED")
SQL = """select date_trunc('hour', ts) as hour, count(*) as orders
from orders
group by 1
order by 1
limit 100"""

COMPARED = "select order_status, count(*) as orders from orders group by 1 order by 1 limit 10"


def main() -> int:
    """Take every picture in light and dark."""
    if CHROMIUM is None:
        print("error: Chromium is missing; install the package chromium-headless-shell or chromium", file=sys.stderr)  # noqa: T201
        return 1
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            with (
                running_broker(Path(folder) / "kafka") as address,
                Server(Path(folder) / ".hybrid", address) as server,
            ):
                console = LiveConsole(server, address, browser)
                take_all(console, prepare(console))
        finally:
            browser.close()
    return 0


def prepare(console: LiveConsole) -> str:
    """Two days that moved, of which four hours were corrected, and hours that did not move. Returns a plan's id."""
    console.create_orders(TABLE, events=0, partitions=PARTITIONS, segment_rows=SEGMENT_ROWS)
    random_numbers = random.Random(7)
    produce(console, list(orders(random_numbers, 0, HOURS_MOVED)))
    console.move_all(TABLE, timeout_s=WORK_S)
    produce(console, list(orders(random_numbers, HOURS_MOVED, HOURS_MOVED + HOURS_MORE)))
    plan(console, 10, 14, "amount = round(amount / 1.19, 2)", "order_status = 'OPEN'", "net prices of the new shop")
    found = newest_plan(console)
    carry_out(console, "backfill_run", {"backfill": found})
    plan(console, 36, 42, "order_status = 'COMPLETED'", "order_status = 'IN_TRANSIT'", "the carrier confirmed late")
    return newest_plan(console)


def orders(numbers: random.Random, first_hour: int, end_hour: int) -> Iterator[bytes]:
    """Orders of some hours, in order of time: many by day, few by night."""
    for hour in range(first_hour, end_hour):
        count = 0 if hour in NO_ORDERS else 20 + 11 * (12 - abs(13 - hour % 24))
        times = sorted(numbers.randrange(HOUR_MS) for _ in range(count))
        for number, at in enumerate(times):
            order = {
                "order_id": 1000 * hour + number,
                "customer_id": numbers.randrange(100, 400),
                "order_status": numbers.choices(STATUSES, (2, 3, 9, 1))[0],
                "amount": round(numbers.lognormvariate(4, 0.8), 2),
                "ts": str(START_MS + hour * HOUR_MS + at),
            }
            yield json.dumps(order).encode()


def produce(console: LiveConsole, lines: list[bytes]) -> None:
    """Messages; returned when they are committed."""
    before = console.server.rows(f"select count(*) from {TABLE}")[0][0]
    console.produce(TABLE, lines)

    def is_there() -> bool:
        status = console.ok("GET", f"/ui/tables/{TABLE}/status.json")["status"]
        rows = console.server.rows(f"select count(*) from {TABLE}")[0][0]
        return bool(rows == before + len(lines) and status is not None and status["behind"] == 0)

    console.await_true(is_there, "rows are committed", WORK_S)


def plan(console: LiveConsole, first_hour: int, end_hour: int, update: str, where: str, reason: str) -> None:
    """Plans a correction of some hours."""
    span = {"start": str(START_MS + first_hour * HOUR_MS), "end": str(START_MS + end_hour * HOUR_MS)}
    change = {"update": update, "where": where, "reason": reason, "user": "ada"}
    carry_out(console, "backfill_plan", {"table": TABLE, **span, **change})


def newest_plan(console: LiveConsole) -> str:
    """The id of the newest plan."""
    return str(console.ok("POST", "/verbs/backfills", {"table": TABLE})[0]["id"])


def carry_out(console: LiveConsole, verb: str, arguments: dict[str, str]) -> None:
    """Queues a verb and waits until it has succeeded."""
    status, queued = console.server.call("POST", f"/verbs/{verb}", arguments)
    assert status == 202, queued
    run = console.server.await_task(queued["run"], WORK_S)
    assert run["state"] == "DONE", run


def take_all(console: LiveConsole, backfill: str) -> None:
    """Every picture; each is of what a person would see first."""
    table = f"/ui/tables/{TABLE}"
    correction = f"{table}/backfills/{backfill}?{urlencode({'sql': COMPARED})}"
    for scheme in ("light", "dark"):
        take(console, f"timeline-{scheme}", table, show_timeline, (WIDTH, 800), scheme)
        take(console, f"overview-{scheme}", "/", show_overview, (WIDTH, 620), scheme)
        take(console, f"query-{scheme}", f"/ui/query?{urlencode({'sql': SQL})}", show_chart, (WIDTH, 860), scheme)
        take(console, f"backfill-{scheme}", correction, show_backfill, (WIDTH, 1200), scheme)


def show_timeline(page: Page) -> None:
    """The marks, and the status that comes after them."""
    page.locator("[data-testid=bucket]").first.wait_for()
    page.locator("#stored dd").first.wait_for()


def show_overview(page: Page) -> None:
    """The card of the table."""
    page.locator("[data-testid=table-card]").first.wait_for()


def show_chart(page: Page) -> None:
    """The statement's result as a chart."""
    page.get_by_test_id("result-table").wait_for()
    page.locator("#view-tab-chart").click()
    page.locator("#view-chart canvas").wait_for()


def show_backfill(page: Page) -> None:
    """The plan with its buckets."""
    page.get_by_test_id("plan-diff").wait_for()


def take(
    console: LiveConsole,
    name: str,
    path: str,
    show: Callable[[Page], None],
    size: tuple[int, int],
    scheme: str,
) -> None:
    """One picture."""
    with console.page(path, size=size, scheme=scheme) as page:
        show(page)
        page.wait_for_timeout(800)
        picture = IMAGES / f"{name}.png"
        page.screenshot(path=str(picture))
    assert picture.stat().st_size < BYTES_MAX, (picture, picture.stat().st_size)


if __name__ == "__main__":
    sys.exit(main())
