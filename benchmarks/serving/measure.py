"""Latency of each statement by one client, and queries per second of eight clients; every answer is checked.

A round asks all eight statements, each with a parameter that was not asked before. What the client does with an answer
is not timed. Answers are kept as they came and held to the oracle when the clock has stopped.
"""

from __future__ import annotations

import multiprocessing
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

from benchmarks.serving.http import Client, Endpoint
from benchmarks.serving.workload import BY_NAME, STATEMENTS, Events, Parameters, Rows, Sizes, Statement

CLIENTS = 8
_LANES = CLIENTS + 1  # the one client that measures latency has the last one
SPAWN = multiprocessing.get_context("spawn")
_SETTLE_S = 3.0  # of mixed load, before it counts
Json = dict[str, Any]
Asked = tuple[str, int, bytes]  # a statement's name, its parameter, the answer


@dataclass
class Oracle:
    """What tables must answer. `wrong` counts answers that were something else, by table; `examples` are a few."""

    tables: dict[str, Events]
    checked: int = 0
    wrong: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    _known: dict[tuple[str, str, int], Rows] = field(default_factory=dict)

    def check(self, endpoint: Endpoint, table: str, asked: Sequence[Asked]) -> int:
        """How many of the endpoint's answers are wrong."""
        wrong = 0
        for name, parameter, answer in asked:
            found, expected = endpoint.rows(answer), self._expected(table, name, parameter)
            self.checked += 1
            if found != expected:
                wrong += 1
                if len(self.examples) < 5:
                    sql = BY_NAME[name].sql(table, parameter, endpoint.dialect)
                    self.examples.append(f"{sql}: {answer[:300]!r}, not {str(expected)[:300]}")
        self.wrong[table] = self.wrong.get(table, 0) + wrong
        return wrong

    def _expected(self, table: str, name: str, parameter: int) -> Rows:
        key = (table, name, parameter)
        if key not in self._known:
            self._known[key] = BY_NAME[name].answer(self.tables[table], parameter)
        return self._known[key]


def latency(
    endpoint: Endpoint,
    oracle: Oracle,
    table: str,
    sizes: Sizes,
    rounds: int,
    warm: int,
    statements: Sequence[Statement] = STATEMENTS,
) -> Json:
    """Milliseconds by statement."""
    client, parameters = Client(endpoint), Parameters(sizes, CLIENTS, _LANES)
    times: dict[str, list[float]] = {statement.name: [] for statement in statements}
    asked: list[Asked] = []
    for number in range(warm + rounds):
        for statement in statements:
            parameter = parameters.next(statement)
            took_s, answer = client.ask(statement.sql(table, parameter, endpoint.dialect))
            asked.append((statement.name, parameter, answer))
            if number >= warm:
                times[statement.name].append(took_s * 1000)
    client.close()
    wrong = oracle.check(endpoint, table, asked)
    return {"ms": {name: summary(found) for name, found in times.items()}, "answers": len(asked), "wrong": wrong}


def summary(times: Sequence[float]) -> Json:
    ordered = sorted(times)
    return {
        "median": round(statistics.median(ordered), 3),
        "p90": round(ordered[int(0.9 * len(ordered))], 3),
        "p99": round(ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], 3),
        "least": round(ordered[0], 3),
        "samples": len(ordered),
    }


def mixed(endpoint: Endpoint, oracle: Oracle, table: str, sizes: Sizes, seconds: float) -> Json:
    """Queries per second of eight clients in processes of their own, each asking all eight statements in turn."""
    barrier = SPAWN.Barrier(CLIENTS)
    workers = []
    for lane in range(CLIENTS):
        mine, theirs = SPAWN.Pipe()
        arguments = (endpoint, table, sizes, lane, seconds, barrier, theirs)
        process = SPAWN.Process(target=_client, args=arguments, daemon=True)
        process.start()
        theirs.close()
        workers.append((process, mine))
    asked, rate = [], 0.0
    for process, mine in workers:
        counted, took_s, found = mine.recv()
        rate += counted / took_s
        asked += found
        process.join()
    wrong = oracle.check(endpoint, table, asked)
    return {"qps": round(rate, 1), "answers": len(asked), "wrong": wrong, "clients": CLIENTS, "seconds": seconds}


def _client(
    endpoint: Endpoint, table: str, sizes: Sizes, lane: int, seconds: float, barrier: Barrier, out: Connection
) -> None:
    client, parameters = Client(endpoint), Parameters(sizes, lane, _LANES)
    chance, asked, counted = random.Random(lane), [], 0
    barrier.wait()
    began = time.perf_counter() + _SETTLE_S
    now = time.perf_counter()
    while now < began + seconds:
        for statement in chance.sample(STATEMENTS, len(STATEMENTS)):
            parameter = parameters.next(statement)
            _, answer = client.ask(statement.sql(table, parameter, endpoint.dialect))
            asked.append((statement.name, parameter, answer))
            now = time.perf_counter()
            if now >= began:
                counted += 1
            if now >= began + seconds:
                break
    out.send((counted, now - began, asked))
    client.close()
