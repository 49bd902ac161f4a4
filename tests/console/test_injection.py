"""Hostile texts on every page and in the answer of every form: each is text, none is an element, handler or address."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest

from hybrid.serve.console.routes import ROUTERS
from tests.console.hostile_home import CHANGES, PAGES, UNKNOWN, HostileHome, hostile, hostile_home, seen
from tests.console.page_requests import FORM, HTML, fetched
from tests.serve.app import App

_STATIC = "/ui/static/"
_ACTIVE = frozenset({"img", "iframe", "object", "embed", "base", "link", "style", "applet", "form", "video", "audio"})
_ADDRESSES = frozenset({"href", "src", "action", "formaction", "xlink:href", "hx-get", "hx-post", "data-url"})
_SAFE = ("/", "#", "?")


class InertHtml(HTMLParser):
    """Reads a page. `problems` are what a text of a user must never become; `texts` what people read.

    `parts` are the updates that htmx asks for: address and target.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.texts: list[str] = []
        self.parts: set[tuple[str, str]] = set()
        self._data: list[str] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.texts.extend(given.values())
        if "hx-get" in given:
            self.parts.add((given["hx-get"], given.get("hx-target", "")))
        shape = self.get_starttag_text() or tag
        if tag == "script":
            self._data = [] if given.get("type") == "application/json" else None
            own = given.get("src", "").startswith(_STATIC)
            if self._data is None and not own:
                self.problems.append(shape)
        if tag in _ACTIVE and not self._is_own(tag, given):
            self.problems.append(shape)
        for name, value in given.items():
            is_address = name in _ADDRESSES and not value.startswith(_SAFE)
            if name.startswith("on") or name in {"style", "srcdoc"} or is_address or value.startswith("//"):
                self.problems.append(f"{name} of {shape}")

    @staticmethod
    def _is_own(tag: str, given: dict[str, str]) -> bool:
        if tag == "link":
            return given.get("href", "").startswith(_STATIC)
        return tag == "form" and given.get("action", "/").startswith("/")

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self._data is not None:
            self.texts.append(json.dumps(json.loads("".join(self._data)), ensure_ascii=False))
            self._data = None

    def handle_data(self, data: str) -> None:
        if self._data is not None:
            self._data.append(data)
        else:
            self.texts.append(data)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileHome]:
    app = App(tmp_path_factory.mktemp("hostile") / "home")
    yield hostile_home(app)
    app.close()


def routes(method: str) -> set[str]:
    """The paths of the console's pages or forms."""
    found = {route.path for router in ROUTERS for route in router.routes if method in route.methods}
    return {path for path in found if not path.endswith(".json") and not path.startswith(_STATIC)}


def check(body: bytes, shows: tuple[str, ...], place: str) -> InertHtml:
    """A page or a fragment of one."""
    found = InertHtml(body.decode())
    assert found.problems == [], (place, found.problems)
    whole = "\n".join(found.texts)
    assert [kind for kind in shows if seen(kind) not in whole] == [], place
    return found


def test_every_page_and_form_is_tried() -> None:
    """Whoever adds a page or a form adds it to `hostile_home.py`, with what it shows."""
    assert routes("GET") == set(PAGES)
    assert routes("POST") == set(CHANGES)


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_hostile_texts_as_texts(home: HostileHome, path: str) -> None:
    """The whole page, the parts that htmx asks for, and the twin."""
    for visit in PAGES[path]:
        place = home.place(path, visit)
        status, headers, body = fetched(home.app, "GET", place, {**HTML, **home.account})
        assert status == visit.status, (place, body.decode())
        if status == 303:
            assert headers["location"].startswith("/ui/"), place
            parts, shows = {(place, "#result")}, visit.shows
        else:
            is_signed_in = status == 200 and path != "/ui/sign-in"
            parts = check(body, (*visit.shows, "account") if is_signed_in else visit.shows, place).parts
            shows = ()
        for address, target in parts:
            sent = {"HX-Request": "true", "HX-Target": f"div{target}", **home.account}
            check(fetched(home.app, "GET", address, sent)[2], shows, f"{address} {target}")
        path_of_twin = f"{home.place(path)}.json"
        _, headers, body = fetched(home.app, "GET", path_of_twin + visit.query, home.account)
        assert headers["content-type"].startswith("application/json") or path == "/ui/sign-in", place


@pytest.mark.slow
@pytest.mark.parametrize("path", UNKNOWN)
def test_a_page_of_nothing_names_it_as_a_text(home: HostileHome, path: str) -> None:
    names = {name: "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%22%27" for name in ("table", "run", "backfill", "entry")}
    for place in (path.format(**names), path.format(**{**names, "table": "orders"})):
        for sent in ({**HTML, **home.account}, {"HX-Request": "true", **home.account}):
            status, _, body = fetched(home.app, "GET", place, sent)
            assert status in (200, 303, 400, 404), (place, status)
            check(body, (), place)


@pytest.mark.parametrize("path", CHANGES)
def test_a_form_answers_hostile_texts_with_texts(home: HostileHome, path: str) -> None:
    """To htmx, which puts the answer into the page, and to a browser without scripts."""
    place, fields = home.place(path), {name: hostile(name) for name in CHANGES[path]}
    own = {"Sec-Fetch-Site": "same-origin", "Content-Type": FORM, **home.account}
    for sent in ({**own, "HX-Request": "true"}, {**own, **HTML}):
        status, headers, body = fetched(home.app, "POST", place, sent, urlencode(fields))
        assert status < 500, (place, body.decode())
        assert headers.get("location", "/").startswith("/") and not headers.get("location", "/").startswith("//")
        check(body, (), place)


def test_what_is_looked_for_would_be_found() -> None:
    """The reader of pages sees each hostile text that is not escaped."""
    assert InertHtml("<p title='a'>&lt;img onerror=x&gt;</p>").problems == []
    for wrong in (
        "<script>x</script>", "<img src=x onerror=y>", "<svg onload=x>", "<a href='javascript:x'>", "<a href='//evil'>",
        "<p style='x'>", "<script src='/x'></script>", "<form action='https://evil'>",
    ):  # fmt: skip
        assert InertHtml(wrong).problems != [], wrong
