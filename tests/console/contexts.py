"""Contexts of Chromium that pages share: a new one begins a process with an empty cache, which costs a second."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


@dataclass(frozen=True)
class _Shared:
    """A context, and the page of its site that stays open: without one the browser would end the site's process."""

    context: BrowserContext
    anchor: Page
    has_scripts: bool


class SharedContexts:
    """A browser's contexts by site and options. What pages store goes with them; the cache of scripts stays."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._shared: dict[tuple[object, ...], _Shared] = {}

    def new_page(self, url: str, **options: Any) -> Page:
        """A page for the site of `url` in the context with these options. It is blank."""
        site = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        key = (site, *sorted(options.items()))
        if key not in self._shared:
            context = self._browser.new_context(**options)
            anchor = context.new_page()
            anchor.goto(f"{site}/livez")
            self._shared[key] = _Shared(context, anchor, options.get("java_script_enabled", True))
        return self._shared[key].context.new_page()

    def leave(self, pages: Iterable[Page]) -> None:
        """Closes pages, and clears what they have stored."""
        for page in pages:
            page.close()
            page.context.clear_cookies()
            page.context.unroute_all()
        for shared in self._shared.values():
            if shared.has_scripts:
                shared.anchor.evaluate("localStorage.clear()")
