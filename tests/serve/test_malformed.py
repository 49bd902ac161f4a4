"""Whatever is sent, the answer is a sentence in the one shape of errors: 4xx, never a 500, and nothing is changed."""

import itertools
import json
import random
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from fastapi.routing import APIRoute

from hybrid.rpc.verbs import VERBS
from hybrid.serve.app import _ROUTERS
from hybrid.serve.context import ServerLimits
from tests.serve.app import MOVED, OFFLINE, SCHEMA, App, form, lay_orders, orders_app

DEEP = "[" * 5000 + "]" * 5000
TEXTS = [
    b"", b" ", b"{", b"}", b"[]", b"null", b"1", b'"x"', b"{]", b"NaN", b'{"a": NaN}', b'{"a": 1e999}', b"\x00",
    b"\xff\xfe", b'{"a": "\xc3"}', b'{"a": 1, "a": 2}', b'{"a": ' + b"9" * 5000 + b"}", b'{"a": "\\ud800"}',
    b'{"\\ud800": 1}', DEEP.encode(), b'{"a":' * 300 + b"1" + b"}" * 300, b"schemaName=orders", b"<xml/>",
    b"{'a': 1}", b'{"a": 1,}', b'{"a": undefined}', b"\xef\xbb\xbf", b"true false", b'{"a"}', b'{"schemaName": null}',
]  # fmt: skip
NAMES = [
    "%00", "..", "%2e%2e", "..%2f..%2fetc", "%2Fetc%2Fpasswd", "orders%00", "orders%0a", "%ff", "%F0%9F%98%80",
    ".dropped", ".schemas", "x" * 5000, "a%20b", "'", "%22", "orders;drop", "$segmentName", "*", "orders_", "_OFFLINE",
    "orders_OFFLINE_OFFLINE", "%25", "~", "-", "null",
]  # fmt: skip
PATHS = [
    ("GET", "/schemas/{}"), ("DELETE", "/schemas/{}"), ("GET", "/tables/{}"), ("DELETE", "/tables/{}"),
    ("GET", "/tables/{}/schema"), ("GET", "/tables/{}/size"), ("GET", "/tables/{}/metadata"), ("GET", "/segments/{}"),
    ("GET", "/segments/{}/lineage"), ("GET", "/segments/orders/{}/metadata"), ("DELETE", "/segments/orders/{}"),
    ("POST", "/tables/{}/pauseConsumption"), ("POST", "/tables/{}/forceCommit"), ("GET", "/tables/{}/rejected"),
    ("GET", "/tables/{}/replacements"), ("GET", "/tables/orders/replacements/{}"), ("GET", "/jobs/{}"),
    ("GET", "/tasks/{}/state"), ("GET", "/tasks/task/{}/debug"), ("GET", "/tables/forceCommitStatus/{}"),
    ("GET", "/runs/{}"), ("POST", "/tasks/schedule?tableName={}"), ("GET", "/debug/timeBoundary/{}"),
]  # fmt: skip
VALUES = [
    ("GET", "/tables?type={}"), ("GET", "/segments/orders?type={}"), ("GET", "/tables/orders/rejected?limit={}"),
    ("GET", "/tables/orders/rejected?offset={}"), ("GET", "/tables/orders/size?verbose={}"),
    ("POST", "/tasks/schedule?taskType={}"), ("POST", "/tables/orders/resumeConsumption?consumeFrom={}"),
    ("POST", "/tables/orders/forceCommit?segments={}"), ("POST", "/jobs?wait={}"),
]  # fmt: skip


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Over a home with the table orders, for all tests: nothing that they send changes it."""
    with closing(orders_app(tmp_path_factory.mktemp("malformed"))) as app:
        yield app


def state_of(app: App) -> Any:
    """What must not change."""
    tables = {name: app.get(f"/tables/{name}") for name in app.home.table_names()}
    pauses = app.home.context.catalog.serving.pauses()
    return app.get("/schemas"), tables, app.get("/segments/orders"), len(app.home.runs()), pauses


@pytest.mark.slow
def test_bodies(orders: App) -> None:
    before = state_of(orders)
    kinds = [{"Content-Type": "application/json"}, {"Content-Type": "text/plain"}, {}]
    targets = [("POST", "/schemas"), ("PUT", "/schemas/orders"), ("POST", "/tables"), ("PUT", "/tables/orders")]
    others = [("POST", "/jobs"), ("POST", "/query/sql"), ("POST", "/verbs/query")]
    tried = 0
    for (method, path), text in itertools.product([*targets, *others], TEXTS):
        status, sentence = orders.refused(method, path, text, headers=kinds[tried % 3])
        assert 400 <= status < 500, (method, path, text[:40], sentence)
        tried += 1
    assert tried >= 200 and state_of(orders) == before


@pytest.mark.slow
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_arguments_that_no_verb_has(orders: App, verb: str) -> None:
    """It also says that the server knows the types of each verb's arguments."""
    status, error = orders.call("POST", f"/verbs/{verb}", {"nothing": 1})
    assert status == 400, error


