"""The broker's paths in process: the response's keys, failures, timeouts, cancellation, Arrow."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.settings import load_settings
from hybrid.errors import QueryError
from hybrid.home.running_queries import RunningQueries
from hybrid.operations.tables.create import _definition
from hybrid.progress import Silent
from hybrid.query.cache.follower import StreamStatus
from hybrid.query.cache.tail_mode import TailStatus
from hybrid.query.cache.template import cut
from hybrid.query.views import reads
from hybrid.serve import queries
from hybrid.serve.app import build_app
from hybrid.serve.callers import Callers
from hybrid.serve.context import ServerLimits
from hybrid.serve.queries import ARROW
from tests.query.halves import Halves
from tests.serve.app import OFFLINE, SCHEMA, App, row

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"
SLOW = "with recursive t(n) as (select 1 union all select n + 1 from t where n < 100000000) select max(n) from t"


@pytest.fixture
def client(home: Path) -> Iterator[TestClient]:
    hy = Hybrid(load_settings(home=home), Silent())
    offline = TableDocuments.read(DATA / "orders_schema.json", [DATA / "orders_offline_table.json"])
    hy.create_table(offline)
    with TestClient(build_app(hy, ServerLimits(query_timeout_ms=20_000), "http://x", hosts=None)) as found:
        yield found
    hy.close()


@pytest.mark.slow
def test_the_whole_response(client: TestClient) -> None:
    answer = client.post("/query/sql", json={"sql": "select count(*) from orders"}, headers={"X-Request-Id": "mine"})
    found = answer.json()
    assert answer.status_code == 200 and answer.headers["x-request-id"] == "mine"
    assert found["resultTable"] == {
        "dataSchema": {"columnNames": ["count(*)"], "columnDataTypes": ["LONG"]},
        "rows": [[0]],
    }
    assert found["exceptions"] == [] and found["numServersQueried"] == found["numServersResponded"] == 1
    for key in (
        "numSegmentsQueried", "numSegmentsProcessed", "numSegmentsMatched", "numConsumingSegmentsQueried",
        "numDocsScanned", "totalDocs", "timeUsedMs", "minConsumingFreshnessTimeMs",
    ):  # fmt: skip
        assert isinstance(found[key], int), key
    assert found["requestId"] == "mine" and found["revision"].startswith("orders[OFFLINE=0")
    assert client.post("/sql", json={"sql": "select count(*) from orders"}).json()["resultTable"]["rows"] == [[0]]


@pytest.mark.parametrize(
    ("sql", "code"),
    [("selec 1", 150), ("select * from ordres", 190), ("select nope from orders", 710), ("", None), ("  ", 150)],
)
def test_failures(client: TestClient, sql: str, code: int | None) -> None:
    answer = client.post("/query/sql", json={"sql": sql})
    if code is None:
        assert answer.status_code == 400 and "sql" in answer.json()["error"]
        return
    assert answer.status_code == 200
    (failure,) = answer.json()["exceptions"]
    assert failure["errorCode"] == code and failure["message"]


@pytest.mark.slow
def test_as_of_a_revision_by_the_requests_options(client: TestClient) -> None:
    def asked(as_of: str) -> dict[str, object]:
        options = f"timeoutMs=5000;asOf={as_of}"
        return client.post("/query/sql", json={"sql": "select count(*) from orders", "queryOptions": options}).json()

    assert asked("orders[OFFLINE=0]")["revision"] == "orders[OFFLINE=0]"
    (failure,) = asked("orders[OFFLINE=5]")["exceptions"]
    assert failure["errorCode"] == 700 and "has no version 5: its newest is 0" in failure["message"]
    verb = {"sql": "select count(*) from orders", "as_of": "orders[OFFLINE=0]"}
    assert client.post("/verbs/query", json=verb).json()["rows"] == [[0]]
    assert client.post("/verbs/explain", json=verb).json()["plan"]["revision"] == "orders[OFFLINE=0]"
    made = client.post("/verbs/table_view", json={"table": "orders", "engine": "duckdb", "as_of": "orders[OFFLINE=0]"})
    assert list(made.json()) == ["table", "for", "revision", "code"]


def test_a_view_has_the_servers_time(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = reads.plan_query

    def slowly(*given: Any, **named: Any) -> Any:
        time.sleep(0.3)
        return plan(*given, **named)

    hy = Hybrid(load_settings(home=home), Silent())
    hy.create_table(TableDocuments.read(DATA / "orders_schema.json", [DATA / "orders_offline_table.json"]))
    monkeypatch.setattr(reads, "plan_query", slowly)
    with TestClient(build_app(hy, ServerLimits(query_timeout_ms=200), "http://x", hosts=None)) as client:
        answer = client.post("/verbs/table_view", json={"table": "orders", "engine": "duckdb"})
        assert answer.status_code >= 400 and "The view took longer than" in answer.json()["error"]
    hy.close()


@pytest.mark.slow
def test_without_a_timeout_statements_are_answered(home: Path) -> None:
    hy = Hybrid(load_settings(home=home), Silent())
    hy.create_table(TableDocuments.read(DATA / "orders_schema.json", [DATA / "orders_offline_table.json"]))
    with TestClient(build_app(hy, ServerLimits(query_timeout_ms=0), "http://x", hosts=None)) as client:
        for sql in ("select count(*) from orders", "select 1", "select max(ts) from orders where amount > 1"):
            assert client.post("/query/sql", json={"sql": sql}).json()["exceptions"] == []
    hy.close()


@pytest.mark.slow
def test_options_of_the_request(client: TestClient) -> None:
    started = time.monotonic()
    answer = client.post("/query/sql", json={"sql": SLOW, "queryOptions": "timeoutMs=200;groupByMode=sql"}).json()
    assert answer["exceptions"][0]["errorCode"] == 250 and time.monotonic() - started < 10
    answer = client.post("/query/sql", json={"sql": "select 1", "queryOptions": "timeoutMs=soon"}).json()
    assert answer["exceptions"][0]["errorCode"] == 700


@pytest.mark.slow
def test_a_statement_is_cancelled(client: TestClient) -> None:
    assert client.delete("/query/nobody").status_code == 404
    found: list[dict] = []
    asking = threading.Thread(
        target=lambda: found.append(
            client.post("/query/sql", json={"sql": SLOW}, headers={"X-Request-Id": "slow-one"}).json()
        )
    )
    asking.start()
    deadline = time.monotonic() + 10
    while client.delete("/query/slow-one").status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    asking.join(timeout=10)
    assert found[0]["exceptions"] == [{"errorCode": 503, "message": "The query was cancelled."}]


@pytest.mark.slow
def test_arrow(client: TestClient) -> None:
    answer = client.post("/query/sql", json={"sql": "select count(*) c from orders"}, headers={"Accept": ARROW})
    assert answer.headers["content-type"] == ARROW
    assert pa.ipc.open_stream(answer.content).read_all().to_pydict() == {"c": [0]}


def test_what_nobody_expected_is_an_answer_too(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements pass by the layers that make one of it elsewhere."""
    monkeypatch.setattr(queries._QueryRequest, "answer", lambda *given: 1 / 0)
    answer = client.post("/query/sql", json={"sql": "select 1"})
    assert answer.status_code == 500 and answer.json()["error"] == "Unexpected ZeroDivisionError."


