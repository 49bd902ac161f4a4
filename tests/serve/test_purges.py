"""Purges over HTTP, and what a server holds in memory of rows that were purged."""

from pathlib import Path

import pytest

from tests.replace.purge.erasing import holding
from tests.serve.app import App, lay_history
from tests.serve.test_jobs import ROWS, table, total
from tests.serve.test_replacing import push

ALL = {"table": "orders", "from": "0", "to": "10000", "delete": True, "where": "amount > 0"}


@pytest.mark.spark
def test_deleted_rows_are_purged_over_http(working: App, tmp_path: Path) -> None:
    lay_history(working.home, ROWS)
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

    push(working, tmp_path / "in", "more", [*ROWS, {**ROWS[0], "customer": "erase-me"}])
    body = {"tables": {"orders": "customer = 'erase-me'"}, "user": "ada"}
    looked = working.ok("POST", "/erasures", {**body, "dryRun": True})
    assert sum(place["matching"] for place in looked["readings"]) == 1 and total(working)[0] == 4
    done = working.ok("POST", "/erasures", body)
    assert done["state"] == "DONE" and total(working)[0] == 3 and holding(working.home.home, "erase-me") == []
    states = [one["state"] for one in working.get("/erasures")]
    assert states == ["DONE"] and working.get(f"/erasures/{done['id']}") == done
    run = next(run for run in working.home.runs("orders") if run.type == "erase")
    assert run.state == "DONE" and run.result == done["sentence"] and run.arguments == {"erasure": done["id"]}


def test_what_is_no_purge(working: App) -> None:
    assert working.refused("POST", "/tables/nosuch/purges", {"where": "amount > 0"})[0] == 404
    assert working.refused("POST", "/tables/orders/purges", {"why": 1})[0] in {400, 404}


@pytest.mark.slow
def test_the_condition_of_an_erasure_is_not_queued(app: App) -> None:
    table(app)
    body = {"tables": {"orders": "customer = 'erase-me'"}}
    run = app.ok("POST", "/erasures?wait=false", body)
    (begun,) = app.get("/erasures")
    assert run["state"] == "QUEUED" and begun["state"] == "OPEN" and begun["tables"][0]["condition"] == "customer = ?"
    kept = [path.rpartition(".")[2] for path in holding(app.home.home, "erase-me")]
    assert kept == ["request"] and app.ok("POST", "/erasures?wait=false", body)["id"] != run["id"]
    assert app.refused("POST", "/erasures/erasure-1/resume")[0] == 404
    assert app.refused("POST", "/erasures", {"tables": {}})[0] == 400
    assert app.ok("DELETE", f"/erasures/{begun['id']}")["state"] == "DISCARDED"
    assert holding(app.home.home, "erase-me") == [] and app.refused("DELETE", f"/erasures/{begun['id']}")[0] == 409
