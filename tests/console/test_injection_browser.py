"""Hostile texts on every page in Chromium: the scripts of a page put them into it as texts, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import pytest

from tests.console.browser import LiveConsole, check_unhurt
from tests.console.hostile_home import PAGES, HostileHome, Visit, hostile_home, seen
from tests.serve.app import App
from tests.serve.server import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]
# What a person can read or copy, whatever is folded.
_TEXTS = """() => [document.title, document.body.textContent, ...[...document.querySelectorAll("*")].flatMap(
  (one) => [one.value ?? "", ...[...one.attributes].map((attribute) => attribute.value)])].join("\\n")"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileHome]:
    app = App(tmp_path_factory.mktemp("hostile") / "home")
    yield hostile_home(app)
    app.close()


@pytest.fixture(scope="module")
def console(home: HostileHome, chromium: Browser) -> LiveConsole:
    return LiveConsole(cast(Server, home.app), "", chromium)


@pytest.mark.parametrize("path", PAGES)
def test_no_text_of_a_user_runs(console: LiveConsole, home: HostileHome, path: str) -> None:
    """With all that is folded opened, and each mark of a timeline hovered."""
    first, *others = PAGES[path]
    with console.page(home.place(path, first), headers=home.account) as page:
        _look_at_all(page, first)
        for visit in others:
            check_unhurt(page)
            page.goto(console.url + home.place(path, visit))
            _look_at_all(page, visit)


def _look_at_all(page: Page, visit: Visit) -> None:
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    for kind in visit.shows:
        page.wait_for_function(f"([text]) => ({_TEXTS})().includes(text)", arg=[seen(kind)], timeout=10_000)
    _hover_marks(page)
    page.wait_for_load_state("networkidle")


def _hover_marks(page: Page) -> None:
    if page.locator("[data-testid=timeline]").count():
        page.locator("[data-testid=timeline][data-ready]").wait_for()
        for mark in page.locator("[data-testid=bucket]").all():
            mark.hover(force=True)
            page.locator("[data-part=tip]").wait_for()
