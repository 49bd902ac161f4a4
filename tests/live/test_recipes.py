"""Recipes against a running server: orders by HTTP alone and by Pinot's own command lines, in both modes; lineitem."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.cli.main import run
from hybrid.kafka.topics import create_topic, produce
from tests.recipes.conftest import RecipeHome
from tests.recipes.lineitems import comments, lineitems, write_history
from tests.recipes.test_lineitem import HISTORICAL, LIVE, OLD, SEEN, create, put
from tests.serve.server import Server

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
FIRST = "orders_1632463351000_1632467070000_0"
SECOND = "orders_1632667070000_1632667170000_0"
THIRD = "orders_1632677270000_1632677270699_0"
TASK = "RealtimeToOfflineSegmentsTask"
SCHEDULE = f"/tasks/schedule?taskType={TASK}&tableName=orders_REALTIME"
CORRECTED = [15.948, 251.22, 239.22, 3.888, 11.724, 66.624, 63.048]


@pytest.fixture
def recipe(broker: str, server: Server) -> Iterator[Callable[[str], Path]]:
    """Makes a fresh topic `orders` for a recipe; its folder. The table is dropped at the end."""

    def drop() -> None:
        server.call("DELETE", "/tables/orders")
        server.call("DELETE", "/schemas/orders")

    def prepare(name: str) -> Path:
        drop()  # that of another module
        delete_topic(broker)
        create_topic(broker, "orders")
        return ROOT / "data" / name

    yield prepare
    drop()


def delete_topic(address: str) -> None:
    from kafka import KafkaAdminClient
    from kafka.errors import UnknownTopicOrPartitionError

    admin = KafkaAdminClient(bootstrap_servers=address)
    try:
        admin.delete_topics(["orders"])
        while "orders" in admin.list_topics():
            time.sleep(0.05)
    except UnknownTopicOrPartitionError:
        pass
    finally:
        admin.close()


def send_events(address: str, recipe: str) -> None:
    """The recipe's 14 events; its tables read from the topic's end on when they were created."""
    produce(address, "orders", (ROOT / "data" / recipe / "events.jsonl").read_bytes().splitlines())


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def totals(server: Server) -> tuple[int, float]:
    ((count, amount),) = server.rows("select count(*), sum(amount) from orders")
    return count, amount


def about(count: int, amount: float) -> tuple[int, Any]:
    return count, pytest.approx(amount, rel=1e-6)


def schedule(server: Server) -> dict[str, Any]:
    """The recipe's curl line; follows the task to its end."""
    answer = server.ok("POST", SCHEDULE)
    assert re.fullmatch(rf"Task_{TASK}_\d+", answer[TASK])
    return server.await_task(answer[TASK])


def names(server: Server) -> tuple[list[str], list[str]]:
    offline, realtime = server.ok("GET", "/segments/orders")
    return offline["OFFLINE"], [re.sub(r"__\d{8}T\d{4}Z$", "", name) for name in realtime["REALTIME"]]


def first_names(server: Server) -> tuple[list[str], list[str]]:
    """The names once something is committed: a cold Spark on a busy machine can take longer than a request waits."""
    deadline = time.monotonic() + 120
    while (found := names(server)) == ([], []) and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def run_job(server: Server, recipe: str) -> dict[str, Any]:
    body = {
        "spec": (ROOT / "job_specs" / recipe / "job-spec.yml").read_text(),
        "variables": {"segmentName": FIRST},
        "input": str(ROOT / "data" / recipe / "corrected"),
    }
    return server.await_task(server.ok("POST", "/jobs", body)["id"])


@pytest.mark.parametrize("mode", ["exact", "pinot"])
def test_orders_by_http(server: Server, broker: str, recipe: Callable[[str], Path], mode: str) -> None:
    play_orders(server, broker, recipe("orders"), mode)
    if mode == "exact":
        play_late_row(server, broker)


