"""Somebody's orders are erased by the command line, on the orders recipe with a real topic."""

import shutil

import pytest

from tests.replace.purge.erasing import everything, holding

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
WINDOW = ("--from", "2021-09-24T06:00:00Z", "--to", "2021-09-24T08:00:00Z")
WHERE = "customer_id = 101"


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch, pytestconfig):
    monkeypatch.chdir(pytestconfig.rootpath)


def test_orders_of_a_customer_are_deleted_looked_at_and_erased(make_recipe):
    home = make_recipe("orders")
    root = home.home / "warehouse" / "orders"
    home.run("ingest", "orders", "--until-caught-up")
    copy = home.home / "warehouse" / ".dropped" / "orders@20210924T000000.000000Z"
    shutil.copytree(root, copy)
    home.run("purge", "orders", "--where", WHERE, "--yes", code=4)
    assert "A purge only removes what has been deleted" in home.messages
    where = ("--delete", "--where", f"{WHERE}")
    plan = home.run("backfill", "plan", "orders", *WINDOW, *where)
    gone = sum(bucket["removed"] for bucket in plan["buckets"])
    home.run("backfill", "run", plan["id"], "--yes")
    seen = home.rows("select * from orders limit 100")
    would = home.run("purge", "orders", "--where", WHERE, "--dry-run")
    home.run("purge", "orders", "--where", WHERE, code=2)
    assert "--yes answers yes" in home.messages

    for folder in ("spill", "uploads"):
        (home.home / folder).mkdir(exist_ok=True)
        (home.home / folder / "left-over").write_text("x")
    done = home.run("purge", "orders", "--where", WHERE, "--yes", "--reason", "request 17")
    assert done["rows"] == {"REALTIME": gone} and would["rows"] == {} and gone
    assert {one["matching"] for one in done["after"]} == {0} and any("topic" in one for one in done["outside"])
    assert {"spill", "uploads"} <= {one.split(":")[0] for one in done["outside"]}
    assert any(f"the dropped copy {copy.name}, which has {gone} such row" in one for one in done["outside"])
    assert home.rows("select * from orders limit 100") == seen
    assert not [row for _, row in everything(root) if row.get("customer_id") == 101]
    assert holding(root, "no such value") == []
    (kept,) = home.run("purge", "orders", "--list")
    assert (kept["id"], kept["reason"]) == (done["id"], "request 17")
    none = home.run("purge", "orders", "--where", "customer_id = 424242", "--dry-run")
    assert not any("copy" in one for one in none["outside"]), "it has none of these rows"
    home.run("doctor")