def test_a_cancel_between_two_ways_to_be_answered_holds() -> None:
    """The cache had no room for it, and the files are about to answer."""
    queries = RunningQueries()
    with pytest.raises(QueryError) as raised, queries.running("mine") as running:
        running(lambda: None)
        queries.cancel("mine")
        running(lambda: None)
    assert raised.value.pinot_code == 503


@pytest.mark.slow
def test_a_statement_over_files_has_so_much_memory(home: Path) -> None:
    """More than it has room for lies on disk; what cannot lie there fails with what to do."""
    home.mkdir()
    hy = Hybrid(load_settings(home=home), Silent())
    limits = ServerLimits(query_memory_bytes=20_000_000)
    numbers = "with recursive t(n) as (select 1 union all select n + 1 from t where n < {rows}) "
    with TestClient(build_app(hy, limits, "http://x", hosts=None)) as client:
        few = client.post("/query/sql", json={"sql": numbers.format(rows=1000) + "select listagg(n, ',') from t"})
        assert few.json()["exceptions"] == []
        sql = numbers.format(rows=100_000) + "select length(listagg(repeat('abc', 100), ',')) from t"
        (error,) = client.post("/query/sql", json={"sql": sql}).json()["exceptions"]
    hy.close()
    assert error["errorCode"] == 200 and "needs more memory" in error["message"]
    assert "query_memory_bytes" in error["message"]


