"""Corrections of stretches of time by the command line, on the orders recipes."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from kafka import KafkaAdminClient, TopicPartition

import hybrid
from hybrid.doctor.backfills import check_backfills
from hybrid.errors import ConflictError
from hybrid.lake.table_context import TableContext
from hybrid.replace.backfill.claims import claim

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
    way_back = json.loads(home.printed)["hint"]
    assert way_back.startswith("Take the revert back: hybrid replacement revert orders ")
    (state,) = [one["state"] for one in home.run("backfill", "list", "orders")]
    assert state == "REVERTED"
    home.run("replacement", "revert", "orders", way_back.split()[-1], "--yes")
    assert totals(home) == after
    stop(home, file)


def stop(home, file):
    """What stops a backfill, on a table that has been moved."""
    plan = ("backfill", "plan", "orders", *WINDOW)
    recorded = home.run("task", "list", "orders")
    home.run(*plan, code=2)
    assert "Give one of --update, --delete, --input, --sql, --from-rejected" in home.messages
    home.run(*plan, "--update", "amout = 1", code=2)
    assert "Did you mean 'amount'?" in home.messages
    home.run(*plan, "--update", "ts = ts + 1", code=2)
    assert "'ts' of table 'orders' is the time column" in home.messages
    home.run(*plan, "--delete", "--where", "amuont = 1", code=2)
    assert "Did you mean 'amount'?" in home.messages
    home.run("backfill", "plan", "orders", "--from", "2021-09-24T00:00", "--to", "2021-09-25", "--delete", code=2)
    assert "--from 2021-09-24T00:00: has no zone" in home.messages
    home.run("backfill", "status", "backfill-1", code=1)
    assert home.run("task", "list", "orders") == recorded, "a request that is refused is no run"

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
    assert f"segment '{FIRST}' has been rewritten since" in home.messages
    (failed,) = [one for one in home.run("backfill", "list") if one["id"] == made["id"]]
    assert failed["state"] == "FAILED" and "rewritten" in failed["error"]
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


def be_lenient(home, folder):
    """From now on a value of the stream that does not fit is a null."""
    config = json.loads(Path("data/orders/orders_table.json").read_text(encoding="utf-8"))
    realtime = folder / "lenient.json"
    realtime.write_text(json.dumps({**config, "ingestionConfig": {"continueOnError": True}}))
    files = ("--config", str(realtime), "--config", "data/orders/orders_offline_table.json")
    more = ("--kafka", home.broker, "--set", f"stream.kafka.topic.name={home.topic}")
    home.run("table", "apply", "--schema", "data/orders/orders_schema.json", *files, *more)


def offsets(home):
    return [one["offset"] for one in home.run("rejected", "list", "orders")]


def test_rejected_rows_come_by_a_backfill_or_by_a_replay_and_never_by_both(make_recipe, tmp_path):
    home, bad = make_recipe("orders"), tmp_path / "bad.jsonl"
    times = {15: 1632463400000, 16: 1632677270000}
    rows = ({"order_id": one, "amount": "much", "ts": ts} for one, ts in times.items())
    bad.write_text("".join(json.dumps(row) + "\n" for row in rows))
    home.run("kafka", "produce", home.topic, str(bad), "--kafka", home.broker)
    home.run("ingest", "orders", "--until-caught-up")
    assert offsets(home) == [14, 15]
    be_lenient(home, tmp_path)

    plan = ("backfill", "plan", "orders", *WINDOW, "--from-rejected")
    home.run(*plan, "--where", "order_id = 1", code=2)
    home.run(*plan, "--delete", code=2)
    made = home.run(*plan)
    assert "1 of 2 rejected rows convert and come; 1 convert and lie outside" in home.messages
    assert totals(home)[0] == 14 and totals(home, made["id"])[0] == 15
    home.run("backfill", "run", made["id"], "--yes")
    assert totals(home)[0] == 15 and offsets(home) == [15]
    states = {one["offset"]: one["state"] for one in home.run("rejected", "list", "orders", "--all")}
    assert states == {14: f"taken:{made['id']}", 15: "rejected"}

    (entry,) = home.run("replacement", "list", "orders")
    home.run("replacement", "revert", "orders", entry["id"], "--yes")
    assert totals(home)[0] == 14 and offsets(home) == [14, 15], "what is not in the table is rejected again"
    back = home.run("replacement", "list", "orders")[0]["id"]
    home.run("replacement", "revert", "orders", back, "--yes")
    assert totals(home)[0] == 15 and offsets(home) == [15], "and what is there again is not"
    back = home.run("replacement", "list", "orders")[0]["id"]
    home.run("replacement", "revert", "orders", back, "--yes")
    assert totals(home)[0] == 14 and offsets(home) == [14, 15]
    assert home.run("rejected", "replay", "orders", "--dry-run")["replayed"] == 2
    assert home.run("rejected", "replay", "orders")["replayed"] == 2
    assert totals(home)[0] == 16 and offsets(home) == []
    back = home.run("replacement", "list", "orders")[0]["id"]
    home.run("replacement", "revert", "orders", back, "--yes", code=4)
    assert "have been brought otherwise since" in home.messages and totals(home)[0] == 16


def test_a_cancelled_backfill_gives_back_what_it_took(make_recipe, tmp_path):
    home, bad = make_recipe("orders"), tmp_path / "bad.jsonl"
    bad.write_text('{"order_id": 15, "amount": "much", "ts": 1632463400000}\n')
    home.run("kafka", "produce", home.topic, str(bad), "--kafka", home.broker)
    home.run("ingest", "orders", "--until-caught-up")
    be_lenient(home, tmp_path)
    made = home.run("backfill", "plan", "orders", *WINDOW, "--from-rejected")["id"]
    hy = hybrid.connect(home.home)
    table, found = hy.table("orders"), hy.backfills.show(made)
    claim(TableContext(hy.context.bench, table.spec, table.layout), found, found.units)  # a run that dies here
    assert home.run("backfill", "status", made)["taken"] == 1 and offsets(home) == []
    assert home.run("rejected", "replay", "orders")["replayed"] == 0
    with pytest.raises(ConflictError, match="may continue"):
        hy.backfills.release(made)
    hy.backfills.cancel(made)  # and a cancel that dies before it gives back
    said = []
    check_backfills(
        SimpleNamespace(home=hy, found=lambda *words, **more: said.append((*words, more["hint"]))), "orders"
    )
    assert [one[2:] for one in said] == [
        (f"Backfill '{made}' is CANCELLED, and rejected rows are still taken by it: 1.",
         f"hybrid backfill cancel {made} (gives them back)"),
    ]  # fmt: skip
    hy.close()
    cancelled = home.run("backfill", "cancel", made)
    assert (cancelled["state"], cancelled["taken"]) == ("CANCELLED", 0) and offsets(home) == [14]
    home.run("backfill", "cancel", made, code=4)
    assert home.run("rejected", "replay", "orders")["replayed"] == 1 and totals(home)[0] == 15


def amounts(home, plan=None):
    found = home.rows((f"SET plan='{plan}'; " if plan else "") + "select order_id, amount from orders limit 100")
    return {row["order_id"]: pytest.approx(row["amount"], rel=1e-6) for row in found}


def test_a_stretch_is_rebuilt_from_what_kafka_still_holds(make_recipe, tmp_path):
    home, bad = make_recipe("orders"), tmp_path / "bad.jsonl"
    bad.write_text('{"order_id": 15, "amount": "much", "ts": 1632463400000}\nno JSON\n')
    home.run("kafka", "produce", home.topic, str(bad), "--kafka", home.broker)
    home.run("ingest", "orders", "--until-caught-up")
    before = amounts(home)
    spoil = ("backfill", "plan", "orders", *WINDOW, "--update", "amount = 0")
    home.run("backfill", "run", home.run(*spoil)["id"], "--yes")
    assert amounts(home) != before and offsets(home) == [14, 15]
    be_lenient(home, tmp_path)

    plan = ("backfill", "plan", "orders", *WINDOW, "--from-kafka")
    home.run(*plan, "--from-rejected", code=2)
    made = home.run(*plan)
    assert (
        "1 message that Kafka holds do not convert (commonest reason: The message is not one JSON object"
        in home.messages
    )
    after = {**before, 15: amounts(home, made["id"])[15]}
    assert amounts(home, made["id"]) == after and len(after) == 15
    home.run("backfill", "run", made["id"], "--yes")
    assert amounts(home) == after and offsets(home) == [15], "the one that came is taken"
    assert home.run("rejected", "replay", "orders")["replayed"] == 0
    assert not home.run(*plan)["rows"], "it is as Kafka has it"
    home.run("backfill", "revert", made["id"], "--yes")
    assert offsets(home) == [14, 15] and len(amounts(home)) == 14

    # What Kafka no longer holds stays as it is; a replay is its message, and is not brought beside it.
    assert home.run("rejected", "replay", "orders")["replayed"] == 1
    admin = KafkaAdminClient(bootstrap_servers=home.broker)
    admin.delete_records({TopicPartition(home.topic, 0): 3})
    admin.close()
    made = home.run(*plan)
    assert (
        f"before offset 3 in partition 0 of topic '{home.topic}': 3 rows of the stretch from there stay"
        in home.messages
    )
    home.run("backfill", "run", made["id"], "--yes")
    assert amounts(home) == {**after, 1: 0, 2: 0, 3: 0}
