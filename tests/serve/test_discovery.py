"""What clients ask a controller first: brokers, instances, tenants; shapes as Pinot's own clients parse them."""

import http.client
from typing import Any
from urllib.parse import quote

import pytest

from tests.serve.app import App


@pytest.fixture
def broker(orders: App) -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": orders.port, "instanceName": f"Broker_127.0.0.1_{orders.port}"}


@pytest.mark.slow
def test_discovery_by_table_and_tenant(orders: App, broker: dict[str, Any]) -> None:
    assert orders.get("/v2/brokers/tables?state=ONLINE") == {"orders": [broker]}
    assert orders.get("/v2/brokers/tables/orders_OFFLINE") == [broker]
    assert orders.get("/v2/brokers/tenants/DefaultTenant") == [broker]
    assert orders.get("/v2/brokers/tenants") == {"DefaultTenant": [broker]}
    assert orders.get("/v2/brokers") == {"tenants": {"DefaultTenant": [broker]}, "tables": {"orders": [broker]}}
    name = broker["instanceName"]
    assert orders.get("/brokers/tables/orders") == orders.get("/brokers/tenants/DefaultTenant") == [name]
    assert orders.get("/brokers")["tables"] == orders.get("/brokers/tables") == {"orders": [name]}
    assert orders.get("/brokers/tenants") == {"DefaultTenant": [name]}
    assert orders.get("/brokers/tables?state=OFFLINE") == {"orders": []}
    assert orders.get("/tables/livebrokers") == {"orders_OFFLINE": [broker], "orders_REALTIME": [broker]}
    assert orders.get("/tables/livebrokers?tables=orders_OFFLINE") == {"orders_OFFLINE": [broker]}
    assert orders.get("/tables/orders/livebrokers") == [name]
    assert orders.refused("GET", "/v2/brokers/tables/ordres")[0] == 404
    assert "DefaultTenant" in orders.refused("GET", "/v2/brokers/tenants/DefaultTenat")[1]


def test_the_address_is_the_one_that_was_asked(orders: App) -> None:
    found = orders.ok("GET", "/v2/brokers/tenants/DefaultTenant", headers={"Host": "localhost:1234"})
    assert found == [{"host": "localhost", "port": 1234, "instanceName": "Broker_localhost_1234"}]


def test_instances(orders: App) -> None:
    names = orders.get("/instances")["instances"]
    assert {name.partition("_")[0] for name in names} == {"Broker", "Controller", "Server"}
    for name in names:
        shown = orders.get(f"/instances/{name}")
        assert (shown["instanceName"], shown["hostName"], shown["port"]) == (name, "127.0.0.1", str(orders.port))
    assert orders.refused("GET", "/instances/Broker_elsewhere_1")[0] == 404
    assert orders.get("/tenants") == {"SERVER_TENANTS": ["DefaultTenant"], "BROKER_TENANTS": ["DefaultTenant"]}
    assert orders.get("/databases") == ["default"]


@pytest.mark.slow
def test_trinos_requests(orders: App) -> None:
    """Its coordinator asks for tables, instances, schema, routing and time boundary, then sends statements."""
    assert orders.get("/tables") == {"tables": ["orders"]}
    instances = orders.get("/tables/orders/instances")
    assert instances["tableName"] == "orders"
    assert [one["tableType"] for one in instances["brokers"]] == ["OFFLINE", "REALTIME"]
    assert instances["brokers"][0]["instances"] == [f"Broker_127.0.0.1_{orders.port}"]
    assert instances["server"][1]["instances"] == [f"Server_127.0.0.1_{orders.port}"]
    routing = orders.get("/debug/routingTable/orders")
    assert routing["orders_OFFLINE"] == {f"Server_127.0.0.1_{orders.port}": ["orders_1000_2000_0"]}
    assert len(routing["orders_REALTIME"][f"Server_127.0.0.1_{orders.port}"]) == 2
    assert orders.get("/debug/timeBoundary/orders")["timeColumn"] == "ts"
    assert orders.get("/tables/orders/schema")["schemaName"] == "orders"


@pytest.mark.slow
def test_statements_in_the_url(orders: App) -> None:
    for path in ("/query/sql", "/sql"):
        answer = orders.get(f"{path}?sql={quote('select count(*) from orders')}")
        assert answer["resultTable"]["rows"] == [[4]]
    failed = orders.get(f"/query/sql?sql={quote('select nothing from orders')}")
    assert failed["exceptions"][0]["errorCode"] == 710
    timed = orders.get(f"/query/sql?sql={quote('select 1')}&queryOptions={quote('timeoutMs=0')}")
    assert timed["exceptions"]
    assert orders.refused("GET", "/query/sql")[0] == 400


@pytest.mark.slow
def test_grafanas_requests(orders: App) -> None:
    """Its plugin looks for /mytables, then lists tables, configs, schema and figures."""
    connection = http.client.HTTPConnection("127.0.0.1", orders.port, timeout=10)
    connection.request("HEAD", "/mytables")
    assert connection.getresponse().status == 404
    connection.close()
    assert orders.get("/tables/orders").keys() == {"OFFLINE", "REALTIME"}
    assert orders.get("/tables/orders/metadata")["numRows"] == 6
    answer = orders.ok("POST", "/query/sql", {"sql": "select count(*) from orders", "trace": False})
    assert answer["exceptions"] == [] and answer["resultTable"]["rows"] == [[4]]


