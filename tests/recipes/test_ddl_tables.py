"""Tables by DDL with a primary key and with a time column: history in buckets, live changes, deletes by key, moves."""

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from hybrid.jvm.topics import Record, produce
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
    produce(broker, topic, [Record(json.dumps(change).encode()) for change in changes])


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
