"""Every way to ask a server leaves its statement in the query log, however it ends; accounts see what they may."""

from __future__ import annotations

import threading
import time
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from hybrid.home.accounts import Accounts, Right
from hybrid.serve.app import build_app
from hybrid.serve.context import ServerLimits
from tests.serve.app import App

COUNT = "select count(*) from orders"
ENDLESS = "with recursive r(n) as (select 1 union all select n + 1 from r) select max(n) from r"


def log(app: App, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = app.get(f"/query/log?{query}")
    return found


@pytest.mark.slow
def test_every_way_to_ask_is_logged(orders: App) -> None:
    agent = {"User-Agent": "tool/1.2", "X-Request-Id": "mine"}
    orders.ok("POST", "/query/sql", {"sql": COUNT}, headers=agent)
    orders.get(f"/sql?sql={quote(COUNT)}")
    orders.ok("POST", "/verbs/query", {"sql": COUNT})
    orders.ok("POST", "/query/export", {"sql": "select * from orders_OFFLINE"})
    orders.ok("POST", "/query/sql", {"sql": "show tables"})
    orders.ok("POST", "/verbs/explain", {"sql": COUNT})
    tables, export, *counts = log(orders)
    assert [one["statement"] for one in counts] == [COUNT] * 3 and {one["state"] for one in counts} == {"DONE"}
    first = counts[-1]
    assert first["id"] == "mine" and first["client"] == "127.0.0.1 tool/1.2" and first["account"] is None
    assert first["rows"] == 1 and first["tables"] == ["orders"] and first["source"] == "files" and not first["slow"]
    assert first["segments"] == 2 and first["bytes"] > 0 and first["revision"].startswith("orders[OFFLINE=")
    assert first["error"] is None and first["code"] is None and first["started_at"].endswith("Z")
    assert export["rows"] == 2 and export["tables"] == ["orders"] and tables["tables"] == [] and tables["rows"] == 1


@pytest.mark.slow
def test_failures_are_logged_with_their_code(orders: App) -> None:
    orders.ok("POST", "/query/sql", {"sql": "selec 1"})
    orders.ok("POST", "/query/sql", {"sql": COUNT, "queryOptions": "timeoutMs=soon"})
    orders.refused("POST", "/verbs/query", {"sql": "select nope from orders"})
    orders.refused("POST", "/query/export", {"sql": "select * from ordres"})
    orders.refused("POST", "/query/export", {"sql": COUNT, "queryOptions": "timeoutMs=soon"})
    found = [(one["state"], one["code"]) for one in log(orders)]
    assert found == [("FAILED", 700), ("FAILED", 190), ("FAILED", 710), ("FAILED", 700), ("FAILED", 150)]
    assert all(one["error"] and one["rows"] is None for one in log(orders))
    text = orders.get("/metrics")
    assert 'hybrid_errors_total{code="700",kind="query"} 2.0' in text


@pytest.mark.slow
def test_what_nobody_expected_is_logged(orders: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders.home._queries, "query", lambda *_, **__: 1 / 0)
    orders.refused("POST", "/query/sql", {"sql": COUNT})
    orders.refused("POST", "/verbs/query", {"sql": COUNT})
    assert [(one["state"], one["error"]) for one in log(orders)] == [("FAILED", "division by zero")] * 2


@pytest.mark.slow
def test_a_statement_is_listed_while_it_runs_and_when_it_was_cancelled(orders: App) -> None:
    for path in ("/query/sql", "/verbs/query", "/query/export"):
        asking = threading.Thread(
            target=orders.call, args=("POST", path, {"sql": ENDLESS}), kwargs={"headers": {"X-Request-Id": path[1:]}}
        )
        asking.start()
        until = time.monotonic() + 20
        while not (found := [one for one in log(orders) if one["state"] == "RUNNING"]) and time.monotonic() < until:
            time.sleep(0.02)
        assert found[0]["id"] == path[1:] and found[0]["statement"] == ENDLESS and found[0]["duration_ms"] > 0
        orders.app.state.context.queries.cancel(path[1:])
        asking.join(20)
        newest = log(orders)[0]
        assert (newest["id"], newest["state"], newest["code"]) == (path[1:], "CANCELLED", 503)


def test_refused_statements(orders: App) -> None:
    context = orders.app.state.context
    context.admission._most = 0
    orders.call("POST", "/query/sql", {"sql": "select 1"})
    orders.call("POST", "/verbs/query", {"sql": "select 2"})
    context.exports.most = 0
    orders.call("POST", "/query/export", {"sql": "select 3"})
    found = [(one["statement"], one["state"], one["code"]) for one in log(orders)]
    assert found == [(f"select {number}", "REFUSED", 429) for number in (3, 2, 1)]


@pytest.mark.slow
def test_filters_of_the_path(orders: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders.home.context.query_log, "_slow_ms", 0)
    orders.ok("POST", "/query/sql", {"sql": COUNT})
    orders.ok("POST", "/query/sql", {"sql": "show tables"})
    assert len(log(orders, "slow=true&since=1h")) == 2 and len(log(orders, "limit=1")) == 1
    assert len(log(orders, "table=orders")) == 1 and log(orders, "account=ada") == []
    assert log(orders, "since=2999-01-01") == []
    for query in ("limit=0", "limit=10001", "since=soon", "slow=maybe"):
        assert orders.refused("GET", f"/query/log?{query}")[0] == 400


@pytest.mark.slow
def test_accounts_see_what_they_may(orders: App) -> None:
    accounts = Accounts(orders.home.home)
    secrets = {name: accounts.add(name, right)[1] for name, right in
               (("ada", Right.READ), ("bob", Right.READ), ("ops", Right.OPERATE))}  # fmt: skip
    client = TestClient(build_app(orders.home, ServerLimits(), "http://x", hosts=None, accounts_look_s=-1.0))
    with client:
        for name, secret in secrets.items():
            client.headers["Authorization"] = f"Bearer {secret}"
            assert client.post("/query/sql", json={"sql": f"select '{name}'"}).status_code == 200
        seen = {}
        for name, secret in secrets.items():
            client.headers["Authorization"] = f"Bearer {secret}"
            seen[name] = [one["account"] for one in client.get("/query/log").json()]
            assert [one["account"] for one in client.post("/verbs/queries", json={}).json()] == seen[name]
        assert seen == {"ada": ["ada"], "bob": ["bob"], "ops": ["ops", "bob", "ada"]}
        client.headers["Authorization"] = "Bearer wrong"
        assert client.get("/query/log").status_code == 401
