"""`/tables`: a half at a time, as Pinot's clients do it."""

import pytest

from tests.serve.app import CONSUMING, MOVE, MOVED, OFFLINE, REALTIME, SCHEMA, SEALED, App


@pytest.mark.slow
def test_a_table_of_one_half_comes_changes_and_goes(app: App) -> None:
    app.ok("POST", "/schemas", SCHEMA)
    added = app.ok("POST", "/tables?validationTypesToSkip=ALL", {**OFFLINE, "colour": "red"})
    assert added["status"] == "Table orders_OFFLINE successfully added"
    assert added["unrecognizedProperties"] == {"/colour": "red"} and len(added["warnings"]) == 1
    assert app.refused("POST", "/tables", OFFLINE) == (
        409, "Table 'orders_OFFLINE' exists already. Nothing was changed.",
    )  # fmt: skip
    assert app.get("/tables") == {"tables": ["orders"]}
    assert app.get("/tables/orders") == {"OFFLINE": {**OFFLINE, "colour": "red", "tableName": "orders_OFFLINE"}}
    sorted_ = {**OFFLINE, "tableName": "orders_OFFLINE", "tableIndexConfig": {"sortedColumn": ["ts"]}}
    changed = app.ok("PUT", "/tables/orders", sorted_)
    assert changed["status"] == "Table config updated for orders" and "2 changes" in changed["sentence"]
    assert app.get("/tables/orders_OFFLINE")["OFFLINE"] == sorted_
    dropped = app.ok("DELETE", "/tables/orders_OFFLINE")
    assert dropped["status"] == "Tables: [orders_OFFLINE] deleted"
    assert app.get("/tables") == {"tables": []}
    (copy,) = app.ok("POST", "/verbs/table_copies", {"table": "orders"})
    assert copy.startswith("orders@")
    assert app.home.undrop_table("orders") and app.get("/tables") == {"tables": ["orders"]}


@pytest.mark.kafka
def test_the_two_halves_in_either_order(app: App, broker: str, topic: str) -> None:
    streams = {**REALTIME["tableIndexConfig"]["streamConfigs"], "stream.kafka.topic.name": topic}
    for number, order in enumerate(([REALTIME, OFFLINE], [OFFLINE, REALTIME])):
        name = f"orders{number}"
        app.ok("POST", "/schemas", {**SCHEMA, "schemaName": name})
        for config in order:
            given = {**config, "tableName": name, "segmentsConfig": {"timeColumnName": "ts"}}
            if config is REALTIME:
                given["tableIndexConfig"] = {"streamConfigs": streams}
            done = app.ok("POST", f"/tables?kafka={broker}", given)
            assert done["status"] == f"Table {name}_{config['tableType']} successfully added"
        assert sorted(app.get(f"/tables/{name}")) == ["OFFLINE", "REALTIME"]
        assert app.home.spec(name).stream.brokers == broker, "of the request that gave it"


def test_halves_are_sorted_as_pinot_sorts_them(app: App) -> None:
    """Tables by name, halves by the whole name with its suffix: `_` comes after digits."""
    for name in ("t2", "t20"):
        app.ok("POST", "/schemas", {**SCHEMA, "schemaName": name})
        app.ok("POST", "/tables", {**OFFLINE, "tableName": name, "segmentsConfig": {"timeColumnName": "ts"}})
    assert app.get("/tables") == {"tables": ["t2", "t20"]}
    assert app.get("/tables?type=OFFLINE") == {"tables": ["t20_OFFLINE", "t2_OFFLINE"]}


def test_a_table_without_its_schema(app: App) -> None:
    status, sentence = app.refused("POST", "/tables", OFFLINE)
    assert (status, sentence) == (404, "Schema 'orders' does not exist. A table needs its schema first.")
    app.ok("POST", "/schemas", {**SCHEMA, "schemaName": "order"})
    assert "Did you mean 'order'?" in app.refused("POST", "/tables", OFFLINE)[1]


def test_kafka_that_does_not_answer(app: App) -> None:
    app.ok("POST", "/schemas", SCHEMA)
    assert app.refused("POST", "/tables", REALTIME)[0] == 502
    assert app.refused("POST", "/tables?kafka=nowhere", REALTIME)[0] == 502
    assert app.refused("POST", f"/tables?kafka={'x' * 70}.org:1", REALTIME)[0] == 502
    assert app.get("/tables") == {"tables": []}


