"""Purges over HTTP, and what a server holds in memory of rows that were purged."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import NotFoundError
from hybrid.operations.erasure import ErasurePreview
from hybrid.operations.erasures import Erasures
from hybrid.rpc.queue import carry_out
from hybrid.serve.context import ServerLimits
from tests.replace.purge.erasing import holding
from tests.serve.app import App, Worker, lay_history
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


def test_the_name_of_one_half_of_two_erases_nothing(orders: App) -> None:
    for half in ("orders_OFFLINE", "orders_REALTIME"):
        status, said = orders.refused("POST", f"/tables/{half}/purges", {"where": "amount > 0"})
        assert status == 400 and f"'{half}' names one half, and a purge acts on both" in said
        status, said = orders.refused("POST", "/erasures", {"tables": {half: "amount > 0"}})
        assert status == 400 and f"'{half}' names one half, and an erasure acts on both" in said
    assert orders.get("/erasures") == [] and not orders.home.runs()


@pytest.mark.slow
def test_two_names_of_one_table_erase_nothing(app: App) -> None:
    table(app)
    conditions = {"orders": "customer = 'ada'", "orders_OFFLINE": "customer = 'bob'"}
    status, said = app.refused("POST", "/erasures", {"tables": conditions})
    assert status == 400 and "'orders' and 'orders_OFFLINE' are one table" in said and app.get("/erasures") == []


@pytest.mark.slow
def test_a_dry_run_is_removed_by_whoever_ends_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that stops waiting leaves the erasure to its run, which could not look without it."""
    looked: list[str] = []

    def look(erasures: Erasures, erasure_id: str, _: object) -> ErasurePreview:
        looked.append(erasures.show(erasure_id).id)
        return ErasurePreview([], [])

    monkeypatch.setattr(Erasures, "look", look)
    body: dict[str, Any] = {"tables": {"orders": "customer = 'ada'"}, "dryRun": True}
    with closing(App(tmp_path / "home", ServerLimits(run_wait_s=0.1))) as app:
        table(app)
        status, said = app.refused("POST", "/erasures?wait=false", body)
        assert status == 400 and "a dry run is always waited for" in said and app.get("/erasures") == []
        assert app.refused("POST", "/erasures", body)[0] == 504
        (begun,) = app.get("/erasures")
        run = app.home.context.catalog.runs.claim()
        assert run is not None and looked == []
        carry_out(app.home, run, lambda: True)
        assert app.get(f"/runs/{run.id}")["state"] == "DRY_RUN" and looked == [begun["id"]]
        assert app.get("/erasures") == []
    with closing(App(tmp_path / "home", ServerLimits(run_wait_s=60))) as app, Worker(app.home):
        assert app.ok("POST", "/erasures", body)["readings"] == [] and app.get("/erasures") == []


@pytest.mark.slow
def test_a_dry_run_that_is_not_queued_leaves_nothing(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise NotFoundError("The queue is gone.")

    monkeypatch.setattr("hybrid.serve.context.enqueue", full)
    table(app)
    assert app.refused("POST", "/erasures", {"tables": {"orders": "customer = 'ada'"}, "dryRun": True})[0] == 404
    assert app.get("/erasures") == []