@pytest.mark.slow
def test_what_tables_take_in_memory_is_told(home: Path, client: TestClient) -> None:
    assert "hybrid_cache_bytes{" not in client.get("/metrics").text
    hy = Hybrid(load_settings(home=home), Silent())
    hy.serve_from_memory(2**26)
    with TestClient(build_app(hy, ServerLimits(), "http://x", hosts=None)) as keeping:
        deadline = time.monotonic() + 20
        ask = {"sql": "select count(*) from orders"}
        while keeping.post("/query/sql", json=ask).json()["answeredFrom"] != "cache":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        told = keeping.get("/metrics").text
    hy.close()
    assert 'hybrid_cache_bytes{kind="in_memory_table",place="memory"}' in told
    assert 'hybrid_cache_bytes{kind="in_memory_table",place="disk"} 0.0' in told


def test_how_streams_are_read_is_told(home: Path, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "hybrid_tail_mode{" not in client.get("/metrics").text
    mode = TailStatus(
        awaits=True, since_s=3.0, left_s=9.0, unread=500, limit=90.0, decoded_per_s=30.0, to_commits=2, to_stream=1
    )
    status = StreamStatus(mode, {"stream": 40, "files": 60})
    monkeypatch.setattr(Hybrid, "cached_streams", lambda self: {"orders": status})
    told = client.get("/metrics").text
    for line in (
        'hybrid_tail_mode{mode="commits",table="orders"} 1.0',
        'hybrid_tail_unread_offsets{table="orders"} 500.0',
        'hybrid_tail_limit_offsets{table="orders"} 90.0',
        'hybrid_tail_switches_total{mode="commits",table="orders"} 2.0',
        'hybrid_tail_switches_total{mode="stream",table="orders"} 1.0',
        'hybrid_tail_offsets_total{source="stream",table="orders"} 40.0',
        'hybrid_tail_offsets_total{source="files",table="orders"} 60.0',
    ):
        assert line in told


@pytest.fixture
def remembered(home: Path) -> Iterator[App]:
    """200 rows of history, which statements read from memory."""
    hy = Hybrid(load_settings(home=home), Silent())
    spec = hy.validate(TableDocuments((SCHEMA, "schema"), [(OFFLINE, "offline")]))
    halves = Halves.create(hy.settings.warehouse, spec)
    halves.commit_offline([row(number, number, number, "all") for number in range(200)])
    hy.context.definitions.add(_definition(spec))
    hy.close()
    app = App(home)
    app.home.serve_from_memory(2**26)
    yield app
    app.close()


class Caller:
    """One connection that is kept; how each of its statements was answered is told."""

    def __init__(self, app: App) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=60)

    def ask(self, sql: str, request_id: str = "", options: str = "") -> dict[str, Any]:
        body = json.dumps({"sql": sql, "queryOptions": options})
        headers = {"Content-Type": "application/json", **({"X-Request-Id": request_id} if request_id else {})}
        self._connection.request("POST", "/query/sql", body, headers)
        return json.loads(self._connection.getresponse().read())

    def ask_till_it_is_known(self, sql: str) -> None:
        deadline = time.monotonic() + 20
        while self.ask(sql)["answeredFrom"] != "cache":
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def caller(remembered: App) -> Iterator[Caller]:
    made = Caller(remembered)
    yield made
    made.close()


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who writes each answer down."""
    seen: list[str] = []
    real = queries._QueryRequest.answer

    def answer(*given: Any) -> Any:
        seen.append("a thread" if threading.current_thread().name.startswith("query") else "the loop")
        return real(*given)

    monkeypatch.setattr(queries._QueryRequest, "answer", answer)
    return seen


def brief(app: App, sql: str) -> None:
    """As if the statement's last run had taken a moment: machines differ."""
    cached = app.home._queries._cached
    assert cached is not None
    template = cached._templates._known[cut(sql)[0]]
    assert template is not None
    template.took_s = 0.001


