"""Both recipes of Pinot on a cluster: each step at the server that writes, and the same rows at those that follow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.kafka.topics import create_topic
from tests.cluster.cluster import Cluster
from tests.live.test_recipes import ROOT, about, delete_topic, play_orders, play_orders_upsert
from tests.serve.server import Server

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(600)]

EVERYTHING = "select $segmentName, * from orders order by order_id, ts limit 100"
FOLLOWED_S = 30.0


@pytest.fixture
def topic(running: Cluster) -> Iterator[str]:
    """The brokers with an empty topic `orders`; tables that read it are dropped at the end."""
    delete_topic(running.brokers)
    create_topic(running.brokers, "orders")
    yield running.brokers
    running.writer().call("DELETE", "/tables/orders")
    running.writer().call("DELETE", "/schemas/orders")


def files(recipe: str) -> Path:
    return ROOT / "data" / recipe


def followed(running: Cluster) -> list[list[Any]]:
    """What the writing server answers, once the others have the same segments and answer the same."""
    writer = running.writer()
    expected = seen(writer)
    for server in running.readers:
        deadline = time.monotonic() + FOLLOWED_S
        while (found := seen(server)) != expected:
            assert time.monotonic() < deadline, f"{server.name}: {found}, not {expected}\n{server.logged()}"
            time.sleep(0.2)
    return expected[1]


def seen(server: Server) -> tuple[Any, Any]:
    status, segments = server.call("GET", "/segments/orders")
    if status != 200:  # it has not noticed the table yet
        return segments, None
    return segments, server.rows(EVERYTHING)


def test_orders(running: Cluster, topic: str) -> None:
    play_orders(running.writer(), topic, files("orders"), "exact")
    rows = followed(running)
    assert (len(rows), sum(row[1] for row in rows)) == about(14, 888.692)


def test_orders_upsert(running: Cluster, topic: str) -> None:
    play_orders_upsert(running.writer(), topic, files("orders_upsert"))
    rows = followed(running)
    assert len(rows) == 9 and "RETURNED" in rows[0]
