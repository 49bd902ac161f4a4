"""Requests of browsers and of programs to the console, and what must hold of each answer."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from hybrid.home.accounts import Accounts, Right
from tests.serve.app import App

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
FORM = "application/x-www-form-urlencoded"
EVIL = "<img src=x onerror=alert(1)>"


def fetched(
    app: App, method: str, path: str, headers: Mapping[str, str] | None = None, body: str | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers (names in lower case) and bytes of a request."""
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=60)
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def page(app: App, path: str, headers: dict[str, str] | None = None) -> str:
    """The HTML of a page, in which no text of a user is a tag."""
    status, _, body = fetched(app, "GET", path, {**HTML, **(headers or {})})
    assert status == 200, body.decode()
    text = body.decode()
    assert EVIL not in text
    return text


def twin(app: App, path: str, query: str = "") -> Any:
    """The model of a page, from its twin."""
    status, _, body = fetched(app, "GET", f"{path}.json{query}")
    assert status == 200, body
    return json.loads(body)


def post(app: App, path: str, headers: dict[str, str] | None = None, **fields: str) -> tuple[int, str]:
    """Status and fragment of a form that a page of the server sends."""
    sent = {"Sec-Fetch-Site": "same-origin", "Content-Type": FORM, "HX-Request": "true", **(headers or {})}
    status, _, body = fetched(app, "POST", path, sent, urlencode(fields))
    return status, body.decode()


def queued(app: App) -> list[Any]:
    """The runs of the table orders that wait: verb, arguments, source."""
    return [(run.verb, dict(run.arguments), run.source) for run in app.home.runs("orders") if run.state == "QUEUED"]


def key(app: App, right: Right) -> dict[str, str]:
    """The header of a new account with a right."""
    secret = Accounts(app.home.home).add(f"of-{right.word}", right)[1]
    app.app.state.authentication._look()
    return {"Authorization": f"Bearer {secret}"}
