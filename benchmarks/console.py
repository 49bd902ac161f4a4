"""The console in Chromium: how soon a timeline of many segments is seen and how it pans, and what watching costs.

    .venv/bin/python -m benchmarks.console [--parts timeline,beside] [--segments 100,5000,100000] [--looks 5]
                                           [--seconds 20] [--rounds 4] [--rate 1000] [--paced 20]

timeline  `hybrid serve` over a table with so many segments in a year, 60 % of them offline. Milliseconds from the
          navigation to the first frame that shows marks, each look after a commit; what the server takes for the data;
          frame times while the timeline pans by dragging and zooms by the wheel, a step each frame.
beside    events arrive at a steady rate in a table whose count, a look-up and its newest rows are asked for at a steady
          pace. In turn: nobody looks; a plain client polls what a window with the timeline asks for, which is what a
          browser on another machine costs the server; it polls what three windows ask for, with overview, timeline and
          ingestion; one and three windows of Chromium on this machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import platform
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from benchmarks.fairness import BASE_HOURS, CUSTOMERS, HOUR_ROWS, TABLE, event, fill
from benchmarks.idle_tables import processor_s
from benchmarks.serving.http import Client, Endpoint
from benchmarks.serving.product import Product
from benchmarks.serving.stream import Feeder
from benchmarks.serving.workload import PARTITIONS, START_MS
from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.kafka.topics import create_topic
from hybrid.progress import Silent
from tests.console.browser import CHROMIUM
from tests.console.many_segments import commit_nothing, lay_many
from tests.serve.server import Server
from tests.watchdog import running_broker

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SPAWN = multiprocessing.get_context("spawn")
WIDE = {"width": 1280, "height": 800}
BASE_ROWS = BASE_HOURS * HOUR_ROWS
OFFLINE_SHARE, FRAME_MS = 0.6, 1000 / 60
SETTLE_S, POLL_S, MOVE_S, READY_S = 2.0, 2.0, 300.0, 180.0
NOBODY, ONE, THREE = "nobody looks", "one window here", "three windows here"
ONE_ELSEWHERE, THREE_ELSEWHERE = "one window elsewhere", "three windows elsewhere"
# Notes the first frame after the one in which marks were drawn: `performance.now` counts from the navigation.
SEEN = """
const look = () => document.querySelector("[data-testid=bucket]")
  ? requestAnimationFrame(() => { document.documentElement.dataset.seenAfterMs = performance.now(); })
  : requestAnimationFrame(look);
