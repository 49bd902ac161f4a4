"""The boundary as Pinot's clients ask for it."""

from tests.serve.app import MOVED, OFFLINE, SCHEMA, App, row
from tests.serve.app import lay_orders as lay


def test_the_last_covered_time(app: App) -> None:
    halves = lay(app.home)
    assert app.get("/debug/timeBoundary/orders") == {"timeColumn": "ts", "timeValue": "2000"}
    assert app.get("/debug/timeBoundary/orders_OFFLINE")["timeValue"] == "2000"
    halves.commit_offline([row(9, 9000, 9, MOVED)])
    assert app.get("/debug/timeBoundary/orders")["timeValue"] == "2000", "what lies beyond is not covered"


def test_nothing_to_set_or_to_remove(orders: App) -> None:
    before = orders.get("/debug/timeBoundary/orders")
    assert orders.ok("POST", "/tables/orders/timeBoundary")["status"].startswith("Nothing to set")
    assert orders.ok("DELETE", "/tables/orders/timeBoundary")["status"].startswith("Nothing to remove")
    assert orders.get("/debug/timeBoundary/orders") == before and orders.home.runs() == []


def test_tables_without_one(app: App) -> None:
    app.ok("POST", "/schemas", SCHEMA)
    app.ok("POST", "/tables", OFFLINE)
    for method, path in (
        ("GET", "/debug/timeBoundary/orders"), ("POST", "/tables/orders/timeBoundary"),
        ("DELETE", "/tables/orders/timeBoundary"),
    ):  # fmt: skip
        assert app.refused(method, path) == (404, "Table 'orders' has one half only, so it has no boundary.")
        assert app.refused(method, path.replace("orders", "order"))[1].endswith("Did you mean 'orders'?")
