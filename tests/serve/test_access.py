"""Accounts at the server's door: who is let in, what each right allows, and what is said to the others."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pinotdb
import pytest
import sqlalchemy as sa
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from pinotdb.exceptions import DatabaseError
from starlette.testclient import TestClient

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.cli.main import run
from hybrid.config.settings import load_settings
from hybrid.errors import AccessError
from hybrid.home.accounts import Accounts, Right
from hybrid.logs import read_logs, setup_logging
from hybrid.progress import Silent
from hybrid.rpc.client import SERVER_FILE
from hybrid.rpc.verbs import VERBS
from hybrid.serve import authentication as door_module
from hybrid.serve import middleware as gate
from hybrid.serve.app import LOOPBACK, RIGHTS, build_app
from hybrid.serve.authorization import _NEEDED, OPEN_PATHS, RouteRights, needs
from hybrid.serve.console.routes import ROUTERS as CONSOLE_ROUTERS
from hybrid.serve.context import ServerLimits
from tests.serve.server import Server

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"
COUNT = {"sql": "select count(*) from orders"}
# Each is declared beside its route. Here all are listed once more: to change one is a decision.
PATH_RIGHTS = {
    "POST /query/sql": Right.READ,
    "POST /query/export": Right.READ,
    "POST /query": Right.READ,
    "POST /sql": Right.READ,
    "DELETE /query/{request_id}": Right.READ,
    "POST /schemas": Right.ADMIN,
    "PUT /schemas/{schema}": Right.ADMIN,
    "DELETE /schemas/{schema}": Right.ADMIN,
    "POST /schemas/validate": Right.READ,
    "POST /erasures": Right.ADMIN,
    "POST /erasures/{erasure}/resume": Right.ADMIN,
    "DELETE /erasures/{erasure}": Right.ADMIN,
    "POST /tables": Right.ADMIN,
    "POST /tables/validate": Right.READ,
    "POST /tableConfigs": Right.ADMIN,
    "POST /tableConfigs/validate": Right.READ,
    "PUT /tableConfigs/{table}": Right.ADMIN,
    "DELETE /tableConfigs/{table}": Right.ADMIN,
    "PUT /tables/{table}": Right.ADMIN,
    "DELETE /tables/{table}": Right.ADMIN,
    "POST /tables/{table}/pauseConsumption": Right.OPERATE,
    "POST /tables/{table}/resumeConsumption": Right.OPERATE,
    "POST /tables/{table}/forceCommit": Right.OPERATE,
    "POST /tables/{table}/connectors/{connector}/start": Right.OPERATE,
    "POST /tables/{table}/connectors/{connector}/pause": Right.OPERATE,
    "POST /tables/{table}/connectors/{connector}/reset": Right.ADMIN,
    "POST /tables/{table}/timeBoundary": Right.OPERATE,
    "DELETE /tables/{table}/timeBoundary": Right.OPERATE,
    "POST /tables/{table}/replacements/{entry}/revert": Right.OPERATE,
    "POST /tables/{table}/purges": Right.ADMIN,
    **dict.fromkeys(
        ("POST /backups", "POST /backups/list", "POST /backups/verify", "DELETE /backups/{backup}"), Right.ADMIN
    ),
    "POST /tables/{table}/rejected/replay": Right.OPERATE,
    "POST /backfills": Right.OPERATE,
    "POST /backfills/{backfill}/resume": Right.OPERATE,
    "POST /backfills/{backfill}/pause": Right.OPERATE,
    "POST /backfills/{backfill}/cancel": Right.OPERATE,
    "POST /backfills/{backfill}/revert": Right.OPERATE,
    "POST /segments/{table}/reload": Right.OPERATE,
    "POST /segments/{table}/{segment}/reload": Right.OPERATE,
    "POST /segments/{table}/reset": Right.OPERATE,
    "POST /segments/{table}/{segment}/reset": Right.OPERATE,
    "POST /segments/{table}/startReplaceSegments": Right.OPERATE,
    "POST /segments/{table}/endReplaceSegments": Right.OPERATE,
    "POST /segments/{table}/revertReplaceSegments": Right.OPERATE,
    "DELETE /segments/{table}/{segment}": Right.ADMIN,
    "POST /tasks/schedule": Right.OPERATE,
    "POST /ui/sign-in": Right.READ,
    "POST /ui/sign-out": Right.READ,
    "POST /ui/tables/{table}/pause": Right.OPERATE,
    "POST /ui/tables/{table}/resume": Right.OPERATE,
    "POST /ui/tables/{table}/move": Right.OPERATE,
    "POST /ingestFromFile": Right.OPERATE,
    "POST /ingestFromURI": Right.OPERATE,
    "POST /jobs": Right.OPERATE,
}

READING_VERBS = {
    *(
        "table_dropped",
        "table_export",
        "table_list",
        "table_show",
        "table_view",
        "table_validate",
        "table_copies",
        "query",
        "queries",
        "explain",
        "status",
    ),
    *("segments", "segment", "boundary", "replacements", "replacement", "rejected", "backfills", "backfill", "purges"),
    *("connector_reset_plan", "pause_status", "runs", "run", "run_hints", "schedules", "connectors", "flows"),
    *("erasures", "erasure"),
}


@pytest.fixture
def hy(home: Path) -> Iterator[Hybrid]:
    """A home with the OFFLINE table orders."""
    made = Hybrid(load_settings(home=home), Silent())
    made.create_table(TableDocuments.read(DATA / "orders_schema.json", [DATA / "orders_offline_table.json"]))
    yield made
    made.close()


@pytest.fixture
def client(hy: Hybrid) -> TestClient:
    """The application over it, as it is on loopback."""
    return TestClient(build_app(hy, ServerLimits(run_wait_s=5), "http://x", hosts=None))


def add(home: Path, name: str, right: Right) -> dict[str, str]:
    """A new account; the header that names it."""
    return bearer(Accounts(home).add(name, right)[1])


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def basic(text: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}


def test_the_secret_of_the_home_counts_on_this_machine_only(home: Path) -> None:
    home.mkdir(parents=True)
    (home / SERVER_FILE).write_text(json.dumps({"secret": "of-the-home"}), encoding="utf-8")
    accounts, header = door_module.Authentication(home, closed=True), b"Bearer of-the-home"
    for peer in ("127.0.0.1", "::1"):
        account = accounts.account("/tables", header, peer)
        assert account is not None and account.right is Right.ADMIN
    for peer in ("192.0.2.1", "2001:db8::1"):
        with pytest.raises(AccessError, match="for this machine only"):
            accounts.account("/tables", header, peer)


# Rights by path


def test_every_path_and_verb_has_its_right(hy: Hybrid) -> None:
    changing = {place for place in routes(build_app(hy, ServerLimits(), "http://x")) if not place.startswith("GET ")}
    undecided = {place for place in changing - PATH_RIGHTS.keys() if not place.startswith("POST /ui/")}
    assert undecided == {"POST /verbs/{verb}"}
    assert PATH_RIGHTS.keys() - changing == set()


def test_every_change_of_the_console_declares_its_right() -> None:
    posts = [route for router in CONSOLE_ROUTERS for route in router.routes if "POST" in getattr(route, "methods", ())]
    assert posts and [route for route in posts if getattr(route, "endpoint", None) not in _NEEDED] == []


def routes(app: FastAPI) -> set[str]:
    found = set()
    waiting: list[Any] = list(app.routes)
    for route in waiting:
        if isinstance(route, APIRoute):
            found |= {f"{method} {route.path}" for method in route.methods}
        else:
            waiting += getattr(getattr(route, "original_router", None), "routes", [])
    assert "POST /query/sql" in found and "DELETE /tables/{table}" in found
    return found


@pytest.mark.parametrize(("place", "right"), PATH_RIGHTS.items())
def test_paths_are_told_apart(place: str, right: Right) -> None:
    method, path = place.split(" ")
    assert RIGHTS.right_for(method, re.sub(r"{\w+}", "orders", path)) is right


def test_what_nobody_decided_takes_the_highest_right() -> None:
    posted = ("/new", "/query/sql/", "//sql", "/verbs/new", "/verbs/query/", "/tables/a/b/forceCommit")
    asked = [*(("POST", path) for path in posted), ("PATCH", "/query/sql"), ("DELETE", "/verbs/query")]
    assert {RIGHTS.right_for(method, path) for method, path in asked} == {Right.ADMIN}


def test_a_route_without_a_right_takes_the_highest() -> None:
    router = APIRouter()

    @router.post("/declared/{name}")
    @needs(Right.READ)
    def declared(name: str) -> None:
        pass

    @router.post("/forgotten/{name}")
    def forgotten(name: str) -> None:
        pass

    rights = RouteRights(router.routes)
    assert rights.right_for("POST", "/declared/a") is Right.READ
    assert rights.right_for("POST", "/forgotten/a") is Right.ADMIN


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_verb_that_reads_changes_nothing(verb: str) -> None:
    """What a read account may call is listed: a new verb is not among them by mistake."""
    assert (VERBS[verb].right is Right.READ) == (verb in READING_VERBS)


# Who is let in


@pytest.mark.slow
def test_without_accounts_everybody_is_let_in_on_loopback(client: TestClient) -> None:
    assert client.post("/query/sql", json=COUNT).json()["resultTable"]["rows"] == [[0]]
    assert client.post("/query/sql", json=COUNT, headers=basic("any:thing")).status_code == 200
    assert client.get("/tables").status_code == 200


@pytest.mark.slow
def test_without_accounts_nobody_is_let_in_elsewhere(hy: Hybrid) -> None:
    client = TestClient(build_app(hy, ServerLimits(), "http://x", hosts=None, closed=True, accounts_look_s=-1.0))
    assert client.get("/tables").status_code == client.post("/query/sql", json=COUNT).status_code == 401
    header = add(hy.home, "ada", Right.READ)
    assert client.get("/tables", headers=header).status_code == 200
    Accounts(hy.home).remove("ada")
    assert client.get("/tables", headers=header).status_code == 401


def test_what_load_balancers_ask_is_answered(hy: Hybrid, client: TestClient) -> None:
    add(hy.home, "ada", Right.READ)
    for path in sorted(OPEN_PATHS):
        assert client.get(path).status_code in {200, 503}, path
        assert client.get(path, headers={"Authorization": "nonsense"}).status_code in {200, 503}, path


@pytest.mark.slow
def test_bearer_and_basic(hy: Hybrid, client: TestClient) -> None:
    header = add(hy.home, "ada", Right.READ)
    secret = header["Authorization"].removeprefix("Bearer ")
    for good in (header, basic(f"ada:{secret}"), {"Authorization": f"bearer  {secret} "}):
        for _ in range(2):  # from memory the second time
            assert client.post("/query/sql", json=COUNT, headers=good).json()["resultTable"]["rows"] == [[0]]


@pytest.mark.slow
def test_who_is_not_known(hy: Hybrid, client: TestClient) -> None:
    secret = add(hy.home, "ada", Right.READ)["Authorization"].removeprefix("Bearer ")
    add(hy.home, "bob", Right.ADMIN)
    wrong = [
        *(None, "", "Bearer", "Bearer ", f"Bearer {secret[:-1]}", f"Bearer {secret}0", "Bearer \xe9", secret),
        *("Digest x=y", f"Token {secret}", "Basic", "Basic !!!", "Basic =", "Basic 4oKs4oKs/w==", f"Basic {secret}"),
        *(basic(f"{before}{secret}")["Authorization"] for before in ("", ":", "bob:", "ada: ", "ada::")),
        *(basic(text)["Authorization"] for text in ("ada:", "ada", "")),
    ]
    for header in wrong:
        headers = {} if header is None else {"Authorization": header.encode("latin-1")}
        answer = client.post("/query/sql", json=COUNT, headers=headers)
        assert answer.status_code == 401, header
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="hybrid", Bearer'
        found = answer.json()
        assert found["code"] == 401 and len(found["error"]) > 20 and found["kind"] == "access", header
        assert secret not in answer.text


@pytest.mark.slow
def test_what_each_right_allows(hy: Hybrid, client: TestClient) -> None:
    read, operate, admin = (add(hy.home, right.word, right) for right in Right)
    asked = [
        ("POST", "/query/sql", COUNT, Right.READ),
        ("GET", "/tables", None, Right.READ),
        ("POST", "/verbs/table_list", {}, Right.READ),
        ("DELETE", "/query/none", None, Right.READ),
        ("POST", "/tasks/schedule?taskType=RealtimeToOfflineSegmentsTask", None, Right.OPERATE),
        ("POST", "/segments/orders/reload", None, Right.OPERATE),
        ("POST", "/verbs/pause", {"table": "none"}, Right.OPERATE),
        ("POST", "/verbs/table_drop", {"table": "none"}, Right.ADMIN),
        ("POST", "/schemas", {}, Right.ADMIN),
        ("DELETE", "/tables/orders", None, Right.ADMIN),
    ]
    for method, path, body, needed in asked:
        for headers, right in ((read, Right.READ), (operate, Right.OPERATE), (admin, Right.ADMIN)):
            answer = client.request(method, path, json=body, headers=headers)
            assert (answer.status_code == 403) is (right < needed), (path, right, answer.text)
            if right < needed:
                assert answer.json()["error"].startswith(
                    f"Account '{right.word}' has the right {right.word}; {method} "
                )
                assert answer.json()["error"].endswith(f" takes {needed.word}.") and answer.json()["code"] == 403
    assert hy.table_names() == []  # the last one, and nobody before


def test_a_change_of_the_file_is_seen(hy: Hybrid) -> None:
    client = TestClient(build_app(hy, ServerLimits(), "http://x", hosts=None, accounts_look_s=-1.0))
    ada = add(hy.home, "ada", Right.READ)
    assert client.get("/tables", headers=ada).status_code == 200
    bob = add(hy.home, "bob", Right.READ)
    assert client.get("/tables", headers=bob).status_code == 200  # at once: who is not known makes it look
    Accounts(hy.home).remove("ada")
    assert client.get("/tables", headers=ada).status_code == 401
    Accounts(hy.home).remove("bob")
    assert client.get("/tables").status_code == 200


@pytest.mark.slow
def test_the_file_is_looked_at_once_a_second(hy: Hybrid, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    header = add(hy.home, "ada", Right.READ)
    assert client.get("/tables", headers=header).status_code == 200
    looks: list[Path] = []
    there = door_module._stamp
    monkeypatch.setattr(door_module, "_stamp", lambda path: looks.append(path) or there(path))
    for _ in range(20):
        assert client.get("/version", headers=header).status_code == 200
        assert client.post("/query/sql", json=COUNT, headers=header).status_code == 200
    assert len(looks) <= 2 * 3


def test_a_damaged_file_lets_nobody_in(hy: Hybrid) -> None:
    client = TestClient(build_app(hy, ServerLimits(), "http://x", hosts=None, accounts_look_s=-1.0))
    for text in ("", "{", "[]", '{"accounts": [{}]}', '{"accounts": [{"name": "a", "right": "all"}]}'):
        (hy.home / "access.json").write_text(text)
        assert client.get("/tables").status_code == 401, text
        assert run(["--home", str(hy.home), "access", "list"]) == 1, text
        (hy.home / "access.json").unlink()
        assert client.get("/tables").status_code == 200, "without the file everybody is let in again"


def test_a_page_of_another_site_is_refused_everywhere(hy: Hybrid) -> None:
    header = add(hy.home, "ada", Right.ADMIN)
    client = TestClient(
        build_app(hy, ServerLimits(), "http://x", hosts=None, closed=True), base_url="http://tables.example"
    )
    for origin, status in (("http://evil.example", 403), ("null", 403), ("http://tables.example", 200)):
        assert client.get("/tables", headers={**header, "Origin": origin}).status_code == status


def test_loopback_names_still_count_on_loopback(hy: Hybrid) -> None:
    header = add(hy.home, "ada", Right.ADMIN)
    client = TestClient(build_app(hy, ServerLimits(), "http://x", hosts=LOOPBACK), base_url="http://tables.example")
    assert client.get("/tables", headers=header).status_code == 421


# What is written down


@pytest.mark.slow
def test_records_name_the_account_and_no_secret(hy: Hybrid, client: TestClient) -> None:
    headers = add(hy.home, "ada", Right.ADMIN)
    secret = headers["Authorization"].removeprefix("Bearer ")
    gate._LOG.flush()  # what other tests have left to be told later
    setup_logging(hy.settings.logs, "query")
    client.post("/query/sql", json=COUNT, headers=headers)
    client.post("/query/sql", json=COUNT, headers={"Authorization": f"Bearer {secret}x"})
    spec = (DATA.parents[1] / "job_specs/orders/job-spec.yml").read_text()
    variables = {"segmentName": "orders_1632463351000_1632467070000_0"}
    wanted = {"spec": spec, "variables": variables, "input": str(DATA / "corrected"), "user": "somebody"}
    queued = client.post("/jobs", json=wanted, headers=headers).json()
    kept = hy.run(queued["id"])
    assert kept.source == "http:ada" and kept.arguments["user"] == "ada"
    gate._LOG.flush()
    records = [one for one in read_logs(hy.settings.logs) if "/query/sql" in one["message"]]
    assert [one.get("account") for one in records] == ["ada", None]
    written = b"".join(path.read_bytes() for path in hy.home.rglob("*") if path.is_file())
    assert secret.encode() not in written


# A whole server


def await_refusal(server: Server) -> None:
    """Waits until it answers, to somebody without an account."""
    server.await_true(lambda: server.answers("/tables", 401), "it refuses")


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_server_with_accounts(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = ["--home", str(home)]
    assert run([*there, "serve", "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "has no account yet" in capsys.readouterr().err
    files = ("--schema", str(DATA / "orders_schema.json"), "--config", str(DATA / "orders_offline_table.json"))
    assert run([*there, "table", "create", *files]) == 0
    capsys.readouterr()
    assert run([*there, "access", "add", "grafana", "--right", "read"]) == 0
    secret = capsys.readouterr().out.strip()
    with ExitStack() as ending:
        server = Server(home, options=("--host", "0.0.0.0"))
        ending.callback(server.kill)
        await_refusal(server)  # nothing here needs the pipeline, which takes much longer to start
        assert server.url.startswith("http://127.0.0.1:")
        assert stat.S_IMODE((home / "server.json").stat().st_mode) == 0o600
        assert server.call("POST", "/query/sql", COUNT)[0] == 401

        port = int(server.url.rpartition(":")[2])
        asks = {"host": "127.0.0.1", "port": port, "path": "/query/sql", "scheme": "http"}
        with closing(pinotdb.connect(**asks, username="grafana", password=secret)) as known:
            cursor = known.cursor()
            cursor.execute("select count(*) from orders")
            assert list(cursor) == [[0]]
        with closing(pinotdb.connect(**asks)) as unknown, pytest.raises(DatabaseError):
            unknown.cursor().execute("select count(*) from orders")
        name = f"grafana:{secret}@127.0.0.1:{port}"
        engine = sa.create_engine(f"pinot://{name}/query/sql?controller=http://127.0.0.1:{port}/")
        assert sa.inspect(engine).get_table_names() == ["orders"]
        engine.dispose()

        # The command line on the home needs nothing; elsewhere it needs the secret, and has no other right.
        assert run([*there, "table", "list", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)[0]["name"] == "orders"
        away = ["--home", str(home.parent / "away"), "--server", server.url]
        assert run([*away, "table", "list"]) == 1
        assert "--token" in capsys.readouterr().err
        assert run([*away, "--token", secret, "query", "select count(*) from orders"]) == 0
        assert run([*away, "--token", secret, "table", "drop", "orders"]) == 1
        assert "has the right read; POST /verbs/table_drop takes admin." in capsys.readouterr().err

        # The last account goes, then `hybrid serve`: its successor lets in nobody but the home's own command line.
        assert run([*there, "access", "remove", "grafana"]) == 0
        before = server.address
        os.kill(before["pid"], signal.SIGKILL)
        while server.address["secret"] == before["secret"]:
            time.sleep(0.1)
        await_refusal(server)
        assert stat.S_IMODE((home / "server.json").stat().st_mode) == 0o600
        assert run([*there, "table", "drop", "orders"]) == 0