requestAnimationFrame(look);
"""
# Makes a step in each frame, and returns how long each frame took.
FRAMES = """
([kind, steps]) => new Promise((done) => {
  const stage = document.querySelector("[data-part=stage]"), box = stage.getBoundingClientRect(), took = [];
  const held = { clientY: box.top + 60, pointerId: 1, button: 0, shiftKey: true, bubbles: true };
  const pointer = (name, x) => stage.dispatchEvent(new PointerEvent(name, { ...held, clientX: box.left + x }));
  stage.setPointerCapture = () => {};
  if (kind === "pan") pointer("pointerdown", 700);
  let last = performance.now(), step = 0;
  const frame = (now) => {
    took.push(now - last);
    last = now;
    step += 1;
    if (kind === "pan") pointer("pointermove", 700 - 4 * step);
    else stage.dispatchEvent(new WheelEvent("wheel", {
      ...held, shiftKey: false, clientX: box.left + 600, ctrlKey: true, cancelable: true,
      deltaY: step * 2 < steps ? -12 : 12,
    }));
    if (step < steps) requestAnimationFrame(frame);
    else { if (kind === "pan") pointer("pointerup", 700 - 4 * step); done(took.slice(2)); }
  };
  requestAnimationFrame(frame);
})
"""
STEPS = 122


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


# Timelines


def timelines(folder: Path, browser: Browser, sizes: Sequence[int], looks: int) -> None:
    """Prints the figures of a table of each size, each with a server of its own."""
    for size in sizes:
        place = folder / str(size)
        place.mkdir()
        home = Hybrid(load_settings(home=place / "home"), Silent())
        offline = int(size * OFFLINE_SHARE)
        lay_many(home, offline, size - offline)
        server = Server(place / "home")
        try:
            server.await_ready(READY_S)
            _timeline(server, home, browser, size, looks)
        finally:
            server.kill()
        home.close()


def _timeline(server: Server, home: Hybrid, browser: Browser, size: int, looks: int) -> None:
    page = browser.new_page(viewport=WIDE)
    page.add_init_script(SEEN)
    first_ms = _look_ms(server, page)
    seen = []
    for _ in range(looks):
        commit_nothing(home)
        seen.append(_look_ms(server, page))
    commit_nothing(home)
    changed_ms, body = _request(server, "/ui/tables/orders.json")
    kept = sorted(_request(server, "/ui/tables/orders.json")[0] for _ in range(looks))
    model = json.loads(body)
    realtime = sum(len(row["marks"]) for row in model["realtime"])
    html = _request(server, "/ui/tables/orders")[1]
    print(f"{size:,} segments in a year")
    print(f"  seen after {median(seen):.0f} ms, at most {max(seen):.0f}; for the first time after {first_ms:.0f} ms")
    print(f"  server: {changed_ms:.0f} ms after a commit, {median(kept):.1f} ms without one")
    print(f"  marks: {len(model['offline'])} offline, {realtime} realtime")
    print(f"  bytes: {len(html):,} of HTML, {len(body):,} of JSON")
    page.locator("[data-zoom=in]").click()
    page.wait_for_timeout(1000)
    for kind in ("pan", "zoom"):
        _print_frames(kind, page.evaluate(FRAMES, [kind, STEPS]))
        page.wait_for_timeout(1000)
    page.close()


def _look_ms(server: Server, page: Page) -> float:
    page.goto(server.url + "/ui/tables/orders", wait_until="commit")
    page.locator("html[data-seen-after-ms]").wait_for(timeout=120_000)
    return float(page.evaluate("document.documentElement.dataset.seenAfterMs"))


def _request(server: Server, path: str) -> tuple[float, bytes]:
    """Milliseconds until a page has been read, and its body."""
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    began = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    connection.close()
    return 1000 * (time.perf_counter() - began), body


def _print_frames(kind: str, took: list[float]) -> None:
    took = sorted(took)
    dropped = sum(max(0, round(each / FRAME_MS) - 1) for each in took)
    print(
        f"  {kind}: frames of {median(took):.1f} ms, p95 {took[int(0.95 * len(took))]:.1f} ms, "
        f"at most {took[-1]:.1f} ms; {dropped} of {len(took) + dropped} dropped"
    )


# Statements beside a console


def _statements(endpoint: Endpoint, paced: float, stop: Event, out: Connection) -> None:
    """Asks at a steady pace: moment, name and milliseconds of each statement."""
    client, chance, took = Client(endpoint), random.Random(7), []
    began, number = time.perf_counter(), 0
    while not stop.is_set():
        key = chance.randrange(BASE_ROWS)
        columns = "order_id, order_status, amount, ts"
        for name, sql in (
            ("count", f"select count(*) from {TABLE.name} where ts >= {START_MS}"),
            ("lookup", f"select order_id, customer_id, amount from {TABLE.name} where order_id = {key}"),
            ("newest", f"select {columns} from {TABLE.name} order by ts desc limit 10"),
        ):
            number += 1
            time.sleep(max(0.0, began + number / paced - time.perf_counter()))
            seconds, answer = client.ask(sql)
            rows = endpoint.rows(answer)
            assert rows, answer
            assert name != "lookup" or rows == [[key, key % CUSTOMERS, 1.0]], rows
            took.append((time.perf_counter(), name, seconds * 1000))
    out.send(took)


def _polled(windows: int) -> list[tuple[str, dict[str, str]]]:
    """What no window, one with the timeline, or three ask for every two seconds: path and headers."""
    if not windows:
        return []
    place = f"/ui/tables/{TABLE.name}"
    timeline = [
        (f"{place}.json", {"Accept": "application/json"}),
        (f"{place}/status", {"HX-Request": "true", "HX-Target": "div#freshness"}),
        (f"{place}/status", {"HX-Request": "true", "HX-Target": "section#stored"}),
    ]
    others = [
        ("/", {"HX-Request": "true", "HX-Target": "main#main"}),
        (f"{place}/ingestion", {"HX-Request": "true", "HX-Target": "div#live"}),
    ]
    return timeline if windows == 1 else [*timeline, *others]


def _poll(url: str, windows: Synchronized[int], stop: Event) -> None:
    """Asks for what `windows` show, every two seconds, with the tags of the last answers."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    tags: dict[int, str] = {}
    while not stop.is_set():
        polled = _polled(windows.value)
        if not polled:
            connection.close()  # the server would close it; the next request opens it again
            time.sleep(0.05)
            continue
        began = time.perf_counter()
        for number, (path, headers) in enumerate(polled):
            time.sleep(max(0.0, began + number * POLL_S / len(polled) - time.perf_counter()))
            tag = {"If-None-Match": tags[number]} if number in tags else {}
            connection.request("GET", path, headers={**headers, **tag})
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status in {200, 304}, body
            tags[number] = answer.headers["ETag"]
        time.sleep(max(0.0, began + POLL_S - time.perf_counter()))


