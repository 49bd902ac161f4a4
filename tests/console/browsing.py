"""Pages in Chromium that watch themselves: no request leaves the host, no violation of the policy, no script error."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tests.console.contexts import SharedContexts


class Browsing:
    """Opens pages, in contexts that are shared. `problems` are what must not happen."""

    def __init__(self, contexts: SharedContexts) -> None:
        self._contexts, self._pages = contexts, list[Any]()
        self.problems: list[str] = []

    def open(
        self, url: str, *, scheme: str = "light", width: int = 1280, scripts: bool = True, for_axe: bool = False
    ) -> Any:
        """A page at an address. `for_axe`: without the policy, which forbids what axe injects."""
        allowed = ("clipboard-read", "clipboard-write")
        page = self._contexts.new_page(url, java_script_enabled=scripts, bypass_csp=for_axe, permissions=allowed)
        self._pages.append(page)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.set_default_timeout(10_000)
        host = urlsplit(url).netloc
        page.on("request", lambda request: self._watch(request.url, host))
        page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        page.on("console", lambda message: self._read(message.type, message.text))
        page.goto(url)
        return page

    def close(self) -> None:
        """Closes the pages."""
        self._contexts.leave(self._pages)

    def _watch(self, url: str, host: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("blob", "data") and parts.netloc != host:
            self.problems.append(f"foreign request: {url}")

    def _read(self, kind: str, text: str) -> None:
        if "Content Security Policy" in text or (kind == "error" and "Failed to load resource" not in text):
            self.problems.append(f"console: {text}")
