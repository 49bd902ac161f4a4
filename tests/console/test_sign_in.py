"""Sessions of browsers: what a cookie is worth, when it ends, and what a page may do with it."""

from __future__ import annotations

from http.cookies import SimpleCookie
from urllib.parse import quote

import pytest

from hybrid.home.accounts import Account, Accounts, Right
from hybrid.serve import sessions
from tests.console.page_requests import FORM, HTML, fetched
from tests.serve.app import App

ADA = Account("ada", Right.READ, "d" * 64, "")


def session(app: App, secret: str, place: str = "/") -> tuple[int, dict[str, str]]:
    """Signs in: status and headers."""
    sent = {"Origin": app.url, "Content-Type": FORM}
    status, headers, _ = fetched(app, "POST", sessions.SIGN_IN, sent, f"secret={secret}&next={quote(place)}")
    return status, headers


def cookie_of(headers: dict[str, str]) -> str:
    ((name, morsel),) = SimpleCookie(headers["set-cookie"]).items()
    return f"{name}={morsel.value}"


def test_a_session_ends_with_its_time_its_account_and_its_server() -> None:
    value = sessions.session_value(ADA, "key", 1000.0)
    assert sessions.session_account(value, [ADA], "key", 1000.0) == ADA
    assert sessions.session_account(value, [ADA], "key", 1000.0 + sessions.SESSION_S) is None
    assert sessions.session_account(value, [ADA], "other", 1000.0) is None
    assert sessions.session_account(value, [], "key", 1000.0) is None
    renewed = Account("ada", Right.ADMIN, "e" * 64, "")  # removed and added again: another secret
    assert sessions.session_account(value, [renewed], "key", 1000.0) is None
    later = value.replace(value.partition(".")[0], "99999999999", 1)
    other = value.removesuffix("ada") + "eve"
    eve = Account("eve", Right.ADMIN, ADA.digest, "")
    for forged in (later, other, "", ".", "..", "1.2.3", "²." + value, "9" * 40 + "." + value):
        assert sessions.session_account(forged, [ADA, eve], "key", 1000.0) is None


def test_cookies_of_ports_differ() -> None:
    assert sessions.cookie_name("localhost:9000") != sessions.cookie_name("localhost:8099")
    headers = {b"host": b"localhost:9000", b"cookie": b"a=b; hybrid_session_9000=x.y.z; hybrid_session_1=q"}
    assert sessions.session_cookie(headers) == "x.y.z"
    odd = {**headers, b"cookie": b'\xff;=;;other={"a": [1]}; hybrid_session_9000=x.y.z'}
    assert sessions.session_cookie(odd) == "x.y.z"
    assert sessions.session_cookie({b"host": b"localhost:9000", b"cookie": b"\xff;=;;"}) is None


@pytest.mark.parametrize("place", ["//evil.example", "/\\evil.example", "https://a.example", "", None, "/a\r\nb", "x"])
def test_after_signing_in_no_other_site_follows(place: object) -> None:
    assert sessions.local_place(place) == "/"


@pytest.mark.parametrize(
    ("shown", "place"),
    [
        ("http://localhost:9000/ui/tasks?table=a%20b#live", "/ui/tasks?table=a%20b"),
        ("http://localhost:9000//evil.example", "/"),
        ("http://[", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
def test_a_part_of_a_page_leads_to_signing_in_and_back_to_the_page(shown: str, place: str) -> None:
    headers = {b"hx-request": b"true", b"hx-current-url": shown.encode()}
    answer = sessions.sign_in_answer("GET", "/ui/tables/a/status", "", headers)
    assert answer is not None and answer.headers["hx-redirect"] == f"/ui/sign-in?next={quote(place, safe='')}"


@pytest.mark.slow
def test_signing_in(orders: App) -> None:
    """With accounts a browser is sent to the sign-in page, and comes back with a cookie that scripts cannot read."""
    reader, read_secret = Accounts(orders.home.home).add("ada", Right.READ)
    _, operate_secret = Accounts(orders.home.home).add("bob", Right.OPERATE)
    orders.app.state.authentication._look()
    place = "/ui/runs/a?b=c"
    status, headers, _ = fetched(orders, "GET", place, HTML)
    assert (status, headers["location"]) == (303, f"/ui/sign-in?next={quote(place, safe='')}")
    status, headers, body = fetched(orders, "GET", headers["location"], HTML)
    assert status == 200 and quote(place, safe="/?=").encode() in body
    assert fetched(orders, "GET", "/.json")[0] == 401 and fetched(orders, "GET", "/", {"Accept": "*/*"})[0] == 401
    assert fetched(orders, "GET", "/", {"HX-Request": "true"})[1]["hx-redirect"] == "/ui/sign-in?next=%2F"
    asked_by_script = fetched(orders, "GET", "/tables", {"Sec-Fetch-Mode": "cors"})
    assert asked_by_script[0] == 401 and "www-authenticate" not in asked_by_script[1]
    assert "www-authenticate" in fetched(orders, "GET", "/tables")[1]

    status, headers = session(orders, "wrong")
    assert status == 401 and "set-cookie" not in headers
    status, headers = session(orders, read_secret, place)
    assert (status, headers["location"]) == (303, place)
    assert all(word in headers["set-cookie"] for word in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert read_secret not in headers["set-cookie"]
    cookie = {"Cookie": cookie_of(headers)}
    status, _, body = fetched(orders, "GET", "/", {**HTML, **cookie})
    assert status == 200 and b"<b>ada</b>" in body and b"New table" not in body and b"Accounts</a>" not in body

    own = {**cookie, "Origin": orders.url, "Content-Type": FORM}
    assert fetched(orders, "POST", "/ui/tables/orders/pause", own, "")[0] == 403  # the right to read is not enough
    bob = {"Cookie": cookie_of(session(orders, operate_secret)[1])}
    assert fetched(orders, "POST", "/tables/orders/pauseConsumption", bob)[0] == 403  # by a cookie, from nowhere
    assert fetched(orders, "POST", "/tables/orders/pauseConsumption", {**bob, "Origin": orders.url})[0] == 200
    resumed = fetched(
        orders, "POST", "/ui/tables/orders/resume", {**bob, "Origin": orders.url, "Content-Type": FORM}, ""
    )
    assert resumed[0] == 303

    status, headers, _ = fetched(orders, "POST", "/ui/sign-out", own, "")
    assert (status, headers["location"]) == (303, "/ui/sign-in") and "Max-Age=0" in headers["set-cookie"]
    Accounts(orders.home.home).remove(reader.name)
    orders.app.state.authentication._looked_at = 0.0
    assert fetched(orders, "GET", "/", {**HTML, **cookie})[0] == 303


def test_a_server_without_accounts_asks_for_none(app: App) -> None:
    status, _, body = fetched(app, "GET", "/ui/sign-in", HTML)
    assert status == 200 and b"asks for no account" in body
    assert session(app, "anything")[0] == 401


def test_the_secret_of_the_home_is_no_account(app: App) -> None:
    (app.home.home / "server.json").write_text('{"secret": "own"}')
    Accounts(app.home.home).add("ada", Right.READ)
    app.app.state.authentication._look()
    assert session(app, "own")[0] == 401
