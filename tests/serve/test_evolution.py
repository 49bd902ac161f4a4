"""A real server while the columns of a table change: nothing restarts, and nothing that arrives meanwhile is lost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.kafka.topics import TopicRecord, produce
from tests.serve.server import Server
from tests.serve.test_processes import DATA, create_orders

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(300)]
BIG, LAST = 2**40, 1_632_467_070_000


def until(found: Callable[[], Any], wanted: Any, timeout_s: float = 60.0) -> None:
    """Waits until both are the same."""
    deadline = time.monotonic() + timeout_s
    while (now := found()) != wanted:
        assert time.monotonic() < deadline, (now, wanted)
        time.sleep(0.1)


def test_a_type_becomes_wider_while_rows_arrive(home: Path, broker: str, topic: str) -> None:
    create_orders(home, broker, topic)

    def send(number: int) -> None:
        row = {"order_id": number, "customer_id": 1, "order_status": "OPEN", "amount": 1.5, "ts": LAST + number % 1000}
        produce(broker, topic, [TopicRecord(json.dumps(row).encode())])

    schema = json.loads((DATA / "orders_schema.json").read_text())
    with Server(home, broker) as server:
        send(BIG)
        until(lambda: server.call("GET", "/tables/orders/rejected")[1]["total"], 1)
        assert server.rows("select count(*) from orders") == [[14]]

        stopped, sent = threading.Event(), list[int]()

        def arrive() -> None:
            while not stopped.is_set():
                send(1_000_000 + len(sent))
                sent.append(1)
                stopped.wait(0.1)

        arriving = threading.Thread(target=arrive)
        arriving.start()
        try:
            schema["dimensionFieldSpecs"][0]["dataType"] = "LONG"
            schema["metricFieldSpecs"][0]["dataType"] = "DOUBLE"
            schema["dimensionFieldSpecs"].append({"name": "shop", "dataType": "STRING", "defaultNullValue": "none"})
            status, told = server.call("PUT", "/schemas/orders", schema)
            assert status == 200, told
            send(BIG + 1)
            until(lambda: server.rows(f"select order_id, shop from orders where order_id > {BIG}"), [[BIG + 1, "none"]])
            _, answer = server.call("POST", "/query/sql", {"sql": "select order_id, amount from orders limit 1"})
            assert answer["resultTable"]["dataSchema"]["columnDataTypes"] == ["LONG", "DOUBLE"]
            status, told = server.call("POST", "/tables/orders/rejected/replay")
            assert status == 200, told
        finally:
            stopped.set()
            arriving.join()
        assert server.rows(f"select count(*) from orders where order_id >= {BIG}") == [[2]]
        until(lambda: server.rows("select count(*) from orders"), [[14 + 2 + len(sent)]])
        schema["dimensionFieldSpecs"][0]["dataType"] = "INT"
        status, told = server.call("PUT", "/schemas/orders", schema)
        assert status == 400 and "cannot become INT from LONG" in told["error"]
        assert server.call("GET", "/tables/orders/rejected")[1]["total"] == 0
