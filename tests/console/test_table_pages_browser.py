"""The pages of new tables, definitions and accounts in Chromium: by keyboard from pasted files to a changed table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest

from tests.console.browser import HOSTILE, LiveConsole, check_accessibility
from tests.console.test_table_pages import ACCOUNTS, EVENTS, NEW
from tests.serve.app import App
from tests.serve.server import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def local(app: App, chromium: Browser) -> LiveConsole:
    """A server without a broker: tables without a stream need none."""
    return LiveConsole(cast(Server, app), "", chromium)


def test_from_pasted_files_to_a_changed_table(local: LiveConsole, app: App) -> None:
    with local.page(NEW) as page:
        page.get_by_label("Schema", exact=True).fill(EVENTS["schema"].replace('"INT"', json.dumps(HOSTILE[1])))
        page.get_by_label("OFFLINE config").fill(EVENTS["offline"])
        page.get_by_test_id("check-table").click()
        page.get_by_test_id("error").wait_for()
        page.get_by_role("button", name="Go to line").click()
        assert "dataType" in page.evaluate(
            "document.activeElement.value.substring("
            "document.activeElement.selectionStart, document.activeElement.selectionEnd)"
        )
        page.get_by_label("Schema", exact=True).fill(EVENTS["schema"])
        assert page.get_by_test_id("error").count() == 0
        page.get_by_test_id("check-table").focus()
        page.keyboard.press("Enter")
        page.get_by_test_id("create-table").wait_for()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**/ui/tables/events")
    assert app.home.table_names() == ["events"]

    with local.page("/ui/tables/events/edit") as page:
        config = page.get_by_label("OFFLINE config")
        config.fill(config.input_value().replace('"timeColumnName"', '"replication": "2",\n"timeColumnName"'))
        page.get_by_test_id("check-table").click()
        assert "replication" in page.get_by_test_id("plan-diff").inner_text()
        page.get_by_test_id("apply-table").click()
        page.get_by_text("Changed table").wait_for()
        page.get_by_role("link", name="Show the definition").click()
        assert '"replication": "2"' in page.get_by_label("OFFLINE config").input_value()

    def with_error(page: Page) -> None:
        page.get_by_test_id("check-table").click()
        page.get_by_test_id("error").wait_for()

    check_accessibility(local, NEW, with_error)
    check_accessibility(local, "/ui/tables/events/edit")
    check_accessibility(local, ACCOUNTS)
