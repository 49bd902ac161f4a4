"""Servers of two homes over one warehouse on an object store: one writes, the other follows and answers.

Processes are killed, the store stops for a while, the other home takes over: every event is counted once.
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hybrid.cli.main import run
from hybrid.kafka.topics import produce
from hybrid.operations.warehouse.writer_sign import SIGN_KEY, SIGN_S
from hybrid.store.ownership import OWNER_KEY
from hybrid.store.store_client import open_store
from tests.s3_server import S3Server, needs_s3
from tests.serve.orders import create_orders
from tests.serve.server import Server
from tests.soak.harness import JVM_OPTIONS

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


@dataclass
class Pair:
    """A server that writes and one that follows, with a table and its events."""

    writer: Server
    reader: Server
    table: str
    events: Events

    def has_all(self, server: Server) -> bool:
        return counts(server, self.table)[0] == self.events.sent

    def have_all(self, what: str) -> None:
        for server in (self.writer, self.reader):
            server.await_true(lambda server=server: self.has_all(server), what)

    def same_versions(self, what: str) -> None:
        path = f"/segments/{self.table}"
        self.reader.await_true(lambda: self.writer.ok("GET", path) == self.reader.ok("GET", path), what)
        assert counts(self.reader, self.table) == counts(self.writer, self.table)

    def move(self, server: Server) -> dict[str, Any]:
        _, queued = server.call("POST", "/verbs/move", {"table": self.table})
        return server.await_task(queued["run"])


def test_one_writes_the_other_follows_and_each_takes_over(
    broker: str, store: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First by a command while the writing server is down; then by itself, as a standby."""
    first, second = tmp_path / "first", tmp_path / "second"
    with Server(first, broker, JVM_OPTIONS) as writer:
        table = create_orders(writer, broker, f"orders_{os.getpid()}")
        events = Events(broker, table, 14)
        with Server(second, broker, JVM_OPTIONS) as reader:
            follow(Pair(writer, reader, table, events), store)
    events.send(10)
    assert run(["--home", str(second), "warehouse", "pull", "--take-over", "--yes"]) == 0
    monkeypatch.setenv("HYBRID_TAKE_OVER_AFTER_S", "9")
    with Server(second, broker, JVM_OPTIONS) as writer, Server(first, broker, JVM_OPTIONS) as reader:
        pair = Pair(writer, reader, table, events)
        events.send(10)
        pair.have_all("every event once, after the take-over")
        assert pair.move(writer)["state"] in {"DONE", "NOTHING"}
        pair.same_versions("the former writer follows")
        stood_by = create_orders(writer, broker, f"stood_by_{os.getpid()}")
        stand_by(Pair(writer, reader, stood_by, Events(broker, stood_by, 14)), store, broker)


def follow(pair: Pair, store: S3Server) -> None:
    """Both have every event once, whatever falls: the writer's pipeline, then the store for a while."""
    writer, reader, events = pair.writer, pair.reader, pair.events
    reader.await_true(lambda: pair.has_all(reader), "the reader has the rows")
    assert not reader.pids("java"), "a server that only reads needs no JVM"
    assert pair.move(writer)["state"] == "DONE"
    pair.same_versions("the reader has followed the move")
    ended = pair.move(reader)
    assert ended["state"] == "FAILED" and "is written by another home" in ended["result"], ended

    for pid in writer.pids("pipeline") + writer.pids("java"):
        os.kill(pid, signal.SIGKILL)
    events.send(50)
    writer.await_ready(HEALTHY_S)
    store.process.stop()
    events.send(50)
    time.sleep(OUTAGE_S)
    pair.have_all("answers need no store")
    store.process.start()
    events.send(50)
    assert pair.move(writer)["state"] in {"DONE", "NOTHING"}
    pair.have_all("every event once")
    pair.same_versions("the reader has caught up")


def stand_by(pair: Pair, store: S3Server, broker: str) -> None:
    """The writing server is stopped as by SIGSTOP, for longer than the standby waits, and goes on afterwards."""
    writer, standby, events = pair.writer, pair.reader, pair.events
    paused = create_orders(writer, broker, f"paused_{os.getpid()}", events=0)
    writer.ok("POST", f"/tables/{paused}/pauseConsumption")
    standby.await_true(lambda: pair.table in standby.ok("GET", "/tables")["tables"], "the standby lists the table")
    standby.await_true(lambda: pair.has_all(standby), "the standby follows")
    writer.await_true(lambda: signed_pauses(store) == [paused], "the sign tells pauses")
    standby.await_true(lambda: bool(spark_jvms(standby)), "the standby's JVM is there", HEALTHY_S)
    ready = standby.pids("pipeline") + spark_jvms(standby)
    before, pipeline = owner(store), writer.pids("pipeline")
    processes = [writer.process.pid, *writer.pids("query"), *pipeline, *writer.pids("java")]
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    try:
        signed = last_signed(store)
        events.send(50)
        standby.await_true(lambda: owner(store) != before, "the standby writes", HEALTHY_S)
        silent_s = (datetime.now(UTC) - signed).total_seconds()
        standby.await_ready(HEALTHY_S)
        assert pair.move(standby)["state"] == "DONE"
    finally:
        for pid in processes:
            os.kill(pid, signal.SIGCONT)
    assert silent_s >= 3 * SIGN_S, "not before three signs were left out"
    assert standby.pids("pipeline") + spark_jvms(standby) == ready, "it went on in the processes that were ready"
    told = (standby.home / "logs" / "pipeline.log").read_text()
    assert 0 < told.index("is overdue. Starting Spark") < told.index("gives no sign of life. Taking over")
    events.send(50)
    writer.await_ready(HEALTHY_S)
    writer.await_true(lambda: writer.pids("pipeline") not in ([], pipeline), "it follows", HEALTHY_S)
    pair.have_all("every event once")
    state = standby.ok("GET", f"/tables/{paused}/pauseStatus")
    assert state["pauseFlag"] is True, state
    path = f"/segments/{pair.table}"
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


def last_signed(store: S3Server) -> datetime:
    """When the writing server gave its last sign, in whole seconds."""
    content = open_store(os.environ["HYBRID_WAREHOUSE"]).get(SIGN_KEY)
    assert content is not None
    return content.modified


def owner(store: S3Server) -> str:
    """The id of the home that writes the warehouse."""
    content = open_store(os.environ["HYBRID_WAREHOUSE"]).get(OWNER_KEY)
    assert content is not None
    return str(json.loads(content.data)["owner"]["id"])
