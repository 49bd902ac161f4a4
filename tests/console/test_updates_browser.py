"""Parts of pages that update themselves, in Chromium: errors of the server, the focus, and a full row of tabs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import pytest

from tests.console.browser import HOSTILE, LiveConsole
from tests.console.page_requests import post
from tests.console.test_backfill_pages import PLACE, lay_plan
from tests.serve.app import App
from tests.serve.server import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def local(app: App, chromium: Browser) -> LiveConsole:
    """A server without a broker, whose table orders has a plan."""
    lay_plan(app)
    return LiveConsole(cast(Server, app), "", chromium)


def test_a_part_outlives_errors_of_the_server(local: LiveConsole) -> None:
    """It stays as it was, says why, and is asked for again: of a page, a note and JSON."""
    note = '<div data-testid="error"><p>It broke.</p><p class="note-hint">hybrid logs</p></div>'
    answers = [
        ("text/html", note, 500, "It broke. hybrid logs What you see may be old."),
        ("application/json", json.dumps({"error": "Too many."}), 503, "Too many. What you see may be old."),
    ]
    with local.page("/ui/tasks") as page:
        page.locator("#schedules-heading").wait_for()
        for kind, body, status, said in answers:
            refuse = refusing(kind, body, status)
            page.route("**/ui/tasks", refuse)
            page.locator("#toasts").get_by_text(said).wait_for()
            page.locator("#live[data-poll][data-refused]").wait_for()
            assert page.locator("#schedules-heading").count() == 1
            page.unroute("**/ui/tasks", refuse)
            page.locator("#live[data-poll]:not([data-refused])").wait_for()


def refusing(kind: str, body: str, status: int) -> Callable[[Route], None]:
    """Answers each request of htmx with an error."""

    def refuse(route: Route) -> None:
        if "hx-request" in route.request.headers:
            route.fulfill(status=status, content_type=kind, body=body)
        else:
            route.continue_()

    return refuse


def test_an_error_without_a_page_is_a_note(local: LiveConsole) -> None:
    body = json.dumps({"error": f"Too long: {HOSTILE[1]}", "hint": None})
    with local.page("/ui/new-table") as page:
        page.route("**/check", lambda route: route.fulfill(status=413, content_type="application/json", body=body))
        page.get_by_label("Schema", exact=True).fill("{}")
        page.get_by_test_id("check-table").click()
        assert page.get_by_test_id("error").inner_text() == f"Too long: {HOSTILE[1]}"


def test_a_button_with_the_focus_becomes_no_other(local: LiveConsole, app: App) -> None:
    with local.page(PLACE) as page:
        page.get_by_role("button", name="Discard the plan").focus()
        assert post(app, f"{PLACE}/run")[0] == 200
        page.evaluate("document.getElementById('work').dispatchEvent(new CustomEvent('refresh'))")
        page.get_by_test_id("pause-backfill").wait_for()
        page.wait_for_function("document.activeElement.id === 'work'")
        page.locator("#work[data-poll]").wait_for()


def test_what_is_pressed_twice_is_done_once(local: LiveConsole, app: App) -> None:
    with local.page("/ui/tables/orders") as page:
        page.locator("summary", has_text="Move").click()
        button = page.get_by_test_id("move")
        button.evaluate("button => { button.click(); button.click(); }")
        page.locator("#done").get_by_text("Queued as").or_(page.locator("#done .run")).first.wait_for()
        page.wait_for_timeout(500)
    assert len([run for run in app.home.runs("orders") if run.verb == "move"]) == 1


def test_a_full_row_of_tabs_loses_no_text(local: LiveConsole) -> None:
    with local.page("/ui/query") as page:
        page.locator("[data-page=query][data-ready]").wait_for()
        page.evaluate(
            """() => {
              const list = Array.from({ length: 20 }, (_, each) => ({ id: `t${each}`, text: `select ${each}` }));
              sessionStorage.setItem("hybrid.query.tabs", JSON.stringify({ list, active: "t3" }));
              const entry = { sql: "select 'kept'", asOf: "", plan: "", at: 1, tookMs: 1, rows: 1 };
              localStorage.setItem("hybrid.query.history", JSON.stringify([entry]));
            }"""
        )
        page.goto(f"{local.url}/ui/query")
        page.locator("[data-page=query][data-ready]").wait_for()
        page.get_by_role("button", name="History", exact=True).click()
        page.get_by_role("button", name="select 'kept'").click()
        page.get_by_text("20 tabs are open. Close one first.").wait_for()
        editor = page.get_by_test_id("sql-editor")
        assert editor.inner_text().strip() == "select 3"
        page.goto(f"{local.url}/ui/query?sql=select+4242")
        page.locator("[data-page=query][data-ready]").wait_for()
        page.get_by_text("The text of this one is in History now.").wait_for()
        assert editor.inner_text().strip() == "select 4242"
        page.get_by_role("button", name="History", exact=True).click()
        page.get_by_role("button", name=re.compile("select 3.*not run")).wait_for()
