"""Three servers with pinned tables, two copies each: what is passed on, to whom, and what is answered if that fails."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.settings import load_settings
from hybrid.home.accounts import Accounts, Right
from hybrid.operations.tables.create import _definition
from hybrid.progress import Silent
from hybrid.rpc.client import SERVER_FILE
from hybrid.serve.context import ServerLimits
from hybrid.serve.passing_on import PASSED_ON
from hybrid.serve.peer_client import PeerTuning
from tests.operations.pinned_homes import table_on
from tests.query.halves import Halves, Row
from tests.serve.app import OFFLINE, SCHEMA, App
from tests.serve.test_queries import SLOW

TIMES = {"timeUsedMs", "requestId", "minConsumingFreshnessTimeMs", "stats", "result"}
TUNING = PeerTuning(probe_every_s=1.0, probe_s=2.0)


def free_ports(number: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


class Cluster:
    """Three servers by number; `ab`, `bc` and `ca` are tables by the servers that hold them, in that order."""

    def __init__(self, folder: Path, together: str = "") -> None:
        self.folder, self.together = folder, together
        self.ports = free_ports(3)
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]
        a, b, c = self.urls
        self.ab, self.bc, self.ca = (table_on(self.urls, *pair) for pair in ((a, b), (b, c), (c, a)))
        self.held = [(self.ab, self.ca), (self.bc, self.ab), (self.ca, self.bc)]
        for number in range(3):
            self.lay(number)
        self.apps = [self.start(number) for number in range(3)]

    def lay(self, number: int) -> None:
        """The home of a server, as its follower leaves it."""
        home = Hybrid(load_settings(home=self.folder / f"q{number}", environ={}), Silent())
        for place, name in enumerate((self.ab, self.bc, self.ca)):
            schema, config = {**SCHEMA, "schemaName": name}, {**OFFLINE, "tableName": name}
            config["segmentsConfig"] = {**config["segmentsConfig"], "schemaName": name}
            spec = home.validate(TableDocuments((schema, "schema"), [(config, "config")]))
            if name not in self.held[number]:
                home.context.remote.put(name, asdict(_definition(spec)))
                continue
            rows = [{"order_id": key, "customer": "ada", "amount": 1.5, "ts": 1000 + key} for key in range(place + 2)]
            halves = Halves.create(home.settings.warehouse, spec)
            halves.commit_offline([Row(values, values["ts"], None, None, segment="history") for values in rows])
            home.context.definitions.add(_definition(spec))
        home.close()

    def start(self, number: int) -> App:
        environ = {
            "HYBRID_WAREHOUSE": "s3://bucket/prefix",
            "HYBRID_PINNING_SERVERS": ",".join(self.urls),
            "HYBRID_PINNING_SELF": self.urls[number],
            "HYBRID_PINNING_TOGETHER": self.together,
        }
        limits = ServerLimits(query_timeout_ms=20_000)
        app = App(self.folder / f"q{number}", limits, environ=environ, port=self.ports[number])
        assert app.app._passing_on is not None
        app.app._passing_on.tuning = TUNING
        return app

    def close(self) -> None:
        for app in self.apps:
            app.close()

    @contextmanager
    def without(self, *numbers: int) -> Iterator[None]:
        """Servers are stopped, and started again at the end."""
        for number in numbers:
            self.apps[number].close()
        try:
            yield
        finally:
            for number in numbers:
                self.apps[number] = self.start(number)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def server(self) -> str | None:
        """The server that it was passed on to."""
        return self.headers.get("x-hybrid-answered-by")


def ask(app: App, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=60)
    with closing(connection):
        connection.request(method, path, None if body is None else json.dumps(body), dict(headers or {}))
        response = connection.getresponse()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


def query(app: App, sql: str, **more: Any) -> Answer:
    return ask(app, "POST", "/query/sql", {"sql": sql, **more})


def rows(app: App, sql: str) -> list[list[Any]]:
    answer = query(app, sql)
    assert answer.status == 200 and answer.json["exceptions"] == [], answer
    return answer.json["resultTable"]["rows"]


def failure(answer: Answer) -> tuple[int, str]:
    """The error of a statement, as Pinot's clients read it."""
    error = answer.json["exceptions"][0]
    return error["errorCode"], error["message"]


