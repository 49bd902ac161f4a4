"""Servers of two homes over one warehouse on an object store: one writes, the other follows and answers.

Processes are killed, the store stops for a while, the other home takes over: every event is counted once.
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hybrid.cli.main import run
from hybrid.kafka.topics import produce
from hybrid.operations.warehouse.writer_sign import SIGN_KEY
from hybrid.store.ownership import OWNER_KEY
from hybrid.store.store_client import open_store
from tests.s3_server import S3Server, needs_s3
from tests.serve.orders import create_orders
from tests.serve.server import Server

pytestmark = [needs_s3, pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(400)]

HEALTHY_S = 120.0  # tests beside this one slow down the start of a JVM
OUTAGE_S = 8.0


class Events:
    """Events with rising keys of 1 each, so that count and sum tell lost ones from doubled ones."""

    def __init__(self, broker: str, table: str, sent: int) -> None:
        self._broker, self._table, self.sent = broker, table, sent

    def send(self, count: int) -> None:
        event = {"customer_id": 1, "order_status": "OPEN", "amount": 1.0, "ts": "1632681000000"}
        numbers = range(self.sent, self.sent + count)
        produce(self._broker, self._table, [json.dumps({"order_id": 1000 + n, **event}).encode() for n in numbers])
        self.sent += count


def counts(server: Server, table: str) -> list[int]:
    """All rows, and the different keys of those that were sent here."""
    sql = f"select count(*), count(distinct order_id) from {table}"
    return [int(value) for value in server.rows(sql)[0]]


def test_a_server_that_follows_and_takes_over(broker: str, store: S3Server, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with Server(first, broker) as writer:
        table = create_orders(writer, broker, f"orders_{os.getpid()}")
        events = Events(broker, table, 14)

        def has_all(server: Server) -> bool:
            return counts(server, table)[0] == events.sent

        def same_versions(server: Server) -> bool:
            revisions = [one.ok("GET", f"/segments/{table}") for one in (writer, server)]
            return revisions[0] == revisions[1]

        with Server(second, broker) as reader:
            reader.await_true(lambda: has_all(reader), "the reader has the rows")
            assert not reader.pids("java"), "a server that only reads needs no JVM"
            status, queued = writer.call("POST", "/verbs/move", {"table": table})
            assert status == 202 and writer.await_task(queued["run"])["state"] == "DONE"
            reader.await_true(lambda: same_versions(reader), "the reader has followed the move")
            assert counts(reader, table) == counts(writer, table)
            status, queued = reader.call("POST", "/verbs/move", {"table": table})
            ended = reader.await_task(queued["run"])
            assert ended["state"] == "FAILED" and "is written by another home" in ended["result"], ended

            for pid in writer.pids("pipeline") + writer.pids("java"):
                os.kill(pid, signal.SIGKILL)
            events.send(50)
            writer.await_ready(HEALTHY_S)
            store.process.stop()
            events.send(50)
            time.sleep(OUTAGE_S)
            for server in (writer, reader):
                server.await_true(lambda server=server: has_all(server), "answers need no store")
            store.process.start()
            events.send(50)
            status, queued = writer.call("POST", "/verbs/move", {"table": table})
            assert writer.await_task(queued["run"])["state"] in {"DONE", "NOTHING"}
            for server in (writer, reader):
                server.await_true(lambda server=server: has_all(server), "every event once")
            reader.await_true(lambda: same_versions(reader), "the reader has caught up")
            assert counts(reader, table) == counts(writer, table)
        writer.kill()
    events.send(10)
    assert run(["--home", str(second), "warehouse", "pull", "--take-over", "--yes"]) == 0
    with Server(second, broker) as writer, Server(first, broker) as reader:
        events.send(10)
        for server in (writer, reader):
            server.await_true(lambda server=server: has_all(server), "every event once, after the take-over")
        status, queued = writer.call("POST", "/verbs/move", {"table": table})
        assert writer.await_task(queued["run"])["state"] in {"DONE", "NOTHING"}
        reader.await_true(lambda: same_versions(reader), "the former writer follows")
        assert counts(reader, table) == counts(writer, table)


def test_a_standby_takes_over_and_the_former_writer_follows(
    broker: str, store: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writing server is stopped as by SIGSTOP, for longer than the standby waits, and goes on afterwards."""
    monkeypatch.setenv("HYBRID_TAKE_OVER_AFTER_S", "9")
    first, second = tmp_path / "first", tmp_path / "second"
    with Server(first, broker) as writer, Server(second, broker) as standby:
        table = create_orders(writer, broker, f"stood_by_{os.getpid()}")
        paused = create_orders(writer, broker, f"paused_{os.getpid()}")
        writer.ok("POST", f"/tables/{paused}/pauseConsumption")
        events = Events(broker, table, 14)
        standby.await_true(lambda: table in standby.ok("GET", "/tables")["tables"], "the standby lists the table")
        standby.await_true(lambda: counts(standby, table)[0] == 14, "the standby follows")
        writer.await_true(lambda: signed_pauses(store) == [paused], "the sign tells pauses")
        standby.await_true(lambda: bool(spark_jvms(standby)), "the standby's JVM is there", HEALTHY_S)
        ready = standby.pids("pipeline") + spark_jvms(standby)
        before, pipeline = owner(store), writer.pids("pipeline")
        processes = [writer.process.pid, *writer.pids("query"), *pipeline, *writer.pids("java")]
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        stopped_at = time.monotonic()
        try:
            events.send(50)
            standby.await_true(lambda: owner(store) != before, "the standby writes", HEALTHY_S)
            took_s = time.monotonic() - stopped_at
            standby.await_ready(HEALTHY_S)
            _, queued = standby.call("POST", "/verbs/move", {"table": table})
            assert standby.await_task(queued["run"])["state"] == "DONE"
        finally:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)
        assert took_s >= 8, "not before three signs were left out"
        assert standby.pids("pipeline") + spark_jvms(standby) == ready, "it went on in the processes that were ready"
        told = (second / "logs" / "pipeline.log").read_text()
        assert 0 < told.index("is overdue. Starting Spark") < told.index("gives no sign of life. Taking over")
        events.send(50)
        writer.await_ready(HEALTHY_S)
        writer.await_true(lambda: writer.pids("pipeline") not in ([], pipeline), "it follows", HEALTHY_S)
        for server in (writer, standby):
            server.await_true(lambda server=server: counts(server, table)[0] == events.sent, "every event once")
        state = standby.ok("GET", f"/tables/{paused}/pauseStatus")
        assert state["pauseFlag"] is True, state
        path = f"/segments/{table}"
        writer.await_true(lambda: writer.ok("GET", path) == standby.ok("GET", path), "it has caught up")


def spark_jvms(server: Server) -> list[int]:
    """The JVMs of Spark, without the short-lived one that makes their command line."""
    found = []
    for pid in server.pids("java"):
        with suppress(OSError):
            if b"launcher.Main" not in Path("/proc", str(pid), "cmdline").read_bytes():
                found.append(pid)
    return found


def signed_pauses(store: S3Server) -> list[str]:
    """The paused tables that the sign of the writing server names."""
    content = open_store(os.environ["HYBRID_WAREHOUSE"]).get(SIGN_KEY)
    return [] if content is None else sorted(json.loads(content.data)["pauses"])


def owner(store: S3Server) -> str:
    """The id of the home that writes the warehouse."""
    content = open_store(os.environ["HYBRID_WAREHOUSE"]).get(OWNER_KEY)
    assert content is not None
    return str(json.loads(content.data)["owner"]["id"])
