"""What a GET or a validation answers is taken by the path that changes it: nothing changes then."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serve.app import App


@pytest.fixture
def both(orders: App) -> dict[str, Any]:
    return orders.ok("GET", "/tables/orders")


def _shapes(app: App, both: dict[str, Any]) -> list[Any]:
    halves = [app.ok("GET", f"/tables/orders?type={half}") for half in ("REALTIME", "OFFLINE")]
    plain = [one for half in halves for one in half.values()]
    validated = [app.ok("POST", "/tables/validate", one) for one in (both, *halves, *plain)]
    return [both, *halves, *plain, *validated]


@pytest.mark.slow
def test_table_configs_are_taken_as_they_are_answered(orders: App, both: dict[str, Any]) -> None:
    for shape in _shapes(orders, both):
        done = orders.ok("PUT", "/tables/orders", shape)
        assert done["sentence"].startswith("Nothing to change"), (shape, done)
        assert orders.ok("POST", "/tables/validate", shape).keys() <= {
            "REALTIME", "OFFLINE", "unrecognizedProperties", "warnings",
        }  # fmt: skip
    assert orders.refused("POST", "/tables", both)[0] == 409


@pytest.mark.slow
def test_tables_are_created_of_what_was_answered(app: App, orders: App, both: dict[str, Any]) -> None:
    schema, whole = orders.ok("GET", "/schemas/orders"), orders.ok("GET", "/tableConfigs/orders")
    assert orders.ok("PUT", "/schemas/orders", schema)["status"].endswith("successfully added")
    for shape in (whole, orders.ok("POST", "/tableConfigs/validate", whole)):
        assert orders.ok("PUT", "/tableConfigs/orders", shape)["sentence"].startswith("Nothing to change")
    for path, shape in (("/tables", both["OFFLINE"]), ("/tables", {"OFFLINE": both["OFFLINE"]})):
        orders.ok("DELETE", "/tables/orders")
        orders.ok("POST", "/schemas", schema)
        assert orders.ok("POST", path, shape)["status"] == "Table orders_OFFLINE successfully added"
    assert orders.ok("GET", "/tables/orders") == {"OFFLINE": both["OFFLINE"]}
