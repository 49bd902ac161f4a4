"""Tables by DDL with a primary key and with a time column: history in buckets, live changes, deletes by key, moves."""

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from hybrid.kafka.topics import TopicRecord, produce
from tests.recipes.conftest import RecipeHome

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

FIRST = datetime(2024, 3, 1, tzinfo=UTC)
DDL = """
CREATE TABLE Payments (  -- names are lower case unless they are quoted
    id BIGINT NOT NULL PRIMARY KEY,
    amount DECIMAL(15,2) NOT NULL DEFAULT 1.5,
    note VARCHAR(20),
    ts TIMESTAMP NOT NULL LATENESS INTERVAL 1 HOUR
) WITH ('hybrid.bucketTimePeriod' = '1d', 'connectors' = '[
  {"labels": ["old"], "transport": {"name": "delta_table_input", "config": {"uri": "URI", "mode": "snapshot"MORE}}},
  {"labels": ["new"], "start_after": "old", "format": {"name": "json"},
   "transport": {"name": "kafka_input", "config": {"topic": "TOPIC", "start_from": "earliest"}}}]');
"""


@pytest.fixture
def home(tmp_path, capsys):
    return RecipeHome(tmp_path / "home", capsys)


@pytest.fixture
def make(home, broker, topic, tmp_path):
    def made(more=""):
        file = tmp_path / "payments.sql"
        file.write_text(DDL.replace("URI", str(tmp_path / "old")).replace("TOPIC", topic).replace("MORE", more))
        return home.run("table", "create", "-f", str(file), "--kafka", broker)

    return made


def when(hours):
    return FIRST + timedelta(hours=hours)


def write_old(path, rows, **options):
    columns = {name: [row[name] for row in rows] for name in ("ID", "Amount", "note", "ts")}
    types = {"ID": pa.int32(), "Amount": pa.float64(), "note": pa.string(), "ts": pa.timestamp("us", tz="UTC")}
    write_deltalake(str(path), pa.table({name: pa.array(columns[name], types[name]) for name in types}), **options)


def row(number, hours, amount=1.0, note="x"):
    return {"ID": number, "Amount": amount, "note": note, "ts": when(hours)}


def send(broker, topic, *changes):
    produce(broker, topic, [TopicRecord(json.dumps(change).encode()) for change in changes])


def insert(number, hours, **more):
    return {"insert": {"id": number, "TS": when(hours).strftime("%Y-%m-%d %H:%M:%S"), **more}}


def seen(home):
    rows = home.rows("select id, amount, note from payments order by id limit 100")
    return [(one["id"], float(one["amount"]), one["note"]) for one in rows]


def test_history_in_buckets_and_changes_by_key(home, make, broker, topic, tmp_path):
    old = [row(1, 1), row(2, 3, 2.25), row(3, 30), row(4, 75, 4.5, None), row(2, 40, 7.0)]
    write_old(tmp_path / "old", old[:3])
    write_old(tmp_path / "old", old[3:], mode="append")
    make()
    send(broker, topic, insert(5, 80, amount=5.01), insert(1, 2, amount="9.99", note="new"), insert(6, 10))
    home.run("ingest", "payments", "--until-caught-up")
    expected = [(1, 9.99, "new"), (2, 7.0, "x"), (3, 1.0, "x"), (4, 4.5, None), (5, 5.01, None), (6, 1.5, None)]
    assert [one for one in seen(home) if one[0] != 2] == [one for one in expected if one[0] != 2]
    assert [one[1] for one in seen(home) if one[0] == 2] in ([7.0], [2.25]), "two rows of a key in history: one of them"
    days = {one["name"].split("_")[1] for one in home.run("segment", "list", "payments") if one["half"] == "OFFLINE"}
    assert len(days) >= 3, "a segment for each day"

    send(broker, topic, {"delete": {"id": 3}}, {"delete": {"ID": 5}}, {"delete": {"id": 77}}, {"delete": {"note": "x"}})
    left = [1, 2, 4, 6]
    assert [one[0] for one in seen(home)] == left
    home.run("ingest", "payments", "--until-caught-up")
    assert [one[0] for one in seen(home)] == left
    rejected = home.run("rejected", "list", "payments")
    assert ["part of the primary key" in one["reason"] for one in rejected] == [True]
    assert home.run("move", "payments", "--max-buckets", "all")["rows_read"] >= 3
    assert [one[0] for one in seen(home)] == left, "the delete markers have moved"
    assert home.rows("select count(*) from payments where ts < '2024-03-02 00:00:00'")[0]["count(*)"] in (2, 3)


def test_filter_version_and_columns_that_came_later(home, make, tmp_path):
    write_old(tmp_path / "old", [row(1, 1), row(2, 2, 5.0)])
    write_old(tmp_path / "old", [row(3, 3)], mode="append")
    DeltaTable(str(tmp_path / "old")).delete("ID = 1")
    make(', "version": 1, "filter": "Amount < 3"')
    home.run("ingest", "payments", "--until-caught-up")
    assert [one[0] for one in seen(home)] == [1, 3], "of version 1, and not what was deleted later"
    found = {one["name"]: one for one in home.run("connector", "list", "payments")}
    assert found["old"]["records"] == 2


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: write_old(path, [row(1, 1, 1.005)]), "row 1: Column 'amount': 1.005 does not fit"),
        (lambda path: write_old(path, [row(1, 1), row(2, 2, note="n" * 21)]), "row 2: Column 'note'"),
        (lambda path: write_deltalake(str(path), pa.table({"ID": [1]})), "the source has no column ts"),
        (lambda path: None, "There is no Delta table at"),
    ],
)
def test_what_is_no_row_stops_the_connector_and_loads_nothing(home, make, tmp_path, spoil, words):
    spoil(tmp_path / "old")
    make()
    home.run("ingest", "payments", "--until-caught-up", code=1)
    found = {one["name"]: one for one in home.run("connector", "list", "payments")}
    assert found["old"]["state"] == "FAILED" and words in found["old"]["latest_error"], found["old"]
    assert found["new"]["state"] == "WAITING" and words in found["new"]["detail"]
    assert seen(home) == []


