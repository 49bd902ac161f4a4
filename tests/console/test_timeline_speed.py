"""Timelines of 5,000 and 100,000 segments, beside that of a small table on the same machine."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hybrid.config.table_config import Half
from hybrid.kafka.clients import import_clients
from hybrid.runtime.gc_tuning import collect_rarely
from tests.console.many_segments import commit_nothing, lay_many
from tests.console.page_requests import fetched
from tests.serve.app import App

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.alone]

LOOKS = 3
# Twice as long until it is seen, and the same time per frame, leave room for a busy machine.
SLOWER_MAX, FRAME_SLOWER_MAX = 5.0, 3.0
# Pans by small steps, one each frame, and returns how long each frame took.
PAN = """
() => new Promise((done) => {
  const stage = document.querySelector("[data-part=stage]"), box = stage.getBoundingClientRect(), took = [];
  const held = { clientY: box.top + 60, pointerId: 1, button: 0, shiftKey: true, bubbles: true };
  const at = (x) => ({ ...held, clientX: box.left + x });
  stage.setPointerCapture = () => {};
  stage.dispatchEvent(new PointerEvent("pointerdown", at(600)));
  let last = performance.now(), frames = 0;
  const step = (now) => {
    took.push(now - last);
    last = now;
    stage.dispatchEvent(new PointerEvent("pointermove", at(600 - 5 * ++frames)));
    if (frames < 90) requestAnimationFrame(step);
    else { stage.dispatchEvent(new PointerEvent("pointerup", at(150))); done(took.slice(2)); }
  };
  requestAnimationFrame(step);
})
"""

# Counts the marks that are made from now on, and how often the address is written.
COUNT_CHANGES = """
() => {
  [window.marksMade, window.addressesWritten] = [0, 0];
  const made = (records) => records.flatMap((record) => [...record.addedNodes])
    .forEach((node) => { window.marksMade += node.querySelectorAll?.("[data-testid=bucket]").length ?? 0; });
  new MutationObserver(made).observe(document.querySelector("[data-part=svg]"), { childList: true, subtree: true });
  const write = history.replaceState.bind(history);
  history.replaceState = (...parts) => { window.addressesWritten += 1; write(...parts); };
}
"""


@pytest.fixture
def app_of(tmp_path: Path) -> Iterator[Callable[[int, int], App]]:
    """Starts an application over the table orders with so many further segments in each half."""
    import_clients()  # as a server does before its threads start
    thresholds = gc.get_threshold()
    collect_rarely()  # as a server does, too: without it, many segments take longer than their number tells
    started: list[App] = []

    def start(offline: int, realtime: int) -> App:
        made = App(tmp_path / f"home{len(started)}")
        started.append(made)
        lay_many(made.home, offline, realtime)
        return made

    yield start
    for app in started:
        app.close()
    gc.set_threshold(*thresholds)


def test_five_thousand_segments_are_seen_and_pan_like_few(app_of: Callable[[int, int], App], chromium: Browser) -> None:
    """Each look follows a commit, so that nothing of the one before is kept."""
    small, large = app_of(20, 20), app_of(3000, 2000)
    small_page, large_page = (chromium.new_page(viewport={"width": 1280, "height": 800}) for _ in range(2))
    for app, page in ((small, small_page), (large, large_page)):
        look(app, page)  # the browser has its scripts, the server its modules
    seconds = [(look(small, small_page), look(large, large_page)) for _ in range(LOOKS)]
    few_s, many_s = (min(column) for column in zip(*seconds, strict=True))
    assert 100 < large_page.locator("[data-testid=bucket]").count() <= 400
    assert many_s < SLOWER_MAX * few_s, seconds

    few, many = frames_of(small_page), frames_of(large_page)
    assert "start=" in large_page.url, "the address tells the window when panning has ended"
    assert many[len(many) // 2] < FRAME_SLOWER_MAX * few[len(few) // 2], (few, many)
    assert many[int(len(many) * 0.9)] < FRAME_SLOWER_MAX * few[int(len(few) * 0.9)], (few, many)
    small_page.close()
    large_page.close()


def test_panning_moves_marks_and_makes_none(app_of: Callable[[int, int], App], chromium: Browser) -> None:
    """Neither marks nor entries of the browser's history are made in each frame; both follow when panning has ended."""
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    look(app_of(300, 200), page)
    page.locator("[data-zoom=in]").click()
    page.wait_for_url("**start=*")
    page.evaluate(COUNT_CHANGES)
    page.evaluate(PAN)
    made, written = page.evaluate("[window.marksMade, window.addressesWritten]")
    shown = page.locator("[data-testid=bucket]").count()
    # In 90 frames: once where the margin ends, once more exactly, once with the marks of the new window.
    assert 0 < made <= 4 * shown, (made, shown)
    assert written <= 1
    page.close()


def test_rows_that_arrive_read_nothing_of_the_offline_half(app_of: Callable[[int, int], App]) -> None:
    """It may have far more segments, and stays as it is meanwhile: here its log cannot be read again."""
    app = app_of(300, 20)
    before = json.loads(answer(app)[2])
    log = app.home.context.table("orders").layout.half(Half.OFFLINE) / "_delta_log"
    (log / f"{0:020d}.json").unlink()
    commit_nothing(app.home, Half.REALTIME)
    assert json.loads(answer(app)[2]) == before
    commit_nothing(app.home, Half.OFFLINE)
    assert fetched(app, "GET", "/ui/tables/orders.json")[0] != 200


def look(app: App, page: Page) -> float:
    """The seconds from a click until the timeline is seen, after a commit."""
    commit_nothing(app.home)
    began = time.monotonic()
    page.goto(app.url + "/ui/tables/orders", wait_until="commit")
    page.locator("[data-testid=timeline][data-ready] [data-testid=bucket]").first.wait_for()
    return time.monotonic() - began


def frames_of(page: Page) -> list[float]:
    """How long frames take while the timeline pans, shortest first."""
    page.locator("[data-zoom=in]").click()
    page.wait_for_timeout(600)
    return sorted(page.evaluate(PAN))


def test_a_hundred_thousand_segments_open(app_of: Callable[[int, int], App]) -> None:
    """In a time that grows no faster than their number; later looks are answered from what was kept."""
    few, many = app_of(3000, 2000), app_of(50_000, 50_000)
    for app in (few, many):
        answer(app)  # the modules are there
        commit_nothing(app.home)
    few_s = answer(few)[0]
    many_s, headers, body = answer(many)
    model = json.loads(body)
    assert sum(mark["segments"] for mark in model["offline"]) >= 50_000
    assert len(model["offline"]) <= 400 and sum(len(row["marks"]) for row in model["realtime"]) <= 404
    assert len(body) < 400_000
    assert many_s < 2 * 20 * few_s, (few_s, many_s)
    again_s, _, again = answer(many)
    assert again == body and again_s < many_s / 3, (many_s, again_s)
    window = "?start=1970-06-01T00:00:00Z&end=1970-06-02T00:00:00Z"
    assert fetched(many, "GET", f"/ui/tables/orders.json{window}")[0] == 200
    assert fetched(many, "GET", "/ui/tables/orders.json", {"If-None-Match": headers["etag"]})[0] == 304


def answer(app: App) -> tuple[float, dict[str, str], bytes]:
    """The seconds of a request for a timeline, with headers and body."""
    began = time.monotonic()
    status, headers, body = fetched(app, "GET", "/ui/tables/orders.json")
    assert status == 200, body
    return time.monotonic() - began, headers, body
