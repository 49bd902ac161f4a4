"""Pictures of the console for README and docs: `make screenshots` plays the orders recipe and writes docs/images."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from hybrid.jvm.broker import LocalBroker
from tests.console.browser import CHROMIUM, PHONE, LiveConsole
from tests.serve.server import Server

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
SIZE = (1280, 860)
# File name, path, and what must be there before the picture is taken.
PICTURES = (
    ("timeline", "/ui/tables/orders", "[data-testid=bucket]"),
    ("overview", "/", "[data-testid=table-card]"),
)


def main() -> int:
    """Take every picture in light and dark, and the timeline at phone width."""
    if not CHROMIUM.exists():
        print(f"error: {CHROMIUM} is missing; install the package chromium", file=sys.stderr)  # noqa: T201
        return 1
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        broker = LocalBroker(Path(folder) / "kafka")
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        try:
            address = broker.start(port=0)
            with Server(Path(folder) / ".hybrid", address) as server:
                console = LiveConsole(server, address, browser)
                console.create_orders("orders")
                console.move_all("orders")
                for name, path, awaited in PICTURES:
                    for scheme in ("light", "dark"):
                        take(console, f"{name}-{scheme}", path, awaited, SIZE, scheme)
                take(console, "timeline-phone", "/ui/tables/orders", "[data-testid=bucket]", PHONE, "light")
        finally:
            browser.close()
            broker.stop()
    return 0


def take(console: LiveConsole, name: str, path: str, awaited: str, size: tuple[int, int], scheme: str) -> None:
    """One picture of what a person would see first."""
    with console.page(path, size=size, scheme=scheme) as page:
        page.locator(awaited).first.wait_for()
        page.wait_for_timeout(500)
        page.screenshot(path=str(IMAGES / f"{name}.png"))


if __name__ == "__main__":
    sys.exit(main())