def test_each_server_answers_for_each_table(cluster: Cluster) -> None:
    for number, app in enumerate(cluster.apps):
        for count, name in enumerate((cluster.ab, cluster.bc, cluster.ca), 2):
            answer = query(app, f"select count(*) from {name}")
            assert answer.json["resultTable"]["rows"] == [[count]]
            assert answer.server == (None if name in cluster.held[number] else cluster.urls[(number + 1) % 3])
            assert rows(app, f'select count(*) from "{name.upper()}_OFFLINE" where order_id >= 1') == [[count - 1]]


def test_each_way_to_ask_is_passed_on(cluster: Cluster) -> None:
    a, _, c = cluster.apps
    sql, path = f"select count(*) as n from {cluster.ab}", f"/query/sql?sql=select+count(*)+from+{cluster.ab}"
    same = [
        (ask(c, "POST", url, {"sql": sql}), ask(a, "POST", url, {"sql": sql}))
        for url in ("/query", "/sql", "/verbs/query", "/verbs/explain", "/query/export")
    ] + [
        (ask(c, "GET", url), ask(a, "GET", url))
        for url in (
            path,
            path.replace("/query/sql", "/ui/query.json"),
            path.replace("/query/sql", "/query/export"),
            f"/segments/{cluster.ab}",
            f"/tables/{cluster.ab}_OFFLINE",
            f"/tables/{cluster.ab}/size",
            f"/ui/tables/{cluster.ab}/segments.json",
        )
    ]
    for passed, direct in same:
        assert passed.server == cluster.urls[0] and direct.server is None, (passed, direct)
        assert passed.status == direct.status == 200
        assert without_times(passed) == without_times(direct)
    for body in ({"table": cluster.ab}, {"table": f"{cluster.ab}"}):
        passed, direct = ask(c, "POST", "/verbs/segments", body), ask(a, "POST", "/verbs/segments", body)
        assert passed.server == cluster.urls[0] and passed.json == direct.json
    arrow = ask(c, "POST", "/query/sql", {"sql": sql}, {"Accept": "application/vnd.apache.arrow.stream"})
    assert arrow.headers["content-type"] == "application/vnd.apache.arrow.stream" and arrow.server == cluster.urls[0]
    page = ask(c, "GET", f"/ui/tables/{cluster.ab}/segments", headers={"Accept": "text/html"})
    assert page.status == 200 and page.server == cluster.urls[0] and b"history" in page.body
    tag = page.headers["etag"]
    again = ask(c, "GET", f"/ui/tables/{cluster.ab}/segments", headers={"Accept": "text/html", "If-None-Match": tag})
    assert again.status == 304 and again.body == b""
    escaped = json.dumps({"sql": sql}).replace(cluster.ab[0], f"\\u{ord(cluster.ab[0]):04x}")
    status, found = c.call("POST", "/query/sql", escaped)
    assert (status, found["resultTable"]["rows"]) == (200, [[2]])
    for sql in (f"select count(*)\nfrom\n\t{cluster.ab}", f"select count(*), 'é' from {cluster.ab}"):
        assert query(c, sql).server == cluster.urls[0]


def without_times(answer: Answer) -> Any:
    """What of a response does not depend on when it was asked."""
    if "json" not in answer.headers["content-type"] or not isinstance(answer.json, dict):
        return answer.body
    return {key: value for key, value in answer.json.items() if key not in TIMES}


def test_lists_have_all_tables(cluster: Cluster) -> None:
    names = sorted([cluster.ab, cluster.bc, cluster.ca])
    suffixed = sorted(f"{name}_OFFLINE" for name in names)  # t20_OFFLINE comes before t2_OFFLINE, and t20 after t2
    for app in cluster.apps:
        assert app.get("/tables")["tables"] == app.get("/tableConfigs") == app.get("/schemas") == names
        assert all(app.get(f"/schemas/{name}")["schemaName"] == name for name in names)
        assert app.get("/tables?type=offline")["tables"] == suffixed
        assert sorted(app.get("/v2/brokers/tables")) == sorted(app.get("/brokers/tables")) == names
        assert sorted(app.get("/tables/livebrokers")) == suffixed
        assert [row[0] for row in rows(app, "show tables")] == names
        assert [table["name"] for table in app.ok("POST", "/verbs/table_list", {})] == names
        for name in names:  # clients send statements to any server
            assert app.get(f"/v2/brokers/tables/{name}")[0]["port"] == app.port
            assert app.get(f"/tables/{name}/instances")["tableName"] == name
        page = ask(app, "GET", "/", headers={"Accept": "text/html"}).body.decode()
        assert all(f'href="/ui/tables/{name}"' in page for name in names)
        (remote,) = app.ok("POST", "/verbs/status", {})["remote"]
        assert "On other servers:" in page and remote in names
    assert "2 tables, 1 on other servers" in str(cluster.apps[0].call("GET", "/readyz")[1])


