"""A server whose catalog is in PostgreSQL, while that ends, is frozen, and comes back: no row waits, and work that was
asked for is done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.postgresql import needs_postgresql, postgres_server
from tests.serve.orders import create_orders
from tests.serve.server import Server
from tests.soak.harness import JVM_OPTIONS

pytestmark = [needs_postgresql, pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(300)]

HEALTHY_S = 120.0  # tests beside this one slow down the start of a JVM


def test_a_database_that_ends_and_comes_back(broker: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with postgres_server() as postgres:
        environ = {**JVM_OPTIONS, "HYBRID_CATALOG": postgres.database()}
        with Server(home, broker, environ) as server:
            first, second = (create_orders(server, broker, f"orders_{name}_{os.getpid()}") for name in "ab")

            def rows(table: str) -> int:
                return int(server.rows(f"select count(*) from {table}")[0][0])

            def move(table: str) -> str:
                status, queued = server.call("POST", "/verbs/move", {"table": table})
                assert status == 202, queued
                return str(server.await_task(queued["run"])["state"])

            server.await_true(lambda: rows(first) == 14, "the rows of the stream")
            assert move(first) == "DONE"
            postgres.stop()
            server.await_true(lambda: server.call("GET", "/readyz")[0] == 503, "readiness tells")
            assert rows(first) == 14 and rows(second) == 14
            status, refused = server.call("POST", "/verbs/move", {"table": second})
            assert status >= 500 and "does not answer" in refused["error"], refused
            postgres.start()
            server.await_ready(HEALTHY_S)
            assert move(second) == "DONE"
            assert rows(second) == 14
            with postgres.frozen():  # it accepts connections and answers nothing
                assert rows(first) == 14 and rows(second) == 14
                server.await_true(lambda: server.call("GET", "/readyz")[0] == 503, "readiness tells")
            server.await_ready(HEALTHY_S)
            assert move(first) in ("DONE", "NOTHING")
    assert not (home / "catalog.db").exists()
