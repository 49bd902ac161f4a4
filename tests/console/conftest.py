"""The console over an application in this process, and in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console.browser import CHROMIUM
from tests.console.browsing import Browsing
from tests.console.contexts import SharedContexts
from tests.serve.app import App, lay_orders

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    """Over an empty home."""
    made = App(tmp_path / "home")
    yield made
    made.close()


@pytest.fixture
def orders(app: App) -> App:
    """Over a home with the table orders."""
    lay_orders(app.home)
    return app


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium. Mark tests that use it with `browser`.

    It ends with the module: as long as Playwright is open its event loop counts as the running one of this thread, in
    which no other test could run a loop of its own.
    """
    if CHROMIUM is None:
        pytest.skip("Chromium is missing: apt-get install chromium-headless-shell, or chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--process-per-site"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def contexts(chromium: Browser) -> SharedContexts:
    """The contexts of the pages that `browsing` opens."""
    return SharedContexts(chromium)


@pytest.fixture
def browsing(contexts: SharedContexts) -> Iterator[Browsing]:
    """Opens pages; at the end none may have had a problem."""
    made = Browsing(contexts)
    yield made
    made.close()
    if made.problems:
        pytest.fail("; ".join(made.problems))