@pytest.mark.slow
def test_segments_as_the_consoles_ask(orders: App) -> None:
    shown = orders.get("/segments/orders/metadata")
    assert shown["orders_1000_2000_0"]["segment.total.docs"] == "2" and len(shown) == 3
    assert set(orders.get("/segments/orders/metadata?type=OFFLINE")) == {"orders_1000_2000_0"}
    states = {one["segmentName"]: one["segmentStatus"] for one in orders.get("/tables/orders/segmentsStatus")}
    assert sorted(states.values()) == ["CONSUMING", "GOOD", "GOOD"]
    assert "Nothing to reset" in orders.ok("POST", "/segments/orders_OFFLINE/reset")["status"]
    assert "Nothing to reset" in orders.ok("POST", "/segments/orders_OFFLINE/orders_1000_2000_0/reset")["status"]
    assert orders.refused("POST", "/segments/orders/no_such/reset")[0] == 404


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_an_unknown_word_below_segments_is_a_sentence(orders: App, method: str) -> None:
    status, sentence = orders.refused(method, "/segments/orders/crcs")
    assert status == 404 and f"{method} /segments/orders/crcs" in sentence
    assert orders.refused("PATCH", "/tables/orders")[0] == 405


@pytest.mark.slow
def test_rubys_requests(orders: App, broker: dict[str, Any]) -> None:
    """StarTree's pinot-client for Ruby: brokers of all tables, statements, documents, pages by a cursor."""
    assert orders.ok("GET", "/v2/brokers/tables?state=ONLINE", headers={"Accept": "application/json"}) == {
        "orders": [broker]
    }
    headers = {"Content-Type": "application/json; charset=utf-8", "X-Correlation-Id": "5d2c"}
    options = "groupByMode=sql;responseFormat=sql;useMultistageEngine=true;timeoutMs=5000"
    for body in (
        {"sql": "select count(*) from orders", "queryOptions": options},
        {"sql": "select count(*) from orders", "queryOptions": options, "trace": "true"},
    ):
        answer = orders.ok("POST", "/query/sql", body, headers=headers)
        assert answer["exceptions"] == [] and answer["resultTable"]["rows"] == [[4]]
    assert orders.get("/tables")["tables"] == ["orders"]
    schema = orders.get("/schemas/orders")
    kinds = ("dimensionFieldSpecs", "metricFieldSpecs", "dateTimeFieldSpecs")
    types = {field["name"]: field["dataType"] for kind in kinds for field in schema[kind]}
    assert types == {"order_id": "INT", "customer": "STRING", "amount": "FLOAT", "ts": "LONG"}
    assert orders.call("GET", "/tables/nothing")[0] == 404, "its table_exists? asks so"
    # Its paginator ends where the first page says of no more: the answer is whole.
    page = orders.ok("POST", "/query/sql?getCursor=true&numRows=2", {"sql": "select order_id from orders"})
    assert len(page["resultTable"]["rows"]) == 4 and not page.get("numRowsResultSet")


_GRAIN = "CAST(DATE_TRUNC('{}', CAST(ts AS TIMESTAMP)) AS TIMESTAMP)"
_MINUTES = "CAST(ROUND(DATE_TRUNC('minute', CAST(ts AS TIMESTAMP)), {}) AS TIMESTAMP)"


@pytest.mark.slow
def test_supersets_requests(orders: App) -> None:
    """Its engine spec: tables and schema by pinotdb, the grains of time, and statements of its charts."""
    assert orders.get("/tables")["tables"] == ["orders"]
    assert orders.get("/tables/orders/schema")["schemaName"] == "orders"
    grains = [_GRAIN.format(one) for one in ("second", "minute", "hour", "day", "week", "month", "quarter", "year")]
    for grain in (*grains, *(_MINUTES.format(step) for step in (300000, 600000, 900000, 1800000))):
        sql = (
            f"SELECT {grain}, COUNT(*), SUM(amount) FROM orders WHERE ts >= 0 AND ts < 1700000000000 "
            f"GROUP BY {grain} ORDER BY COUNT(*) DESC LIMIT 10000"
        )
        answer = orders.ok("POST", "/query/sql", {"sql": sql})
        assert answer["exceptions"] == [], sql
        assert answer["resultTable"]["dataSchema"]["columnDataTypes"] == ["TIMESTAMP", "LONG", "DOUBLE"], sql
        assert sum(row[1] for row in answer["resultTable"]["rows"]) == 4
        assert all(row[0].endswith(".0") for row in answer["resultTable"]["rows"]), "Pinot's form of a TIMESTAMP"
    for sql in (
        'SELECT customer AS customer, count(*) AS "n" FROM orders GROUP BY customer ORDER BY "n" DESC LIMIT 100',
        "SELECT DISTINCT customer AS customer FROM orders LIMIT 1000",
        "SELECT max(ts) FROM orders",
        "SELECT DATETIMECONVERT(ts, '1:MILLISECONDS:EPOCH', '1:MILLISECONDS:EPOCH', '1:DAYS'), COUNT(*) FROM orders "
        "GROUP BY DATETIMECONVERT(ts, '1:MILLISECONDS:EPOCH', '1:MILLISECONDS:EPOCH', '1:DAYS')",
        "SELECT order_id FROM orders LIMIT 1001",
    ):
        assert orders.ok("POST", "/query/sql", {"sql": sql})["exceptions"] == [], sql