@pytest.mark.slow
def test_documents_that_are_nearly_right(orders: App) -> None:
    """Every value of a good schema and config, one after the other, replaced by something that does not belong."""
    before = state_of(orders)
    random.seed(7)
    for good, path in ((SCHEMA, "/schemas"), (OFFLINE, "/tables")):
        good = json.loads(json.dumps(good).replace("orders", "others"))
        for wrong in mutations(good):
            status, found = orders.call("POST", path, wrong)
            assert status < 500, (wrong, found)
            if status == 200:  # what is optional may be left out: it goes again
                listed = orders.get(path)
                for name in {*(listed["tables"] if path == "/tables" else listed)} - {"orders"}:
                    orders.ok("DELETE", f"{path}/{name}")
            else:
                assert found["code"] == status and found["error"]
        if path == "/schemas":
            orders.ok("POST", path, good)  # the tables need it
    orders.ok("DELETE", "/schemas/others")
    assert state_of(orders) == before


def mutations(good: dict[str, Any]) -> Iterator[dict[str, Any]]:
    odd: list[Any] = [None, 1, -1.5, True, "", "x", [], {}, [None], [[]], {"a": 1}, "\0", "é" * 300, 10**30]
    for place in places(good):
        for value in random.sample(odd, 6):
            changed = json.loads(json.dumps(good))
            node = changed
            for key in place[:-1]:
                node = node[key]
            node[place[-1]] = value
            yield changed


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), PATHS, ids=[" ".join(one) for one in PATHS])
def test_names(orders: App, method: str, path: str) -> None:
    before = state_of(orders)
    for name in NAMES:
        status, _ = orders.refused(method, path.format(name))
        assert 400 <= status < 500, name
    assert state_of(orders) == before


@pytest.mark.slow
def test_values(orders: App) -> None:
    before = state_of(orders)
    for (method, path), value in itertools.product(
        VALUES, ["%00", "-1", "x" * 3000, "%F0%9F%98%80", "1e9", "%22", "9" * 40]
    ):
        status, _ = orders.refused(method, path.format(value))
        assert 400 <= status < 500, (path, value)
    assert state_of(orders) == before


def test_paths_and_methods_that_are_not_there(orders: App) -> None:
    for method, path in (
        ("GET", "/nothing"), ("GET", "/tables/"), ("GET", "//tables"), ("GET", f"/segments/orders/{MOVED}/nothing"),
        ("PATCH", "/tables/orders"), ("DELETE", "/tables"), ("PUT", "/segments/orders"), ("GET", "/tasks/schedule"),
    ):  # fmt: skip
        status, sentence = orders.refused(method, path)
        assert status in {404, 405} and path.partition("?")[0] in sentence


