"""Who changed something stays known, however many requests are refused."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hybrid.home.accounts import Accounts, Right
from hybrid.logs import Sampler, read_logs, setup_logging
from hybrid.serve.app import RIGHTS
from hybrid.serve.authorization import RouteRights
from tests.serve.app import OFFLINE, SCHEMA, App


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@pytest.mark.slow
def test_what_was_changed_is_kept_apart(app: App) -> None:
    """20: the audit log holds what took more than reading, by account; nothing that anybody may send is in it."""
    accounts = Accounts(app.home.home)
    _, admin = accounts.add("ada", Right.ADMIN)
    _, reader = accounts.add("bob", Right.READ)
    logs = app.home.settings.logs
    setup_logging(logs, "query")
    app.ok("POST", "/schemas", SCHEMA, headers=bearer(admin))
    app.ok("POST", "/tables", OFFLINE, headers=bearer(admin))
    app.ok("POST", "/query/sql", {"sql": "select 1"}, headers=bearer(reader))
    assert app.call("POST", "/tables", OFFLINE, headers=bearer(reader))[0] == 403
    for _ in range(200):
        assert app.call("DELETE", "/tables/orders" + "x" * 1000)[0] == 401
    found = records(logs / "audit.log")
    assert [(one["message"].rsplit(" in ")[0], one["account"]) for one in found] == [
        ("POST /schemas 200", "ada"),
        ("POST /tables 200", "ada"),
    ]
    assert all(one["request_id"] and one["role"] == "audit" for one in found)
    assert [one["message"] for one in read_logs(logs) if one["role"] == "audit"] == [one["message"] for one in found]


@pytest.mark.slow
def test_a_requests_right_is_found_once(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that let it in decides in which log it is written down."""
    found: list[str] = []

    def counted(self: RouteRights, method: str, path: str) -> Right:
        found.append(f"{method} {path}")
        return Right.ADMIN if path == "/tables" else right_for(RIGHTS, method, path)

    right_for = RouteRights.right_for
    monkeypatch.setattr(RouteRights, "right_for", counted)
    setup_logging(app.home.settings.logs, "query")
    app.ok("GET", "/tables")
    app.ok("POST", "/query/sql", {"sql": "select 1"})
    assert found == ["GET /tables", "POST /query/sql"]
    (kept,) = records(app.home.settings.logs / "audit.log")
    assert kept["message"].startswith("GET /tables 200")


@pytest.mark.slow
def test_refused_requests_are_sampled_and_the_rest_counted(app: App) -> None:
    """20: 400,000 of them wash the log away; ten a second do not, and none of those let in is left out."""
    _, admin = Accounts(app.home.home).add("ada", Right.ADMIN)
    setup_logging(app.home.settings.logs, "query")
    for _ in range(300):
        assert app.call("GET", "/tables")[0] == 401
    for _ in range(30):
        app.ok("GET", "/tables", headers=bearer(admin))
    deadline, path = time.monotonic() + 5, app.home.settings.logs / "query.log"
    while sum("GET /tables 200" in one["message"] for one in records(path)) < 30 and time.monotonic() < deadline:
        time.sleep(0.05)
    said = [one["message"] for one in records(path)]
    written = sum("GET /tables 401" in one for one in said)
    counted = sum(int(one.split()[0]) for one in said if one.endswith("were not written down."))
    assert written < 100 and written + counted == 300
    assert sum("GET /tables 200" in one for one in said) == 30


def test_a_sampler_lets_so_many_a_second_through() -> None:
    sampler = Sampler(10)
    passed = sum(sampler.passes() for _ in range(1000))
    assert passed in (10, 20) and sampler.left_out() == 1000 - passed and sampler.left_out() == 0