def test_a_statement_over_several_tables(cluster: Cluster) -> None:
    a, b, c = cluster.apps
    sql = f"select count(*) from {cluster.ab} x join {cluster.bc} y on x.order_id = y.order_id"
    answers = [query(app, sql) for app in (a, b, c)]
    assert [answer.json["resultTable"]["rows"] for answer in answers] == [[[2]]] * 3
    assert [answer.server for answer in answers] == [cluster.urls[1], None, cluster.urls[1]]
    assert len({answer.json["revision"] for answer in answers}) == 1
    everything = f"select 1 from {cluster.ab}, {cluster.bc}, {cluster.ca}"
    for app in (a, b, c):
        code, message = failure(query(app, everything))
        assert code == 200 and message.startswith("No server holds all tables of this statement: ")
        for name, servers in ((cluster.ab, cluster.urls[:2]), (cluster.bc, cluster.urls[1:])):
            assert f"'{name}' is on {', '.join(servers)}" in message
        assert "Set together = [[" in message and "raise copies" in message
        assert ask(app, "POST", "/verbs/query", {"sql": everything}).status == 400


def test_tables_of_a_group_are_at_the_same_servers(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.close()
    together = f"{cluster.ab},{cluster.bc},{cluster.ca}"
    grouped = Cluster.__new__(Cluster)
    grouped.__dict__.update(cluster.__dict__, together=together, held=[(cluster.ab, cluster.bc, cluster.ca)] * 2 + [()])
    grouped.folder = tmp_path / "grouped"
    for number in range(3):
        grouped.lay(number)
    grouped.apps = [grouped.start(number) for number in range(3)]
    try:
        for app in grouped.apps:
            assert rows(app, f"select count(*) from {cluster.ab}, {cluster.bc}, {cluster.ca}") == [[2 * 3 * 4]]
    finally:
        grouped.close()


def test_names_in_texts_and_of_ctes_are_no_tables(cluster: Cluster) -> None:
    c, name = cluster.apps[2], cluster.ab
    for sql in (f"select '{name}' from {cluster.ca} limit 1", f"with {name} as (select 1 as n) select n from {name}"):
        assert query(c, sql).server is None and rows(c, sql) in ([[name]], [[1]])
    code, message = failure(query(c, f"select from from {name}"))
    assert code == 150, message
    code, message = failure(query(c, f"select 1 from {name}, {name}_x"))
    assert code == 190 and f"Table '{name}_x' does not exist" in message


def test_errors_and_parameters_pass_through(cluster: Cluster) -> None:
    a, c = cluster.apps[0], cluster.apps[2]
    sql = f"select customer, nothing from {cluster.ab}"
    assert failure(query(c, sql)) == failure(query(a, sql))
    assert ask(c, "GET", f"/segments/{cluster.ab}/none/metadata").status == 404
    found = query(c, f"select count(*) from {cluster.ab} where order_id >= :low", params={"low": 1})
    assert found.json["resultTable"]["rows"] == [[1]] and found.server == cluster.urls[0]
    assert ask(c, "POST", "/query/sql", {"sql": ""}).status == 400


def test_what_would_change_a_table_is_not_passed_on(cluster: Cluster) -> None:
    c = cluster.apps[2]
    for method, path, body in (
        ("POST", f"/tables/{cluster.ab}/pauseConsumption", None),
        ("DELETE", f"/tables/{cluster.ab}", None),
        ("POST", "/verbs/move", {"table": cluster.ab}),
    ):
        status, sentence = c.refused(method, path, body)
        assert status == 409 and f"does not hold table '{cluster.ab}', but {', '.join(cluster.urls[:2])}" in sentence


def test_a_request_is_passed_on_once(cluster: Cluster) -> None:
    c, headers = cluster.apps[2], {PASSED_ON.decode(): "http://other"}
    answer = ask(c, "POST", "/query/sql", {"sql": f"select 1 from {cluster.ab}"}, headers)
    assert answer.status == 421 and f"does not have table '{cluster.ab}'" in answer.json["error"]
    assert ask(c, "POST", "/query/sql", {"sql": f"select 1 from {cluster.ca}"}, headers).status == 200


def test_a_holder_that_does_not_know_its_tables_yet_denies_none(cluster: Cluster) -> None:
    sql, definition = f"select count(*) from {cluster.ab}", cluster.folder / "q0" / "warehouse" / cluster.ab
    aside = definition.rename(definition.with_name(".aside"))
    try:
        answer = query(cluster.apps[2], sql)
        assert answer.json["resultTable"]["rows"] == [[2]] and answer.server == cluster.urls[1]
    finally:
        aside.rename(definition)


def test_the_next_server_is_asked(cluster: Cluster) -> None:
    """The first holder is stopped; then it accepts connections and answers nothing, as one that is frozen does."""
    sql = f"select count(*) from {cluster.ab}"
    with cluster.without(0):
        c = cluster.apps[2]
        answer = query(c, sql)
        assert (answer.server, answer.json["resultTable"]["rows"]) == (cluster.urls[1], [[2]])
        assert passed_on(c, cluster.urls[0], "silent") == 1
        assert query(c, sql).server == cluster.urls[1]
        assert passed_on(c, cluster.urls[0], "silent") == 1, "it is asked last for a while"
        c.app._passing_on._silent_until.clear()
        with socket.create_server(("127.0.0.1", cluster.ports[0])):
            assert query(c, sql).server == cluster.urls[1]
        c.app._passing_on._silent_until.clear()
        refused = passed_on(c, cluster.urls[0], "refused")
        with stub(cluster.ports[0], lambda request: request.send_error(503)):
            assert query(c, sql).server == cluster.urls[1]
        assert passed_on(c, cluster.urls[0], "refused") == refused + 1
    cluster.apps[2].app._passing_on._silent_until.clear()
    assert query(cluster.apps[2], sql).server == cluster.urls[0]


def test_all_holders_are_down(cluster: Cluster) -> None:
    sql = f"select count(*) from {cluster.ab}"
    with cluster.without(0, 1):
        c = cluster.apps[2]
        answer = query(c, sql)
        assert answer.status == 503
        code, message = failure(answer)
        assert code == 427 and all(f"{url} refuses connections" in message for url in cluster.urls[:2])
        status, sentence = c.refused("GET", f"/segments/{cluster.ab}")
        assert status == 503 and f"No server answers that holds table '{cluster.ab}'" in sentence
        page = ask(c, "GET", f"/ui/tables/{cluster.ab}", headers={"Accept": "text/html"})
        assert page.status == 503 and cluster.urls[0].encode() in page.body
        assert rows(c, f"select count(*) from {cluster.ca}") == [[4]], "its own tables are answered"
        logged = c.get("/query/log?limit=1")[0]
        assert (logged["state"], logged["statement"]) == ("DONE", f"select count(*) from {cluster.ca}")
    cluster.apps[2].app._passing_on._silent_until.clear()


def test_a_statement_ends_in_its_time(cluster: Cluster) -> None:
    """Its server stops it; one that does not is left, and sees its connection closed."""
    c, slow = cluster.apps[2], f"{SLOW}, {cluster.ab}"
    code, message = failure(query(c, f"SET timeoutMs = 300; {slow}"))
    assert code == 250 and "after 300 ms" in message
    closed = threading.Event()

    def wait(request: BaseHTTPRequestHandler) -> None:
        if request.path == "/livez":
            request.send_response(200)
            request.end_headers()
            return
        request.rfile.read(int(request.headers["content-length"]))
        assert request.rfile.read(1) == b""
        closed.set()

    with cluster.without(0), stub(cluster.ports[0], wait):
        code, message = failure(query(c, f"select 1 from {cluster.ab}", queryOptions="timeoutMs=200"))
        assert (code, closed.wait(10)) == (250, True) and "after 200 ms" in message


def test_a_statement_is_stopped_at_both_servers(cluster: Cluster) -> None:
    """By its id, and when its client goes away."""
    a, c = cluster.apps[0], cluster.apps[2]
    slow = {"sql": f"{SLOW}, {cluster.ab}"}
    answers: list[Answer] = []
    thread = threading.Thread(
        target=lambda: answers.append(ask(c, "POST", "/query/sql", slow, {"X-Request-Id": "slow-1"}))
    )
    thread.start()
    await_true(lambda: [one["id"] for one in a.get("/query/log?limit=5") if one["state"] == "RUNNING"] == ["slow-1"])
    assert c.call("DELETE", "/query/slow-1")[0] == 200
    thread.join()
    assert failure(answers[0])[0] == 503
    await_true(lambda: not a.app.state.context.queries.list() and not c.app.state.context.queries.list())
    connection = http.client.HTTPConnection("127.0.0.1", c.port)
    connection.request("POST", "/query/sql", json.dumps(slow))
    await_true(lambda: bool(a.app.state.context.queries.list()))
    connection.close()
    await_true(lambda: not a.app.state.context.queries.list() and not c.app.state.context.queries.list())


def test_a_response_that_ends_early_is_not_taken_for_whole(cluster: Cluster) -> None:
    def half(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "100")
        request.end_headers()
        request.wfile.write(b"half")

    with cluster.without(0), stub(cluster.ports[0], half), pytest.raises(http.client.IncompleteRead):
        query(cluster.apps[2], f"select 1 from {cluster.ab}")


def test_accounts_are_those_of_the_callers(cluster: Cluster) -> None:
    """Each server asks for the account itself. A browser's session is of one server alone."""
    c, sql = cluster.apps[2], {"sql": f"select count(*) from {cluster.ab}"}
    files = [Accounts(app.home.home) for app in cluster.apps]
    _, secret = files[0].add("ada", Right.READ)
    _, own = files[2].add("local", Right.READ)
    try:
        files[1].path.write_bytes(files[0].path.read_bytes())
        document = json.loads(files[2].path.read_text())
        document["accounts"] += json.loads(files[0].path.read_text())["accounts"]
        files[2].path.write_text(json.dumps(document))
        time.sleep(1.1)  # how long servers keep what they have read of accounts
        bearer = {"Authorization": f"Bearer {secret}"}
        assert ask(c, "POST", "/query/sql", sql, bearer).json["resultTable"]["rows"] == [[2]]
        assert ask(c, "POST", "/query/sql", sql, {"Authorization": f"Bearer {own}"}).status == 401
        assert ask(c, "POST", "/query/sql", sql).status == 401
        session = c.app.state.authentication.sign_in(secret)[1]
        cookie = {"Cookie": f"hybrid_session_{c.port}={session}", "Accept": "text/html"}
        page = ask(c, "GET", f"/ui/tables/{cluster.ab}", headers=cookie)
        assert page.status == 409 and cluster.urls[0].encode() in page.body and b"Sign in there" in page.body
    finally:
        for file in files:
            file.path.unlink(missing_ok=True)
        time.sleep(1.1)


def test_the_secret_of_a_home_stays_on_its_machine(cluster: Cluster) -> None:
    """The command line of a home sends it to the home's server, which has no accounts here."""
    c, sent = cluster.apps[2], list[tuple[str | None, str | None]]()

    def note(request: BaseHTTPRequestHandler) -> None:
        sent.append((request.headers["authorization"], request.headers[PASSED_ON.decode()]))
        request.send_error(400)

    with cluster.without(0), stub(cluster.ports[0], note):
        (c.home.home / SERVER_FILE).write_text(json.dumps({"secret": "own"}))
        for secret in ("own", "a-callers"):
            headers = {"Authorization": f"Bearer {secret}"}
            assert ask(c, "GET", f"/segments/{cluster.ab}", headers=headers).status == 400
        (c.home.home / SERVER_FILE).unlink()
    assert sent == [(None, cluster.urls[2]), ("Bearer a-callers", cluster.urls[2])]


def test_a_table_that_is_not_brought_yet(tmp_path: Path, cluster: Cluster) -> None:
    """It is pinned to one server alone, which was started with a new list just now."""
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    home = Hybrid(load_settings(home=tmp_path / "q", environ={}), Silent())
    home.context.remote.put("t", asdict(cluster.apps[2].home.context.remote.find(cluster.ab)))  # type: ignore[arg-type]
    home.close()
    environ = {
        "HYBRID_WAREHOUSE": "s3://bucket/prefix",
        "HYBRID_PINNING_SERVERS": url,
        "HYBRID_PINNING_SELF": url,
        "HYBRID_PINNING_COPIES": "1",
    }
    app = App(tmp_path / "q", environ=environ)
    try:
        answer = query(app, "select 1 from t")
        assert answer.status == 503 and "has not brought all of it yet" in answer.json["error"]
        app.home.context.remote.remove("t")
        assert failure(query(app, "select 1 from t"))[0] == 190
    finally:
        app.close()


def passed_on(app: App, server: str, outcome: str, kind: str = "statement") -> float:
    """How often requests were passed on, by the metrics."""
    labels = f'{{kind="{kind}",outcome="{outcome}",server="{server}"}}'
    line = next((line for line in app.get("/metrics").splitlines() if f"passed_on_total{labels}" in line), "0 0")
    return float(line.rpartition(" ")[2])


def await_true(look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def stub(port: int, answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[None]:
    """A server that treats each request as it is told."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
