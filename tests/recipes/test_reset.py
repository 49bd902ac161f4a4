"""A stream that was reset by the command line: refused without an answer, done once, seen in status and in the log."""

import time

import pytest
from kafka import KafkaAdminClient

from hybrid.kafka.topics import create_topic, describe_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch, pytestconfig):
    monkeypatch.chdir(pytestconfig.rootpath)


def count(home):
    return home.rows("select count(*) from orders")[0]["count(*)"]


def test_a_recreated_topic_stops_a_table_until_somebody_decides(make_recipe):
    home = make_recipe("orders")
    home.run("ingest", "orders", "--until-caught-up")
    reset = ("connector", "reset", "orders", "--to")
    assert home.run(*reset, "latest", "--yes")["sentence"].startswith("Nothing to reset: 'orders' continues")
    home.run(*reset, "earliest", code=2)
    assert "14 offsets are read again, and their rows are there twice then. Go on?" in home.messages
    home.run("connector", "reset", "orders", "kafak", "--to", "earliest", "--dry-run", code=1)
    assert "Did you mean 'kafka'?" in home.messages

    admin = KafkaAdminClient(bootstrap_servers=home.broker)
    admin.delete_topics([home.topic])
    deadline = time.monotonic() + 20
    while describe_topic(home.broker, home.topic) is not None and time.monotonic() < deadline:
        time.sleep(0.1)
    create_topic(home.broker, home.topic)
    admin.close()
    home.run("kafka", "produce", home.topic, "data/orders/events.jsonl", "--kafka", home.broker)
    home.run("status", code=3)
    home.run("ingest", "orders", "--until-caught-up", code=1)
    assert "Decide where it continues: hybrid connector reset orders --to" in home.messages
    assert count(home) == 14

    told = home.run("connector", "reset", "orders", "kafka", "--to", "0:4", "--dry-run")
    assert (told["recreated"], told["skipped"], told["version"]) == (True, 4, None)
    done = home.run(*reset, "0:4", "--yes")
    assert done["partitions"] == [
        {"partition": 0, "epoch": 1, "position": 14, "to": 4, "lost": 0, "skipped": 4, "again": 0}
    ]
    assert count(home) == 24, "10 rows of the new topic, uncommitted"
    home.run("ingest", "orders", "--until-caught-up")
    home.run("move", "orders", "--max-buckets", "all")
    assert count(home) == 24
    home.run("status")
    runs = [one for one in home.run("task", "list", "orders") if one["type"] == "reset"]
    assert [one["state"] for one in runs] == ["DONE"], "what was not accepted, or had nothing to do, is no run"
