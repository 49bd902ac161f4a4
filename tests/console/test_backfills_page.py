"""The pages of backfills in Chromium, over a server that carries out its queue: plan, compare, run, revert."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from hybrid.lake.commit_context import CommitContext
from hybrid.progress import Silent
from hybrid.serve.context import ServerLimits
from tests.console.browser import axe_violations
from tests.console.browsing import Browsing
from tests.serve.app import App, Worker
from tests.serve.test_jobs import table
from tests.serve.test_replacing import push

pytestmark = [pytest.mark.browser, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
EVIL = '<img src=x onerror="window.hacked=1">'
HOUR_MS = 3_600_000
PATH = "/ui/tables/orders/backfills"
DONE_MS = 150_000  # a first run of Spark on a busy machine


@pytest.fixture(scope="module")
def served(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """A server whose queue is carried out, over orders of 48 hours; names of customers are hostile."""
    folder = tmp_path_factory.mktemp("backfills")
    app = App(folder / "home", ServerLimits(run_wait_s=DONE_MS / 1000))
    vars(app.home)["bench"] = CommitContext(lambda: workbench.spark, app.home.context.now_ms, Silent())
    with Worker(app.home):
        table(app)
        rows = [
            {"order_id": number, "customer": EVIL if number % 2 else "ada", "amount": 1.5, "ts": number * HOUR_MS}
            for number in range(48)
        ]
        push(app, folder / "in", "history", rows, reason="first load", user="ada")
        yield app
    app.close()


def test_pause_and_cancel(served: App, browsing: Browsing) -> None:
    plan = served.ok("POST", "/backfills", {"table": "orders", "from": "0", "to": "7200000", "update": "amount = 9"})
    page = browsing.open(f"{served.url}{PATH}/{plan['id']}")
    served.ok("POST", f"/backfills/{plan['id']}/pause")
    page.reload()
    page.locator("#work[data-state=PAUSED]").wait_for()
    page.get_by_test_id("run-backfill").get_by_text("Resume").wait_for()
    page.get_by_test_id("cancel-backfill").click()
    page.locator("#work[data-state=CANCELLED]").wait_for()
    assert "Cancelled" in page.locator("#done").inner_text()
    assert page.get_by_test_id("run-backfill").count() == 0


def test_errors_are_shown_in_place(served: App, browsing: Browsing) -> None:
    page = browsing.open(f"{served.url}{PATH}")
    page.get_by_label("Update", exact=True).fill(f"nothing = '{EVIL}'")
    page.get_by_test_id("plan-backfill").click()
    page.locator("#planned").get_by_test_id("error").wait_for(timeout=DONE_MS)
    assert "nothing" in page.get_by_test_id("error").inner_text()
    assert page.get_by_label("Update", exact=True).input_value().startswith("nothing")
    page.get_by_label("Where", exact=True).fill("a")
    page.get_by_label("Delete where", exact=True).fill("b")
    page.get_by_test_id("plan-backfill").click()
    page.get_by_text("leave one of them empty").wait_for()

    plan = served.ok(
        "POST", "/backfills", {"table": "orders", "to": "7200000", "delete": True, "where": "order_id = 1"}
    )
    page = browsing.open(f"{served.url}{PATH}/{plan['id']}?sql=select+nothing+from+orders")
    page.locator("#result").get_by_test_id("error").wait_for()
    page.get_by_label("Statement").fill("select customer, count(*) as n from orders group by customer")
    page.get_by_role("button", name="Compare").click()
    page.locator("#result .differences").wait_for()
    assert "sql=select+customer" in page.url
    assert page.evaluate("window.hacked") is None


def test_a_file_is_uploaded_and_planned(served: App, browsing: Browsing) -> None:
    page = browsing.open(f"{served.url}{PATH}")
    page.get_by_text("Rows of a statement, files").click()
    content = b'{"order_id": 1, "customer": "zoe", "amount": 7.0, "ts": 3600000}\n'
    page.get_by_label("Files").set_input_files({"name": "fix.jsonl", "mimeType": "text/plain", "buffer": content})
    page.get_by_test_id("plan-backfill").click()
    page.wait_for_url(re.compile(rf"{PATH}/backfill-"), timeout=DONE_MS)
    assert page.get_by_role("heading", level=1).inner_text() == "rows of fix.jsonl"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 320)])
def test_nothing_is_wrong_for_axe(scheme: str, width: int, served: App, browsing: Browsing) -> None:
    """Each page, in both schemes and on a small screen; none is wider than the screen."""
    found = served.get("/backfills?table=orders")
    entry = served.get("/tables/orders/replacements")[0]["id"]
    places = (
        PATH,
        f"{PATH}/{found[0]['id']}",
        "/ui/tables/orders/replacements",
        f"/ui/tables/orders/replacements/{entry}",
    )
    for place in places:
        page = browsing.open(f"{served.url}{place}", scheme=scheme, width=width, for_axe=True)
        page.wait_for_load_state("networkidle")
        assert axe_violations(page) == [], place
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), place