class Windows:
    """Windows of Chromium that all are in sight; `requests` counts what they ask for, by path."""

    def __init__(self, browser: Browser, url: str, paths: Sequence[str]) -> None:
        self.requests: dict[str, int] = defaultdict(int)
        self._places = [url + path for path in paths]
        self._pages = [browser.new_page(viewport=WIDE) for _ in self._places]
        for page in self._pages:
            page.on("request", lambda request: self._note(urlsplit(request.url).path))

    def _note(self, path: str) -> None:
        self.requests[path] += 1

    def show(self) -> None:
        for page, place in zip(self._pages, self._places, strict=True):
            page.goto(place)

    def hide(self) -> None:
        for page in self._pages:
            page.goto("about:blank")

    def wait(self, seconds: float) -> None:
        """Waits while Playwright counts requests."""
        self._pages[0].wait_for_timeout(seconds * 1000)


def beside(product: Product, browser: Browser, brokers: str, asked: argparse.Namespace) -> None:
    """Prints what the statements took in each setting, and what the processes used."""
    _move(product)
    elsewhere, stop, (mine, theirs) = SPAWN.Value("i", 0), SPAWN.Event(), SPAWN.Pipe()
    reader = SPAWN.Process(target=_statements, args=(product.endpoint, asked.paced, stop, theirs), daemon=True)
    poller = SPAWN.Process(target=_poll, args=(product.server.url, elsewhere, stop), daemon=True)
    place = f"/ui/tables/{TABLE.name}"
    one = Windows(browser, product.server.url, [place])
    windows = Windows(browser, product.server.url, ["/", place, f"{place}/ingestion"])
    settings: list[tuple[str, Callable[[], None], Callable[[], None]]] = [
        (NOBODY, lambda: None, lambda: None),
        (ONE_ELSEWHERE, lambda: _set(elsewhere, 1), lambda: _set(elsewhere, 0)),
        (THREE_ELSEWHERE, lambda: _set(elsewhere, 3), lambda: _set(elsewhere, 0)),
        (ONE, one.show, one.hide),
        (THREE, windows.show, windows.hide),
    ]
    blocks: list[tuple[str, float, float]] = []
    used: dict[str, list[float]] = defaultdict(list)
    (query,) = product.server.pids("query")
    with Feeder(brokers, TABLE.topic, partial(_later, BASE_ROWS), asked.rate) as feeder:
        reader.start()
        poller.start()
        windows.wait(4 * SETTLE_S)
        for turn in range(asked.rounds):
            for number in range(len(settings)):
                name, begin, end = settings[(turn + number) % len(settings)]
                begin()
                windows.wait(SETTLE_S)
                windows.requests.clear()
                before, began = processor_s(query), time.perf_counter()
                windows.wait(asked.seconds)
                ended = time.perf_counter()
                blocks.append((name, began, ended))
                used[name].append(100 * (processor_s(query) - before) / (ended - began))
                if name == THREE:
                    requested = {path: round(count / asked.seconds, 2) for path, count in windows.requests.items()}
                end()
        stop.set()
        took = mine.recv()
        assert feeder.is_going(), "events did not arrive"
        rate = feeder.rate_of
    poller.join()
    assert poller.exitcode == 0, "the plain client failed"
    print(f"{rate:,.0f} events and {asked.paced:g} statements a second")
    print(f"requests of the three windows a second: {requested}")
    _print_statements(took, blocks, used)


