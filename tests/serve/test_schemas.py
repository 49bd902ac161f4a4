"""`/schemas`: on their own, and where tables use them."""

import json

import pytest

from tests.serve.app import OFFLINE, SCHEMA, App, form


def test_a_schema_comes_changes_and_goes(app: App) -> None:
    added = app.ok("POST", "/schemas", SCHEMA)
    assert added["status"] == "orders successfully added" and added["unrecognizedProperties"] == {}
    assert app.get("/schemas") == ["orders"]
    assert app.get("/schemas/orders") == SCHEMA
    more = {**SCHEMA, "metricFieldSpecs": []}
    assert app.ok("PUT", "/schemas/orders", more)["status"] == "orders successfully added"
    assert app.get("/schemas/orders") == more
    assert app.ok("POST", "/schemas", SCHEMA)["status"] == "orders successfully added", "override is Pinot's default"
    assert app.refused("POST", "/schemas?override=false", SCHEMA) == (
        409, "Schema 'orders' exists already. Nothing was changed.",
    )  # fmt: skip
    assert app.ok("DELETE", "/schemas/orders") == {"status": "Schema orders deleted"}
    assert app.get("/schemas") == []


def test_a_schema_as_the_file_of_a_form(app: App) -> None:
    body, headers = form("orders.json", json.dumps(SCHEMA).encode())
    assert app.ok("POST", "/schemas", body, headers=headers)["status"] == "orders successfully added"
    assert app.get("/schemas/orders") == SCHEMA


def test_keys_without_effect_are_told(app: App) -> None:
    odd = {
        **SCHEMA,
        "colour": 1,
        "dimensionFieldSpecs": [{**SCHEMA["dimensionFieldSpecs"][0], "shade": {"of": "grey"}}],
    }
    told = app.ok("POST", "/schemas", odd)
    assert told["unrecognizedProperties"] == {"/colour": 1, "/dimensionFieldSpecs/0/shade": {"of": "grey"}}
    assert len(told["warnings"]) == 2


def test_what_is_not_there(app: App) -> None:
    app.ok("POST", "/schemas", SCHEMA)
    for method, body in (("GET", None), ("DELETE", None), ("PUT", SCHEMA)):
        assert app.refused(method, "/schemas/order", body) == (
            404, "Schema 'order' does not exist. Did you mean 'orders'?",
        )  # fmt: skip


def test_wrong_schemas(app: App) -> None:
    wrong = {**SCHEMA, "dimensionFieldSpecs": [{"name": "a", "dataType": "INTT"}]}
    status, sentence = app.refused("POST", "/schemas", wrong)
    assert status == 400
    assert sentence.startswith("body: dimensionFieldSpecs[0].dataType: 'INTT' is not known. Did you mean 'INT'?")
    assert app.refused("POST", "/schemas", {**SCHEMA, "schemaName": "../orders"})[0] == 400
    app.ok("POST", "/schemas", SCHEMA)
    status, sentence = app.refused("PUT", "/schemas/orders", {**SCHEMA, "schemaName": "others"})
    assert (status, sentence) == (400, "body: schemaName: it is not the schema of the path, 'orders'.")


@pytest.mark.slow
def test_a_schema_that_a_table_uses(orders: App) -> None:
    assert orders.get("/schemas") == ["orders"]
    assert orders.refused("DELETE", "/schemas/orders") == (
        409, "Schema 'orders' is used by table 'orders'. Nothing was changed.",
    )  # fmt: skip
    status, sentence = orders.refused("POST", "/schemas", {**SCHEMA, "metricFieldSpecs": []})
    assert status == 400 and "column 'amount' is not in the new schema" in sentence
    assert orders.get("/tables/orders/schema") == SCHEMA
    described = {**SCHEMA, "description": "orders of the shop"}
    orders.ok("PUT", "/schemas/orders", described)
    assert orders.get("/tables/orders/schema") == described == orders.get("/schemas/orders")


@pytest.mark.slow
def test_two_tables_of_one_schema(app: App) -> None:
    app.ok("POST", "/schemas", SCHEMA)
    for name in ("first", "second"):
        app.ok("POST", "/tables", {**OFFLINE, "tableName": name})
    status, _ = app.refused("PUT", "/schemas/orders", {**SCHEMA, "primaryKeyColumns": ["order_id"]})
    assert status == 400, "the key of stored rows"
    app.ok("PUT", "/schemas/orders", {**SCHEMA, "tags": ["shop"]})
    assert {app.get(f"/tables/{name}/schema")["tags"][0] for name in ("first", "second")} == {"shop"}
