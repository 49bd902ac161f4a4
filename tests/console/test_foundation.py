"""The mechanism of the console's pages: HTML and JSON of one model, ETags, static files, policy, sizes."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from hybrid.serve.console import page, rendering, static_files
from hybrid.serve.console.copies import copies_of
from tests.console.page_requests import HTML, fetched
from tests.console.scripts import NEEDS_NODE, call, script
from tests.serve.app import App

ALL_MAX, FIRST_MAX = 250 * 1024, 40 * 1024
POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"


@pytest.mark.slow
def test_a_page_and_its_twins_have_one_model(orders: App) -> None:
    """HTML, `.json` and `Accept: application/json`; a fragment for htmx; 304 for what has not changed."""
    status, headers, body = fetched(orders, "GET", "/", HTML)
    assert status == 200 and headers["content-type"].startswith("text/html")
    assert headers["content-security-policy"].startswith(POLICY) and "unsafe" not in headers["content-security-policy"]
    assert b'data-testid="table-card"' in body and b"<html" in body
    twin = fetched(orders, "GET", "/.json")
    accepted = fetched(orders, "GET", "/", {"Accept": "application/json"})
    assert twin[2] == accepted[2] and twin[1]["content-type"] == "application/json"
    (card,) = json.loads(twin[2])["tables"]
    assert card["table"] == "orders" and card["offline_rows"] == 2 and card["realtime_rows"] == 4

    part = fetched(orders, "GET", "/", {**HTML, "HX-Request": "true", "HX-Target": "main#main"})
    assert b"<html" not in part[2] and b'data-testid="table-card"' in part[2]
    for path, sent, tag in (("/", HTML, headers["etag"]), ("/.json", {}, twin[1]["etag"])):
        again = fetched(orders, "GET", path, {**sent, "If-None-Match": tag})
        assert again[0] == 304 and again[2] == b"" and again[1]["etag"] == tag
    assert headers["etag"] != part[1]["etag"] != twin[1]["etag"]


@pytest.mark.slow
def test_every_answer_says_what_it_took(orders: App) -> None:
    """In milliseconds of a processor, whether it was sent or had not changed."""
    for sent in (HTML, {}, {**HTML, "HX-Request": "true", "HX-Target": "main#main"}):
        headers = fetched(orders, "GET", "/", sent)[1]
        for answered in (headers, fetched(orders, "GET", "/", {**sent, "If-None-Match": headers["etag"]})[1]):
            assert re.fullmatch(r"page;dur=\d+\.\d", answered["server-timing"])


@pytest.mark.slow
@NEEDS_NODE
@pytest.mark.process
def test_the_longer_an_answer_takes_the_later_it_is_asked_for_again() -> None:
    timings = [None, "", "page;dur=3.0", "page;dur=90.5", "page;dur=5800.0", "cache;dur=900.0"]
    waits = call(script("polling.js"), *(["pollAfterMs", 2000, timing] for timing in timings))
    assert waits == [2000, 2000, 2000, 4525, 30_000, 2000]


@pytest.mark.slow
@NEEDS_NODE
@pytest.mark.process
def test_an_error_that_is_no_page_is_a_sentence() -> None:
    json_type = "application/json; charset=utf-8"
    calls = [
        ('{"error": "Too many.", "hint": "Later"}', json_type, 503),
        ('{"error": "Too long.", "hint": null}', json_type, 413),
        ("{", json_type, 502),
        ("null", json_type, 500),
    ]
    assert call(script("refusals.js"), *(["refusalOf", *each] for each in calls)) == [
        "Too many. Later", "Too long.", "The server answers with status 502.", "The server answers with status 500.",
    ]  # fmt: skip


def test_an_error_is_a_page_a_fragment_or_json(app: App) -> None:
    status, headers, body = fetched(app, "GET", "/ui/runs/none", HTML)
    assert status == 404 and b"<html" in body and b'data-testid="error"' in body and "etag" not in headers
    status, _, body = fetched(app, "GET", "/ui/runs/none", {"HX-Request": "true"})
    assert status == 404 and b"<html" not in body and b'data-testid="error"' in body
    for path, sent in (("/ui/runs/none.json", {}), ("/ui/runs/none", {"Accept": "application/json"})):
        assert json.loads(fetched(app, "GET", path, sent)[2])["code"] == 404
    hostile = "/ui/runs/%3Cimg%20src=x%20onerror=alert(1)%3E"
    assert b"<img src" not in fetched(app, "GET", hostile, HTML)[2]


def test_static_files_are_packed_and_kept_by_browsers(app: App) -> None:
    path = static_files.asset("console.css")
    status, headers, body = fetched(app, "GET", path)
    assert status == 200 and "immutable" in headers["cache-control"] and headers["content-type"].startswith("text/css")
    packed = fetched(app, "GET", path, {"Accept-Encoding": "gzip, br"})
    assert packed[1]["content-encoding"] == "gzip" and gzip.decompress(packed[2]) == body
    assert fetched(app, "GET", path, {"If-None-Match": headers["etag"]})[0] == 304
    older = fetched(app, "GET", "/ui/static/0000/console.css")
    assert older[0] == 200 and older[1]["cache-control"] == "no-cache"
    for name in ("../page.py", "..%2fpage.py", "%2e%2e/page.py", "/etc/passwd", "nothing.css", ""):
        assert fetched(app, "GET", f"/ui/static/{static_files.content_hash()}/{name}")[0] == 404


@pytest.mark.slow
def test_the_sizes_are_within_their_budget(orders: App) -> None:
    """All that a browser may ever load, and what the first page loads; compressed."""
    sizes = {name: len(static_files.static_file(name).packed) for name in static_files.file_names()}
    loaded = {name: size for name, size in sizes.items() if not name.endswith(".txt")}
    assert sum(loaded.values()) <= ALL_MAX, loaded
    body = fetched(orders, "GET", "/", HTML)[2]
    first = set(re.findall(r"/ui/static/\w+/([\w./-]+)", body.decode()))
    assert "vendor/htmx.min.js" in first and "editor.js" not in first
    assert sum(sizes[name] for name in first) + len(gzip.compress(body)) <= FIRST_MAX, first


def test_foreign_files_come_with_their_licence() -> None:
    vendor = [name for name in static_files.file_names() if name.startswith("vendor/")]
    packages = {Path(name).name.split(".")[0] for name in vendor}
    assert packages >= {"htmx", "uPlot"}
    assert {f"vendor/{package}.LICENSE.txt" for package in packages} <= set(vendor)


@pytest.mark.parametrize("template", sorted(rendering.FOLDER.rglob("*.html")), ids=lambda path: path.name)
def test_templates_keep_the_policy(template: Path) -> None:
    """No script or style in the page, no address of another host, nothing unescaped."""
    text = template.read_text(encoding="utf-8")
    inline = re.findall(
        r"<script(?![^>]*(?:src=|application/json))[^>]*>|<style(?![^>]*nonce)|\sstyle=|\son\w+=|hx-on|\bjs:", text
    )
    assert inline == []
    assert re.findall(r"https?://|\|\s*safe\b|autoescape|Markup", text) == []


def test_one_static_file_loads_no_foreign_host() -> None:
    foreign = re.compile(r"@import|(?:url|import|fetch)\(\s*['\"`]?https?:|from ['\"]https?:")
    own = [name for name in static_files.file_names() if not name.startswith("vendor/")]
    for name in own:
        if name.endswith((".js", ".css")):
            assert foreign.findall((static_files.FOLDER / name).read_text(encoding="utf-8")) == [], name


def test_numbers_and_sizes_are_written_for_people() -> None:
    assert [rendering.number(value) for value in (None, 0, 1234567)] == [rendering.UNKNOWN, "0", "1,234,567"]
    assert [rendering.size(value) for value in (None, 0, 999, 2848, 5 * 10**9)] == [
        rendering.UNKNOWN, "0 B", "999 B", "2.8 kB", "5.0 GB",
    ]  # fmt: skip


def test_copies_quote_what_users_wrote() -> None:
    command, curl, python = copies_of(
        "http://127.0.0.1:9000/ui/x", "query", {"sql": "select 'a b'", "as_of": None},
        cli=("query", "select 'a b'"), python="hy.query(\"select 'a b'\")",
    )  # fmt: skip
    assert command["text"] == """hybrid query 'select '"'"'a b'"'"''"""
    assert curl["text"].endswith(" http://127.0.0.1:9000/verbs/query") and "as_of" not in curl["text"]
    assert python["text"].startswith("import hybrid\nhy = hybrid.connect('http://127.0.0.1:9000')\n")


def test_a_nonce_allows_styles_alone() -> None:
    policy = page.page_headers("abc")["Content-Security-Policy"]
    assert policy.startswith(POLICY) and "style-src 'self' 'nonce-abc'" in policy and "script-src" not in policy


@pytest.mark.slow
def test_a_change_takes_a_form_from_a_page_of_this_server(orders: App) -> None:
    """Anything else is refused; then a browser goes on to a page, htmx gets a fragment, a program JSON."""
    own = {"Origin": orders.url, "Content-Type": "application/x-www-form-urlencoded"}
    path = "/ui/tables/orders/pause"
    assert fetched(orders, "POST", path, {**own, "Origin": "http://evil.example"}, "comment=x")[0] == 403
    assert fetched(orders, "POST", path, {**own, "Origin": "null"}, "comment=x")[0] == 403
    assert fetched(orders, "POST", path, {"Content-Type": own["Content-Type"]}, "comment=x")[0] == 403
    assert orders.get("/tables/orders/pauseStatus")["pauseFlag"] is False
    status, headers, _ = fetched(orders, "POST", path, own, "comment=new+%3Cb%3E+producers")
    assert (status, headers["location"]) == (303, "/ui/tables/orders/ingestion")
    assert orders.get("/tables/orders/pauseStatus")["comment"] == "new <b> producers"
    _, _, body = fetched(orders, "POST", "/ui/tables/orders/resume", {**own, "HX-Request": "true"}, "")
    assert b'role="status"' in body and b"<html" not in body
    status, _, body = fetched(orders, "POST", "/ui/tables/orders/resume", {**own, "Accept": "application/json"}, "")
    assert status == 200 and "pauseFlag" not in json.loads(body)
    status, _, body = fetched(orders, "POST", "/ui/tables/none/pause", {**own, "HX-Request": "true"}, "")
    assert status == 404 and b'data-testid="error"' in body


@pytest.mark.slow
def test_a_heavy_change_is_queued_and_followed(orders: App) -> None:
    own = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    status, headers, _ = fetched(orders, "POST", "/ui/tables/orders/move", own, "all=on")
    assert status == 303 and headers["location"].startswith("/ui/runs/")
    followed = json.loads(fetched(orders, "GET", headers["location"], {"Accept": "application/json"})[2])
    assert followed["state"] == "QUEUED" and followed["incomplete"] and followed["source"] == "console"
    assert b"data-poll" in fetched(orders, "GET", headers["location"], HTML)[2]
    card = json.loads(fetched(orders, "GET", "/.json")[2])["tables"][0]
    assert [run["id"] for run in card["active"]] == [followed["id"]]
