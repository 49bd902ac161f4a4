"""Backfills over HTTP: planned, looked at, run, paused, cancelled, taken back."""

import pytest

from tests.serve.app import App, lay_history
from tests.serve.test_jobs import ROWS, total

CHANGE = {"table": "orders", "from": "0", "to": "10000", "update": "amount = amount * 2"}


@pytest.mark.spark
def test_planned_looked_at_run_and_taken_back(working: App) -> None:
    lay_history(working.home, ROWS)
    count, amount = total(working)
    status, said = working.refused("POST", "/backfills", {**CHANGE, "delete": True})
    assert status == 400 and "Give one of --update, --delete, --input, --sql, --from-rejected" in said
    plan = working.ok("POST", "/backfills", {**CHANGE, "reason": "doubled", "user": "ada"})
    assert total(working) == [count, amount] and plan["buckets"][0]["changed"] == count
    sql = f"SET plan='{plan['id']}'; SELECT count(*), sum(amount) FROM orders"
    answer = working.ok("POST", "/query/sql", {"sql": sql})
    assert answer["resultTable"]["rows"] == [[count, 2 * amount]] and f"plan={plan['id']}" in answer["revision"]

    path = f"/backfills/{plan['id']}"
    (listed,) = working.get("/backfills?table=orders")
    assert (listed["id"], listed["state"], listed["user"]) == (plan["id"], "PLANNED", "ada")
    assert working.get(path)["plan"] == plan
    assert working.ok("POST", f"{path}/pause")["state"] == "PAUSED"
    report = working.ok("POST", f"{path}/resume", {"atomic": True})
    assert (report["buckets_now"], report["buckets_done"]) == (1, 1) and total(working) == [count, 2 * amount]
    assert working.refused("POST", f"{path}/cancel")[0] == 409
    working.ok("POST", f"{path}/revert", {"reason": "it was right"})
    assert total(working) == [count, amount] and working.get(path)["state"] == "REVERTED"

    other = working.ok("POST", "/backfills", CHANGE)
    assert working.ok("POST", f"/backfills/{other['id']}/cancel")["state"] == "CANCELLED"
    status, said = working.refused("POST", f"/backfills/{other['id']}/resume")
    assert status == 409 and "was cancelled" in said


def test_what_is_not_there(working: App) -> None:
    for path in ("", "/resume", "/pause", "/cancel", "/revert"):
        status, said = working.refused("POST" if path else "GET", f"/backfills/backfill-0{path}")
        assert status == 404 and "Backfill 'backfill-0' does not exist" in said
    assert working.get("/backfills") == []
    assert working.refused("POST", "/backfills", {"table": "nosuch"})[0] == 404
    assert working.refused("POST", "/backfills", {"table": "orders", "why": 1})[0] == 400


def test_a_realtime_half_is_not_corrected(orders: App) -> None:
    status, said = orders.refused("POST", "/backfills", {**CHANGE, "table": "orders_REALTIME"})
    assert status == 400 and "Segments of OFFLINE are replaced, not of REALTIME" in said and not orders.home.runs()
