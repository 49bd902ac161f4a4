"""A server under attack by an account that may only read: what its other clients notice of it.

    .venv/bin/python -m benchmarks.attack [--seconds 300] [--rows 200000] [--attackers 8]

First the idle medians of liveness and of small statements, then the same while attackers send statements and requests
from known attacks in a loop, one connection each. Another account asks the small statements. Checked in every answer:
its value. Reported: latencies, the most memory of the process that answers, processes that were started anew.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.serving.http import Endpoint
from benchmarks.serving.product import Product
from benchmarks.serving.stream import fill
from benchmarks.serving.tables import Table
from benchmarks.serving.workload import SPAN_MS, START_MS, Sizes, make_events
from hybrid.home.accounts import Accounts, Right
from tests.watchdog import running_broker

TABLE = "orders"
_IDLE_S = 15.0
_PAUSE_S = 0.02
_LIVE_PAUSE_S = 0.05
_CLIENT_S = 75.0  # longer than a statement may take

ENDLESS = "with recursive r(n) as (select 1 union all select n + 1 from r) select max(n) from r"
CROSS = f"from {TABLE} a, {TABLE} b"
TEXT = "repeat(order_status, 500)"
STATEMENTS = (
    f"select max(levenshtein({TEXT}, {TEXT})) from {TABLE} where order_id > 0",
    f"select max(damerau_levenshtein({TEXT}, {TEXT})) from {TABLE} where order_id > 0",
    f"select max(length(replace({TEXT}, 'E', repeat('b', 100)))) from {TABLE}",
    "select length(replace(replace(repeat('a',10000),'a',repeat('b',10000)),'b',repeat('c',35)))",
    ENDLESS,
    f"SET timeoutMs = 10000000000000; {ENDLESS}",
    f"SET timeoutMs=100; select count(distinct a.order_id + b.order_id) {CROSS}",
    f"select count(*) {CROSS} where a.amount + b.amount < 0",
    f"select a.order_id, b.order_id {CROSS} order by a.amount * b.amount limit 10 offset 900000",
    f"select distinct a.order_id, b.order_id {CROSS} limit 1000000",
    f"select sum(x) from (select row_number() over (partition by a.order_status order by b.ts) x {CROSS})",
    f"select string_agg(a.order_status || b.order_status, ',') {CROSS}",
    f"select list(a.order_id) {CROSS}",
    f"select percentile(a.amount * b.amount, 50) {CROSS}",
    f"select repeat('x', 10000) from {TABLE} limit 60000",
    f"select * from {TABLE} limit 1000000",
    f"select count(*) from {TABLE} where regexp_like({TEXT}, '(E+)+(E+)+(E+)+!')",
    f"select count(*) from {TABLE} where order_id in ({', '.join(str(n) for n in range(24_000))})",
    f"select {'(' * 140}1{')' * 140} from {TABLE}",
    f"select {' || '.join(['order_status'] * 2000)} from {TABLE} limit 10",
    "select 1 " + "/* " * 6000,
    f"select count(*) from {TABLE} where order_id = {'9' * 5000}",
    "select substr('a', " + "9" * 40 + ")",
    f"select {' + '.join(['amount'] * 20_000)} from {TABLE} limit 1",
    "x" * 900_000,
)


class Caller:
    """One account's connection; it is opened anew after an error."""

    def __init__(self, endpoint: Endpoint, secret: str = "") -> None:
        self._endpoint, self._connection = endpoint, None
        self._headers = {"Authorization": f"Bearer {secret}"} if secret else {}

    def ask(self, method: str, path: str, body: object = None, timeout: float = _CLIENT_S) -> tuple[int, bytes]:
        """Status and body of an answer."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self._endpoint.host, self._endpoint.port, timeout=timeout)
        data = json.dumps(body).encode() if body is not None else None
        headers = {**self._headers, **({"Content-Type": "application/json"} if data else {})}
        try:
            self._connection.request(method, path, data, headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def query(self, sql: str) -> Any:
        """The rows of a statement that must succeed."""
        status, body = self.ask("POST", "/query/sql", {"sql": sql})
        answer = json.loads(body)
        if status != 200 or answer["exceptions"]:
            raise AssertionError(f"{status} {str(answer)[:500]}")
        return answer["resultTable"]["rows"]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


Attack = Callable[[Caller, Endpoint], object]


def requests() -> dict[str, Attack]:
    """Attacks that are no statements of `/query/sql`, by name."""
    return {
        "verb query": lambda caller, _: caller.ask("POST", "/verbs/query", {"sql": ENDLESS}),
        "verb explain": lambda caller, _: caller.ask("POST", "/verbs/explain", {"sql": f"select 1 {CROSS}"}),
        "table validate": lambda caller, _: caller.ask("POST", "/verbs/table_validate", _wide_table()),
        "segments": lambda caller, _: caller.ask("GET", f"/segments/{TABLE}"),
        "status page": lambda caller, _: caller.ask("GET", "/"),
        "metrics": lambda caller, _: caller.ask("GET", "/metrics"),
        "rejected": lambda caller, _: caller.ask("GET", f"/tables/{TABLE}/rejected?limit=1000000"),
        "cancel others": lambda caller, _: [caller.ask("DELETE", f"/query/{n}") for n in range(20)],
        "a job": lambda caller, _: caller.ask("POST", "/jobs", {"spec": {"jobType": "x" * 100_000}}),
        "long paths": lambda caller, _: [caller.ask("GET", "/" + "a" * 6000) for _ in range(20)],
        "large head": lambda _, endpoint: _send(endpoint, b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * 2_000_000),
        "half a head": lambda _, endpoint: _send(endpoint, b"GET / HTTP/1.1\r\nHost: x\r\n"),
        "connections": lambda _, endpoint: _open_many(endpoint, 200),
        "client goes": lambda caller, endpoint: _leave(caller, endpoint),
    }  # fmt: skip


def _wide_table() -> dict[str, Any]:
    columns = [{"name": f"column_{n}", "dataType": "STRING"} for n in range(5000)]
    return {"schema": {"schemaName": "wide", "dimensionFieldSpecs": columns}, "configs": []}


def _send(endpoint: Endpoint, data: bytes) -> None:
    """Sends bytes and waits a second for an answer."""
    with socket.create_connection((endpoint.host, endpoint.port), timeout=10) as connection:
        try:
            connection.sendall(data)
            connection.settimeout(1)
            connection.recv(1000)
        except OSError:  # refused, which is right, or silent, which is as right
            pass


def _open_many(endpoint: Endpoint, count: int) -> None:
    """Connections that say nothing for a second."""
    opened = [socket.create_connection((endpoint.host, endpoint.port), timeout=10) for _ in range(count)]
    time.sleep(1)
    for connection in opened:
        connection.close()


def _leave(caller: Caller, endpoint: Endpoint) -> None:
    """Asks something long and hangs up."""
    body = json.dumps({"sql": ENDLESS}).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in caller._headers.items())
    start = f"POST /query/sql HTTP/1.1\r\nHost: {endpoint.host}\r\n{head}Content-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((endpoint.host, endpoint.port), timeout=10) as connection:
        connection.sendall(start.encode() + body)
        time.sleep(0.5)


class Probe(threading.Thread):
    """Asks one thing after the other and keeps how long each took, in milliseconds."""

    def __init__(self, asks: Callable[[], None], pause_s: float) -> None:
        super().__init__(daemon=True)
        self._asks, self._pause_s, self._end = asks, pause_s, threading.Event()
        self.took_ms: list[float] = []
        self.failures: list[str] = []

    def run(self) -> None:
        while not self._end.wait(self._pause_s):
            started = time.perf_counter()
            try:
                self._asks()
            except Exception as error:
                self.failures.append(f"{type(error).__name__}: {error}"[:300])
            self.took_ms.append((time.perf_counter() - started) * 1000)

    def stop(self) -> None:
        self._end.set()
        self.join(_CLIENT_S)


class Attacker(threading.Thread):
    """Sends attacks in random order until it is stopped; `answers` counts what came of each."""

    def __init__(self, endpoint: Endpoint, secret: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._endpoint, self._caller = endpoint, Caller(endpoint, secret)
        self._chance, self._end = random.Random(seed), threading.Event()
        self.answers: Counter[tuple[str, str]] = Counter()

    def run(self) -> None:
        attacks = list(self._attacks())
        while not self._end.is_set():
            self._chance.shuffle(attacks)
            for name, attack in attacks:
                if self._end.is_set():
                    break
                self.answers[name, self._outcome(attack)] += 1

    def _attacks(self) -> Iterator[tuple[str, Attack]]:
        for sql in STATEMENTS:
            yield sql[:80], lambda caller, _, sql=sql: caller.ask("POST", "/query/sql", {"sql": sql})
        yield from requests().items()

    def _outcome(self, attack: Attack) -> str:
        try:
            answer = attack(self._caller, self._endpoint)
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__
        return str(answer[0]) if isinstance(answer, tuple) else "done"

    def stop(self) -> None:
        self._end.set()


class Small:
    """The small statements of another client, each with a parameter that changes, and their right answers."""

    def __init__(self, caller: Caller, rows: int) -> None:
        self._caller, self._events = caller, make_events(Sizes(rows))
        self._chance = random.Random(1)
        self.took_ms: dict[str, list[float]] = {}

    def ask(self) -> None:
        events = self._events
        cut = START_MS + self._chance.randrange(SPAN_MS)
        key = int(events.order_id[self._chance.randrange(len(events))])
        for name, sql, right in (
            ("count", f"select count(*) from {TABLE} where ts >= {cut}", len(events) - events.before(cut)),
            ("lookup", f"select count(*) from {TABLE} where order_id = {key}", int((events.order_id == key).sum())),
            ("newest", f"select ts from {TABLE} where ts < {cut} order by ts desc limit 1", None),
        ):
            started = time.perf_counter()
            rows = self._caller.query(sql)
            self.took_ms.setdefault(name, []).append((time.perf_counter() - started) * 1000)
            if right is not None and rows != [[right]]:
                raise AssertionError(f"wrong answer: {sql}: {rows}, right is {right}")


def attack(product: Product, rows: int, seconds: float, attackers: int) -> dict[str, Any]:
    """All figures of one attack on a server that holds the table in memory."""
    accounts = Accounts(product.server.home)
    secrets = [accounts.add(name, Right.READ)[1] for name in ("attacker", "other")]
    time.sleep(2)  # servers see accounts within a second
    endpoint, pids = product.endpoint, product.server.pids("query")
    live = Caller(endpoint)

    def ask_liveness() -> None:
        assert live.ask("GET", "/livez")[0] == 200

    def watch(seconds_: float) -> tuple[Probe, Probe, Small]:
        small = Small(Caller(endpoint, secrets[1]), rows)
        probes = Probe(ask_liveness, _LIVE_PAUSE_S), Probe(small.ask, _PAUSE_S)
        for probe in probes:
            probe.start()
        time.sleep(seconds_)
        for probe in probes:
            probe.stop()
        return *probes, small

    _, _, idle = watch(_IDLE_S)
    before = product.peak_bytes()
    crowd = [Attacker(endpoint, secrets[0], seed) for seed in range(attackers)]
    for one in crowd:
        one.start()
    liveness, statements, small = watch(seconds)
    for one in crowd:
        one.stop()
    for one in crowd:
        one.join(_CLIENT_S)
    answers: Counter[tuple[str, str]] = sum((one.answers for one in crowd), Counter())
    return {
        "idle": idle.took_ms, "attacked": small.took_ms, "livez": liveness.took_ms,
        "failures": liveness.failures + statements.failures, "answers": answers,
        "before": before, "peak": product.peak_bytes(), "restarted": product.server.pids("query") != pids,
    }  # fmt: skip


def report(figures: dict[str, Any]) -> None:
    """Prints what was measured."""
    for (name, outcome), count in sorted(figures["answers"].items()):
        print(f"  {count:5} x {outcome:16} {name}", file=sys.stderr)
    print(f"{os.cpu_count()} processors, {sum(figures['answers'].values()):,} attacks")
    live = figures["livez"]
    print(
        f"/livez: median {median(live):.1f} ms, p99 {quantiles(live, n=100)[98]:.1f}, most {max(live):.0f}, {len(live)}"
    )
    for name, took in figures["attacked"].items():
        idle = median(figures["idle"][name])
        print(f"{name}: idle median {idle:.2f} ms; attacked {median(took):.2f} ms = {median(took) / idle:.1f} times")
    before, peak = figures["before"] / 2**20, figures["peak"] / 2**20
    print(f"memory of the query process: {before:,.0f} MiB before, {peak:,.0f} at most")
    print(f"started anew: {figures['restarted']}; failures of other clients: {len(figures['failures'])}")
    for failure in figures["failures"][:10]:
        print(f"  {failure}")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--attackers", type=int, default=8)
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_broker(folder / "kafka") as brokers:
            fill(brokers, TABLE, Sizes(asked.rows))
            with Product(folder, brokers) as product:
                table = Table(TABLE, TABLE, upsert=False, seal_rows=1_000_000)
                product.create(table)
                product.await_rows(table, asked.rows)
                product.await_warm(table)
                report(attack(product, asked.rows, asked.seconds, asked.attackers))


if __name__ == "__main__":
    main()
