"""From the start of a server, on data that is there, to its first right answer; and life with too little memory."""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.serving.http import Client, Endpoint
from benchmarks.serving.measure import Json, Oracle, latency
from benchmarks.serving.pinot import Pinot
from benchmarks.serving.product import Product
from benchmarks.serving.tables import Table
from benchmarks.serving.workload import Events, Rows, Sizes

_POLL_S, _ANSWER_S = 0.05, 900.0
# The memory that counts as too little, as a share of what the tables take; rounds of statements in it.
_SHARE, _ROUNDS, _WARM = 0.1, 20, 5


def restarted(system: Product | Pinot, table: Table, events: Events) -> Json:
    """Ends the server, starts it, and asks it until all is there; `wrong` are earlier answers that were not right."""
    expected = [[len(events), float(events.amount.sum())]]
    system.stop()
    started = time.monotonic()
    system.start()
    counted = {"wrong": 0, "failed": 0}
    while (found := _ask(system.endpoint, f"select count(*), sum(amount) from {table.name}")) != expected:
        counted["wrong" if found else "failed"] += 1
        assert time.monotonic() - started < _ANSWER_S, f"{system.name}: {found}, not {expected}"
        time.sleep(_POLL_S)
    return {"first_s": round(time.monotonic() - started, 2), **counted}


def bounded(system: Product, oracle: Oracle, tables: Sequence[Table], sizes: Sizes) -> Json:
    """The product with a tenth of the memory that its tables take: bytes, and milliseconds by table and statement."""
    taken = system.cached_bytes()
    bound = int(_SHARE * taken)
    system.stop()
    system.start("--cache-bytes", str(bound))
    at_start = system.peak_bytes()
    ms = {one.name: latency(system.endpoint, oracle, one.name, sizes, _ROUNDS, _WARM) for one in tables}
    found = {"taken": taken, "bound": bound, "at_start": at_start, "peak": system.peak_bytes(), "one": ms}
    system.stop()
    system.start()
    return found


def _ask(endpoint: Endpoint, sql: str) -> Rows | None:
    """Rows, or None when it failed, or when nobody listens."""
    client = Client(endpoint)
    try:
        return client.rows(sql)
    except (OSError, ValueError):
        return None
    finally:
        client.close()
