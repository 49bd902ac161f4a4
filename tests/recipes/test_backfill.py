"""Corrections of stretches of time by the command line, on the orders recipes."""

import json

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

WINDOW = ("--from", "2021-09-24T06:00:00Z", "--to", "2021-09-24T08:00:00Z")
FIRST = "orders_1632463351000_1632467070000_0"
ROWS = "select * from orders limit 100"
TOTALS = "select count(*), sum(amount) from orders"


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch, pytestconfig):
    monkeypatch.chdir(pytestconfig.rootpath)


def totals(home, plan=None):
    (row,) = home.rows(f"SET plan='{plan}'; {TOTALS}" if plan else TOTALS)
    return row["count(*)"], pytest.approx(row["sum(amount)"], rel=1e-6)


def test_rows_that_have_not_even_been_ingested_are_planned_looked_at_corrected_and_taken_back(make_recipe, tmp_path):
    home, file = make_recipe("orders"), tmp_path / "plan.json"
    before = totals(home)
    made = home.run(
        *("backfill", "plan", "orders", *WINDOW, "--update", "amount = amount * 1.2"),
        *("--where", "order_status = 'OPEN'", "-o", str(file), "--reason", "prices were net"),
    )
    assert "Before it is planned: Moved 7 rows in 1 bucket" in home.messages
    assert json.loads(file.read_text()) == made and made["table"] == "orders"
    (bucket,) = made["buckets"]
    assert (bucket["start"], bucket["end"]) == ("2021-09-24T06:00:00Z", "2021-09-24T08:00:00Z")
    numbers = {name: bucket[name] for name in ("rows_before", "rows_after", "added", "removed", "changed")}
    assert numbers == {"rows_before": 7, "rows_after": 7, "added": 0, "removed": 0, "changed": 3}
    assert bucket["state"] == "present" and bucket["changed_columns"] == {"amount": 3} and len(bucket["samples"]) == 3

    after = (14, 780.08 + 0.2 * (13.29 + 9.77 + 55.52))
    assert totals(home) == before and totals(home, made["id"]) == after
    home.run("backfill", "run", str(file), code=2)
    assert "--yes answers yes" in home.messages

    done = home.run("backfill", "run", str(file), "--yes")
    assert (done["buckets_now"], done["buckets_total"]) == (1, 1) and totals(home) == after
    (entry,) = home.run("replacement", "list", "orders")
    assert (entry["kind"], entry["backfill"], entry["reason"]) == ("backfill", made["id"], "prices were net")
    assert entry["segments_from"] == entry["segments_to"] == [FIRST] and entry["buckets"] == [
        [1632463200000, 1632470400000]
    ]
    again = home.run("backfill", "run", made["id"], "--yes")
    assert again["acts"] == [] and again["sentence"].startswith("Nothing to do: ")

    home.run("backfill", "revert", made["id"], "--yes")
    assert totals(home) == before
    home.run("backfill", "run", made["id"], "--yes", code=4)
    assert "was reverted" in home.messages
    (state,) = [one["state"] for one in home.run("backfill", "list", "orders")]
    assert state == "REVERTED"


def test_what_stops_a_backfill(make_recipe, tmp_path):
    home, file = make_recipe("orders"), tmp_path / "plan.json"
    plan = ("backfill", "plan", "orders", *WINDOW)
    home.run(*plan, code=2)
    assert "Give one of --update, --delete, --input and --sql" in home.messages
    home.run(*plan, "--update", "amout = 1", code=2)
    assert "Did you mean 'amount'?" in home.messages
    home.run(*plan, "--update", "ts = ts + 1", code=2)
    assert "'ts' of table 'orders' is the time column" in home.messages
    home.run("backfill", "plan", "orders", "--from", "2021-09-24", "--to", "2021-09-25", "--delete", code=2)
    assert "--from 2021-09-24: has no zone" in home.messages
    home.run("backfill", "plan", "orders", "--delete", code=2)
    assert "A backfill takes --from and --to" in home.messages
    home.run("backfill", "status", "backfill-1", code=1)

    # An expectation that fails leaves a plan to look at, which does not run.
    made = home.run(*plan, "--update", "amount = amount - 50", "--expect", "amount >= 0", "-o", str(file), code=3)
    assert made["failed_checks"] and made["checks"][0]["state"] == "FAILED"
    home.run("backfill", "run", str(file), "--yes", code=4)
    assert home.run("backfill", "list")[0]["state"] == "REFUSED"

    made = home.run(*plan, "--delete", "--where", "order_id IN (1, 2)", "-o", str(file))
    file.write_text(file.read_text().replace('"removed": 2', '"removed": 1'))
    home.run("backfill", "run", str(file), "--yes", code=4)
    assert "it was changed by hand" in home.messages
    other = home.run(*plan, "--update", "amount = 1")
    home.run("backfill", "run", other["id"], "--yes")
    home.run("backfill", "run", made["id"], "--yes", code=4)
    assert f"segment '{FIRST}' has been written anew since" in home.messages
    (failed,) = [one for one in home.run("backfill", "list") if one["id"] == made["id"]]
    assert failed["state"] == "FAILED" and "written anew" in failed["error"]
    assert home.run(*plan, "--delete")["buckets"][0]["state"] == "failed"
    home.run("backfill", "cancel", made["id"])
    home.run("backfill", "run", made["id"], "--yes", code=4)
    assert "was cancelled" in home.messages


def rows(home, plan=None):
    return sorted(map(str, home.rows(f"SET plan='{plan}'; {ROWS}" if plan else ROWS)))


def test_rows_of_a_statement_on_an_upsert_table(make_recipe):
    home = make_recipe("orders_upsert")
    home.run("ingest", "orders", "--until-caught-up")
    before = rows(home)
    statement = "select order_id, customer_id, order_status, amount * 2 as amount, ts from orders where order_id <= 2"
    made = home.run("backfill", "plan", "orders", *WINDOW, "--sql", statement)
    assert made["inputs"][0]["statement"] == statement
    wanted = rows(home, made["id"])
    assert rows(home) == before != wanted
    home.run("backfill", "run", made["id"], "--yes", "--atomic")
    assert rows(home) == wanted
    home.run("backfill", "revert", made["id"], "--yes")
    assert rows(home) == before