def play_orders(server: Server, broker: str, files: Path, mode: str) -> None:
    """The recipe on an empty topic `orders`, step by step with its results."""
    offline = read(files / "orders_offline_table.json")
    if mode == "pinot":
        offline["metadata"] = {"customConfigs": {"hybrid.boundary": "pinot"}}
    server.ok("POST", "/schemas", read(files / "orders_schema.json"))
    server.ok("POST", "/tables", read(files / "orders_table.json"))
    server.ok("POST", "/tables", offline)
    send_events(broker, "orders")

    assert totals(server) == about(14, 780.08)
    assert first_names(server) == ([], ["orders__0__0", "orders__0__1", "orders__0__2"])
    assert server.call("GET", "/debug/timeBoundary/orders")[0] == 404
    by_segment = server.rows("select $segmentName, min(order_id), max(order_id) from orders group by 1 order by 2")
    assert [row[1:] for row in by_segment] == [[1, 5], [6, 10], [11, 14]]

    assert schedule(server)["state"] == "DONE"
    assert names(server)[0] == [FIRST]
    assert totals(server) == about(14, 780.08)
    boundary = server.ok("GET", "/debug/timeBoundary/orders")
    assert boundary == {"timeColumn": "ts", "timeValue": "1632467070000" if mode == "exact" else "1632463470000"}

    assert run_job(server, "orders")["state"] == "DONE"
    assert names(server)[0] == [FIRST]
    if mode == "pinot":
        assert totals(server) == about(14, 864.478)
    server.ok("POST", "/tables/orders/timeBoundary")
    assert server.ok("GET", "/debug/timeBoundary/orders")["timeValue"] == "1632467070000"
    assert totals(server) == about(14, 888.692)
    first = server.rows("select $segmentName, amount from orders ORDER BY order_id limit 20")
    assert [row[1] for row in first[:7]] == CORRECTED
    assert [row[0] == FIRST for row in first] == [True] * 7 + [False] * 7
    assert run_job(server, "orders")["state"] == "NOTHING", "the job twice changes nothing"
    assert totals(server) == about(14, 888.692)
    if mode == "pinot":
        server.ok("DELETE", "/tables/orders/timeBoundary")
        assert totals(server) == about(14, 864.478)
        return

    assert [schedule(server)["state"] for _ in range(3)] == ["DONE", "DONE", "NOTHING"]
    assert names(server)[0] == [FIRST, SECOND, THIRD]
    assert totals(server) == about(14, 888.692)
    newest = server.ok("GET", "/runs/" + server.ok("POST", "/verbs/runs", {"table": "orders"})[0]["id"])
    assert "every ingested row is in the offline half already" in newest["result"]


def play_late_row(server: Server, broker: str) -> None:
    """A row that arrives after its bucket has moved."""
    late = b'{"order_id":99,"customer_id":1,"order_status":"LATE","amount":1.0,"ts":"1632463400000"}'
    produce(broker, "orders", [late])
    query = "select order_status, count(*) from orders where order_id = 99 group by 1"
    assert server.rows(query) == [["LATE", 1]], "visible at once"
    run_ = schedule(server)
    assert run_["state"] == "DONE" and "1 late row" in run_["result"]
    assert server.rows(query) == [["LATE", 1]]
    assert server.rows("select count(*) from orders_OFFLINE where order_id = 99") == [[1]]
    assert totals(server)[0] == 15


def test_orders_upsert_by_http(server: Server, broker: str, recipe: Callable[[str], Path]) -> None:
    play_orders_upsert(server, broker, recipe("orders_upsert"))


def play_orders_upsert(server: Server, broker: str, files: Path) -> None:
    """The recipe on an empty topic `orders`, step by step with its results."""
    server.ok("POST", "/schemas", read(files / "orders_schema.json"))
    server.ok("POST", "/tables?validationTypesToSkip=ALL", read(files / "orders_table.json"))
    server.ok("POST", "/tables", read(files / "orders_offline_table.json"))
    send_events(broker, "orders_upsert")
    latest = "select order_id, order_status from orders order by order_id limit 20"
    before = server.rows(latest)
    assert len(before) == 9
    assert schedule(server)["state"] == "DONE"
    assert names(server)[0] == [FIRST]
    assert server.rows("select order_id, order_status from orders_OFFLINE order by 1 limit 20") == before[:4]
    assert server.rows(latest) == before
    run_job(server, "orders_upsert")
    after = server.rows(latest)
    assert len(after) == 9 and (after[0][1], after[3][1]) == ("COMPLETED", "CANCELLED")
    assert server.rows("select count(*) from orders_OFFLINE") == [[4]]
    later = b'{"order_id":1,"customer_id":104,"order_status":"RETURNED","amount":1.5,"ts":"1632681000000"}'
    produce(broker, "orders", [later])
    assert server.rows(latest)[0] == [1, "RETURNED"] and len(server.rows(latest)) == 9


