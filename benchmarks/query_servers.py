"""Answers per second of two query servers over one warehouse on an object store, against those of one.

    .venv/bin/python -m benchmarks.query_servers [--rows 500000] [--seconds 15] [--turns 4]

Two homes follow the warehouse of a third one. Each server and the clients that ask it run on a processor of their own,
so this machine is as two. The two cases take turns: clients ask one server, then as many ask each of both. Between the
turns both are asked the same statements; their answers must be equal, at the same revision.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from kafka import KafkaProducer

from benchmarks.serving.http import Client, Endpoint
from benchmarks.serving.product import Product
from benchmarks.serving.tables import Table
from benchmarks.serving.workload import PARTITIONS, STATEMENTS, Parameters, Sizes, make_events
from hybrid.kafka.topics import create_topic
from tests.mirrors import new_url
from tests.s3_server import s3_server
from tests.serve.server import Server
from tests.watchdog import running_broker

_TABLE = Table("orders", "orders", upsert=True, seal_rows=1_000_000)
_CLIENTS, _FOLLOW_S, _LANES = 2, 120.0, 2 * 2


@contextmanager
def on_processor(number: int) -> Iterator[None]:
    """What is started inside runs on this processor alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {number})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def ask(endpoint: Endpoint, rows: int, lane: int, seconds: float) -> int:
    """Ask the statements of the workload in turn, each with other parameters. Returns the number of answers."""
    client, parameters = Client(endpoint), Parameters(Sizes(rows), lane, _LANES)
    until = time.perf_counter() + seconds
    for answers, statement in enumerate(cycle(STATEMENTS)):
        answer = json.loads(client.ask(statement.sql(_TABLE.name, parameters.next(statement)))[1])
        assert not answer["exceptions"], answer
        if time.perf_counter() > until:
            return answers
    raise AssertionError


def rate(endpoints: Mapping[int, Endpoint], rows: int, seconds: float) -> float:
    """Answers per second of some servers together, by processor; each is asked by its clients, on the same one."""
    clients = []
    for number, endpoint in endpoints.items():
        with on_processor(number):
            for client in range(_CLIENTS):
                words = [endpoint.host, str(endpoint.port), str(rows), str(number * _CLIENTS + client), str(seconds)]
                command = [sys.executable, "-m", "benchmarks.query_servers", "--ask", *words]
                clients.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    return sum(int(client.communicate(timeout=seconds + 60)[0]) for client in clients) / seconds


def compare(endpoints: Mapping[int, Endpoint], rows: int) -> int:
    """Ask both servers the same statements. Returns how many; their answers and revisions are equal."""
    clients, parameters = [Client(endpoint) for endpoint in endpoints.values()], Parameters(Sizes(rows))
    for statement in STATEMENTS:
        sql = statement.sql(_TABLE.name, parameters.next(statement))
        first, second = (json.loads(client.ask(sql)[1]) for client in clients)
        assert first["resultTable"] == second["resultTable"] and first["revision"] == second["revision"], sql
    return len(STATEMENTS)


def _produce(broker: str, rows: int) -> None:
    create_topic(broker, _TABLE.topic, PARTITIONS)
    producer, events = KafkaProducer(bootstrap_servers=broker, compression_type="lz4"), make_events(Sizes(rows))
    for partition in range(PARTITIONS):
        for value in events.messages(partition):
            producer.send(_TABLE.topic, value, partition=partition)
    producer.flush()
    producer.close()


def _write(folder: Path, broker: str, rows: int) -> None:
    """A warehouse with the table: a part of its rows in OFFLINE, the newest in REALTIME."""
    with Product(folder / "writer", broker) as product:
        product.create(_TABLE)
        product.await_rows(_TABLE, rows)
        status, answer = product.server.call("POST", "/verbs/move", {"table": _TABLE.name, "max_buckets": 4})
        assert status == 202, answer
        path = f"/runs/{answer['run']}"
        product.server.await_true(
            lambda: product.server.ok("GET", path)["state"] not in {"QUEUED", "RUNNING"}, "the move", 300
        )


def _await_followed(server: Server) -> Endpoint:
    def is_there() -> bool:
        status, answer = server.call("POST", "/query/sql", {"sql": f"select count(*) from {_TABLE.name}"})
        return status == 200 and not answer["exceptions"] and answer["answeredFrom"] == "cache"

    server.await_true(is_there, "the table", _FOLLOW_S)
    parts = urlsplit(server.address["broker_url"])
    assert parts.hostname and parts.port
    return Endpoint(parts.hostname, parts.port)


def measure(folder: Path, rows: int, seconds: float, turns: int) -> None:
    """Start everything, measure in turns, and print."""
    with s3_server(folder / "store" / "data") as store, running_broker(folder / "kafka") as broker:
        store.create_bucket("bucket")
        os.environ.update({**store.environment, "HYBRID_WAREHOUSE": new_url()})
        _produce(broker, rows)
        _write(folder, broker, rows)
        servers = []
        try:
            for number in range(2):
                (folder / f"reader-{number}").mkdir()
                with on_processor(number):
                    servers.append(Server(folder / f"reader-{number}" / "home", broker))
            for server in servers:
                server.await_ready()
            endpoints = {number: _await_followed(server) for number, server in enumerate(servers)}
            rate(endpoints, rows, 5)
            compared, one, two = 0, list[float](), list[float]()
            for turn in range(turns):
                alone = turn % 2
                one.append(rate({alone: endpoints[alone]}, rows, seconds))
                two.append(rate(endpoints, rows, seconds))
                compared += compare(endpoints, rows)
                print(f"turn {turn + 1}: one {one[-1]:,.0f} answers/s, two {two[-1]:,.0f}", flush=True)
        finally:
            for server in servers:
                server.kill()
    ratios = [both / single for both, single in zip(two, one, strict=True)]
    print(f"{os.cpu_count()} processors, {rows:,} events, {turns} turns of {seconds:.0f} s")
    print(f"one server   {median(one):8,.0f} answers/s")
    print(f"two servers  {median(two):8,.0f} answers/s")
    print(f"ratio        {median(ratios):8.2f}  ({min(ratios):.2f} to {max(ratios):.2f})")
    print(f"{compared} statements were asked of both: equal answers at equal revisions")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=500_000, help="events of the table")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--ask", nargs=5, metavar=("HOST", "PORT", "ROWS", "LANE", "SECONDS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        host, port, rows, lane, seconds = options.ask
        print(ask(Endpoint(host, int(port)), int(rows), int(lane), float(seconds)))
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), options.rows, options.seconds, options.turns)


if __name__ == "__main__":
    main()