def test_wrong_configs(app: App) -> None:
    app.ok("POST", "/schemas", SCHEMA)
    for wrong, said in (
        ({**OFFLINE, "tableType": "OFLINE"}, "Did you mean 'OFFLINE'?"),
        ({**OFFLINE, "tableName": "a/b"}, "a name has letters"),
        ({**OFFLINE, "tableName": "orders_REALTIME"}, "does not fit the tableType OFFLINE"),
        ({**OFFLINE, "segmentsConfig": {"timeColumnName": "tss", "schemaName": "orders"}}, "Did you mean 'ts'?"),
        ({**OFFLINE, "segmentsConfig": "x"}, "is not an object"),
        ({}, "tableType: is missing"),
    ):
        status, sentence = app.refused("POST", "/tables", wrong)
        assert status == 400 and said in sentence, sentence
    assert app.get("/tables") == {"tables": []}


@pytest.mark.slow
def test_updates_that_are_refused(orders: App) -> None:
    for config, said in (
        ({**OFFLINE, "tableName": "others"}, "is not the table of the path, 'orders'"),
        ({**OFFLINE, "segmentsConfig": {"schemaName": "orders"}}, "its time column"),
    ):
        status, sentence = orders.refused("PUT", "/tables/orders", config)
        assert status == 400 and (said in sentence or "both halves agree" in sentence), sentence
    assert orders.refused("PUT", "/tables/ordes", OFFLINE)[1].endswith("Did you mean 'orders'?")


@pytest.mark.slow
def test_lists_and_halves(orders: App) -> None:
    assert orders.get("/tables?type=realtime") == {"tables": ["orders_REALTIME"]}
    assert orders.get("/tables?type=OFFLINE") == {"tables": ["orders_OFFLINE"]}
    assert orders.get(f"/tables?taskType={MOVE}") == {"tables": ["orders_REALTIME"]}
    assert list(orders.get("/tables/orders")) == ["OFFLINE", "REALTIME"]
    assert list(orders.get("/tables/orders?type=realtime")) == ["REALTIME"]
    assert orders.get("/tables/orders_REALTIME")["REALTIME"]["tableName"] == "orders_REALTIME"
    assert orders.refused("GET", "/tables?type=realtme") == (
        400, "type: 'realtme' is neither REALTIME nor OFFLINE. Did you mean 'REALTIME'?",
    )  # fmt: skip
    assert orders.refused("GET", "/tables/orders_REALTIME?type=OFFLINE")[0] == 400
    assert orders.refused("GET", "/tables/ordes")[1] == "Table 'ordes' does not exist. Did you mean 'orders'?"


@pytest.mark.slow
def test_a_half_alone_is_not_dropped(orders: App) -> None:
    for path in ("/tables/orders_OFFLINE", "/tables/orders?type=REALTIME"):
        status, sentence = orders.refused("DELETE", path)
        assert status == 501 and "DELETE /tables/orders drops both" in sentence
    dropped = orders.ok("DELETE", "/tables/orders")
    assert dropped["status"] == "Tables: [orders_OFFLINE, orders_REALTIME] deleted"
    assert "hybrid table undrop" in dropped["sentence"]
    assert orders.refused("DELETE", "/tables/orders")[0] == 404


@pytest.mark.slow
def test_size_and_metadata(orders: App) -> None:
    size = orders.get("/tables/orders/size")
    halves = (size["offlineSegments"], size["realtimeSegments"])
    assert [sorted(half["segments"]) for half in halves] == [[MOVED], [SEALED, CONSUMING]]
    assert size["reportedSizeInBytes"] == sum(half["reportedSizeInBytes"] for half in halves) > 0
    assert orders.get("/tables/orders/size?verbose=false")["offlineSegments"]["segments"] == {}
    assert orders.get("/tables/orders_OFFLINE/size")["realtimeSegments"] is None
    found = orders.get("/tables/orders/metadata?type=OFFLINE")
    assert (found["tableName"], found["numSegments"], found["numRows"]) == ("orders_OFFLINE", 1, 2)
    assert orders.get("/tables/orders/metadata")["numRows"] == 6
