"""A live server with real Kafka, looked at in Chromium: pages, and what must hold on each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from hybrid.kafka.topics import produce
from tests.console.contexts import SharedContexts
from tests.serve.orders import create_orders
from tests.serve.server import READY_S, Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# The shell is the same browser without its own windows and menus: pages open in half the processor time.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)
WIDE, PHONE, NARROW = (1280, 800), (360, 740), (320, 640)
# Texts that a page must show as they are. Names of tables and columns cannot hold them; values, reasons and errors can.
HOSTILE = (
    "<script>window.__injected = 1</script>",
    '"><img src=x onerror="window.__injected = 1">',
    "'-window.__injected--'{{7*7}}${7*7}",
    "</script><svg onload=window.__injected=1>",
    "javascript:window.__injected=1",
)
_VIOLATIONS = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.__violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""
_OVERFLOWING = """
() => document.documentElement.scrollWidth <= window.innerWidth ? [] : [...document.querySelectorAll("body *")]
  .filter((one) => one.getBoundingClientRect().right > window.innerWidth + 1 && !one.closest(".table-wrap, .tabs, pre"))
  .slice(0, 5).map((one) => one.outerHTML.slice(0, 160))
"""
_MENUS_OUTSIDE = """
() => [...document.querySelectorAll("details[data-menu]")].filter((menu) => {
  menu.open = true;
  const box = menu.querySelector(".menu-list").getBoundingClientRect();
  menu.open = false;
  return box.width && (box.left < 0 || box.right > window.innerWidth + 1);
}).map((menu) => menu.outerHTML.slice(0, 160))
"""
_EXPECTED = ("Failed to load resource",)  # the browser's own line about an answer of 4xx


class LiveConsole:
    """The server, its broker and the browser that the tests of pages share. Each test has tables of its own."""

    def __init__(self, server: Server, broker: str, browser: Browser) -> None:
        self.server, self.broker, self._browser = server, broker, browser
        self._contexts = SharedContexts(browser)
        self.url = server.url

    def create_orders(self, name: str, events: int = 14, partitions: int = 1, segment_rows: int = 5) -> str:
        """The table of the recipe under another name, with the first of its events; returned when they are visible."""
        return create_orders(self.server, self.broker, name, events, partitions, segment_rows)

    def move_all(self, table: str, timeout_s: float = 120) -> None:
        """Moves every closed bucket of a table."""
        status, queued = self.server.call("POST", "/verbs/move", {"table": table, "max_buckets": None})
        assert status == 202, queued
        assert self.server.await_task(queued["run"], timeout_s)["state"] == "DONE"

    def produce(self, topic: str, values: list[bytes]) -> None:
        """Messages to a topic."""
        produce(self.broker, topic, values)

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of a request that must succeed."""
        return self.server.ok(method, path, body)

    def await_true(self, look: Callable[[], bool], what: str, timeout_s: float = READY_S) -> None:
        """Waits until something holds."""
        self.server.await_true(look, what, timeout_s)

    @contextmanager
    def page(
        self,
        path: str,
        *,
        size: tuple[int, int] = WIDE,
        scheme: Literal["light", "dark"] = "light",
        cookies: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        loses_server: bool = False,
        own_context: bool = False,
    ) -> Iterator[Page]:
        """A page that knows nothing of others. At its end nothing has violated the policy, failed, or left the host.

        `loses_server`: requests fail, which the browser's console may tell. `own_context`: its clock is set, which
        belongs to the context.
        """
        contexts = SharedContexts(self._browser) if own_context else self._contexts
        page = contexts.new_page(self.url, reduced_motion="reduce")
        try:
            page.add_init_script(_VIOLATIONS)
            page.set_viewport_size({"width": size[0], "height": size[1]})
            page.emulate_media(color_scheme=scheme)
            page.set_extra_http_headers(dict(headers or {}))
            for name, value in (cookies or {}).items():
                page.context.add_cookies([{"name": name, "value": value, "url": self.url}])
            errors, requests = list[str](), list[str]()
            page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("request", lambda request: requests.append(request.url))
            page.goto(self.url + path)
            yield page
            check_unhurt(page)
            assert loses_server or [error for error in errors if not error.startswith(_EXPECTED)] == []
            host = urlsplit(self.url).netloc
            foreign = [url for url in requests if urlsplit(url).scheme not in {"data", "blob"}]
            assert [url for url in foreign if urlsplit(url).netloc != host] == []
        finally:
            if own_context:
                page.context.close()
            else:
                contexts.leave([page])


def check_unhurt(page: Page) -> None:
    """Nothing has violated the policy of this document, and no text of a user ran in it."""
    assert page.evaluate("window.__violations") == []
    assert page.evaluate("window.__injected === undefined"), "text of users ran as a script"


def axe_violations(page: Page) -> list[str]:
    """What axe-core finds wrong on a page, by rule and element."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for rule in found
        for node in rule["nodes"]
    ]


def overflowing(page: Page) -> list[str]:
    """Elements that make the page wider than its window, and menus that open beyond it."""
    found: list[str] = [*page.evaluate(_OVERFLOWING), *page.evaluate(_MENUS_OUTSIDE)]
    return found


def check_accessibility(console: LiveConsole, path: str, prepare: Callable[[Page], None] = lambda page: None) -> None:
    """No violation in light, dark and at 320 px, where nothing is wider than the window.

    The page is loaded once for both schemes.
    """
    with console.page(path) as page:
        prepare(page)
        assert (axe_violations(page), overflowing(page)) == ([], []), path
        page.emulate_media(color_scheme="dark")
        assert (axe_violations(page), overflowing(page)) == ([], []), (path, "dark")
        page.emulate_media(color_scheme="light")
        width, height = NARROW
        page.set_viewport_size({"width": width, "height": height})
        page.goto(console.url + path)  # a phone lays the page out from the start
        prepare(page)
        assert (axe_violations(page), overflowing(page)) == ([], []), (path, NARROW)