def test_a_filter_that_is_no_condition(home, make, tmp_path):
    write_old(tmp_path / "old", [row(1, 1)])
    make(', "filter": "nope = 3"')
    home.run("ingest", "payments", "--until-caught-up", code=1)
    found = home.run("connector", "list", "payments")[0]
    assert found["state"] == "FAILED" and "The filter 'nope = 3' cannot be applied" in found["latest_error"]


TWO = """
CREATE TABLE chained (id BIGINT NOT NULL, note VARCHAR) WITH ('connectors' = '[
  {"labels": ["a"], "transport": {"name": "delta_table_input", "config": {"uri": "URI/a", "mode": "snapshot"}}},
  {"labels": ["b"], "start_after": "a", "transport": {"name": "delta_table_input", "config":
    {"uri": "URI/b", "mode": "snapshot"}}},
  {"labels": ["live"], "start_after": "b", "format": {"name": "json"},
   "transport": {"name": "kafka_input", "config": {"topic": "TOPIC", "start_from": START}}}]');
"""


@pytest.mark.parametrize("start", ['"after_history"', '{"offsets": [6]}'])
def test_histories_that_follow_each_other_hand_over_together(home, broker, topic, tmp_path, start):
    def history(name, first, last):
        numbers = list(range(first, last))
        columns = {"id": numbers, "topic": [topic] * len(numbers), "partition": [0] * len(numbers), "offset": numbers}
        write_deltalake(str(tmp_path / name), pa.table(columns))

    history("a", 0, 3)
    history("b", 3, 6)
    produce(broker, topic, [TopicRecord(json.dumps({"insert": {"id": number}}).encode()) for number in range(8)])
    text = TWO.replace("URI", str(tmp_path)).replace("TOPIC", topic).replace("START", start)
    (tmp_path / "two.sql").write_text(text)
    home.run("table", "create", "-f", str(tmp_path / "two.sql"), "--kafka", broker)
    home.run("ingest", "chained", "--until-caught-up")
    assert [one["id"] for one in home.rows("select id from chained order by id limit 100")] == list(range(8))


def test_a_load_goes_on_only_on_what_it_began_with(home, make, broker, tmp_path):
    def write(path, *amounts):
        for part, amount in enumerate(amounts):
            one = {"ID": [part], "Amount": [amount], "note": ["x"], "ts": [when(part)], "part": [part]}
            write_deltalake(str(path), pa.table(one), mode="append", partition_by=["part"])

    write(tmp_path / "old", 1.0, 1.005, 3.0)
    make()
    changes = ("--set", "/connectors/old/max_batch_size=1", "--kafka", broker)
    home.run("table", "apply", "-f", str(tmp_path / "payments.sql"), *changes)
    home.run("ingest", "payments", "--until-caught-up", code=1)
    assert "part=1/" in home.messages and "1.005 does not fit" in home.messages
    assert [one[0] for one in seen(home)] == [0], "a commit for each file: the first is there"
    (tmp_path / "old").rename(tmp_path / "older")
    write(tmp_path / "old", 7.0, 8.0, 9.0)
    home.run("ingest", "payments", "--until-caught-up", code=1)
    assert "is not what the load began with (table: " in home.messages
    assert [one[0] for one in seen(home)] == [0]


def test_connectors_keep_their_names_and_a_new_table_starts_anew(home, make, broker, tmp_path):
    write_old(tmp_path / "old", [row(1, 1)])
    make()
    home.run("connector", "pause", "payments", "new")
    file = tmp_path / "payments.sql"
    file.write_text(file.read_text().replace('["new"]', '["newer"]'))
    home.run("table", "apply", "-f", str(file), "--kafka", broker, code=1)
    assert "holds rows under its connectors, which cannot be changed" in home.messages
    home.run("table", "drop", "payments", "--purge", "--yes")
    make()
    assert [one["state"] for one in home.run("connector", "list", "payments")] == ["RUNNING", "WAITING"]


def test_latest_counts_from_the_creation_where_nothing_is_waited_for(home, broker, topic, tmp_path):
    send(broker, topic, insert(1, 1))
    config = {"name": "kafka_input", "config": {"topic": topic}}
    live = json.dumps([{"name": "live", "transport": config, "format": {"name": "json"}}])
    (tmp_path / "t.sql").write_text(
        f"CREATE TABLE payments (id BIGINT, amount REAL, note VARCHAR) WITH ('connectors' = '{live}');"
    )
    home.run("table", "create", "-f", str(tmp_path / "t.sql"), "--kafka", broker)
    send(broker, topic, insert(2, 2, amount=1))
    assert [one[0] for one in seen(home)] == [2]
    home.run("ingest", "payments", "--until-caught-up")
    assert [one[0] for one in seen(home)] == [2]
