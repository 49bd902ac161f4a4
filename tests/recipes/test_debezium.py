"""Envelopes of Debezium in Kafka: the same rows before they are committed, after, and after a move."""

import json

import pytest

from hybrid.kafka.topics import TopicRecord, produce
from tests.recipes.conftest import RecipeHome

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

DDL = """CREATE TABLE people (id BIGINT NOT NULLKEY, name VARCHAR, born DATE) WITH ('connectors' = '[
  {"name": "cdc", "transport": {"name": "kafka_input", "config": {"topic": "TOPIC", "start_from": "earliest"}},
   "format": {"name": "json", "config": {"update_format": "debezium", "json_flavor": "debezium_postgres"}}}]');"""


def person(number, name, born=0):
    return {"id": number, "name": name, "born": born}


def envelope(op, before=None, after=None):
    return {"schema": None, "payload": {"op": op, "before": before, "after": after}}


@pytest.mark.parametrize("key", ["", " PRIMARY KEY"])
def test_the_same_rows_everywhere(tmp_path, capsys, broker, topic, key):
    home = RecipeHome(tmp_path / "home", capsys)
    (tmp_path / "t.sql").write_text(DDL.replace("TOPIC", topic).replace("KEY", key))
    home.run("table", "create", "-f", str(tmp_path / "t.sql"), "--kafka", broker)
    home.run("ingest", "people", "--until-caught-up")  # starts the stream
    ann, bob, eve = person(1, "ann"), person(2, "bob", 1), person(3, "eve")
    messages = [
        envelope("r", after=ann), envelope("c", after=bob), envelope("c", after=eve), envelope("t"),
        envelope("u", bob, person(2, "rob", 2)), envelope("d", ann), None,
    ]  # fmt: skip
    produce(broker, topic, [TopicRecord(json.dumps(one).encode() if one else None, key=b"1") for one in messages])
    expected = [{"id": 2, "name": "rob", "born": "1970-01-03"}, {"id": 3, "name": "eve", "born": "1970-01-01"}]
    sql = "select id, name, born from people order by id"
    assert home.rows(sql) == expected
    report = home.run("ingest", "people", "--until-caught-up")
    assert (report["rejected"], report["filtered"]) == (1, 1)
    assert home.rows(sql) == expected
    home.run("move", "people")
    assert home.rows(sql) == expected
    assert "it must be an envelope of Debezium" in home.run("rejected", "list", "people")[0]["reason"]