def test_orders_by_pinots_command_lines(
    server: Server, broker: str, recipe: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In mode pinot, which shows that the change arrives: without it the mode is exact, as in the test by HTTP."""
    files = recipe("orders")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()
    for name in ("orders_schema.json", "orders_table.json", "orders_offline_table.json"):
        (tmp_path / "config" / name).write_text((files / name).read_text())
    (tmp_path / "config/job-spec.yml").write_text((ROOT / "job_specs/orders/job-spec.yml").read_text())

    def admin(line: str, *more: str) -> None:
        assert run(["--home", str(server.home), "admin", *line.split(), *more]) == 0

    change = ("--set", "/metadata/customConfigs/hybrid.boundary=pinot")
    schema = "AddTable -schemaFile config/orders_schema.json"
    admin(
        f"{schema} -tableConfigFile config/orders_table.json -controllerHost pinot-controller -exec", "--kafka", broker
    )
    admin(
        f"{schema} -tableConfigFile config/orders_offline_table.json -controllerHost pinot-controller -update -exec",
        *change,
    )
    send_events(broker, "orders")
    assert totals(server) == about(14, 780.08)
    assert schedule(server)["state"] == "DONE"
    admin(
        f"LaunchDataIngestionJob -jobSpecFile config/job-spec.yml -values segmentName={FIRST} "
        "-values pinotController=http://pinot-controller:9000",
        "--input",
        str(files / "corrected"),
    )
    assert totals(server) == about(14, 864.478)
    server.ok("POST", "/tables/orders/timeBoundary")
    assert totals(server) == about(14, 888.692)


# lineitem


@pytest.fixture
def lineitem_topic(broker: str, server: Server) -> Iterator[str]:
    """A new topic; the table that reads it is dropped at the end."""
    name = f"lineitem-{uuid.uuid4().hex[:8]}"
    create_topic(broker, name)
    yield name
    server.call("DELETE", "/tables/lineitem")


def await_true(is_so: Callable[[], bool], server: Server) -> None:
    """Asks until it is so."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, server.logged()
        time.sleep(0.2)


def test_lineitem_loads_history_and_goes_on_live(
    server: Server, broker: str, lineitem_topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, connectors = lineitem_topic, "/tables/lineitem/connectors"
    history, live = lineitems(40), lineitems(5, 1000)
    write_history(tmp_path / "history", history, 2)
    put(broker, topic, "insert", lineitems(OLD, 500))

    def connector(what: str) -> dict[str, Any]:
        return {one["name"]: one[what] for one in server.ok("GET", connectors)}

    create(RecipeHome(server.home, capsys), broker, topic, tmp_path / "history")
    await_true(lambda: connector("state") == {HISTORICAL: "COMPLETED", LIVE: "RUNNING"}, server)
    put(broker, topic, "insert", live)
    put(broker, topic, "delete", live[:1] + history[:1])
    wanted = comments(history[1:] + live[1:])
    await_true(lambda: sorted(row[0] for row in server.rows(SEEN)) == wanted, server)
    paused = server.ok("POST", f"{connectors}/{LIVE}/pause")
    assert paused["state"] == "PAUSED"
    put(broker, topic, "insert", lineitems(1, 2000))
    assert sorted(row[0] for row in server.rows(SEEN)) == wanted
    assert server.ok("POST", f"{connectors}/{LIVE}/start")["state"] == "RUNNING"
    assert server.call("GET", f"{connectors}/nope")[0] == 404
    await_true(lambda: len(server.rows(SEEN)) == len(wanted) + 1, server)
    assert sorted(connector("state").values()) == ["COMPLETED", "RUNNING"]

    # Deletes that are not committed are skipped by a reset, and their rows come back.
    await_true(lambda: connector("lag")[LIVE] == 0, server)
    reset = f"{connectors}/{LIVE}/reset"
    told = server.ok("POST", reset, {"to": "earliest", "dryRun": True})
    assert told["again"] > 0 and told["version"] is None
    code, refused = server.call("POST", reset, {"to": "earliest"})[:2]
    assert code == 409 and "read again" in json.dumps(refused)
    done = server.ok("POST", reset, {"to": "latest", "yes": True})
    assert (done["again"], done["skipped"]) == (0, 0) and len(server.rows(SEEN)) == len(wanted) + 1
    put(broker, topic, "insert", lineitems(1, 3000))
    await_true(lambda: len(server.rows(SEEN)) == len(wanted) + 2, server)