def _set(elsewhere: Synchronized[int], windows: int) -> None:
    elsewhere.value = windows


def _later(first: int, n: int) -> tuple[int, bytes]:
    return event(first + n)


def _print_statements(
    took: Sequence[tuple[float, str, float]], blocks: Sequence[tuple[str, float, float]], used: dict[str, list[float]]
) -> None:
    """Of each setting; a block of it is compared with the block without a console of the same round."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for setting, began, ended in blocks:
        for at, name, milliseconds in took:
            if began <= at < ended:
                found[setting, name].append(milliseconds)
                found[setting, "all"].append(milliseconds)
    names = ("count", "lookup", "newest", "all")
    for setting in (NOBODY, ONE_ELSEWHERE, THREE_ELSEWHERE, ONE, THREE):
        count, share = len(found[setting, "all"]), median(used[setting])
        print(f"{setting}: {count:,} statements; the process that answers used {share:.1f} % of a core")
        for name in names:
            alone, some = found[NOBODY, name], found[setting, name]
            middle, late = median(some), _p95(some)
            print(
                f"  {name}: {middle:.2f} ms, p95 {late:.2f} ms"
                + (f" ({middle / median(alone):.2f}, {late / _p95(alone):.2f})" if setting != NOBODY else "")
            )


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]


def _move(product: Product) -> None:
    """All but the last bucket of the first events."""
    status, queued = product.server.call("POST", "/verbs/move", {"table": TABLE.name, "max_buckets": BASE_HOURS - 1})
    assert status == 202, queued
    assert product.server.await_task(queued["run"], MOVE_S)["state"] == "DONE"
    product.await_warm(TABLE)


def _measure(folder: Path, browser: Browser, asked: argparse.Namespace) -> None:
    if "timeline" in asked.parts:
        timelines(folder, browser, [int(size) for size in asked.segments.split(",")], asked.looks)
    if "beside" in asked.parts:
        with running_broker(folder / "kafka") as brokers:
            create_topic(brokers, TABLE.topic, PARTITIONS)
            fill(brokers, TABLE.topic, 0, BASE_ROWS)
            place = folder / "beside"
            place.mkdir()
            with Product(place, brokers) as product:
                product.create(TABLE)
                product.await_rows(TABLE, BASE_ROWS)
                beside(product, browser, brokers, asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", default="timeline,beside")
    parser.add_argument("--segments", default="100,5000,100000")
    parser.add_argument("--looks", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0, help="of a block")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--rate", type=int, default=1000, help="events a second")
    parser.add_argument("--paced", type=float, default=20.0, help="statements a second")
    asked = parser.parse_args()
    if CHROMIUM is None:
        sys.exit("Chromium is missing: apt-get install chromium")
    print(f"{platform.machine()}, {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        _measure(Path(name), browser, asked)


if __name__ == "__main__":
    main()