@pytest.mark.slow
def test_a_lone_caller_is_answered_without_a_thread(remembered: App, caller: Caller, threads: list[str]) -> None:
    sql = "select sum(order_id) from orders where order_id < 20"
    caller.ask_till_it_is_known(sql)
    time.sleep(0.12)
    brief(remembered, sql)
    threads.clear()
    found = caller.ask(sql, "mine")
    assert threads == ["the loop"]
    assert found["resultTable"]["rows"] == [[190]] and found["answeredFrom"] == "cache" and found["requestId"] == "mine"
    (failure,) = caller.ask(sql, options="timeoutMs=soon")["exceptions"]
    assert failure["errorCode"] == 700
    (failure,) = caller.ask("select nope from orders")["exceptions"]
    assert failure["errorCode"] == 710
    assert threads == ["the loop", "a thread", "a thread"]


@pytest.mark.slow
def test_many_rows_are_written_down_by_a_thread(remembered: App, caller: Caller, threads: list[str]) -> None:
    sql = "select order_id from orders where order_id < 150 order by order_id limit 1000"
    caller.ask_till_it_is_known(sql)
    time.sleep(0.12)
    brief(remembered, sql)
    threads.clear()
    assert caller.ask(sql)["resultTable"]["rows"] == [[number] for number in range(150)]
    assert threads == ["a thread"]


@pytest.mark.slow
def test_several_callers_are_answered_by_threads(remembered: App, caller: Caller, threads: list[str]) -> None:
    sql, other = "select count(*) from orders where order_id < 20", Caller(remembered)
    caller.ask_till_it_is_known(sql)
    time.sleep(0.12)
    threads.clear()
    for number in range(10):
        brief(remembered, sql)
        assert (caller, other)[number % 2].ask(sql)["resultTable"]["rows"] == [[20]]
    other.close()
    assert "the loop" not in threads[1:]


@pytest.mark.slow
def test_what_takes_longer_than_before_goes_on_in_a_thread(remembered: App, caller: Caller, threads: list[str]) -> None:
    """Others are served meanwhile, and it can be cancelled."""
    sql = "select max(a.order_id + b.order_id * c.order_id + d.order_id) from orders a, orders b, orders c, orders d"
    sql += " where a.order_id < 3"
    caller.ask_till_it_is_known(sql)
    time.sleep(0.12)
    brief(remembered, sql.replace("< 3", "< 200"))
    found: list[dict[str, Any]] = []
    asking = threading.Thread(target=lambda: found.append(caller.ask(sql.replace("< 3", "< 200"), "slow-one")))
    asking.start()
    deadline = time.monotonic() + 10
    while remembered.call("DELETE", "/query/slow-one")[0] != 200:
        assert time.monotonic() < deadline and asking.is_alive()
        time.sleep(0.02)
    asking.join(timeout=10)
    assert found[0]["exceptions"] == [{"errorCode": 503, "message": "The query was cancelled."}]


def test_who_asks_alone() -> None:
    callers = Callers()
    assert not callers.is_alone("a")
    time.sleep(0.11)
    assert callers.is_alone("a") and callers.is_alone("a")
    assert not callers.is_alone("b") and not callers.is_alone("b") and not callers.is_alone("a")
    time.sleep(0.11)
    assert callers.is_alone("a") and not callers.is_alone("b")


@pytest.mark.slow
def test_other_ways_to_ask(client: TestClient) -> None:
    assert client.get("/query/sql").status_code == 400
    assert client.put("/query/sql").status_code == 405
    assert client.post("/query/sql/").status_code == 404
    for body in (b"", b"{", b"[]", b'{"sql": 5}', b"\xff"):
        answer = client.post("/query/sql", content=body)
        assert answer.status_code == 400 and answer.json()["error"].startswith("body"), body
    assert 'route="/query/sql",status="400"' in client.get("/metrics").text
