"""From the start of a server, on data that is there, to its first right answer."""

from __future__ import annotations

import http.client
import time

from benchmarks.serving.http import Client, Endpoint
from benchmarks.serving.measure import Json
from benchmarks.serving.pinot import Pinot
from benchmarks.serving.product import Product
from benchmarks.serving.tables import Table
from benchmarks.serving.workload import Events, Rows

_POLL_S, _ANSWER_S = 0.05, 900.0


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


def _ask(endpoint: Endpoint, sql: str) -> Rows | None:
    """Rows, or None when it failed, or when nobody listens."""
    client = Client(endpoint)
    try:
        return client.rows(sql)
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        client.close()
