"""`/segments`: names, metadata and lineage in Pinot's shapes."""

import pytest

from tests.serve.app import CONSUMING, MOVED, SEALED, App


@pytest.mark.slow
def test_lists(orders: App) -> None:
    assert orders.get("/segments/orders") == [{"OFFLINE": [MOVED]}, {"REALTIME": [SEALED, CONSUMING]}]
    assert orders.get("/segments/orders?type=OFFLINE") == [{"OFFLINE": [MOVED]}]
    assert orders.get("/segments/orders_REALTIME") == [{"REALTIME": [SEALED, CONSUMING]}]
    assert orders.refused("GET", "/segments/order")[1] == "Table 'order' does not exist. Did you mean 'orders'?"


def test_metadata(orders: App) -> None:
    offline = orders.get(f"/segments/orders/{MOVED}/metadata")
    assert all(isinstance(value, str) for value in offline.values())
    wanted = {"segment.name": MOVED, "segment.start.time": "1000", "segment.end.time": "2000",
              "segment.time.unit": "MILLISECONDS", "segment.total.docs": "2"}  # fmt: skip
    assert wanted.items() <= offline.items() and "segment.realtime.status" not in offline
    sealed = orders.get(f"/segments/orders_REALTIME/{SEALED}/metadata")
    assert sealed["segment.realtime.status"] == "DONE"
    assert (sealed["segment.realtime.startOffset"], sealed["segment.realtime.endOffset"]) == ("0", "2")
    consuming = orders.get(f"/segments/orders/{CONSUMING}/metadata")
    assert consuming["segment.realtime.status"] == "IN_PROGRESS" and "segment.realtime.endOffset" not in consuming
    status, sentence = orders.refused("GET", "/segments/orders/orders_1000_2000_1/metadata")
    assert status == 404 and sentence.endswith(f"Did you mean '{MOVED}'?")
    assert orders.refused("GET", f"/segments/orders_OFFLINE/{SEALED}/metadata")[0] == 404


def test_lineage(orders: App) -> None:
    assert orders.get("/segments/orders/lineage") == {"tableNameWithType": "orders_OFFLINE", "lineageEntries": {}}
    assert orders.get("/segments/orders/lineage?type=REALTIME")["lineageEntries"] == {}


def test_what_is_not_built_or_not_needed(orders: App) -> None:
    assert orders.refused("DELETE", f"/segments/orders/{MOVED}")[0] == 501
    assert orders.ok("POST", "/segments/orders/reload")["status"].startswith("Nothing to reload")
    assert orders.ok("POST", f"/segments/orders/{MOVED}/reload")["status"].startswith("Nothing to reload")
