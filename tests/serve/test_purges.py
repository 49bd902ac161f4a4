"""Purges over HTTP, and what a server holds in memory of rows that were purged."""

from pathlib import Path

import pytest

from tests.serve.app import App
from tests.serve.test_jobs import ROWS, table, total
from tests.serve.test_replacing import push

ALL = {"table": "orders", "from": "0", "to": "10000", "delete": True, "where": "amount > 0"}


@pytest.mark.spark
def test_deleted_rows_are_purged_over_http(working: App, tmp_path: Path) -> None:
    table(working)
    push(working, tmp_path / "in", "history", ROWS)
    before = total(working)
    status, said = working.refused("POST", "/tables/orders/purges", {"where": "amount > 0"})
    assert status == 409 and "that match" in said and total(working) == before
    plan = working.ok("POST", "/backfills", ALL)
    working.ok("POST", f"/backfills/{plan['id']}/resume")
    assert total(working)[0] == 0
    looked = working.ok("POST", "/tables/orders/purges", {"where": "amount > 0", "dryRun": True})
    assert looked["files"] == [] and "Would remove" in looked["sentence"]
    done = working.ok("POST", "/tables/orders/purges", {"where": "amount > 0", "reason": "request 17", "user": "ada"})
    assert [one["matching"] for one in done["after"]] == [0] * len(done["after"]) and done["files"]
    (listed,) = working.get("/tables/orders/purges")
    assert (listed["id"], listed["reason"], listed["user"]) == (done["id"], "request 17", "ada")
    assert total(working)[0] == 0


def test_what_is_no_purge(working: App) -> None:
    assert working.refused("POST", "/tables/nosuch/purges", {"where": "amount > 0"})[0] == 404
    assert working.refused("POST", "/tables/orders/purges", {"why": 1})[0] in {400, 404}
