"""`/tableConfigs` and the paths that validate: one document for schema and configs, and nothing written by a check."""

from typing import Any

import pytest

from tests.serve.app import OFFLINE, REALTIME, SCHEMA, App

EVENTS = {**SCHEMA, "schemaName": "events"}
CONFIG = {**OFFLINE, "tableName": "events", "segmentsConfig": {"timeColumnName": "ts", "schemaName": "events"}}
DOCUMENT = {"tableName": "events", "schema": EVENTS, "offline": CONFIG}


def test_a_table_from_one_document(app: App) -> None:
    assert app.ok("POST", "/tableConfigs/validate", DOCUMENT)["warnings"] == []
    assert app.get("/tableConfigs") == []
    assert app.ok("POST", "/tableConfigs", DOCUMENT)["status"] == "TableConfigs events successfully added"
    assert app.get("/tableConfigs") == ["events"]
    shown = app.get("/tableConfigs/events")
    assert shown == {"tableName": "events", "schema": EVENTS, "offline": {**CONFIG, "tableName": "events_OFFLINE"}}
    assert app.refused("POST", "/tableConfigs", DOCUMENT)[0] == 409
    assert "updated" in app.ok("PUT", "/tableConfigs/events", shown)["status"]
    assert "dropped" in app.ok("DELETE", "/tableConfigs/events")["status"].lower()
    assert app.get("/tables") == {"tables": []}


def test_the_name_of_one_half_of_two_changes_that_half_alone(orders: App) -> None:
    """Nothing drops both halves for the name of one, nor changes the half that the path does not name."""
    configs = orders.get("/tables/orders")
    for path in ("/tables", "/tableConfigs"):
        status, said = orders.refused("DELETE", f"{path}/orders_OFFLINE")
        assert status == 501 and f"DELETE {path}/orders drops both" in said, said
    status, said = orders.refused("PUT", "/tables/orders_OFFLINE", configs["REALTIME"])
    assert status == 400 and "the path names the OFFLINE half, and this is REALTIME" in said, said
    status, said = orders.refused("PUT", "/tableConfigs/orders_OFFLINE", orders.get("/tableConfigs/orders"))
    assert status == 400 and "realtime: the path names the OFFLINE half alone" in said, said
    assert "updated" in orders.ok("PUT", "/tables/orders_OFFLINE", configs["OFFLINE"])["status"]
    assert (
        "updated"
        in orders.ok("PUT", "/tableConfigs/orders_OFFLINE", orders.get("/tableConfigs/orders_OFFLINE"))["status"]
    )
    assert orders.get("/tables/orders") == configs


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"offline": None}, "neither 'offline' nor 'realtime'"),
        ({"schema": None}, "schema: is missing"),
        ({"schema": [1]}, "must be an object"),
        ({"offline": {**CONFIG, "tableName": "others"}}, "not the OFFLINE config"),
        ({"offline": {**CONFIG, "tableType": "REALTIME"}}, "not the OFFLINE config"),
        ({"tableName": None}, "tableName"),
        ({"offline": {**CONFIG, "segmentsConfig": {"timeColumnName": "at"}}}, "at"),
    ],
)
def test_what_a_document_may_not_be(app: App, changed: dict[str, Any], words: str) -> None:
    for path in ("/tableConfigs/validate", "/tableConfigs"):
        status, sentence = app.refused("POST", path, {**DOCUMENT, **changed})
        assert status == 400 and words in sentence, sentence
    assert app.get("/tableConfigs") == []


def test_a_document_of_another_table(app: App) -> None:
    app.ok("POST", "/tableConfigs", DOCUMENT)
    app.ok("POST", "/tableConfigs", {**DOCUMENT, "tableName": "b", "offline": {**CONFIG, "tableName": "b"}})
    assert app.refused("PUT", "/tableConfigs/events", {**DOCUMENT, "tableName": "b"})[0] == 400
    assert app.refused("PUT", "/tableConfigs/nowhere", DOCUMENT)[0] == 404


def test_checks_write_nothing(app: App) -> None:
    assert app.ok("POST", "/schemas/validate", EVENTS) == EVENTS
    assert app.get("/schemas") == []
    assert (
        app.refused("POST", "/schemas/validate", {"schemaName": "x", "dimensionFieldSpecs": [{"name": "a"}]})[0] == 400
    )
    assert app.refused("POST", "/tables/validate", CONFIG)[0] == 404  # its schema comes first
    app.ok("POST", "/schemas", EVENTS)
    assert app.ok("POST", "/tables/validate?validationTypesToSkip=ALL", CONFIG)["OFFLINE"] == CONFIG
    assert app.refused("POST", "/tables/validate", {**REALTIME, "tableName": "events", "tableType": "X"})[0] == 400
    assert app.get("/tables") == {"tables": []}