def test_bodies_that_are_too_long(tmp_path: Any) -> None:
    app = App(tmp_path / "home", ServerLimits(body_bytes=1000, upload_bytes=5000))
    try:
        lay_orders(app.home)
        long = json.dumps({"schemaName": "x" * 1000})
        wanted = (
            "/ingestFromFile?tableNameWithType=orders_OFFLINE&batchConfigMapStr=%7B%22inputFormat%22%3A%22json%22%7D"
        )
        body, headers = form("a.json", b"x" * 6000)
        for path in ("/schemas", "/tables", "/jobs", "/query/sql"):
            assert app.refused("POST", path, long)[0] == 413
            pieces = iter([long[:600].encode(), long[600:].encode()])
            assert app.refused("POST", path, pieces, headers={"Content-Type": "application/json"})[0] == 413, path
        assert app.refused("POST", wanted, body, headers=headers)[0] == 413
        pieces = iter([body[at : at + 1000] for at in range(0, len(body), 1000)])
        assert app.refused("POST", wanted, pieces, headers=headers)[0] == 413
        assert not list((app.home.home / "uploads").glob("*"))
        assert app.get("/tables") == {"tables": ["orders"]}, "it goes on"
    finally:
        app.close()


def test_other_hosts(orders: App) -> None:
    assert orders.refused("GET", "/tables", headers={"Host": "evil.example:9000"})[0] == 421


def test_pages_of_other_sites(orders: App) -> None:
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"):
        assert orders.refused("POST", "/tables/orders/pauseConsumption", headers={"Origin": origin})[0] == 403
    assert orders.ok("POST", "/tables/orders/resumeConsumption", headers={"Origin": orders.url})


@pytest.mark.slow
@pytest.mark.parametrize("kind", [None, "application/x-www-form-urlencoded", "text/plain; charset=utf-8"])
def test_json_that_is_not_called_so(orders: App, kind: str | None) -> None:
    """As `curl -d` sends it."""
    headers = {"Content-Type": kind} if kind else {}
    assert orders.ok("POST", "/query/sql", '{"sql": "select count(*) from orders"}', headers=headers)["resultTable"]
    assert orders.ok("POST", "/schemas", json.dumps(SCHEMA), headers=headers)
    assert orders.refused("POST", "/tables/orders/replacements/x/revert", "", headers=headers)[0] == 404


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/query/sql", r'{"sql":"select \'\udcff\' from orders"}'),
        ("/verbs/query", r'{"sql":"select \'\udcff\' from orders"}'),
        ("/verbs/explain", r'{"sql":"select 1","as_of":"\udcff"}'),
        ("/verbs/table_show", r'{"table":"\udcff"}'),
        ("/verbs/pause", r'{"table":"orders","comment":"\udcff"}'),
        ("/verbs/task_run", r'{"table":"orders","type":"\udcff"}'),
        ("/jobs", r'{"spec":"\udcff: 1"}'),
    ],
)
def test_half_of_a_character_is_no_error_of_the_server(orders: App, path: str, body: str) -> None:
    """28: JSON can write it, and neither SQLite nor an answer in UTF-8 can hold it."""
    status, sentence = orders.refused("POST", path, body, headers={"Content-Type": "application/json"})
    assert status in {400, 404} and "Unexpected" not in sentence


def test_a_key_twice_is_refused_wherever_json_is_read(orders: App) -> None:
    """Else the last counts: a backfill with two conditions would delete by one of them."""
    before = state_of(orders)
    text = '{"table": "orders", "delete": true, "where": "amount > 1", "where": "amount > 2"}'
    routes = (route for router in _ROUTERS for route in router.routes if isinstance(route, APIRoute))
    paths = [route.path for route in routes if "POST" in route.methods and route.body_field is not None]
    for path in paths:
        place = re.sub(r"{\w+}", "orders", path)
        status, body = orders.call("POST", place, text)
        assert (status, body["code"], body["kind"]) == (400, 400, "spec"), (path, body)
        assert body["error"].startswith("body: key 'where' is given twice in one object"), (path, body)
    assert {"/backfills", "/erasures", "/jobs", "/verbs/{verb}"} <= set(paths) and state_of(orders) == before
    for wrong, words in (("NaN", "NaN is not JSON"), ("1e999", "beyond the largest")):
        status, said = orders.refused("POST", "/backfills/backfill-1/resume", f'{{"rowsPerSecond": {wrong}}}')
        assert status == 400 and words in said, said
    assert orders.refused("POST", "/backfills/backfill-1/pause")[0] == 404  # a body is not needed where none is read
    assert orders.refused("POST", "/backfills/backfill-1/resume", "null")[0] != 500
